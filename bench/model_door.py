"""(c) Streams through the model's door against the same streams going direct. Goal: at most 1.15 times the latency.

    python bench/model_door.py [--streams 100] [--rounds 5]

Peer: the same endpoint without the door. Endpoint, door and client are processes of their own on loopback; the door is
what a run opens for an episode, with a key, a log, the card's controls and every answer decoded. 100 streams at once,
each on a connection of its own, of chat completions as providers send them: after `THINK_S` a chunk every `GAP_S`.
Interleaved rounds. The time to the first byte of the answer's stream, the delay of every later chunk against its
schedule, and the whole time.

Then the same with an endpoint that neither thinks nor waits, which no model does: the cost of the door itself. Answers
are compared byte for byte. Last, memory: 10,000 exchanges in one episode, read from outside (VmRSS).
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parts.clock import ticks_s

GOAL = 1.15
THINK_S = 0.25
GAP_S = 0.025
CHUNKS = 80
KEY = "sk-bench-0123456789abcdef0123456789abcdef"
BODY = json.dumps(
    {
        "model": "bench",
        "temperature": 0,
        "seed": 7,
        "stream": True,
        "messages": [{"role": "user", "content": "word " * 400}],
        "tools": [{"type": "function", "function": {"name": "get_item", "parameters": {"type": "object"}}}],
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def events(count: int) -> list[bytes]:
    """The chunks of one answer."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench-2026-01-01"}
    made = [{**base, "choices": [{"index": 0, "delta": {"content": f" token{n}"}}]} for n in range(count - 2)]
    made.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": 400, "completion_tokens": count, "total_tokens": 400 + count}
    made.append({**base, "choices": [], "usage": usage})
    lines = [b"data: %b\n\n" % json.dumps(each).encode() for each in made]
    return [b"%x\r\n%b\r\n" % (len(line), line) for line in lines]


async def endpoint(think_s: float, gap_s: float, count: int) -> None:
    """Serve until standard input ends; the port is the first line out."""
    chunks = events(count)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                began = time.monotonic() + think_s
                await asyncio.sleep(think_s)
                writer.write(HEAD + chunks[0])
                for place, chunk in enumerate(chunks[1:], 1):
                    if gap_s:
                        await asyncio.sleep(max(0.0, began + place * gap_s - time.monotonic()))
                    writer.write(chunk)
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


def door(port: int, folder: str) -> None:
    """Open a door to the endpoint until standard input ends; its port is the first line out."""
    from scoresheet.model.door import ModelDoor
    from scoresheet.model.log import ModelLog
    from scoresheet.model.observed import Exchange, Pinned
    from scoresheet.model.upstream import ModelUpstream
    from scoresheet.model.wire.parts import Asked

    pinned = Pinned(0.0, (7,), "bench", frozenset({"get_item"}), 40)
    heard = 0

    def hear(exchange: Exchange) -> None:
        nonlocal heard
        heard += 1

    def screen(asked: Asked) -> str | None:
        return "outside" if pinned.outside(asked) else None

    opened = ModelDoor(ModelUpstream.parse(f"openai=http://127.0.0.1:{port}/v1"), KEY)
    log = ModelLog(Path(folder, "model.jsonl"))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        with opened.episode(listening, log, screen, hear):
            print(listening.getsockname()[1], flush=True)
            sys.stdin.read()
    log.close()
    opened.close()
    print(heard, flush=True)


async def client(port: int, streams: int, think_s: float, gap_s: float, count: int, each: int) -> dict[str, Any]:
    """Times of so many streams at once, `each` after each other on one connection."""
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dummy\r\n"
    request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
    body = b"".join(events(count)) + b"0\r\n\r\n"
    firsts: list[float] = []
    wholes: list[float] = []
    late: list[float] = []

    async def one(number: int) -> None:
        await asyncio.sleep(number * 0.001)  # people do not start in the same microsecond
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(each):
            began = time.monotonic()
            writer.write(request)
            await reader.readuntil(b"\r\n\r\n")
            found, first = b"", 0.0
            while not found.endswith(b"0\r\n\r\n"):
                piece = await reader.read(65536)
                assert piece, "the stream was cut"
                now = time.monotonic()
                first = first or now
                found += piece
                if gap_s:
                    place = found.count(b"\r\ndata: ") - 1
                    late.append(now - began - think_s - place * gap_s)
            assert found == body, "not the bytes that the endpoint sent"
            firsts.append(first - began)
            wholes.append(time.monotonic() - began)
        writer.close()

    began = time.monotonic()
    await asyncio.gather(*(one(number) for number in range(streams)))
    return {"first": firsts, "whole": wholes, "late": late, "all": time.monotonic() - began}


