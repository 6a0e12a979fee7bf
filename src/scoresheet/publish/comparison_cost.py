"""What compared runs cost, in tokens and in money: totals, bills per success, and paired ratios. Pure.

An axis of its own: nothing here is part of success, and what is not known is said and never 0.
"""

from collections.abc import Callable, Mapping
from itertools import combinations

from scoresheet.documents.comparison import (
    ComparedMoney,
    ComparedTokens,
    CostRatio,
    MoneyAxis,
    RunMoney,
    TokenAxis,
)
from scoresheet.publish import money as moneys
from scoresheet.publish.comparable import Contest, Entrant
from scoresheet.publish.outcome import Outcome
from scoresheet.stats import bill, ratio
from scoresheet.stats.cost import CostPerSuccess, cost_per_success
from scoresheet.stats.rounding import downward, nearest, upward
from scoresheet.stats.sample import sample

Totals = Mapping[str, int]
"""task_id -> what all repeats of it have together."""


def tokens(contest: Contest) -> TokenAxis | str:
    """What the runs cost in tokens, or why that is not known."""
    for each in contest.ranked:
        uncounted = sum(count is None for count in each.episodes.each("tokens"))
        if uncounted:
            return f"{uncounted} of {len(each.episodes)} planned episodes of {each.label} count no tokens"
    spent = [_totals(each, lambda outcome: outcome.tokens or 0) for each in contest.ranked]
    bills = [_bill(contest, each, costs) for each, costs in zip(contest.ranked, spent, strict=True)]
    pairs = []
    for a, b in combinations(range(len(contest.ranked)), 2):
        free = _free(spent[a], spent[b])
        per_success = ratio.per_success(bills[a], bills[b], contest.start)
        pairs.append(
            ComparedTokens(
                first=contest.ranked[a].label,
                second=contest.ranked[b].label,
                geometric=None if free else _ratio(ratio.geometric(spent[a], spent[b], contest.cluster_of)),
                why_no_geometric=f"{free} tasks cost one of the two no token" if free else None,
                per_success=None if per_success is None else _ratio(per_success),
            )
        )
    return TokenAxis(
        totals=tuple(sum(costs.values()) for costs in spent),
        per_success=tuple(_per_success(cost_per_success(*each, contest.start)) for each in bills),
        pairs=tuple(pairs),
    )


def money(contest: Contest) -> MoneyAxis | str:
    """What the runs cost in money by the price tables that they were given, or that there is none."""
    if all(each.plan.prices_sha256 is None for each in contest.ranked):
        return "no run has a price table (run --prices FILE)"
    unknown = [_unknown(each) for each in contest.ranked]
    spent = [
        {} if why else _totals(each, lambda outcome: outcome.cost or 0)
        for each, why in zip(contest.ranked, unknown, strict=True)
    ]
    pairs = combinations(range(len(contest.ranked)), 2)
    return MoneyAxis(
        bills=tuple(
            _run(contest, each, costs, why) for each, costs, why in zip(contest.ranked, spent, unknown, strict=True)
        ),
        pairs=tuple(
            _pair(contest, (contest.ranked[a], contest.ranked[b]), (spent[a], spent[b]), (unknown[a], unknown[b]))
            for a, b in pairs
        ),
    )


def _unknown(entrant: Entrant) -> str | None:
    """Why the whole cost of a run is not known; `None` when it is."""
    if entrant.plan.prices_sha256 is None:
        return "no price table (run --prices FILE)"
    if entrant.evidence.prices is None:
        return "its price table is not there, or not the one that its run began with"
    unknown = sum(cost is None for cost in entrant.episodes.each("cost"))
    return moneys.why_unknown(entrant.outcomes, unknown, len(entrant.episodes)) if unknown else None


def _run(contest: Contest, entrant: Entrant, costs: Totals, unknown: str | None) -> RunMoney:
    prices = entrant.evidence.prices
    per = None if unknown else cost_per_success(*_bill(contest, entrant, costs), contest.start)
    return RunMoney(
        run=entrant.label,
        currency=None if prices is None else prices.currency,
        prices_date=None if prices is None else prices.date,
        prices_sha256=entrant.plan.prices_sha256,
        total=None if unknown else bill.text(sum(costs.values())),
        per_success=None if per is None else moneys.text(per),
        why_not=unknown,
    )


def _pair(
    contest: Contest,
    sides: tuple[Entrant, Entrant],
    spent: tuple[Totals, Totals],
    unknown: tuple[str | None, str | None],
) -> ComparedMoney:
    first, second = sides
    reasons = (f"{each.label}: {why}" for each, why in zip(sides, unknown, strict=True) if why)
    why = "; ".join(reasons) or _two_tables(first, second)
    per = None
    if why is None:
        per = ratio.per_success(_bill(contest, first, spent[0]), _bill(contest, second, spent[1]), contest.start)
        free = _free(*spent)
        why = f"{free} tasks cost one of the two nothing" if free else None
    geometric = None if why else ratio.geometric(*spent, contest.cluster_of)
    return ComparedMoney(
        first=first.label,
        second=second.label,
        geometric=None if geometric is None else _ratio(geometric),
        per_success=None if per is None else _ratio(per),
        why_not=why,
    )


def _two_tables(first: Entrant, second: Entrant) -> str | None:
    """Why two bills can't be set against each other; `None` when one table priced both, and so in one currency."""
    ours, theirs = first.plan.prices_sha256 or "", second.plan.prices_sha256 or ""
    if ours == theirs:
        return None
    said = (f"sha256:{sha256[:12]} in {each.label}" for sha256, each in ((ours, first), (theirs, second)))
    return f"two price tables: {', '.join(said)}"


def _totals(entrant: Entrant, value: Callable[[Outcome], int]) -> dict[str, int]:
    return {task_id: sum(map(value, outcomes)) for task_id, outcomes in entrant.episodes.tasks()}


def _bill(contest: Contest, entrant: Entrant, costs: Totals) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(costs, successes) of every cluster, in the order in which they are resampled."""
    won = _totals(entrant, lambda outcome: outcome.success)
    return _clustered(contest, costs), _clustered(contest, won)


def _clustered(contest: Contest, totals: Totals) -> tuple[int, ...]:
    return sample({task_id: [total] for task_id, total in totals.items()}, contest.cluster_of).totals


def _free(*spent: Totals) -> int:
    """Tasks that cost one of the sides nothing: their logarithm is none."""
    return len({task_id for side in spent for task_id, total in side.items() if not total})


def _per_success(found: CostPerSuccess) -> str:
    return str(found) if found.ratio is None else f"{nearest(found.ratio)} {found}"


def _ratio(found: ratio.Ratio) -> CostRatio:
    return CostRatio(
        ratio=float(nearest(found.ratio)),
        low=None if found.low is None else float(downward(found.low)),
        high=None if found.high is None else float(upward(found.high)),
        verdict=found.verdict,
        method=found.method,
    )
