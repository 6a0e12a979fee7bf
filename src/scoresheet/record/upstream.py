"""The live services that are recorded: `--upstream NAME=URL`. Pure."""

import re
from dataclasses import dataclass
from typing import Self

from scoresheet import address
from scoresheet.address import Address
from scoresheet.errors import Usage

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Upstream(Address):
    """A live service: `NAME=URL`. The path of its address is no part of the recording."""

    name: str
    """The environment variable that holds the proxy's address for the recorded command."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The service that `NAME=URL` names. Raises `Usage`."""
        name, _, url = text.partition("=")
        mend = "write --upstream API=https://api.example.com"
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise Usage(f"{name!r} can't name an environment variable", "--upstream", mend)
        no_credential = "leave it out here; the recorded command sends its own credentials"
        found = address.parse(url, f"--upstream {name}", mend, no_credential)
        return cls(found.tls, found.host, found.port, found.base, name)

    @property
    def place(self) -> str:
        """What the manifest says of it: the authority, and the path that every recorded one had before it."""
        return self.authority + self.base
