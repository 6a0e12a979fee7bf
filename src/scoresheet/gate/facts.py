"""What the card's rules may look at: the card as it was written, and what is known of its pack. Values only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scoresheet.canonical import JsonValue
from scoresheet.errors import Finding
from scoresheet.yaml12 import Located

LONGEST = 400
"""Characters of a message."""


@dataclass(frozen=True, slots=True)
class PackFacts:
    """What a card can be compared with in its pack."""

    task_ids: tuple[str, ...]
    content: Mapping[str, str]
    """task_id → digest of the task's content without its id: equal for tasks that are copies of each other."""
    origins: Mapping[str, str]
    tools: tuple[str, ...]
    timeout_s: float
    seed: int
    retries: int
    test_commands: Mapping[str, str] = field(default_factory=dict)
    """task_id → command of its pytest oracle."""
    kinds: frozenset[str] = frozenset({"replay"})


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A protocol card, and what it is held against."""

    path: str
    located: Located
    fixture_sha256: str | None = None
    """Digest of the tarball that the card is checked against, when there is one."""
    pack: PackFacts | None = None
    git_sha_known: bool | None = None
    """Whether the repository holds the commit; `None` when there is no repository to ask."""

    def get(self, pointer: str) -> JsonValue:
        """The value at a dotted path such as `suite.git_sha`; `None` when anything on the way is missing."""
        value: Any = self.located.value
        for part in pointer.split("."):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        return value

    def texts(self, pointer: str) -> tuple[str, ...]:
        """The strings of the list at a dotted path; what is no string is left to the rule of types."""
        value = self.get(pointer)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def place(self, pointer: str) -> str:
        """`path:line:column` of a dotted path."""
        return f"{self.path}:{self.located.place('/' + pointer.replace('.', '/'))}"

    def finding(self, rule: str, pointer: str, what: str, mend: str) -> Finding:
        """A finding at a dotted path. What a card quotes at length is cut: a message is one line."""
        return Finding(rule, self.place(pointer), _cut(what), _cut(mend))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


Findings = Iterator[Finding]
