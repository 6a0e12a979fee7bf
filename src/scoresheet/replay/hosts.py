"""Which recorded API a public host name stands for. Pure.

The manifest's `upstreams` say where each API was recorded from: `api.example.com`, `api.example.com:8443`, or with the
path that was put before every recorded one, `api.example.com/v1`. A client that calls the real address is answered
from the same recordings.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_DEFAULT = {True: 443, False: 80}


@dataclass(frozen=True, slots=True)
class Routed:
    """A recorded API, and what is asked of it."""

    upstream: str
    target: str
    """Path and query as they were recorded: without what every recorded path had before it."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The public hosts of one pack."""

    names: frozenset[str]
    """The host names that resolve, in lower case."""
    ports: tuple[int, ...]
    """Ports beside 80 and 443."""
    _known: Mapping[tuple[str, int | None], tuple[tuple[str, str], ...]]
    """(host, port, `None` being the default of either scheme) → (path before, upstream), the longest path first."""

    @classmethod
    def of(cls, upstreams: Mapping[str, str]) -> Self:
        """The hosts of a manifest. Addresses of the machine itself are left out: they are no public hosts."""
        known: dict[tuple[str, int | None], list[tuple[str, str]]] = {}
        for upstream, recorded in sorted(upstreams.items()):
            authority, slash, path = recorded.partition("/")
            host, port = split(authority)
            if _public(host):
                known.setdefault((host, port), []).append(((slash + path).rstrip("/"), upstream))
        return cls(
            frozenset(host for host, _ in known),
            tuple(sorted({port for _, port in known if port is not None} - {80, 443})),
            {key: tuple(sorted(found, key=lambda one: -len(one[0]))) for key, found in known.items()},
        )

    def knows(self, authority: str) -> bool:
        """Whether any recorded API has this `host` or `host:port`, by either scheme."""
        return any(self._at(authority, tls) for tls in (True, False))

    def find(self, authority: str, tls: bool, target: str) -> tuple[Routed, ...]:
        """The recorded APIs that a request to `authority` can mean, the most specific first; empty when unknown."""
        return tuple(
            Routed(upstream, _beneath(target, before))
            for before, upstream in self._at(authority, tls)
            if target == before or target.startswith((before + "/", before + "?"))
        )

    def _at(self, authority: str, tls: bool) -> tuple[tuple[str, str], ...]:
        host, port = split(authority)
        found = self._known.get((host, port), ()) if port is not None else ()
        if port is None or port == _DEFAULT[tls]:
            found += self._known.get((host, None), ())
        if port is None:
            found += self._known.get((host, _DEFAULT[tls]), ())
        return found


def split(authority: str) -> tuple[str, int | None]:
    """(host in lower case without a final dot, port or `None`) of `host`, `host:port` or `[address]:port`."""
    host, colon, port = authority.strip().rpartition(":")
    if not colon or not port.isdecimal() or not port.isascii() or len(port) > 5:
        host, port = authority.strip(), ""
    return host.strip("[]").rstrip(".").lower(), int(port) if port else None


def _beneath(target: str, before: str) -> str:
    rest = target[len(before) :]
    return rest if rest.startswith("/") else f"/{rest}"


def _public(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost") or "." not in host:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False
