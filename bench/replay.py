"""(b) Requests per second of the replay at 100, 10,000 and 100,000 recorded calls, beside named peers.

Goals: flat over the number of recordings; 0.8 of a bare httptools server on uvloop that answers a constant; 20 times
mitmproxy's server replay. VCR.py, which answers inside the client's own process, is measured with the same client.

    python bench/replay.py --peers    # makes a throw-away environment for mitmproxy and VCR.py, then measures all
    python bench/replay.py            # ours and the bare server only

Load: wrk, one thread, 8 connections, one JSON body per recording in a scrambled walk over all of them. Ours and the
bare server are separate processes on the listening sockets of real sandboxes, wrk is the sandbox's agent; mitmproxy
can not be given a socket, so it and ours are compared once more on the host's loopback. Every configuration runs
several times, interleaved; ratios to the bare server are medians of the rounds, and the server's own CPU time per
request is printed beside the rates, for it depends less on what else the machine does. A first walk asks every request
for the first time and is printed by itself; what is compared is the walk after it, as the repeats of a task ask the
same requests again, byte for byte.
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parts.clock import ticks_s

if TYPE_CHECKING:
    from scoresheet.documents.task import Task

SIZES = (100, 10_000, 100_000)
ROUNDS = 3
SECONDS = 3
WALKS = {100: 1, 10_000: 4, 100_000: 25}
"""Seconds of the first walk."""
GOAL_BARE, GOAL_MITMPROXY, GOAL_FLAT = 0.8, 20.0, 0.8
PEERS = Path(tempfile.gettempdir()) / f"scoresheet-bench-peers-{os.geteuid()}"
MITMPROXY, VCRPY, REQUESTS = "mitmproxy==11.0.2", "vcrpy==9.4.2", "requests==2.34.2"
CONSTANT = b'{"ok":true,"recording":12345}'

LUA = """
local count, at = %d, 0
local head = "POST /refunds HTTP/1.1\\r\\nHost: api\\r\\nContent-Type: application/json\\r\\nContent-Length: "
request = function()
  at = (at + 61803) %% count
  local body = '{"amount":' .. at .. ',"currency":"eur","note":"refund of an order"}'
  return head .. #body .. "\\r\\n\\r\\n" .. body
