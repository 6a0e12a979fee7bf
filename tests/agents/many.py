"""Asks by 64 connections at once, in another order for each seed, and answers with a digest of all that it was told.

many.py http|https|http2 ITEMS TIMES — each item TIMES times; over HTTP/2 four requests of a connection are under way.
"""

import asyncio
import hashlib
import json
import os
import random
import ssl
import sys
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

CONNECTIONS, STREAMS = 64, 4
HOST = "api.example.com"
Ask = Callable[[list[int]], Awaitable[list[str]]]


def parts(item: int) -> tuple[str, str, bytes]:
    """Method, target and body that ask for an item."""
    return ("POST", "/items", b'{"n":%d}' % item) if item % 2 else ("GET", f"/items/{item}", b"")


async def opened(way: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if way == "http":
        place = urlsplit(os.environ["SCORESHEET_TOOLS_URL"])
        return await asyncio.open_connection(place.hostname, place.port)
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"] if way == "http2" else ["http/1.1"])
    return await asyncio.open_connection(HOST, 443, ssl=context)


def by_http_1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ask:
    async def ask(items: list[int]) -> list[str]:
        told = []
        for item in items:
            method, target, body = parts(item)
            media = "Content-Type: application/json\r\n" if body else ""
            head = f"{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n{media}Content-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            said = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert said.startswith("http/1.1 200"), said
            size = int(said.partition("content-length:")[2].partition("\r\n")[0])
            told.append((await reader.readexactly(size)).decode())
        return told

    return ask


def by_http_2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ask:
    from h2 import events
    from h2.config import H2Configuration
    from h2.connection import H2Connection

    spoken = H2Connection(H2Configuration(header_encoding=None))
    spoken.initiate_connection()

    async def ask(items: list[int]) -> list[str]:
        told: dict[int, str] = {}
        for item in items:
            method, target, body = parts(item)
            stream = spoken.get_next_available_stream_id()
            told[stream] = ""
            media = [("content-type", "application/json")] if body else []
            head = [(":method", method), (":scheme", "https"), (":authority", HOST), (":path", target), *media]
            spoken.send_headers(stream, head, end_stream=not body)
            if body:
                spoken.send_data(stream, body, end_stream=True)
        missing = set(told)
        while missing:
            writer.write(spoken.data_to_send())
            for event in spoken.receive_data(await reader.read(65536)):
                match event:
                    case events.ResponseReceived():
                        assert (b":status", b"200") in event.headers, event.headers
                    case events.DataReceived():
                        told[event.stream_id] += event.data.decode()
                        spoken.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    case events.StreamEnded():
                        missing.discard(event.stream_id)
                    case events.StreamReset() | events.ConnectionTerminated():
                        raise AssertionError(event)
        return list(told.values())

    return ask


async def main(way: str, items: int, times: int) -> None:
    asked = [*range(items)] * times
    random.Random(os.environ["SCORESHEET_SEED"]).shuffle(asked)
    ready, said = asyncio.Barrier(CONNECTIONS), []

    async def client(number: int) -> None:
        reader, writer = await opened(way)
        ask = (by_http_2 if way == "http2" else by_http_1)(reader, writer)
        own = asked[number::CONNECTIONS]
        await ready.wait()  # every connection is open
        for place in range(0, len(own), STREAMS):
            some = own[place : place + STREAMS]
            said.extend(f"{item} {text}" for item, text in zip(some, await ask(some), strict=True))
        writer.close()

    await asyncio.gather(*map(client, range(CONNECTIONS)))
    print(json.dumps({"said": hashlib.sha256("\n".join(sorted(said)).encode()).hexdigest()}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
