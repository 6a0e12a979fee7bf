"""Requests per second over HTTPS as a ratio to plain HTTP: the same server, recordings and client.

    python bench/https.py

Load: wrk, one thread, 8 kept connections, one recorded GET of 256 bytes, three interleaved rounds of each; then
new connections, one request each. The server runs in its own process, as in a run. Goal: 0.25 of plain HTTP with kept
connections, for TLS must encrypt what HTTP only copies.
"""

import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

HOST = "api.example.com"
ROUNDS, SECONDS = 3, 3
GOAL = 0.25


def serve(plain: socket.socket, secure: socket.socket, told: Connection) -> None:
    from scoresheet.documents.task import Call, Task
    from scoresheet.documents.tool import RequestCopy
    from scoresheet.pack import fingerprint
    from scoresheet.replay.dns import NameLog
    from scoresheet.replay.hosts import Hosts
    from scoresheet.replay.http import Public, ReplayServer
    from scoresheet.replay.journal import CallJournal
    from scoresheet.replay.session import Session, Tape

    request = RequestCopy(upstream="api", method="GET", path="/a")
    call = Call(
        request_fingerprint=fingerprint.v2(request.as_request()),
        request=request,
        response_status=200,
        response_bytes="x" * 256,
        latency_ms_recorded=1.0,
    )
    tape = Tape.of(Task(task_id="t", prompt="p", calls=(call,)), {}, "tool-replay-v2", "last")
    with tempfile.TemporaryDirectory() as folder, ReplayServer() as server:
        public = Public(Hosts.of({"api": HOST}), server.authority, NameLog())
        doors = {"api": plain, "web-443": secure}
        for number in range(ROUNDS * 4):  # one episode a measurement: a journal is bounded
            journal = CallJournal(Path(folder) / str(number))
            with server.episode(doors, {"api": "api"}, Session(tape), journal, public=public):
                told.send("ready")
                told.recv()


def spent_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(scheme: str, port: int, pid: int, *headers: str) -> tuple[float, float]:
    """(requests per second, microseconds of the server's processor time for each)"""
    before = spent_s(pid)
    words = ["wrk", "-t1", "-c8", f"-d{SECONDS}", "-H", f"Host: {HOST}"]
    for header in headers:
        words += ["-H", header]
    said = subprocess.run([*words, f"{scheme}://127.0.0.1:{port}/a"], capture_output=True, text=True, check=True).stdout
    rates, count = re.search(r"Requests/sec:\s+([\d.]+)", said), re.search(r"(\d+) requests in", said)
    assert rates is not None, said
    assert count is not None, said
    assert "Non-2xx" not in said, said
    return float(rates[1]), 1e6 * (spent_s(pid) - before) / int(count[1])


def main() -> int:
    plain, secure = (socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2))
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(plain, secure, theirs), daemon=True)
    server.start()
    ports = {"http": plain.getsockname()[1], "https": secure.getsockname()[1]}
    missed = False
    assert server.pid is not None
    for name, headers in (("kept connections", ()), ("a connection each", ("Connection: close",))):
        found: dict[str, list[tuple[float, float]]] = {"http": [], "https": []}
        for _ in range(ROUNDS):
            for scheme, results in found.items():
                ours.recv()
                results.append(rate(scheme, ports[scheme], server.pid, *headers))
                ours.send("next")
        pairs = list(zip(found["https"], found["http"], strict=True))
        ratio = statistics.median(one[0] / other[0] for one, other in pairs)
        dearer = statistics.median(one[1] / other[1] for one, other in pairs)
        for scheme, results in found.items():
            rates, costs = (statistics.median(column) for column in zip(*results, strict=True))
            print(f"{name}, {scheme}: {rates:,.0f}/s, {costs:.0f} µs of the server each")
        print(f"{name}: HTTPS has {ratio:.2f} of the rate of HTTP and takes {dearer:.2f} times its processor time")
        missed |= not headers and ratio < GOAL
    server.join()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
