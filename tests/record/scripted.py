"""A real service on the loopback interface that answers with the very bytes that a test gives it."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Step = bytes | float | str
"""Bytes to send, seconds to wait, or `reset`: what the service does after it has read a request; then it closes."""


@dataclass
class Scripted:
    """The service: where it listens, and what it was sent."""

    address: str
    port: int
    requests: list[bytes] = field(default_factory=list)


@contextlib.contextmanager
def scripted(*steps: Step, react: Callable[[bytes], tuple[Step, ...]] | None = None) -> Iterator[Scripted]:
    """A service that does `steps` (or what `react` says) for every request."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    service = Scripted(f"http://127.0.0.1:{port}", port)
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=serve, args=(connection,), daemon=True)
            threads.append(thread)
            thread.start()

    def serve(connection: socket.socket) -> None:
        with connection:
            request = read_message(connection)
            service.requests.append(request)
            for step in steps if react is None else react(request):
                match step:
                    case bytes():
                        connection.sendall(step)
                    case "reset":
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                    case _:
                        time.sleep(float(step))

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for each in threads:
            each.join(timeout=5)


def read_message(connection: socket.socket) -> bytes:
    """One HTTP request, as its bytes came."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    chunked = any(line.startswith(b"transfer-encoding:") and b"chunked" in line for line in lines)
    while (not body.endswith(b"0\r\n\r\n")) if chunked else (len(body) < length):
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return head + b"\r\n\r\n" + body


def exchange(address: str, request: bytes, timeout_s: float = 10) -> bytes:
    """Every byte that comes back for `request`, until the other side closes. Raises `ConnectionResetError`."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(request)
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer
