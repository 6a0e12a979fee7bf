"""What a sandbox must not reach: sockets, a file and a process of ours, which count who comes by.

They stay up through the whole run. Each side of the probe says its own word (nonce), so a hit is never mistaken.
"""

import array
import contextlib
import fcntl
import os
import secrets
import selectors
import socket
import struct
import threading
from collections import Counter
from pathlib import Path
from typing import Any

_SIOCGIFADDR = 0x8915
_WORD_BYTES = 64


class Canaries:
    """The sockets and the file, in a folder of the run. Closed with `close`."""

    def __init__(self, folder: Path) -> None:
        self._word = secrets.token_hex(8)
        self._hits: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._sockets: list[tuple[str, socket.socket, bytes | tuple[str, int]]] = []
        self._listen("tcp4_host_loopback", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._listen("udp4_host_loopback", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        with contextlib.suppress(OSError):  # a host without IPv6: the attempt is then not made on either side
            self._listen("tcp6_host_loopback", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        if (own := own_address()) is not None:
            self._listen("tcp4_host_address", socket.AF_INET, socket.SOCK_STREAM, (own, 0))
            self._listen("udp4_host_address", socket.AF_INET, socket.SOCK_DGRAM, (own, 0))
        self._listen("unix_abstract", socket.AF_UNIX, socket.SOCK_STREAM, b"\0scoresheet-" + self._word.encode())
        path = folder / "socket"
        self._listen("unix_path", socket.AF_UNIX, socket.SOCK_STREAM, os.fsencode(path))
        path.chmod(0o777)
        self._file = folder / "file"
        self._file.write_text("a file of the host\n")
        self._file.chmod(0o644)
        self._wake, self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="scoresheet-canaries", daemon=True)
        self._thread.start()

    def _listen(self, name: str, family: int, kind: int, address: bytes | tuple[str, int]) -> None:
        canary = socket.socket(family, kind)
        try:
            canary.bind(address)
            if kind == socket.SOCK_STREAM:
                canary.listen(64)
        except OSError:
            canary.close()
            raise
        canary.setblocking(False)
        bound = address if isinstance(address, bytes) else canary.getsockname()[:2]
        self._sockets.append((name, canary, bound))

    def nonce(self, side: str) -> bytes:
        """A fresh word for one side of the probe."""
        return f"{side}-{self._word}-{secrets.token_hex(8)}".encode()

    def targets(self, nonce: bytes, pid: int) -> dict[str, Any]:
        """What the probe is told, in plain values; `pid` is a process of the host that must not be seen."""
        addresses = [(name, int(one.family), int(one.type), bound) for name, one, bound in self._sockets]
        return {"nonce": nonce, "addresses": addresses, "file": str(self._file), "pid": pid}

    def hits(self, nonce: bytes) -> int:
        """How often that word was heard."""
        with self._lock:
            return self._hits[nonce.decode()]

    def close(self) -> None:
        self._stop.send(b".")
        self._thread.join()
        for _, canary, _ in self._sockets:
            canary.close()
        self._wake.close()
        self._stop.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            for _, canary, _ in self._sockets:
                selector.register(canary, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._wake:
                        return
                    assert isinstance(key.fileobj, socket.socket)
                    with contextlib.suppress(OSError):
                        self._greet(key.fileobj)

    def _greet(self, canary: socket.socket) -> None:
        if canary.type == socket.SOCK_STREAM:
            peer, _ = canary.accept()
            with peer:
                peer.settimeout(0.5)
                word = peer.recv(_WORD_BYTES)
                if self._count(word):
                    peer.sendall(b"pong:" + word)
        else:
            word, sender = canary.recvfrom(_WORD_BYTES)
            if self._count(word):
                canary.sendto(b"pong:" + word, sender)

    def _count(self, word: bytes) -> bool:
        """Counted before it is answered; a stranger's word is neither."""
        text = word.decode("ascii", "replace")
        if f"-{self._word}-" not in text:
            return False
        with self._lock:
            self._hits[text] += 1
        return True


def own_address() -> str | None:
    """An IPv4 address of this host other than loopback, asked of the interfaces: nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack("256s", name.encode()[:15]))
            try:
                fcntl.ioctl(asked, _SIOCGIFADDR, request)
            except OSError:
                continue
            address = socket.inet_ntoa(request.tobytes()[20:24])
            if not address.startswith("127."):
                return address
    return None
