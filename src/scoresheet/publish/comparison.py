"""Runs in, their comparison out: paired by task, on the same resamples, ties as ties. Pure.

`comparable.differences` is asked first: what is compared here is alike in all but the agent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

from scoresheet.documents.comparison import (
    ComparedMetric,
    ComparedPair,
    ComparedRun,
    ComparedTask,
    Comparison,
    MoneyAxis,
    TokenAxis,
    Verdict,
)
from scoresheet.documents.report import NOT_DECLARED, metric_name
from scoresheet.publish import comparison_cost
from scoresheet.publish.comparable import Contest, Entrant
from scoresheet.publish.decisions import ends, no_interval
from scoresheet.publish.outcome import Outcome
from scoresheet.stats import compare, ranks
from scoresheet.stats.interval import Estimate, Interval, estimate
from scoresheet.stats.rounding import downward, nearest, upward
from scoresheet.stats.sample import Sample, sample

Metric = Literal["success", "schema_ok", "unauthorized", "timeout"]
METRICS: Mapping[Metric, Callable[[Outcome], int]] = {
    "success": lambda outcome: outcome.success,
    "schema_ok": lambda outcome: outcome.schema_ok,
    "unauthorized": lambda outcome: outcome.unauthorized,
    "timeout": lambda outcome: outcome.timeout,
}
_FEWER_IS_BETTER: tuple[Metric, ...] = ("unauthorized", "timeout")
_FLIPPED: Mapping[Verdict, Verdict] = {
    "better": "worse",
    "worse": "better",
    "equivalent": "equivalent",
    "unresolved": "unresolved",
}
READING = "a ranking that moves less than the interval is a tie: only an interval that excludes 0 ranks"
Values = dict[str, list[int]]


def build(entrants: Sequence[Entrant], more: Sequence[Metric] = ()) -> Comparison:
    """The comparison of runs that are alike, by success; `more` metrics are shown and rank nobody.

    Raises `ValueError` with fewer than two runs that may be ranked.
    """
    contest = Contest(tuple(entrants))
    if len(contest.ranked) < 2:
        raise ValueError("a comparison needs two runs that are no baselines")
    first = contest.ranked[0]
    card = first.evidence.card
    margin = card.tie_margin if card is not None else None
    primary, rank_sets = _metric(contest, "success", None if margin is None else Fraction(str(margin)))
    others = tuple(_metric(contest, metric, None)[0] for metric in dict.fromkeys(more) if metric != "success")
    tokens, cost = comparison_cost.tokens(contest), comparison_cost.money(contest)
    unmet = tuple(f"{each.label}: {reason}" for each in contest.entrants for reason in each.unmet)
    return Comparison(
        draft=bool(unmet),
        reading=READING,
        protocol=first.plan.manifest.protocol,
        manifest_sha256=first.plan.manifest_sha256,
        card_sha256=card.sha256 if card is not None else None,
        timeout_s=first.plan.manifest.timeout_s,
        retries=first.plan.retries,
        seed=first.plan.seed,
        repeats=first.plan.repeats,
        live_network=first.isolation,
        tasks=len(first.tasks),
        tie_margin=NOT_DECLARED if margin is None else margin,
        runs=tuple(_run(contest, each, rank_sets.get(each.label)) for each in contest.entrants),
        metrics=(primary, *others),
        tokens=tokens if isinstance(tokens, TokenAxis) else None,
        why_no_tokens=None if isinstance(tokens, TokenAxis) else tokens,
        cost=cost if isinstance(cost, MoneyAxis) else None,
        why_no_cost=None if isinstance(cost, MoneyAxis) else cost,
        per_task=tuple(_tasks(contest)),
        notes=tuple(_notes(contest, primary, others)),
        reasons=unmet,
    )


def _values(entrant: Entrant, value: Callable[[Outcome], int]) -> Values:
    return {task_id: [*map(value, outcomes)] for task_id, outcomes in entrant.episodes.tasks()}


def _estimate(contest: Contest, entrant: Entrant, metric: Metric) -> Estimate:
    return estimate(sample(_values(entrant, METRICS[metric]), contest.cluster_of), contest.start)


def _metric(
    contest: Contest, metric: Metric, margin: Fraction | None
) -> tuple[ComparedMetric, dict[str, tuple[int, int]]]:
    """The metric of every run and pair, and label → rank set of those that are ranked."""
    values = [_values(each, METRICS[metric]) for each in contest.ranked]
    labels = [each.label for each in contest.ranked]
    of_pairs = list(combinations(range(len(labels)), 2))
    samples = [compare.paired(values[a], values[b], contest.cluster_of) for a, b in of_pairs]
    singles = [compare.compare(each, contest.start, margin) for each in samples]
    flip = metric in _FEWER_IS_BETTER
    if len(labels) > 2:
        found = ranks.rank(len(labels), samples, contest.start, margin)
        joint: Sequence[ranks.Pair | None] = found.pairs
        method, rank_sets = found.method, found.ranks
    else:
        (single,) = singles
        alone = ranks.Pair(0, 1, single.mean, single.interval, ranks.p_of(samples[0]), single.verdict)
        joint, rank_sets = (None,), ranks.rank_sets(2, (alone,))
        method = single.interval.method if single.interval else _no_interval(samples[0])
    pairs = tuple(
        _pair((labels[a], labels[b]), single, together, samples[0], flip=flip)
        for (a, b), single, together in zip(of_pairs, singles, joint, strict=True)
    )
    compared = ComparedMetric(
        metric=metric_name(contest.ranked[0].plan.retries) if metric == "success" else f"{metric}_rate",
        higher_is_better=not flip,
        primary=metric == "success",
        method=method,
        means=tuple(_share(sample(_values(each, METRICS[metric])).mean) for each in contest.entrants),
        pairs=pairs,
    )
    return compared, dict(zip(labels, rank_sets, strict=True))


def _pair(
    labels: tuple[str, str], single: compare.Paired, joint: ranks.Pair | None, any_sample: Sample, *, flip: bool
) -> ComparedPair:
    decided = single.interval if joint is None else joint.interval
    verdict = single.verdict if joint is None else joint.verdict
    none = _no_interval(any_sample)
    return ComparedPair(
        first=labels[0],
        second=labels[1],
        difference=_share(single.mean),
        ci95=_ends(decided),
        interval_method=decided.method if decided else none,
        verdict=_FLIPPED[verdict] if flip else verdict,
        tie=verdict in compare.TIES,
        single_ci95=_ends(single.interval),
        single_method=single.interval.method if single.interval else none,
        sign_flip_p=_share(single.p),
        sign_flip_exact=str(single.p) if single.p.denominator < 10**12 else f"{float(single.p):.3g}",
        holm_p=None if joint is None else _share(Fraction(joint.holm_p)),
        different=single.different,
        clusters=single.clusters,
        mde=None if single.mde is None else float(upward(single.mde)),
    )


def _run(contest: Contest, entrant: Entrant, ranked: tuple[int, int] | None) -> ComparedRun:
    found = _estimate(contest, entrant, "success")
    plan, confounds = entrant.plan, entrant.evidence.confounds
    return ComparedRun(
        label=entrant.label,
        name=entrant.name,
        agent=plan.agent.spec,
        agent_sha256=plan.agent.sha256,
        seat=plan.seat,
        host=plan.host.label,
        rows_sha256=entrant.rows_sha256,
        draft=bool(entrant.unmet),
        confounds=None if confounds is None else len(confounds),
        baseline=entrant.baseline,
        successes=sum(outcome.success for outcome in entrant.episodes),
        planned=len(entrant.episodes),
        mean=_share(found.mean),
        ci95=ends(found),
        interval_method=found.interval.method if found.interval else no_interval(found),
        best_rank=ranked[0] if ranked else None,
        worst_rank=ranked[1] if ranked else None,
    )


def _tasks(contest: Contest) -> Iterator[ComparedTask]:
    columns = [_values(each, METRICS["success"]) for each in contest.entrants]
    for task in contest.ranked[0].tasks:
        vectors = [column[task.task_id] for column in columns]
        yield ComparedTask(task_id=task.task_id, successes=tuple(map(sum, vectors)), planned=tuple(map(len, vectors)))


def _notes(contest: Contest, primary: ComparedMetric, others: Sequence[ComparedMetric]) -> Iterator[str]:
    for each in contest.entrants:
        if each.baseline:
            yield f"{each.label} is the {each.plan.agent.kind} baseline: shown, never ranked"
        unscored = sum(outcome.state != "scored" for outcome in each.episodes)
        if unscored:
            count = f"{unscored} of {len(each.episodes)} planned episodes"
            yield f"{each.label}: {count} are not scored and count as failed"
    for a, b in combinations(contest.ranked, 2):
        if a.plan.agent.sha256 == b.plan.agent.sha256:
            yield f"{a.label} and {b.label} are the same agent's files: a difference is chance, or not in the files"
    if any(pair.different < compare.FEWEST_DIFFERENT for pair in primary.pairs):
        yield f"fewer than {compare.FEWEST_DIFFERENT} tasks differ somewhere: of such a pair nobody wins"
    if primary.pairs[0].clusters < compare.FEWEST_DIFFERENT:
        yield f"under {compare.FEWEST_DIFFERENT} tasks (or clusters) nobody wins: no exact test could tell"
    hosts = len({each.plan.host.label for each in contest.ranked}) > 1
    if hosts and any(outcome.timeout for each in contest.ranked for outcome in each.episodes):
        yield "the runs were on different hosts and some episodes ran out of time: that compares hosts, too"
    for name, said in (
        ("parallel jobs", {str(each.plan.jobs) for each in contest.ranked}),
        ("scoresheet versions", {each.plan.versions.get("scoresheet", "unknown") for each in contest.ranked}),
    ):
        if len(said) > 1:
            yield f"the runs had different {name}: {', '.join(sorted(said))}"
    if any(each.plan.interval == "rows-v1" for each in contest.ranked):
        yield "the runs ask for rows-v1 intervals; differences are paired by task all the same"
    if others:
        yield "one primary metric; the others are not adjusted for multiplicity, and rank nobody"


def _no_interval(of: Sample) -> str:
    clusters = len(of.totals)
    return f"none ({clusters} tasks)" if clusters == of.tasks else f"none ({clusters} clusters)"


def _share(value: Fraction) -> float:
    return float(nearest(value))


def _ends(found: Interval | None) -> tuple[float, float] | None:
    return None if found is None else (float(downward(found.low)), float(upward(found.high)))
