"""TLS as a server, for clients that call the recorded hosts by their real names.

The certificates are `scoresheet.authority`'s. The handshake runs in memory over bytes that the event loop hands in, so
that one door takes plain HTTP and TLS alike, at a port of its own or through a proxy's tunnel. Server side only.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any, Protocol, cast

_READ = 16 * 1024
"""Bytes of one record at most (RFC 8446 §5.1): no read gives more, whatever it is given room for."""
_HANDSHAKE = 0x16
_HANDSHAKE_S = 60.0


class Inner(Protocol):
    """What speaks inside: made when the client has said what it speaks."""

    def __call__(self, *, secure: bool, server_name: str | None, http2: bool) -> asyncio.Protocol: ...


class Gate(asyncio.Protocol):
    """A connection before it is known what the client speaks: TLS with a name, or plain HTTP."""

    def __init__(
        self,
        context: ssl.SSLContext,
        inner: Inner,
        opened: Callable[["Gate"], bool],
        lost: Callable[["Gate"], None],
        failed: Callable[[str, str], None],
    ) -> None:
        """`opened` may refuse it, `lost` hears its end, `failed` hears (server name, reason) of a failed handshake."""
        self._context, self._make, self._opened, self._lost, self._failed = context, inner, opened, lost, failed
        self._inner: asyncio.Protocol | None = None
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._shaken = self._paused = self._ended = False
        self._server_name: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.raw: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.raw = cast("asyncio.Transport", transport)
        if not self._opened(self):
            self.raw.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._quiet()
        self._lost(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def abort(self) -> None:
        self.raw.abort()

    def pause_writing(self) -> None:
        self._paused = True
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        if self._inner is not None:
            self._inner.resume_writing()

    def eof_received(self) -> bool:
        return bool(self._inner.eof_received()) if self._inner is not None else False

    def data_received(self, data: bytes) -> None:
        if self._tls is None:
            if data[0] != _HANDSHAKE:
                self._hand_over(data)
                return
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
            self._timer = asyncio.get_running_loop().call_later(_HANDSHAKE_S, self.abort)
            self._server_name = server_name(data)
        self._incoming.write(data)
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._begin()
            self._read()
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.flush()
            self._over()
            return
        except ssl.SSLError as error:
            if self._ended:
                return
            self.flush()
            if not self._shaken or "ALERT" in (error.reason or ""):
                self._failed(self._server_name or "", error.reason or str(error))
            self.raw.close()
            return
        self.flush()

    def _hand_over(self, data: bytes) -> None:
        self._lost(self)  # counted from now on as what it became
        inner = self._make(secure=False, server_name=None, http2=False)
        self.raw.set_protocol(inner)
        inner.connection_made(self.raw)
        inner.data_received(data)

    def _begin(self) -> None:
        assert self._tls is not None
        self._quiet()
        self._shaken = True
        self._lost(self)  # counted from now on as what it became
        http2 = self._tls.selected_alpn_protocol() == "h2"
        self._inner = self._make(secure=True, server_name=self._server_name, http2=http2)
        self._inner.connection_made(Covered(self))

    def _read(self) -> None:
        assert self._tls is not None
        assert self._inner is not None
        while not self._ended:
            data = self._tls.read(_READ)
            if not data:
                self._over()
                return
            self._inner.data_received(data)
            if not self._incoming.pending and not self._tls.pending():
                return  # asking once more would cost an exception

    def _over(self) -> None:
        """The client will send no more."""
        if self._inner is None or not self._inner.eof_received():
            self.raw.close()

    def _quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- what the inner side asks for

    def write(self, data: bytes) -> None:
        if self._tls is not None and not self._ended:
            self._tls.write(data)
            self.flush()

    def flush(self) -> None:
        if self._outgoing.pending and not self._ended:
            self.raw.write(self._outgoing.read())

    def say_end(self) -> None:
        """Tell the client that nothing more comes."""
        if self._tls is not None and not self._ended:
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self.flush()


class Covered(asyncio.Transport):
    """The transport of what speaks inside TLS."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._gate.raw.get_extra_info(name, default)

    def write(self, data: Any) -> None:
        self._gate.write(data)

    def write_eof(self) -> None:
        self._gate.say_end()
        if self._gate.raw.can_write_eof() and not self._gate.raw.is_closing():
            self._gate.raw.write_eof()

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self._gate.raw.is_closing()

    def close(self) -> None:
        self._gate.say_end()
        self._gate.raw.close()

    def abort(self) -> None:
        self._gate.raw.abort()

    def pause_reading(self) -> None:
        self._gate.raw.pause_reading()

    def resume_reading(self) -> None:
        self._gate.raw.resume_reading()


def server_name(hello: bytes) -> str | None:
    """The name in a ClientHello (RFC 6066 §3), for where no request names a host; `None` when it can't be read."""
    try:
        place = 43  # record, handshake, version, random
        place += 1 + hello[place]
        place += 2 + int.from_bytes(hello[place : place + 2], "big")
        place += 1 + hello[place]
        end = place + 2 + int.from_bytes(hello[place : place + 2], "big")
        place += 2
        while place + 4 <= min(end, len(hello)):
            kind, size = (
                int.from_bytes(hello[place : place + 2], "big"),
                int.from_bytes(hello[place + 2 : place + 4], "big"),
            )
            if kind == 0:
                length = int.from_bytes(hello[place + 7 : place + 9], "big")
                return hello[place + 9 : place + 9 + length].decode("ascii").lower() or None
            place += 4 + size
    except (IndexError, UnicodeDecodeError):
        pass
    return None
