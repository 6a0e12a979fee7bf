"""What a run's tokens cost by the price table that it was given: the bill, and the bill per success. Pure."""

from scoresheet.documents.prices import PriceTable
from scoresheet.documents.report import Money
from scoresheet.documents.run_plan import RunPlan
from scoresheet.publish.figures import Figures, cluster_totals
from scoresheet.publish.outcomes import Outcomes
from scoresheet.stats import bill, resample
from scoresheet.stats.cost import CostPerSuccess, cost_per_success
from scoresheet.stats.rounding import downward, nearest, upward

PLACES = 6


def money(plan: RunPlan, found: Figures, outcomes: Outcomes, prices: PriceTable | None) -> Money | None:
    """The bill of the tasks that count; `None` without a price table."""
    if prices is None or plan.prices_sha256 is None:
        return None
    successes = sum(task.successes for task in found.tasks)
    unknown = sum(each is None for each in found.episodes.each("cost"))
    if unknown:
        return Money(
            currency=prices.currency,
            date=prices.date,
            prices_sha256=plan.prices_sha256,
            total=None,
            successes=successes,
            per_success=None,
            low=None,
            high=None,
            text=f"not computed: {why_unknown(outcomes, unknown, found.planned)}",
            why_not=why_unknown(outcomes, unknown, found.planned),
            unpriced=outcomes.unpriced,
        )
    clusters = {task.task_id: task.cluster_id for task in plan.tasks if task.cluster_id is not None}
    costs, won = cluster_totals(found.tasks, clusters, "cost")
    per = cost_per_success(costs, won, resample.prefix(plan.seed, plan.manifest_sha256))
    ratio, low, high = ends(per)
    return Money(
        currency=prices.currency,
        date=prices.date,
        prices_sha256=plan.prices_sha256,
        total=bill.text(sum(costs)),
        successes=successes,
        per_success=ratio,
        low=low,
        high=high,
        text=text(per),
        why_not=None,
        unpriced=outcomes.unpriced,
    )


def ends(per: CostPerSuccess) -> tuple[str | None, str | None, str | None]:
    """The bill per success and its interval in the currency, as decimal text; the interval rounded outward."""
    ratio = None if per.ratio is None else f"{nearest(per.ratio / bill.UNIT, PLACES):f}"
    low = None if per.low is None else f"{downward(per.low / bill.UNIT, PLACES):f}"
    high = None if per.high is None else f"{upward(per.high / bill.UNIT, PLACES):f}"
    return ratio, low, high


def text(per: CostPerSuccess) -> str:
    """The same for people."""
    ratio, low, high = ends(per)
    if ratio is None:
        return "undefined (0 passing)"
    if low is None:
        return f"{ratio}, no interval"
    return f"{ratio} " + (f"(>= {low}, upper unbounded)" if high is None else f"[{low}, {high}]")


def why_unknown(outcomes: Outcomes, unknown: int, planned: int) -> str:
    """Why the bill of so many planned episodes is not known."""
    if outcomes.unpriced:
        return f"the price table does not name {', '.join(outcomes.unpriced)}"
    if outcomes.untold:
        return f"of {outcomes.untold} model calls nobody told the tokens"
    return f"{unknown} of {planned} planned episodes have no bill"