@contextlib.contextmanager
def started(*words: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A part of the bench as a process of its own, and its port."""
    command = [sys.executable, __file__, *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(30)


def measured(port: int, *words: object) -> dict[str, Any]:
    command = [sys.executable, __file__, "client", str(port), *map(str, words)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def compare(folder: Path, streams: int, rounds: int, think_s: float, gap_s: float, count: int) -> dict[str, float]:
    """Door over direct: medians and 95th percentiles of the rounds' medians."""
    folder.mkdir()
    seen: dict[str, list[dict[str, Any]]] = {"direct": [], "door": []}
    with started("endpoint", think_s, gap_s, count) as (_, direct), started("door", direct, folder) as (process, port):
        measured(port, 4, think_s, gap_s, count, 1)
        before = ticks_s(process.pid)
        for _ in range(rounds):
            seen["direct"].append(measured(direct, streams, think_s, gap_s, count, 1))
            seen["door"].append(measured(port, streams, think_s, gap_s, count, 1))
        spent_s = ticks_s(process.pid) - before
    ratios = {}
    for name, label in (("first", "first byte"), ("whole", "whole stream")):
        for take, what in ((statistics.median, "median"), (p95, "95th percentile")):
            left, right = (statistics.median(take(each[name]) for each in seen[side]) for side in ("door", "direct"))
            ratios[f"{name} {what}"] = left / right
            shown = f"{label}, {what}: door {left * 1e3:.1f} ms, direct {right * 1e3:.1f} ms"
            print(f"  {shown}, ratio {left / right:.3f}")
    if gap_s:
        left, right = (statistics.median(p95(each["late"]) for each in seen[side]) for side in ("door", "direct"))
        print(f"  a chunk's delay, 95th percentile: door {left * 1e3:.1f} ms, direct {right * 1e3:.1f} ms")
    size = len(b"".join(events(count)))
    rates = {side: statistics.median(streams * size / each["all"] for each in seen[side]) for side in seen}
    ratios["throughput"] = rates["door"] / rates["direct"]
    told = ", ".join(f"{side} {rate / 1e6:.2f} MB/s" for side, rate in rates.items())
    print(f"  throughput: {told}, ratio {ratios['throughput']:.3f}")
    calls = streams * rounds
    print(f"  the door's processor time: {spent_s / calls * 1e3:.2f} ms a stream of {count} chunks")
    return ratios


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def rss(pid: int) -> int:
    """Bytes of memory that a process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def memory(folder: Path, exchanges: int, count: int = 20) -> tuple[int, int]:
    """Bytes of the door after the first tenth of so many exchanges in one episode, and after the last."""
    folder.mkdir()
    with started("endpoint", 0, 0, count) as (_, direct), started("door", direct, folder) as (process, port):
        measured(port, 10, 0, 0, count, exchanges // 100)
        early = rss(process.pid)
        measured(port, 10, 0, 0, count, exchanges // 10 - exchanges // 100)
        late = rss(process.pid)
    lines = sum(1 for _ in (folder / "model.jsonl").open("rb"))
    assert lines == exchanges, lines
    return early, late


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("streams", 100), ("rounds", 5), ("exchanges", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"peer: the same endpoint without the door; Python {platform.python_version()}, {os.cpu_count()} processors,"
        f" load {load:.1f}; medians of {given.rounds} interleaved rounds, every byte compared"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        print(f"{given.streams} streams at once, {THINK_S} s to the first token, then {1 / GAP_S:.0f} tokens a second:")
        ratios = compare(folder / "model", given.streams, given.rounds, THINK_S, GAP_S, CHUNKS)
        print(f"{given.streams} streams at once from an endpoint that never waits:")
        compare(folder / "bare", given.streams, given.rounds, 0, 0, CHUNKS)
        early, late = memory(folder / "memory", given.exchanges)
    print(
        f"memory: {early >> 20} MiB after {given.exchanges // 10}, {late >> 20} MiB after {given.exchanges} exchanges"
    )
    worst = max(ratios["first median"], ratios["whole median"])
    print(f"goal: at most {GOAL} times the latency: {'met' if worst <= GOAL else 'MISSED'} ({worst:.3f})")
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["endpoint", think, gap, count]:
            asyncio.run(endpoint(float(think), float(gap), int(count)))
        case ["door", port, place]:
            door(int(port), place)
        case ["client", port, streams, think, gap, count, each]:
            print(
                json.dumps(
                    asyncio.run(client(int(port), int(streams), float(think), float(gap), int(count), int(each)))
                )
            )
        case _:
            sys.exit(main())
