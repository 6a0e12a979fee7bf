"""The MCP server that is recorded, and the two ways by which a command comes to it, as it will in a run.

`$SCORESHEET_MCP_URL` (streamable HTTP) and `scoresheet-mcp` on PATH (stdio). A server that is a command runs behind
either: on stdio line by line as it is; one that is an address is reached through the recording proxy.
"""

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from scoresheet.errors import Usage
from scoresheet.record import mcp, mcp_tee
from scoresheet.record.exchange import Exchange
from scoresheet.record.mcp_gateway import Gateway
from scoresheet.record.upstream import Upstream

NAME = "SCORESHEET_MCP_URL"
_STDIO = "scoresheet-mcp"


@dataclass(frozen=True, slots=True)
class McpServer:
    """`--mcp 'SERVER COMMAND'` or `--mcp URL`."""

    command: tuple[str, ...] = ()
    upstream: Upstream | None = None
    path: str = ""
    """Path of the address: it is put into what the command is told."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The server that the option names. Raises `Usage`."""
        if text.startswith(("http://", "https://")):
            parts = urlsplit(text)
            if parts.query or parts.fragment:
                raise Usage("the address holds more than host and path", "--mcp", "let the command send credentials")
            upstream = Upstream.parse(f"{NAME}={parts.scheme}://{parts.netloc}")
            return cls(upstream=upstream, path=parts.path or "/")
        try:
            command = tuple(shlex.split(text))
        except ValueError as error:
            raise Usage(f"the server's command can't be read: {error}", "--mcp") from error
        if not command:
            raise Usage("no server is named", "--mcp", "give its command or its address")
        return cls(command)


class McpRecording:
    """What is heard of the server while a command runs."""

    def __init__(self, server: McpServer, folder: Path, bridge: Path | None) -> None:
        """`folder` is ours, and empty; `bridge` is the program that carries stdio to an address."""
        self._server, self._folder, self._bridge = server, folder, bridge
        self._lock = threading.Lock()
        self._lines: list[mcp.Line] = []

    @contextlib.contextmanager
    def environment(self, addresses: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """What the command must find in its environment; `addresses` are the recording proxy's."""
        programs, heard = self._folder / "bin", self._folder / "heard"
        programs.mkdir()
        heard.mkdir()
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        if self._server.upstream is not None:
            if self._bridge is not None:
                self._program(programs, [sys.executable, "-I", str(self._bridge)])
            yield {NAME: addresses[NAME] + self._server.path, "PATH": path}
            return
        self._program(programs, [sys.executable, "-I", str(mcp_tee.__file__), str(heard), *self._server.command])
        with Gateway(self._server.command, self._hear) as gateway:
            yield {NAME: gateway.address, "PATH": path}
        for file in sorted(heard.iterdir()):
            self._lines += _read(file)

    def heard(self, exchanges: tuple[Exchange, ...]) -> mcp.Heard:
        """The calls and tools; `exchanges` are those of the recording proxy with the server."""
        with self._lock:
            return mcp.heard([*self._lines, *mcp.lines_of(exchanges)])

    def _hear(self, line: mcp.Line) -> None:
        with self._lock:
            self._lines.append(line)

    def _program(self, folder: Path, words: list[str]) -> None:
        program = folder / _STDIO
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)


def _read(file: Path) -> list[mcp.Line]:
    found = []
    for line in file.read_bytes().splitlines():
        mark, _, rest = line.partition(b" ")
        at, _, text = rest.partition(b" ")
        found.append(mcp.Line("client" if mark == b">" else "server", float(at), text, file.name))
    return found
