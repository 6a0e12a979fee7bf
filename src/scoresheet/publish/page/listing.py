"""The list of runs: what stands in it, and which of them a question leaves. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Standing = Literal["admissible", "baseline", "not admissible", "incomplete", "can't be read"]
STANDINGS: tuple[Standing, ...] = ("admissible", "baseline", "not admissible", "incomplete", "can't be read")


@dataclass(frozen=True, slots=True)
class Listed:
    """A run as the list shows it: figures only of one that is admissible, reasons of every other."""

    key: str
    """`r1`, `r2`…, in the order in which they were named: the only name that an address has for it."""
    name: str
    """Of its folder or bundle."""
    standing: Standing
    agent: str = ""
    pack: str = ""
    manifest_sha256: str = ""
    seat: str = ""
    started_at: str = ""
    planned: str = ""
    figures: tuple[tuple[str, str], ...] = ()
    """(name, value with its interval); empty unless it is admissible."""
    confounds: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the list; empty members leave everything."""

    text: str = ""
    """Part of the name, the agent, the pack, the seat or the digest, whatever the case."""
    standing: str = ""
    pack: str = ""

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> "Question":
        """The question in the query of an address; of a member that is there twice the first counts."""

        def first(name: str) -> str:
            return next(iter(query.get(name, ())), "")[:200]

        return cls(first("text").strip(), first("standing"), first("pack"))


def chosen(runs: Sequence[Listed], question: Question) -> tuple[Listed, ...]:
    """The runs that the question leaves, in their order."""
    text = question.text.casefold()
    return tuple(
        run
        for run in runs
        if (not question.standing or run.standing == question.standing)
        and (not question.pack or run.manifest_sha256 == question.pack)
        and any(text in part.casefold() for part in (run.name, run.agent, run.pack, run.seat, run.manifest_sha256))
    )


def packs(runs: Sequence[Listed]) -> tuple[tuple[str, str], ...]:
    """(digest of the manifest, name with the digest's head) of every pack there is, by name."""
    found = {run.manifest_sha256: f"{run.pack} ({run.manifest_sha256[:12]}…)" for run in runs if run.manifest_sha256}
    return tuple(sorted(found.items(), key=lambda item: (item[1], item[0])))
