"""(d) Requests per second over HTTPS as a ratio to plain HTTP, to a bare TLS server and to mitmproxy's replay.

    python bench/https.py            # 100, 10,000 and 100,000 recorded calls: HTTP, HTTPS, HTTP/2, a bare TLS server
    python bench/https.py --peers    # and mitmproxy's server replay behind TLS, in the environment of bench/replay.py

Load: wrk, one thread, 8 kept connections, the walk of bench/replay.py over all recordings after a first walk that asked
for each; h2load (Debian's nghttp2-client), 8 connections, for HTTP/2. Rounds are interleaved. Servers are processes of
their own, and what is compared is their processor time for each request, in nanoseconds of the kernel's scheduler: on a
machine that does other work too it says more than a rate; rates and the load are printed beside it.
Goals: HTTPS on kept connections 0.6 of HTTP, flat within 0.8 from 100 to 100,000 recordings, 20 times mitmproxy.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import replay
from parts.clock import process_s

HOST = "api.example.com"
SIZES = (100, 10_000, 100_000)
ROUNDS, SECONDS, STREAMS = 5, 3, 5_000
GOAL, GOAL_FLAT, GOAL_MITMPROXY = 0.6, 0.8, 20.0


# -- servers, each a process of its own


def serve_ours(plain: socket.socket, secure: socket.socket, count: int) -> None:
    """Our server at a plain door and at a public host's, on one tape."""
    from scoresheet.replay import journal as journals
    from scoresheet.replay.dns import NameLog
    from scoresheet.replay.hosts import Hosts
    from scoresheet.replay.http import Public, ReplayServer
    from scoresheet.replay.journal import CallJournal
    from scoresheet.replay.session import Session, Tape

    journals.MAX_BYTES = 1 << 40  # wrk asks more in a minute than an agent may in an episode
    tape = Tape.of(replay.recorded("api", count), {})
    with tempfile.TemporaryDirectory() as folder, ReplayServer() as server:
        public = Public(Hosts.of({"api": HOST}), server.authority, NameLog())
        doors = {"api": plain, "web-443": secure}
        with server.episode(
            doors, {"api": "api"}, Session(tape), CallJournal(Path(folder) / "calls.jsonl"), public=public
        ):
            print("ready", flush=True)
            signal.sigwait({signal.SIGTERM})


def serve_bare(secure: socket.socket) -> None:
    """The limit: the bare server of bench/replay.py behind TLS."""
    from scoresheet.authority import Authority

    replay.serve_bare(secure, Authority(http2=False).server)


