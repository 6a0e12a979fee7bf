"""The model endpoint of a run, `--model KIND=URL`, and what may be asked of it. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from scoresheet import address
from scoresheet.address import Address
from scoresheet.errors import ScoresheetError, Usage

Kind = Literal["openai", "anthropic"]
KINDS: tuple[Kind, ...] = ("openai", "anthropic")
VARIABLES: dict[Kind, tuple[str, str]] = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}
"""What an agent finds: address and dummy key."""
DUMMY_KEY = "scoresheet-adds-the-key-outside"
_PLAIN = r"[A-Za-z0-9_.~:@-]+"
_MODELS = re.compile(rf"models(/{_PLAIN})*")
_API: dict[tuple[Kind, str], re.Pattern[str]] = {
    ("openai", "POST"): re.compile(r"chat/completions|responses|completions|embeddings"),
    ("openai", "GET"): _MODELS,
    ("anthropic", "POST"): re.compile(r"messages(/count_tokens)?"),
    ("anthropic", "GET"): _MODELS,
}
_QUERY = re.compile(r"[A-Za-z0-9_.~%=&+,:-]*")


@dataclass(frozen=True, slots=True)
class ModelUpstream(Address):
    """One endpoint, the only one behind its door; its path comes before `/chat/completions` and its like."""

    kind: Kind

    @classmethod
    def parse(cls, text: str) -> Self:
        """The endpoint that `KIND=URL` names. Raises `Usage`."""
        name, _, url = text.partition("=")
        mend = "write --model openai=https://api.example.com/v1"
        kind = next((each for each in KINDS if each == name), None)
        if kind is None:
            raise Usage(f"{name!r} is no kind of model", "--model", f"one of {', '.join(KINDS)}: {mend}")
        found = address.parse(url, f"--model {name}", mend, "name it: --model-key-env KIND=NAME")
        base = found.base
        if not re.fullmatch(rf"(/{_PLAIN})*", base) or re.search(r"/\.\.?(/|$)", base):
            raise Usage("the address holds a path that is none", f"--model {name}", mend)
        if kind == "anthropic":
            base = base.removesuffix("/v1") + "/v1"  # Anthropic's own clients take the address without it
        return cls(found.tls, found.host.rstrip("."), found.port, base, kind)

    @property
    def place(self) -> str:
        """`host:port`, as reports name it."""
        return f"{self.literal}:{self.port}"

    def target(self, method: str, target: str) -> str | None:
        """The target to send for one that the agent sent; `None` when it is outside the API."""
        path, mark, query = target.partition("?")
        pattern = _API.get((self.kind, method))
        if pattern is None or not path.startswith("/v1/") or not _QUERY.fullmatch(query):
            return None
        rest = path.removeprefix("/v1/")
        if not pattern.fullmatch(rest) or any(segment in (".", "..") for segment in rest.split("/")):
            return None
        return f"{self.base}/{rest}{mark}{query}"


def refuse_recorded(upstream: ModelUpstream, recorded: Mapping[str, str]) -> None:
    """Raises `ScoresheetError` when the endpoint is one of the pack's own services (name → place).

    Otherwise the model's door would be a way to what the recordings stand for.
    """
    for name, place in recorded.items():
        authority = place.partition("://")[2] or place
        authority = authority.partition("/")[0].rpartition("@")[2].lower()
        host, _, port = authority.rpartition(":")
        if not port.isdigit():
            host, port = authority, ""
        if host.strip("[]").rstrip(".") == upstream.host.lower() and port in ("", str(upstream.port)):
            what = f"the model's address is the recorded service {name}"
            raise ScoresheetError(what, f"--model {upstream.kind}", "a model has an address of its own")