end
"""
"""The whole request is written here: wrk.format puts the headers into another order in every process."""


def body(number: int) -> bytes:
    """The request body of one recording, as the load writes it."""
    return b'{"amount":%d,"currency":"eur","note":"refund of an order"}' % number


def answer(number: int) -> bytes:
    """The recorded answer."""
    return b'{"ok":true,"recording":%d}' % number


# -- servers, each a process of its own


def recorded(upstream: str, count: int) -> "Task":
    """A task with so many recorded calls."""
    from scoresheet.documents.task import Call, Task
    from scoresheet.documents.tool import RequestCopy
    from scoresheet.pack import fingerprint

    media = (("Content-Type", "application/json"),)
    calls = []
    for number in range(count):
        asked = json.loads(body(number))
        copy = RequestCopy(upstream=upstream, method="POST", path="/refunds", headers=media, body=asked)
        calls.append(
            Call(
                request_fingerprint=fingerprint.v2(copy.as_request()),
                request=copy,
                response_status=200,
                response_headers=media,
                response_bytes=answer(number).decode(),
                latency_ms_recorded=1.0,
            )
        )
    return Task(task_id="bench", prompt="", calls=tuple(calls))


def serve_ours(listening: socket.socket, count: int) -> None:
    """Our server, as a run has it: a tape, a session, a journal on disk."""
    from scoresheet.replay import journal as journals
    from scoresheet.replay.http import ReplayServer
    from scoresheet.replay.journal import CallJournal
    from scoresheet.replay.session import Session, Tape

    journals.MAX_BYTES = 1 << 40  # wrk asks more in a minute than an agent may in an episode
    task = recorded("API", count)
    began = time.perf_counter()
    tape = Tape.of(task, {})
    took = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder, ReplayServer() as server:
        journal = CallJournal(Path(folder) / "calls.jsonl")
        with server.episode({"api": listening}, {"api": "API"}, Session(tape), journal):
            print(f"ready {took:.2f}", flush=True)
            signal.sigwait({signal.SIGTERM})
        lines = 0
        with open(Path(folder) / "calls.jsonl", "rb") as file:
            for line in file:
                lines += b'"outcome":"hit"' in line
    print(lines, flush=True)


def serve_bare(listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
    """The limit: httptools on uvloop (and its own TLS), no headers read, no body read, one constant written."""
    import asyncio

    import httptools
    import uvloop

    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: %d\r\n\r\n" % len(CONSTANT)
    data = head + CONSTANT

    class Bare(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport, self.parser = transport, httptools.HttpRequestParser(self)

        def data_received(self, received: bytes) -> None:
            self.parser.feed_data(received)

        def on_message_complete(self) -> None:
            self.transport.write(data)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Bare, sock=listening, ssl=tls)
        print("ready 0", flush=True)
        await server.serve_forever()

    uvloop.run(main())


@dataclass
class Server:
    process: "subprocess.Popen[str]"
    made_s: float = 0.0

    def cpu_s(self) -> float:
        return ticks_s(self.process.pid)


@contextlib.contextmanager
def serving(kind: str, listening: socket.socket, count: int = 0) -> Iterator[Server]:
    words = [sys.executable, __file__, "--serve", kind, str(listening.fileno()), str(count)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=[listening.fileno()]) as process:
        try:
            assert process.stdout is not None
            yield Server(process, float(process.stdout.readline().split()[1]))
        finally:
            process.terminate()
            process.communicate(timeout=60)


SAMPLE_S = 0.1


@contextlib.contextmanager
def sampling(server: Server) -> Iterator[list[tuple[float, float]]]:
    """Time and the server's CPU seconds, all along."""
    samples: list[tuple[float, float]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_S):
            samples.append((time.monotonic(), server.cpu_s()))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


# -- load


@dataclass
class Load:
    per_second: float
    cpu_us: float


def parse(said: str, spent_s: float) -> Load:
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    done = int(re.findall(r"(\d+) requests in", said)[0])
    rate = float(re.findall(r"Requests/sec:\s+([0-9.]+)", said)[0])
    return Load(rate, spent_s / done * 1e6)


Sending = Callable[[int, float], str]
"""(recordings, seconds) → what wrk said."""


def measure(server: Server, send: Sending, count: int, seconds: float) -> Load:
    before = server.cpu_s()
    said = send(count, seconds)
    return parse(said, server.cpu_s() - before)


def best_of(loads: list[Load]) -> Load:
    """The least disturbed one."""
    return Load(max(load.per_second for load in loads), min(load.cpu_us for load in loads))


def wrk_words(count: int, seconds: float, lua: str, url: str) -> tuple[str, ...]:
    return (shutil.which("wrk") or "wrk", "-t1", "-c8", f"-d{max(1, round(seconds))}s", "-s", lua, url)


def on_loopback(url: str, folder: Path) -> Sending:
    def send(count: int, seconds: float) -> str:
        lua = folder / f"{count}.lua"
        lua.write_text(LUA % count)
        words = wrk_words(count, seconds, str(lua), url)
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    return send


# -- answers are right before they are timed


def prove(host: str, port: int, count: int, constant: bool = False) -> None:
    """Twenty recordings and one that is none. Raises `AssertionError` when an answer is wrong."""
    client = http.client.HTTPConnection(host, port, timeout=60)
    for number in [*random.Random(1).sample(range(count), min(20, count)), count - 1]:
        client.request("POST", "/refunds", body(number), {"Content-Type": "application/json"})
        found = client.getresponse()
        assert (found.status, found.read()) == (200, CONSTANT if constant else answer(number)), number
    if not constant:
        with contextlib.suppress(ConnectionError, http.client.HTTPException):  # mitmproxy may also cut the connection
            client.request("POST", "/refunds", body(count), {"Content-Type": "application/json"})
            assert client.getresponse().status >= 400
    client.close()


