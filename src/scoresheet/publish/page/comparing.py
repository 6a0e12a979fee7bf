"""What the page of a comparison shows, as values: nothing on it that the comparison does not hold. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scoresheet.documents.comparison import ComparedMetric, ComparedPair, Comparison, FieldDifference
from scoresheet.publish import comparison_text
from scoresheet.publish.page.model import Entry, Kind, Mark


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs: the difference and what follows from it."""

    name: str
    difference: str
    ci95: str
    verdict: str
    tie: bool
    checks: str
    method: str


@dataclass(frozen=True, slots=True)
class Competitor:
    """A run as the table shows it."""

    label: str
    name: str
    agent: str
    mean: str
    ci95: str
    ranks: str
    cells: tuple[str, ...]
    """successes, confounds, seat and host, standing."""


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """Everything that stands on the page of a comparison."""

    title: str
    draft: bool
    reasons: tuple[str, ...]
    reading: str
    ranks: str
    alike: tuple[Entry, ...]
    runs: tuple[Competitor, ...]
    metric: str
    method: str
    """Of all pairs at once."""
    pairs: tuple[Pair, ...]
    marks: tuple[Mark, ...]
    others: tuple[tuple[str, tuple[Entry, ...], tuple[Pair, ...]], ...]
    """Every other metric: its name and direction, the means, the pairs. They rank nobody."""
    tokens: tuple[Entry, ...]
    money: tuple[Entry, ...]
    heading: tuple[str, ...]
    tasks: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unlike:
    """A field in which two runs are not the same, each side by its label and name."""

    field: str
    first: str
    first_value: str
    second: str
    second_value: str


def unlike(differences: Iterable[FieldDifference], names: Mapping[str, str]) -> Iterator[Unlike]:
    """What keeps runs from being compared; `names` is label → how the page calls the run."""
    for each in differences:
        first, second = names[each.first], names[each.second]
        yield Unlike(each.field, first, each.first_value, second, each.second_value)


def page(found: Comparison) -> ComparisonPage:
    """The page of a comparison."""
    primary = found.metrics[0]
    heading, *rows = comparison_text.rows(found)
    return ComparisonPage(
        title=" against ".join(f"{run.label} {run.name}" for run in found.runs),
        draft=found.draft,
        reasons=found.reasons,
        reading=found.reading,
        ranks=comparison_text.ranks(found),
        alike=(
            Entry("protocol", found.protocol),
            Entry("manifest_sha256", found.manifest_sha256),
            Entry("card_sha256", found.card_sha256 or "none"),
            Entry("timeout_s", f"{found.timeout_s:g}"),
            Entry("retries", str(found.retries)),
            Entry("seed", str(found.seed)),
            Entry("repeats", str(found.repeats)),
            Entry("tasks", str(found.tasks)),
            Entry("live_network", found.live_network),
            Entry("tie_margin", str(found.tie_margin)),
        ),
        runs=tuple(_competitors(found)),
        metric=primary.metric,
        method=primary.method,
        pairs=tuple(map(_pair, primary.pairs)),
        marks=tuple(_marks(found)),
        others=tuple(
            (
                f"{other.metric} ({_direction(other)} is better; not adjusted for multiplicity)",
                tuple(Entry(run.label, f"{mean:.4f}") for run, mean in zip(found.runs, other.means, strict=True)),
                tuple(map(_pair, other.pairs)),
            )
            for other in found.metrics[1:]
        ),
        tokens=tuple(_entries(comparison_text.tokens(found))),
        money=tuple(_entries(comparison_text.cost(found))),
        heading=heading,
        tasks=tuple(rows),
        notes=found.notes,
    )


def _direction(metric: ComparedMetric) -> str:
    return "more" if metric.higher_is_better else "fewer"


def _competitors(found: Comparison) -> list[Competitor]:
    return [
        Competitor(
            label=run.label,
            name=run.name,
            agent=run.agent,
            mean=f"{run.mean:.4f}",
            ci95=run.ci95 if isinstance(run.ci95, str) else f"[{run.ci95[0]:.4f}, {run.ci95[1]:.4f}]",
            ranks=comparison_text.rank_set(run) or "baseline, not ranked",
            cells=(
                f"{run.successes} of {run.planned}",
                "no log" if run.confounds is None else str(run.confounds),
                f"{run.seat or 'none'} on {run.host}",
                "baseline" if run.baseline else "draft" if run.draft else "admissible",
            ),
        )
        for run in found.runs
    ]


def _marks(found: Comparison) -> list[Mark]:
    marks = []
    for run in found.runs:
        low, high = (None, None) if isinstance(run.ci95, str) else run.ci95
        text = f"{run.mean:.4f} {run.ci95}" if isinstance(run.ci95, str) else f"{run.mean:.4f} [{low:.4f}, {high:.4f}]"
        about = "baseline, not ranked" if run.baseline else "its own 95 % interval: that two of them overlap is no tie"
        kind: Kind = "reference" if run.baseline else "point" if low is None else "interval"
        marks.append(Mark(f"{run.label} {run.name}"[:40], run.mean, text, low, high, kind, about))
    return marks


def _pair(pair: ComparedPair) -> Pair:
    return Pair(
        name=f"{pair.first} − {pair.second}",
        difference=comparison_text.signed(pair.difference),
        ci95=comparison_text.ends(pair.ci95),
        verdict=comparison_text.verdict(pair),
        tie=pair.tie,
        checks=comparison_text.checks(pair),
        method=pair.interval_method,
    )


def _entries(lines: Iterable[str]) -> Iterator[Entry]:
    for line in lines:
        key, _, value = line.partition(": ")
        yield Entry(key, value)
