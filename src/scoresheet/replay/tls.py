"""TLS as a server, for clients that call the recorded hosts by their real names.

A run has a certificate authority of its own, whose key never leaves this process and is never written; each host gets
a certificate when it is first asked for. The handshake runs in memory over bytes that the event loop hands in, so
that one door takes plain HTTP and TLS alike, at a port of its own or through a proxy's tunnel. Server side only: the
contexts made here refuse to act as a client.
"""

import asyncio
import contextlib
import datetime
import functools
import os
import ssl
import threading
from collections.abc import Callable
from typing import Any, Protocol, cast

from scoresheet.errors import Usage
from scoresheet.replay.hosts import split

JAVA_PASSWORD = "changeit"
"""No secret: what Java's own keystores have, and a keystore of certificates must have one."""
_VALID = datetime.timedelta(days=30)
_MOST_NAMES = 256
"""Certificates that one run makes: a client that asks for more names than that is refused."""
_READ = 256 * 1024
_HANDSHAKE = 0x16
_HANDSHAKE_S = 60.0
_LONGEST_COMMON_NAME = 64


def available() -> bool:
    """Whether the extra `https` is installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


class Authority:
    """The certificate authority of one run."""

    def __init__(self) -> None:
        """Raises `Usage` when the extra `https` is not installed."""
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
            from cryptography.x509.oid import NameOID
        except ImportError as error:
            raise Usage("HTTPS needs an extra", mend="pip install 'scoresheet[https]'") from error
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        self._from, self._until = now - datetime.timedelta(days=1), now + _VALID
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scoresheet replay, this run only")])
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = self._signed(
            self._name,
            self._key.public_key(),
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (usage, True),
            (x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False),
        )
        self.pem = _pem(certificate)
        """The authority's own certificate."""

    @functools.cached_property
    def java_truststore(self) -> bytes:
        """The certificate as the keystore that Java reads; its password is `JAVA_PASSWORD`."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

        certificate = x509.load_pem_x509_certificate(self.pem)
        entry = pkcs12.PKCS12Certificate(certificate, b"scoresheet")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(JAVA_PASSWORD.encode()))

    def server(self) -> ssl.SSLContext:
        """A context for any connection: its certificate is chosen by the name that the client asks for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def chosen(connection: Any, name: str | None, _: ssl.SSLContext) -> int | None:
            found = self._context(split(name)[0]) if name else None
            if found is None:
                return int(ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME) if name else None
            connection.context = found
            return None

        context.sni_callback = chosen
        self._load(context, "localhost")
        return context

    def _context(self, host: str) -> ssl.SSLContext | None:
        with self._lock:
            context = self._contexts.get(host)
            if context is None and len(self._contexts) < _MOST_NAMES:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                try:
                    self._load(context, host)
                except ValueError:  # a name that no certificate can hold
                    return None
                self._contexts[host] = context
            return context

    def _load(self, context: ssl.SSLContext, host: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        certificate = self._signed(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:_LONGEST_COMMON_NAME])]),
            self._leaf_key.public_key(),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.SubjectAlternativeName([x509.DNSName(host)]), False),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.KeyUsage(True, False, False, False, False, False, False, False, False), True),
            (x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        )
        key = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with _in_memory(_pem(certificate) + key) as path:
            context.load_cert_chain(path)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2", "http/1.1"] if _speaks_http2() else ["http/1.1"])

    def _signed(self, subject: Any, public_key: Any, *extensions: tuple[Any, bool]) -> Any:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._from)
            .not_valid_after(self._until)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256())


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return cast("bytes", certificate.public_bytes(Encoding.PEM))


def _speaks_http2() -> bool:
    try:
        import h2.connection  # noqa: F401
    except ImportError:
        return False
    return True


@contextlib.contextmanager
def _in_memory(content: bytes) -> Any:
    """A path from which OpenSSL can read a key that lies on no disk."""
    descriptor = os.memfd_create("scoresheet", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


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
