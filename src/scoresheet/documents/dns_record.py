"""`dns.jsonl`: the names that an episode's processes asked for, as the responder in its network heard them."""

from typing import Annotated, Literal

from pydantic import Field

from scoresheet.documents.model import Document


class DnsRecord(Document):
    """One name, asked for once or often."""

    rule = "dns"
    name: str
    """As asked, in lower case; `*` for all names beyond the number that is kept."""
    type: str
    """`A`, `AAAA`, or the number of another type as `TYPE65`."""
    answer: Literal["address", "empty", "no_such_name", "malformed", "refused_by_client"]
    """`address`: a host of the recordings, answered with 127.0.0.1. `empty`: such a host, but no such record.
    `refused_by_client`, with the type `TLS`: no question, but a client that ended the handshake with such a host."""
    first_s: Annotated[float, Field(ge=0)]
    """Seconds from the agent's start to the first question."""
    count: Annotated[int, Field(ge=1)]
