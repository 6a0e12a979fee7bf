"""A certificate authority for one run: clients that trust it can be answered in the place of a public host.

Its key never leaves this process and is written nowhere; each host gets a certificate when it is first asked for.
Needs the extra `https`.
"""

import contextlib
import datetime
import functools
import os
import ssl
import threading
from collections.abc import Iterator
from typing import Any, cast

from scoresheet.errors import Usage

VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "DENO_CERT",
    "CARGO_HTTP_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
)
"""In each of these some kind of client looks for a file of certificates that it trusts."""
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
)
"""Where systems keep theirs."""
JAVA_PASSWORD = "changeit"
"""No secret: what Java's own keystores have, and a keystore of certificates must have one."""
_VALID = datetime.timedelta(days=30)
_MOST_NAMES = 256
"""Certificates that one run makes: a client that asks for more names than that is refused."""
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

    def __init__(self, http2: bool = True) -> None:
        """`http2`: offer it, where the library is installed. Raises `Usage` when the extra `https` is not installed."""
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.asymmetric import ec
            from cryptography.x509.oid import NameOID
        except ImportError as error:
            raise Usage("HTTPS needs an extra", "cryptography", "pip install 'scoresheet[https]'") from error
        self._http2 = http2 and _speaks_http2()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        self._from, self._until = now - datetime.timedelta(days=1), now + _VALID
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scoresheet, this run only")])
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

    @functools.cached_property
    def server(self) -> ssl.SSLContext:
        """A context for any connection: its certificate is chosen by the name that the client asks for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def chosen(connection: Any, name: str | None, _: ssl.SSLContext) -> int | None:
            found = self._context(name.rstrip(".").lower()) if name else None
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
        context.set_alpn_protocols(["h2", "http/1.1"] if self._http2 else ["http/1.1"])

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
def _in_memory(content: bytes) -> Iterator[str]:
    """A path from which OpenSSL can read a key that lies on no disk."""
    descriptor = os.memfd_create("scoresheet", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
