"""The recorded hosts under their public names: what an episode's sandbox and environment need for that.

Four ways lead to the same recordings, because each kind of client knows only some of them: the names resolve, ports
80 and 443 answer, proxy variables are set, and the run's certificate stands both in the variables and in place of the
system's bundle. docs/https says which client takes which.
"""

from collections.abc import Container, Mapping
from pathlib import Path

from scoresheet import authority
from scoresheet.documents.manifest import Manifest
from scoresheet.replay.dns import NameLog
from scoresheet.replay.hosts import Hosts
from scoresheet.replay.http import DNS_DOORS, PROXY_DOOR, WEB_DOORS, Public, ReplayServer
from scoresheet.sandbox.spec import Door

CERTIFICATE = "/run/scoresheet/ca.pem"
"""Inside: the run's own certificate authority, the only one."""
JAVA_CERTIFICATE = "/run/scoresheet/ca.p12"
PROXY_PORT = 8072
_TAKEN = range(8070, 8200)
"""Ports of other doors: a host that was recorded at one of these is reached through the proxy alone."""
_NOT_PROXIED = "localhost,127.0.0.1,::1"


def of(manifest: Manifest, server: ReplayServer) -> Public | None:
    """What serves the hosts of a pack; `None` when it has no public ones, or without the extra `https`."""
    hosts = Hosts.of(manifest.upstreams)
    if not hosts.names or not authority.available():
        return None
    return Public(hosts, server.authority, NameLog())


def doors(public: Public | None) -> tuple[Door, ...]:
    """Ports inside: DNS, the hosts' own, and a proxy's."""
    if public is None:
        return ()
    datagrams, stream = DNS_DOORS
    return (
        Door(datagrams, 53, "udp"),
        Door(stream, 53),
        *(Door(f"{WEB_DOORS}{port}", port) for port in (80, 443, *public.hosts.ports) if port not in _TAKEN),
        Door(PROXY_DOOR, PROXY_PORT),
    )


def files(public: Public | None) -> tuple[tuple[str, bytes], ...]:
    """The certificate, at a place of its own and over each bundle that this system has."""
    if public is None:
        return ()
    found = {str(Path(bundle).resolve()) for bundle in authority.BUNDLES if Path(bundle).is_file()}
    inside = sorted(bundle for bundle in found if bundle.startswith(("/etc/ssl/certs/", "/etc/pki/")))
    java = (JAVA_CERTIFICATE, public.authority.java_truststore)
    return (*((place, public.authority.pem) for place in (CERTIFICATE, *inside)), java)


def asks_us(doors: Container[str]) -> bool:
    """Whether names are asked of us. Without isolation they are not: network and names are the host's."""
    return DNS_DOORS[0] in doors


def environment(public: Public | None, urls: Mapping[str, str]) -> dict[str, str]:
    """Variables of the agent; none where network and names are the host's."""
    if public is None or not asks_us(urls):
        return {}
    return variables(urls[PROXY_DOOR], CERTIFICATE, JAVA_CERTIFICATE)


def variables(proxy: str, certificate: str, java: str) -> dict[str, str]:
    """What leads clients to a proxy, and lets them trust it: files of the authority's certificate."""
    proxied = {name: proxy for word in ("HTTP_PROXY", "HTTPS_PROXY") for name in (word, word.lower())}
    direct = dict.fromkeys(("NO_PROXY", "no_proxy"), _NOT_PROXIED)
    store = f"-Djavax.net.ssl.trustStore={java} -Djavax.net.ssl.trustStorePassword={authority.JAVA_PASSWORD}"
    return {
        **dict.fromkeys(authority.VARIABLES, certificate),
        **proxied,
        **direct,
        "JAVA_TOOL_OPTIONS": f"{store} -Djavax.net.ssl.trustStoreType=PKCS12",
    }
