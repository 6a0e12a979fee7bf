"""Where a service is: `http(s)://host[:port][/path]`, as people write it. Pure."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from scoresheet.errors import Usage


@dataclass(frozen=True, slots=True)
class Address:
    """Scheme, host, port and path of a service."""

    tls: bool
    host: str
    port: int
    base: str
    """Path that comes before every path that is asked for, without a slash at its end."""

    @property
    def literal(self) -> str:
        """The host as it stands in an address: one of IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """`host` or `host:port`, as it stands in a `Host` header."""
        return self.literal if self.port == _usual(self.tls) else f"{self.literal}:{self.port}"


def parse(url: str, where: str, mend: str, credential_mend: str) -> Address:
    """The address that `url` spells. Raises `Usage`: it may hold no credential, query or fragment."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Usage(f"the address can't be read: {error}", where, mend) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Usage("the address is not http(s)://host[:port][/path]", where, mend)
    if parts.username or parts.password:
        raise Usage("the address holds a credential", where, credential_mend)
    tls = parts.scheme == "https"
    return Address(tls, parts.hostname, port or _usual(tls), parts.path.rstrip("/"))


def _usual(tls: bool) -> int:
    return 443 if tls else 80
