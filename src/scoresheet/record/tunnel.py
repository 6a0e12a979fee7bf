"""A proxy for the services' own addresses: what the recorded command sends to one of them is recorded.

`https://` comes in a tunnel, which is opened, and needs the extra `https`; `http://` comes with its whole address. What
goes elsewhere (a model's API, say) is passed on, a tunnel unopened, and named.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scoresheet.authority import BUNDLES, VARIABLES, Authority
from scoresheet.record.calls import Forward
from scoresheet.record.relay import Message, NotHttp
from scoresheet.record.upstream import Upstream

_HEAD_BYTES = 64 * 1024
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Connect:
    """A tunnel was asked for."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Plain:
    """A request with its whole address, or the beginning of one."""

    data: bytes


class Tunnels:
    """What comes to the proxy, and where it goes."""

    def __init__(self, upstreams: Sequence[Upstream], folder: Path) -> None:
        """`folder` is given the certificates that the command must trust.

        Raises `Usage` when there is an `https` service, and not the extra.
        """
        self._upstreams = tuple(upstreams)
        self._secure = any(upstream.tls for upstream in upstreams)
        self._plain = not all(upstream.tls for upstream in upstreams)
        self._authority = Authority() if self._secure else None
        self._bundle = folder / "certificates.pem"
        if self._authority is not None:
            self._bundle.write_bytes(_trusted() + self._authority.pem)

    def environment(self, address: str) -> Mapping[str, str]:
        """What leads the command here; `address` is the proxy's."""
        found = dict.fromkeys(("HTTP_PROXY", "http_proxy"), address) if self._plain else {}
        if self._secure:
            found |= dict.fromkeys(("HTTPS_PROXY", "https_proxy"), address)
            found |= dict.fromkeys(VARIABLES, str(self._bundle))
        return found

    def known(self, host: str, port: int, tls: bool = True) -> tuple[Upstream, ...]:
        """The services at an address, the one with the longest path first."""
        wanted = (host.lower(), port, tls)
        found = [each for each in self._upstreams if (each.host.lower(), each.port, each.tls) == wanted]
        return tuple(sorted(found, key=lambda each: -len(each.base)))

    def secure(self, client: socket.socket) -> ssl.SSLSocket:
        """The inside of a tunnel. Raises `ssl.SSLError` when the command does not trust us."""
        assert self._authority is not None  # only services with https are known to a tunnel
        return self._authority.server.wrap_socket(client, server_side=True)

    def plain(self, message: Message) -> Forward:
        """Where a request with its whole address goes. Raises `NotHttp`."""
        scheme, authority = message.named
        if scheme != "http":
            raise NotHttp("a request at the proxy that is neither a tunnel nor to an http:// address")
        try:
            parts = urlsplit(f"//{authority}")
            host, port = parts.hostname or "", parts.port or 80
        except ValueError as error:
            raise NotHttp(f"the address {authority[:200]} can't be read") from error
        if known := self.known(host, port, tls=False):
            return route(known, message)
        return Forward(Upstream(False, host, port, "", host), message, recorded=False)


def route(known: Sequence[Upstream], message: Message) -> Forward:
    """Where a request in a tunnel goes, its path as it is recorded. Raises `NotHttp`."""
    for upstream in known:
        base = upstream.base.encode()
        if message.url == base or message.url.startswith((base + b"/", base + b"?")):
            rest = message.url[len(base) :]
            message.url = rest if rest.startswith(b"/") else b"/" + rest
            return Forward(upstream, message)
    raise NotHttp(f"{message.url[:200].decode('latin-1')} lies outside the path of every --upstream")


def asked(client: socket.socket) -> Connect | Plain | None:
    """What a client of the proxy wants; `None` when it went away. Raises `NotHttp`."""
    head = b""
    while b"\r\n\r\n" not in head:
        if head[:8] and not b"CONNECT ".startswith(head[:8]):
            return Plain(head)
        data = client.recv(_CHUNK)
        if not data:
            return None
        head += data
        if len(head) > _HEAD_BYTES:
            raise NotHttp("a head of more than 64 KiB")
    if not head.startswith(b"CONNECT "):
        return Plain(head)
    host, _, port = head.split(b" ", 2)[1].decode("latin-1").rpartition(":")
    if not host or not port.isdecimal() or not head.endswith(b"\r\n\r\n"):
        raise NotHttp("a tunnel to nowhere")
    return Connect(host.strip("[]"), int(port))


def pass_on(client: socket.socket, server: socket.socket) -> None:
    """Every byte, both ways, until both have ended."""
    back = threading.Thread(target=_copy, args=(server, client), daemon=True)
    back.start()
    _copy(client, server)
    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _trusted() -> bytes:
    """What the command trusted before: these variables replace it."""
    for path in _bundles():
        with contextlib.suppress(OSError):
            return path.read_bytes().rstrip() + b"\n"
    return b""


def _bundles() -> Iterator[Path]:
    paths = ssl.get_default_verify_paths()  # follows SSL_CERT_FILE
    if paths.cafile:
        yield Path(paths.cafile)
    yield from map(Path, BUNDLES)
