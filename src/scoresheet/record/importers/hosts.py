"""Which hosts of a recording are taken, and the name that each gets in the pack. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from scoresheet.errors import Usage
from scoresheet.record.upstream import Upstream

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/@?#:\[\]]+)(?::\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Host:
    """`NAME=HOST[:PORT]`, or `NAME=https://host/base`, whose base is then no part of the paths."""

    name: str
    authority: str
    base: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The host that `--upstream` names. Raises `Usage`."""
        name, _, host = text.partition("=")
        if "://" in host:
            upstream = Upstream.parse(text)
            return cls(upstream.name, upstream.authority.lower(), upstream.base)
        mend = "write --upstream API=api.example.com"
        if not _NAME.fullmatch(name):
            raise Usage(f"{name!r} can't name an environment variable", "--upstream", mend)
        if not _AUTHORITY.fullmatch(host):
            raise Usage(f"{host!r} is no host", f"--upstream {name}", mend)
        return cls(name, host.lower())


class Hosts:
    """The hosts that were named; or, when none was, every host that the recording knows."""

    def __init__(self, named: Sequence[Host] = ()) -> None:
        if len({host.name for host in named}) < len(named):
            raise Usage("two hosts have one name", "--upstream", "give every host a name of its own")
        self._named = tuple(named)
        self._found: dict[str, str] = {host.name: host.authority + host.base for host in named}

    def place(self, authority: str, path: str) -> tuple[str, str] | None:
        """The upstream's name and the path below it; `None` when the host is not one of those that were named."""
        if self._named:
            for host in sorted(self._named, key=lambda host: -len(host.base)):
                if host.authority == authority and (path == host.base or path.startswith(host.base + "/")):
                    return host.name, path[len(host.base) :] or "/"
                if host.authority == authority and not host.base:
                    return host.name, path
            return None
        return self._name(authority), path

    @property
    def chosen(self) -> bool:
        """Whether only some hosts are taken."""
        return bool(self._named)

    def only(self) -> Host:
        """The one host that was named: for files that name none. Raises `Usage`."""
        if len(self._named) != 1:
            mend = "give the service's name and host: --upstream API=api.example.com"
            raise Usage("the files do not say which host they are of", "--upstream", mend)
        return self._named[0]

    def used(self, names: set[str]) -> dict[str, str]:
        """Name → host, of the names that occur."""
        return {name: authority for name, authority in self._found.items() if name in names}

    def _name(self, authority: str) -> str:
        for name, known in self._found.items():
            if known == authority:
                return name
        plain = re.sub(r"[^A-Za-z0-9]+", "_", authority).strip("_").upper() or "API"
        plain = f"HOST_{plain}" if plain[0].isdigit() else plain
        candidates = (plain, *(f"{plain}_{number}" for number in range(2, len(self._found) + 3)))
        name = next(candidate for candidate in candidates if candidate not in self._found)
        self._found[name] = authority
        return name
