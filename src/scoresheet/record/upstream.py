"""The live services that are recorded: `--upstream NAME=URL`. Pure."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from scoresheet.errors import Usage

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Upstream:
    """A live service: `NAME=URL`."""

    name: str
    """The environment variable that holds the proxy's address for the recorded command."""
    tls: bool
    host: str
    port: int
    base: str
    """Path of the URL, put before every path that is sent; it is no part of the recording."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The service that `NAME=URL` names. Raises `Usage`."""
        name, _, url = text.partition("=")
        mend = "write --upstream API=https://api.example.com"
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise Usage(f"{name!r} can't name an environment variable", "--upstream", mend)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Usage(f"the address can't be read: {error}", f"--upstream {name}", mend) from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise Usage("the address is not http(s)://host[:port][/path]", f"--upstream {name}", mend)
        if parts.username or parts.password:
            mend = "leave it out here; the recorded command sends its own credentials"
            raise Usage("the address holds a credential", f"--upstream {name}", mend)
        tls = parts.scheme == "https"
        return cls(name, tls, parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """`host` or `host:port`, as it stands in a `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """What the manifest says of it: the authority, and the path that every recorded one had before it."""
        return self.authority + self.base
