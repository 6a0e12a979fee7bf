"""A claimed score against the report that its rows give, and the list of old scores that are let be. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scoresheet.documents.report import Report
from scoresheet.errors import Finding, Refused
from scoresheet.publish import block, quotes
from scoresheet.publish.figures import Method
from scoresheet.publish.quotes import Claim

_ACCEPTED = re.compile(r"([0-9a-f]{64})(?:\s+\S.*)?")
_MOST = 8
"""Differences that are told one by one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of a claim that the rows don't give."""

    key: str
    says: str
    gives: str | None
    """`None`: the report has no such line."""

    def __str__(self) -> str:
        if self.gives is None:
            return f"{self.key}: the report of these rows has no such line ({_short(self.says)})"
        return f"{self.key} says {_short(self.says)}, the rows give {_short(self.gives)}"


def differences(claim: Claim, report: Report) -> tuple[Difference, ...]:
    """Every member of a claim that the report of its rows has otherwise."""
    return tuple(_of_json(claim, report) if claim.value is not None else _of_block(claim, report))


def told(found: tuple[Difference, ...]) -> str:
    """The differences as one line."""
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(map(str, found[:_MOST])) + more


def method_of(claim: Claim) -> Method | None:
    """The interval that a claim says it used; `None`: the plan's."""
    return "rows-v1" if (claim.get("interval_method") or "").startswith("rows-v1") else None


def _of_block(claim: Claim, report: Report) -> Iterator[Difference]:
    gives = quotes.claims(block.text(report).encode())[0].pairs
    for key, value in claim.pairs:
        if (key, value) not in gives:
            yield Difference(key, value, next((given for name, given in gives if name == key), None))


def _of_json(claim: Claim, report: Report) -> Iterator[Difference]:
    assert claim.value is not None
    gives = json.loads(report.text())
    for key in dict.fromkeys((*claim.value, *gives)):
        said = json.dumps(claim.value[key], sort_keys=True) if key in claim.value else "nothing"
        given = json.dumps(gives[key], sort_keys=True) if key in gives else None
        if said != given:
            yield Difference(key, said, given)


def accepted(data: bytes, where: str) -> frozenset[str]:
    """The digests of an accept list: one a line, anything after it is for people, `#` begins a remark.

    Raises `Refused` for a line that is none: a list that is half read would refuse what somebody accepted.
    """
    found, findings = set(), []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _ACCEPTED.fullmatch(text)
        if match:
            found.add(match[1])
        else:
            mend = "begin the line with the digest that `scoresheet gate --print-accept` prints"
            findings.append(Finding("claim-accept", f"{where}:{number}", "the line does not begin with a sha256", mend))
    if findings:
        raise Refused("not a list of accepted scores", findings, where)
    return frozenset(found)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
