"""A claimed comparison against the one that its runs give. Pure."""

import json
from collections.abc import Iterator, Sequence

from scoresheet.documents.comparison import Comparison
from scoresheet.publish import comparable, comparison, comparison_text
from scoresheet.publish.comparable import Entrant
from scoresheet.publish.quotes import Claim

_MOST = 8


def contradictions(claim: Claim, entrants: Sequence[Entrant]) -> Iterator[str]:
    """Everything of a claimed comparison that its runs, in their order, do not give."""
    unlike = comparable.differences(entrants)
    if unlike:
        yield from (finding.what for finding in comparison_text.findings(unlike[:_MOST]))
        return
    if sum(not each.baseline for each in entrants) < 2:
        yield "a comparison of one run with baselines ranks nobody"
        return
    named = _metrics(claim)
    more = tuple(metric for metric in comparison.METRICS if f"{metric}_rate" in named)
    gives = comparison.build(entrants, more)
    found = _in_json(claim, gives) if claim.value is not None else _in_text(claim, gives)
    wrong = list(found)
    yield from wrong[:_MOST]
    if len(wrong) > _MOST:
        yield f"and {len(wrong) - _MOST} more"


def _metrics(claim: Claim) -> tuple[str, ...]:
    """The metrics that the claim names."""
    if claim.value is None:
        return tuple(line.removeprefix("metric: ").partition(" (")[0] for line in claim.compared if "metric: " in line)
    listed = claim.value.get("metrics")
    return (
        tuple(str(each.get("metric")) for each in listed if isinstance(each, dict)) if isinstance(listed, list) else ()
    )


def _in_json(claim: Claim, gives: Comparison) -> Iterator[str]:
    assert claim.value is not None
    told = json.loads(gives.text())
    for key in dict.fromkeys((*claim.value, *told)):
        if json.dumps(claim.value.get(key), sort_keys=True) != json.dumps(told.get(key), sort_keys=True):
            yield f"{key} is not what the runs give"


def _in_text(claim: Claim, gives: Comparison) -> Iterator[str]:
    block = [line.strip() for line in comparison_text.head(gives)]
    tables = {line.strip() for line in comparison_text.markdown(gives).splitlines()}
    said = [line.strip() for line in claim.compared]
    for line in said:
        if line not in block and line not in tables:
            yield f"no such line comes from the runs: {line[:120]}"
    lines = [line for line in said if line in block]
    if lines[: len(block)] != block:
        absent = next((line for line in block if line not in lines), None)
        yield "its lines are not in their order" if absent is None else f"it lacks the line {absent[:120]}"
