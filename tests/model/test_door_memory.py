"""What a door holds, measured from outside, over very many exchanges of one episode."""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.model.doors import Service

HOUSE = Path(__file__).parents[2]
EXCHANGES, CLIENTS = 10_000, 8
WORDS = [f"word{number} " for number in range(64)]
EVENTS: list[Any] = [
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
    for word in WORDS
]
EVENTS += [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
EVENTS += [{"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 64}}]
STREAM = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in EVENTS) + b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def streamed(client):
    half = len(STREAM) // 2
    client.sendall(HEAD + b"%x\r\n%b\r\n" % (half, STREAM[:half]))
    client.sendall(b"%x\r\n%b\r\n" % (len(STREAM) - half, STREAM[half:]) + END)
    return True


def ask(port, numbers):
    """So many calls on one connection, each a question of its own."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        for number in numbers:
            messages = [{"role": "user", "content": f"{number} " + "text " * 400}]
            body = json.dumps({"model": "m", "temperature": 0, "seed": 7, "stream": True, "messages": messages})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall((head + body).encode())
            found = b""
            while not found.endswith(END):
                piece = client.recv(65536)
                assert piece, "the door closed"
                found += piece


def resident(pid):
    """Bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def asked(port, start, stop):
    threads = [threading.Thread(target=ask, args=(port, range(start + n, stop, CLIENTS))) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.long
def test_a_doors_memory_is_flat_over_ten_thousand_exchanges(tmp_path):
    with Service(streamed) as service:
        port = service.address.partition("localhost:")[2].partition("/")[0]
        words = [sys.executable, "-m", "tests.model.door_process", port, str(tmp_path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HOUSE) as process:
            door = int(process.stdout.readline())
            asked(door, 0, EXCHANGES // 10)
            service.requests.clear()
            early = resident(process.pid)
            asked(door, EXCHANGES // 10, EXCHANGES)
            late = resident(process.pid)
            process.stdin.write("\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline())  # the whole log was folded in the same process
            folded = resident(process.pid)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.wait(60) == 0
    assert told == {"heard": EXCHANGES, "calls": EXCHANGES, "tokens_in": 10 * EXCHANGES}
    print(f"{early >> 10} KiB after {EXCHANGES // 10}, {late >> 10} KiB after {EXCHANGES}, folded {folded >> 10} KiB")
    size = (tmp_path / "model.jsonl").stat().st_size
    assert size > 50 << 20
    assert late - early < 8 << 20
    assert folded - early < 16 << 20