# -- the measurements


def ours_and_bare_in_a_sandbox() -> dict[str, list[Load]]:
    """Interleaved, through the listening sockets of real sandboxes; wrk is the agent. One load a round."""
    from scoresheet.sandbox.bwrap import BwrapSandbox
    from scoresheet.sandbox.spec import Door, Launch, Limits, SandboxSpec

    loads: dict[str, list[Load]] = {}

    def once(sandbox: BwrapSandbox, kind: str, count: int) -> None:
        files = ((f"/run/scoresheet/{count}.lua", (LUA % count).encode()),)
        limits = Limits(wall_clock_s=600, memory_bytes=None)
        doors = (Door("api", 8080),)
        script = " ".join(wrk_words(count, SECONDS, f"/run/scoresheet/{count}.lua", "http://127.0.0.1:8080"))
        walk = script.replace(f"-d{SECONDS}s", f"-d{WALKS[count] if kind == 'ours' else 1}s")  # over all recordings
        words = f"sleep 0.3; {walk}; echo MARK; {script}"
        with sandbox.open(SandboxSpec(doors=doors, limits=limits, files=files)) as opened:
            assert opened.evidence.state == "proved", opened.evidence
            with serving(kind, opened.sockets["api"], count) as server, sampling(server) as samples:
                ended = opened.start(Launch(("/bin/sh", "-c", words), (), b""))
        said = ended.stdout.decode()
        assert ended.exit_code == 0, (said, ended.stderr)
        first, _, steady = said.partition("MARK")
        asked = int(re.findall(r"(\d+) requests in", first)[0])
        if kind == "ours" and asked < count:
            print(f"  (a first walk came only to {asked:,} of {count:,} requests)")
        rate = parse(steady, 0).per_second
        end = samples[-1][0]
        window = [(at, cpu) for at, cpu in samples if end - SECONDS + 0.5 < at < end - 0.5]
        busy = (window[-1][1] - window[0][1]) / (window[-1][0] - window[0][0])
        loads.setdefault(f"{kind} {count}", []).append(Load(rate, busy / rate * 1e6))

    with BwrapSandbox() as sandbox:
        for _ in range(ROUNDS):
            for count in SIZES:
                once(sandbox, "bare", count)
                once(sandbox, "ours", count)
    return loads


def on_the_host(folder: Path, peers: Path | None) -> dict[str, Load]:
    best: dict[str, Load] = {}

    def keep(name: str, load: Load) -> None:
        best[name] = max(best.get(name, load), load, key=lambda one: one.per_second)

    for count in (100, 10_000):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            host, port = listening.getsockname()
            with contextlib.ExitStack() as stack:
                ours = stack.enter_context(serving("ours", listening, count))
                prove(host, port, count)
                send = on_loopback(f"http://{host}:{port}", folder)
                peer = stack.enter_context(mitmproxy(folder, peers, count)) if peers else None
                if peer:
                    prove("127.0.0.1", peer[1], count)
                for _ in range(ROUNDS):
                    keep(f"ours {count}", measure(ours, send, count, SECONDS))
                    if peer:
                        theirs = on_loopback(f"http://127.0.0.1:{peer[1]}", folder)
                        keep(f"mitmproxy {count}", measure(peer[0], theirs, count, SECONDS))
                best[f"our client {count}"] = Load(sequential(host, port, count), 0)
    with socket.create_server(("127.0.0.1", 0)) as listening, serving("ours", listening, SIZES[-1]) as server:
        send = on_loopback("http://{}:{}".format(*listening.getsockname()), folder)
        best["first"] = measure(server, send, SIZES[-1], 1)
    with socket.create_server(("127.0.0.1", 0)) as listening, serving("bare", listening):
        prove(*listening.getsockname(), 100, constant=True)
    return best


def sequential(host: str, port: int, count: int) -> float:
    """Requests per second of one Python client that waits for each answer."""
    client = http.client.HTTPConnection(host, port, timeout=60)
    began = time.perf_counter()
    for number in range(2000):
        client.request("POST", "/refunds", body(number * 61803 % count), {"Content-Type": "application/json"})
        client.getresponse().read()
    spent = time.perf_counter() - began
    client.close()
    return 2000 / spent


@contextlib.contextmanager
def mitmproxy(folder: Path, peers: Path, count: int) -> Iterator[tuple[Server, int]]:
    flows = folder / f"{count}.flows"
    subprocess.run([peers / "bin/python", __file__, "--write-flows", flows, str(count)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = ("connection_strategy=lazy", "server_replay_reuse=true", "server_replay_extra=404")
    more = (
        "server_replay_refresh=false",
        "flow_detail=0",
        f"confdir={folder}/mitmproxy",
        "store_streamed_bodies=false",
    )
    words = [peers / "bin/mitmdump", "-q", "--mode", "reverse:http://api.example:80", "-p", str(port), "-S", flows]
    for setting in (*settings, *more):
        words += ["--set", setting]
    with subprocess.Popen(words, text=True) as process:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield Server(process), port
        finally:
            process.terminate()
            process.wait(60)


def write_flows(path: str, count: int) -> None:
    """Run by the peers' Python: the recordings in mitmproxy's own format."""
    from mitmproxy import connection, http, io  # type: ignore[import-not-found]

    client = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2), timestamp_start=0)
    server = connection.Server(address=("api.example", 80))
    with open(path, "wb") as file:
        writer = io.FlowWriter(file)
        for number in range(count):
            flow = http.HTTPFlow(client, server)
            media = {"Content-Type": "application/json"}
            flow.request = http.Request.make("POST", "http://api.example:80/refunds", body(number), media)
            flow.response = http.Response.make(200, answer(number), media)
            writer.add(flow)


def replay_vcr(count: int, seconds: float) -> None:
    """Run by the peers' Python: requests per second of `requests` under a VCR.py cassette, first proved right."""
    import requests
    import vcr  # type: ignore[import-not-found]
    from vcr.cassette import Cassette  # type: ignore[import-not-found]
    from vcr.errors import CannotOverwriteExistingCassetteException  # type: ignore[import-not-found]
    from vcr.request import Request  # type: ignore[import-not-found]

    media = {"Content-Type": ["application/json"]}
    url = "http://api.example/refunds"
    recorder = vcr.VCR(record_mode="none", match_on=("method", "uri", "body"), serializer="json")
    folder = tempfile.mkdtemp()
    path = f"{folder}/cassette.json"
    with contextlib.suppress(Exception):
        Cassette.load(path=path)
    cassette = Cassette(path, serializer=recorder.serializers["json"], record_mode=vcr.mode.NEW_EPISODES)
    for number in range(count):
        reply = {"status": {"code": 200, "message": "OK"}, "headers": media, "body": {"string": answer(number)}}
        cassette.append(Request("POST", url, body(number), {"Content-Type": "application/json"}), reply)
    cassette._save(force=True)
    done, number = 0, 0
    with recorder.use_cassette(path, allow_playback_repeats=True), requests.Session() as session:
        for sample in (0, count // 2, count - 1):
            assert session.post(url, data=body(sample), headers={"Content-Type": "application/json"}).content == answer(
                sample
            )
        with contextlib.suppress(CannotOverwriteExistingCassetteException):
            session.post(url, data=body(count), headers={"Content-Type": "application/json"})
            raise AssertionError("VCR.py answered what was not recorded")
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            number = (number + 61803) % count
            session.post(url, data=body(number), headers={"Content-Type": "application/json"})
            done += 1
        print(done / (time.perf_counter() - began))


def make_peers() -> Path:
    """A throw-away environment; mitmproxy and what we use can't be solved into one."""
    if not (PEERS / "bin/mitmdump").exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        words = [PEERS / "bin/pip", "install", "--quiet", MITMPROXY, VCRPY, REQUESTS]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return PEERS


def main() -> int:
    from importlib.metadata import version

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="Also measure mitmproxy and VCR.py.")
    peers = make_peers() if parser.parse_args().peers else None
    assert shutil.which("wrk"), "this bench needs wrk (Debian: apt-get install wrk)"
    print(
        f"Python {platform.python_version()}, Linux {platform.release()}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"httptools {version('httptools')}, uvloop {version('uvloop')};"
        f" wrk -t1 -c8 -d{SECONDS}s; best of {ROUNDS} rounds"
    )
    missed = []

    def goal(what: str, ratio: float, least: float) -> None:
        print(f"  {what}: {ratio:.2f} (goal: at least {least})")
        if ratio < least:
            missed.append(what)

    with tempfile.TemporaryDirectory() as temporary:
        host = on_the_host(Path(temporary), peers)
    inside = ours_and_bare_in_a_sandbox()
    print("through the sandbox's socket:")
    for count in SIZES:
        ours, bare = (best_of(inside[f"{kind} {count}"]) for kind in ("ours", "bare"))
        print(
            f"  {count:7,} recorded: {ours.per_second:9,.0f}/s ({ours.cpu_us:.1f} us CPU each),"
            f" bare {bare.per_second:9,.0f}/s ({bare.cpu_us:.1f} us)"
        )
    first = host["first"]
    print(
        f"  {SIZES[-1]:7,} recorded, each request for the first time (on the host's loopback):"
        f" {first.per_second:,.0f}/s ({first.cpu_us:.1f} us)"
    )
    for count in SIZES:
        pairs = list(zip(inside[f"ours {count}"], inside[f"bare {count}"], strict=True))
        rates = statistics.median(ours.per_second / bare.per_second for ours, bare in pairs)
        costs = statistics.median(bare.cpu_us / ours.cpu_us for ours, bare in pairs)
        print(f"  CPU time of the bare server over ours at {count:,}: {costs:.2f}")
        goal(f"rate over the bare server's, median of the rounds, at {count:,}", rates, GOAL_BARE)
    pairs = list(zip(inside["ours 100000"], inside["ours 100"], strict=True))
    goal(
        "rate at 100,000 recordings over that at 100, median of the rounds",
        statistics.median(many.per_second / few.per_second for many, few in pairs),
        GOAL_FLAT,
    )
    if peers:
        print(f"on the host's loopback, {MITMPROXY} (reverse mode, server replay, reuse, extra=404), {VCRPY}:")
        for count in (100, 10_000):
            ours, theirs = host[f"ours {count}"], host[f"mitmproxy {count}"]
            print(
                f"  {count:7,} recorded: {ours.per_second:9,.0f}/s ({ours.cpu_us:.1f} us CPU),"
                f" mitmproxy {theirs.per_second:9,.0f}/s ({theirs.cpu_us:.0f} us)"
            )
            goal(f"times mitmproxy at {count:,}", ours.per_second / theirs.per_second, GOAL_MITMPROXY)
            words = [peers / "bin/python", __file__, "--vcr", str(count), "5"]
            vcr = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            mine = host[f"our client {count}"].per_second
            print(
                f"  {count:7,} recorded, one Python client that waits: {mine:9,.0f}/s,"
                f" under VCR.py {vcr:9,.1f}/s: {mine / vcr:.0f} times"
            )
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", "ours", fd, count]:
            serve_ours(socket.socket(fileno=int(fd)), int(count))
        case ["--serve", "bare", fd, _]:
            serve_bare(socket.socket(fileno=int(fd)))
        case ["--write-flows", path, count]:
            write_flows(path, int(count))
        case ["--vcr", count, seconds]:
            replay_vcr(int(count), float(seconds))
        case _:
            sys.exit(main())
