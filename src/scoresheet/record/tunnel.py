"""A proxy for the recorded command's own `https://` addresses: what goes to a known service is opened and recorded.

What goes elsewhere (a model's API, say) is passed on unopened, and named. Needs the extra `https`.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scoresheet.authority import BUNDLES, VARIABLES, Authority
from scoresheet.record.calls import Forward
from scoresheet.record.relay import Message, NotHttp
from scoresheet.record.upstream import Upstream

_HEAD_BYTES = 64 * 1024
_CHUNK = 1 << 16


class Tunnels:
    """Which tunnels are opened, and with what."""

    def __init__(self, upstreams: Sequence[Upstream], folder: Path) -> None:
        """`folder` is given the certificates that the command must trust. Raises `Usage` without the extra."""
        self._authority = Authority(http2=False)
        self._context = self._authority.server
        self._upstreams = tuple(upstream for upstream in upstreams if upstream.tls)
        self._bundle = folder / "certificates.pem"
        self._bundle.write_bytes(_trusted() + self._authority.pem)

    def environment(self, address: str) -> Mapping[str, str]:
        """What leads the command here; `address` is the proxy's."""
        return {
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), address),
            **dict.fromkeys(VARIABLES, str(self._bundle)),
        }

    def known(self, host: str, port: int) -> tuple[Upstream, ...]:
        """The services at an address, the one with the longest path first."""
        found = [each for each in self._upstreams if (each.host.lower(), each.port) == (host.lower(), port)]
        return tuple(sorted(found, key=lambda each: -len(each.base)))

    def secure(self, client: socket.socket) -> ssl.SSLSocket:
        """The inside of a tunnel. Raises `ssl.SSLError` when the command does not trust us."""
        return self._context.wrap_socket(client, server_side=True)


def route(known: Sequence[Upstream], message: Message) -> Forward:
    """Where a request in a tunnel goes, its path as it is recorded. Raises `NotHttp`."""
    for upstream in known:
        base = upstream.base.encode()
        if message.url == base or message.url.startswith((base + b"/", base + b"?")):
            rest = message.url[len(base) :]
            message.url = rest if rest.startswith(b"/") else b"/" + rest
            return Forward(upstream, message)
    raise NotHttp(f"{message.url[:200].decode('latin-1')} lies outside the path of every --upstream")


def asked(client: socket.socket) -> tuple[str, int] | None:
    """Host and port of a CONNECT request; `None` when the client went away. Raises `NotHttp` for anything else."""
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(_CHUNK)
        if not data:
            return None
        head += data
        if len(head) > _HEAD_BYTES:
            raise NotHttp("a head of more than 64 KiB")
    method, _, rest = head.partition(b" ")
    host, _, port = rest.partition(b" ")[0].decode("latin-1").rpartition(":")
    if method != b"CONNECT" or not host or not port.isdecimal() or not head.endswith(b"\r\n\r\n"):
        raise NotHttp("a request for plain HTTP at the proxy for HTTPS")
    return host.strip("[]"), int(port)


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
