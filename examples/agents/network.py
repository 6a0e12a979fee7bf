"""An agent that tries the live network before it does its work, and tells what it reached.

    scoresheet run PACK --agent 'python3 examples/agents/network.py' --seat laptop-a
    scoresheet run PACK --agent 'python3 examples/agents/network.py 127.0.0.1:8080' --seat laptop-a

It tries addresses that are set aside for documentation (RFC 5737, RFC 3849), names, and what it is given: a service on
the host's own loopback, say. Each attempt and its end is a line on stderr, so on record; the answer holds `reached`.
"""

import json
import socket
import sys

sys.dont_write_bytecode = True  # the agent's folder is part of its identity

from careful import over_http, solve  # noqa: E402

ADDRESSES = ("192.0.2.1:443", "203.0.113.7:80", "[2001:db8::1]:443", "127.0.0.1:22", "[::1]:631")
NAMES = ("example.com", "api.example.org")
TIMEOUT_S = 0.5


def connects(address: str) -> str:
    """How a TCP connection to an address ends."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S):
            return "REACHED"
    except OSError as error:
        return f"failed: {error}"


def resolves(name: str) -> str:
    """How the look-up of a name ends."""
    try:
        return f"REACHED {socket.getaddrinfo(name, 443)[0][4][0]}"
    except OSError as error:
        return f"failed: {error}"


def asks_a_name_server(address: str) -> str:
    """How a name server answers over UDP."""
    question = bytes.fromhex("123401000001000000000000076578616d706c6503636f6d0000010001")  # example.com, A
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(TIMEOUT_S)
            client.sendto(question, (address, 53))
            return f"REACHED {len(client.recv(512))} bytes"
    except OSError as error:
        return f"failed: {error}"


if __name__ == "__main__":
    attempts = {f"tcp {address}": connects(address) for address in (*ADDRESSES, *sys.argv[1:])}
    attempts |= {f"name {name}": resolves(name) for name in NAMES}
    attempts |= {f"dns {server}": asks_a_name_server(server) for server in ("192.0.2.53", "127.0.0.1")}
    for attempt, end in attempts.items():
        print(f"{attempt}: {end}", file=sys.stderr)
    reached = [attempt for attempt, end in attempts.items() if end.startswith("REACHED")]
    print(json.dumps({**solve(json.load(sys.stdin), over_http), "reached": reached}))
