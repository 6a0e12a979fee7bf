"""One metric of one agent: whole numbers per task, in an order that every host agrees on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm


@dataclass(frozen=True, slots=True)
class Sample:
    """What is resampled: clusters (a task each, unless `cluster_of` says otherwise), sorted by the bytes of their name.

    Every task weighs the same, however many repeats it has: its mean times `scale` is a whole number.
    """

    names: tuple[str, ...]
    totals: tuple[int, ...]
    """Per cluster: the sum of its tasks' means, times `scale`."""
    weights: tuple[int, ...]
    """Per cluster: its tasks; all 1 when the task is the cluster."""
    scale: int
    unit: int
    """The value that stands for 1."""
    values: tuple[tuple[int, ...], ...]
    """Per task, in order of the bytes of task_id: one value a repeat, sorted, for within-task variance."""

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.values)

    @property
    def mean(self) -> Fraction:
        """The mean of the task means."""
        return Fraction(sum(self.totals), self.scale * self.tasks)

    @property
    def binary(self) -> bool:
        """True when every value is 0 or 1."""
        return all(value in (0, self.unit) for task in self.values for value in task)

    @property
    def repeats(self) -> tuple[int, int]:
        """The fewest and the most repeats of a task."""
        counts = [len(task) for task in self.values]
        return min(counts), max(counts)


def sample(
    values: Mapping[str, Sequence[int]], cluster_of: Mapping[str, str] | None = None, *, unit: int = 1
) -> Sample:
    """The sample of `values` (task_id -> one whole number a repeat). Order of tasks and of repeats does not matter.

    `unit` is the value that stands for 1: 1 for outcomes, `C(n, k)` for pass^k, 1000 for seconds kept as milliseconds.
    `cluster_of` puts tasks that share a repository or a template into one cluster; a task that it does not name is a
    cluster of its own. Raises `ValueError` without tasks, or for a task without values.
    """
    if not values or not all(values.values()):
        raise ValueError("a sample needs a task, and every task a value")
    ids = sorted(values, key=_bytes)
    scale = lcm(*(len(values[task]) for task in ids))
    given = cluster_of or {}
    clusters: dict[tuple[str, str], list[int]] = {}
    for task in ids:
        # a cluster may be called as a task is: they are told apart by the first member
        key = ("cluster", given[task]) if task in given else ("task", task)
        clusters.setdefault(key, []).append(sum(values[task]) * (scale // len(values[task])))
    order = sorted(clusters, key=lambda key: (_bytes(key[1]), key[0]))
    return Sample(
        tuple(name for _, name in order),
        tuple(sum(clusters[key]) for key in order),
        tuple(len(clusters[key]) for key in order),
        scale * unit,
        unit,
        tuple(tuple(sorted(values[task])) for task in ids),
    )


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