@contextlib.contextmanager
def serving(kind: str, count: int, *listening: socket.socket) -> Iterator[int]:
    """The server's process id."""
    fds = [each.fileno() for each in listening]
    words = [sys.executable, __file__, "--serve", kind, str(count), *map(str, fds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=fds) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield process.pid
        finally:
            process.terminate()
            process.communicate(timeout=60)


# -- load


@dataclass
class Load:
    per_second: float
    cpu_us: float
    done: int = 0


def measured(pid: int, words: list[str], done: str, rate: str) -> Load:
    before = process_s(pid)
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    spent = process_s(pid) - before
    assert "Non-2xx" not in said, said
    assert not re.search(r"connect [1-9]|read [1-9]|write [1-9]", said), (
        said
    )  # one that took over 2 s is slow, not wrong
    count, per_second = re.search(done, said), re.search(rate, said)
    assert count is not None, said
    assert per_second is not None, said
    return Load(float(per_second[1]), 1e6 * spent / max(1, int(count[1])), int(count[1]))


def by_wrk(pid: int, folder: Path, url: str, count: int, seconds: int = SECONDS, *headers: str) -> Load:
    lua = folder / f"{count}-{len(headers)}.lua"
    written = replay.LUA % count
    for header in headers:
        written = written.replace("Content-Type", f"{header}\\r\\nContent-Type", 1)
    lua.write_text(written.replace("Host: api", f"Host: {HOST}"))
    words = ["wrk", "-t1", "-c8", f"-d{seconds}s", "-s", str(lua), url]
    return measured(pid, words, r"(\d+) requests in", r"Requests/sec:\s+([\d.]+)")


def by_h2load(pid: int, folder: Path, url: str) -> Load:
    """HTTP/2: one request again and again, for h2load has no bodies that differ."""
    (folder / "body").write_bytes(replay.body(7))
    words = ["h2load", "-c8", "-m1", f"-n{STREAMS}", "-d", str(folder / "body"), "-H", f":authority: {HOST}"]
    words += ["-H", "content-type: application/json", url]
    return measured(pid, words, rf"({STREAMS}) 2xx", r"finished in [^,]*, ([\d.]+) req/s")


def prove(port: int, count: int, secure: bool) -> None:
    """Answers are right before they are timed."""
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port)) as raw:
        client = context.wrap_socket(raw, server_hostname=HOST) if secure else raw
        for number in (0, count // 2, count - 1):
            body = replay.body(number)
            head = f"POST /refunds HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            said = b""
            while b"}" not in said:
                said += client.recv(65536)
            assert said.startswith(b"HTTP/1.1 200"), said
            assert said.endswith(replay.answer(number)), said
        client.close()


def median(loads: list[Load], of: str = "cpu_us") -> float:
    return statistics.median(getattr(load, of) for load in loads)


# -- the measurements


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", action="store_true", help="measure mitmproxy as well")
    asked = parser.parse_args()
    costs: dict[tuple[str, int], float] = {}
    missed: list[str] = []

    def goal(what: str, found: float, least: float) -> None:
        print(f"{what}: {found:.2f} (goal: at least {least})")
        if found < least:
            missed.append(what)

    def told(what: str, loads: list[Load]) -> None:
        print(f"  {what}: {median(loads, 'per_second'):9,.0f}/s, {median(loads):6.1f} µs of the server each")

    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        bare = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        bare_pid = stack.enter_context(serving("bare", 0, bare))
        bare_url = "https://127.0.0.1:{1}/".format(*bare.getsockname())
        bare_loads = []
        for count in SIZES:
            with contextlib.ExitStack() as one:
                urls, pids = {}, {}
                for way, scheme in (
                    ("HTTP", "http"),
                    ("HTTPS", "https"),
                ):  # each its own: what is remembered is bounded
                    doors = [one.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512)) for _ in range(2)]
                    pids[way] = one.enter_context(serving("ours", count, *doors))
                    urls[way] = f"{scheme}://127.0.0.1:{doors[way == 'HTTPS'].getsockname()[1]}/"
                loads: dict[str, list[Load]] = {way: [] for way in (*urls, "HTTP/2")}
                for way, url in urls.items():
                    prove(int(url.rpartition(":")[2].strip("/")), count, way == "HTTPS")
                    seconds = max(1, count // 20_000)
                    while by_wrk(pids[way], folder, url, count, seconds).done < count:  # a first walk over everything
                        seconds *= 2
                for _ in range(ROUNDS):
                    for way, url in urls.items():
                        loads[way].append(by_wrk(pids[way], folder, url, count))
                    bare_loads.append(by_wrk(bare_pid, folder, bare_url, count))
                if shutil.which("h2load"):
                    for _ in range(ROUNDS):
                        loads["HTTP/2"].append(by_h2load(pids["HTTPS"], folder, urls["HTTPS"] + "refunds"))
                print(f"{count:,} recordings, load {os.getloadavg()[0]:.1f}")
                for way, found in loads.items():
                    if found:
                        told(way, found)
                        costs[way, count] = median(found)
                if count == SIZES[0]:
                    for way, url in urls.items():
                        closing = [
                            by_wrk(pids[way], folder, url, count, SECONDS, "Connection: close") for _ in range(3)
                        ]
                        told(f"{way}, a connection each", closing)
        told("bare TLS server, a constant", bare_loads)
        for count in SIZES:
            ratio = costs["HTTP", count] / costs["HTTPS", count]
            goal(f"HTTPS of HTTP at {count:,}, by processor time", ratio, GOAL)
        print(f"HTTPS of the bare TLS server at {SIZES[0]:,}: {median(bare_loads) / costs['HTTPS', SIZES[0]]:.2f}")
        for way in ("HTTP", "HTTPS", "HTTP/2"):
            if (way, SIZES[-1]) in costs:
                flat = costs[way, SIZES[0]] / costs[way, SIZES[-1]]
                goal(f"{way} at {SIZES[-1]:,} of {SIZES[0]:,} recordings, by processor time", flat, GOAL_FLAT)
        if asked.peers:
            replay.make_peers()
            for count in SIZES[:2]:
                with replay.mitmproxy(folder, replay.PEERS, count) as (server, port):
                    url = f"https://127.0.0.1:{port}/"
                    prove(port, count, secure=True)
                    theirs = [by_wrk(server.process.pid, folder, url, count) for _ in range(3)]
                told(f"{replay.MITMPROXY} over TLS, {count:,} recordings", theirs)
                goal(f"times mitmproxy over TLS at {count:,}", median(theirs) / costs["HTTPS", count], GOAL_MITMPROXY)
    for what in missed:
        print(f"missed: {what}")
    return int(bool(missed))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", "ours", count, plain, secure]:
            serve_ours(socket.socket(fileno=int(plain)), socket.socket(fileno=int(secure)), int(count))
        case ["--serve", "bare", _, secure]:
            serve_bare(socket.socket(fileno=int(secure)))
        case _:
            sys.exit(main())
