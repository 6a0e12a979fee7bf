"""Which runs may stand side by side, and in which fields they may not differ. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scoresheet.documents.comparison import FieldDifference
from scoresheet.documents.run_plan import PlannedTask, RunPlan
from scoresheet.publish.admissible import Evidence, Reason, counted, reasons
from scoresheet.publish.outcome import Episodes
from scoresheet.publish.outcomes import Outcomes
from scoresheet.stats import resample

BASELINES = ("null", "oracle")
_MOST_TASKS = 5


@dataclass(frozen=True, slots=True)
class Entrant:
    """A run that is to be compared."""

    label: str
    """A, B…"""
    name: str
    plan: RunPlan
    outcomes: Outcomes
    evidence: Evidence
    rows_sha256: str

    @property
    def baseline(self) -> bool:
        """True for the built-in agents by which a pack is checked: they are shown, and never ranked."""
        return self.plan.agent.kind in BASELINES

    @property
    def tasks(self) -> tuple[PlannedTask, ...]:
        """The tasks that count, in order of the bytes of their ids."""
        return tuple(sorted(counted(self.plan, self.evidence.card), key=lambda task: task.task_id.encode()))

    @property
    def episodes(self) -> Episodes:
        """Planned episodes of the tasks that count."""
        return self.outcomes.episodes.of(task.task_id for task in self.tasks)

    @property
    def unmet(self) -> tuple[Reason, ...]:
        """Conditions of admissibility that it does not meet; a baseline makes no claim, so it has none."""
        return () if self.baseline else reasons(self.plan, self.outcomes, self.evidence)

    @property
    def isolation(self) -> str:
        """What its episodes could reach, by the evidence of those that ran; the model's host is the agent's own."""
        ran = [outcome for outcome in self.episodes if outcome.state != "missing"]
        if self.plan.isolation == "none" or not all(outcome.proved for outcome in ran):
            return "not_isolated"
        if self.plan.model_replayed is not None:
            return "denied, the model replayed"
        return "model_endpoint_only" if self.plan.model_endpoints else "denied"


@dataclass(frozen=True, slots=True)
class Contest:
    """Runs that are alike in all but the agent, and what all of them share."""

    entrants: tuple[Entrant, ...]

    @property
    def ranked(self) -> tuple[Entrant, ...]:
        """Those that are no baselines."""
        return tuple(each for each in self.entrants if not each.baseline)

    @property
    def start(self) -> bytes:
        """What every resample of the tasks starts with."""
        plan = self.ranked[0].plan
        return resample.prefix(plan.seed, plan.manifest_sha256)

    @property
    def cluster_of(self) -> dict[str, str]:
        """task_id -> its cluster, of the tasks that are in one."""
        return {task.task_id: task.cluster_id for task in self.ranked[0].tasks if task.cluster_id is not None}


def labelled(entrants: Sequence[Entrant]) -> tuple[Entrant, ...]:
    """The same, called A, B… in their order, and R27 past Z."""
    return tuple(
        replace(each, label=chr(ord("A") + index) if index < 26 else f"R{index + 1}")
        for index, each in enumerate(entrants)
    )


def differences(entrants: Sequence[Entrant]) -> tuple[FieldDifference, ...]:
    """Every field in which a run is not like the first one; empty when they may be compared.

    A baseline needs only the same pack and tasks, for nothing is inferred from it.
    """
    first = next((each for each in entrants if not each.baseline), entrants[0])
    found: list[FieldDifference] = []
    for other in entrants:
        if other is not first:
            found += _between(first, other)
    return tuple(found)


def same_rows(entrants: Sequence[Entrant]) -> Iterator[tuple[Entrant, Entrant]]:
    """Pairs that are one and the same run."""
    seen: dict[str, Entrant] = {}
    for each in entrants:
        earlier = seen.setdefault(each.rows_sha256, each)
        if earlier is not each:
            yield earlier, each


def _between(first: Entrant, other: Entrant) -> Iterator[FieldDifference]:
    ours, theirs = dict(_fields(first, other)), dict(_fields(other, first))
    for field, value in ours.items():
        if value != theirs[field] and (not other.baseline or field in ("manifest_sha256", "tasks")):
            yield FieldDifference(
                field=field,
                first=first.label,
                first_value=value,
                second=other.label,
                second_value=theirs[field],
            )


def _fields(one: Entrant, other: Entrant) -> Iterator[tuple[str, str]]:
    """(field, value as text) of one run; of its tasks what it has beside the other's."""
    plan, card = one.plan, one.evidence.card
    yield "manifest_sha256", plan.manifest_sha256
    yield "protocol", plan.manifest.protocol
    yield "card_sha256", card.sha256 if card is not None else "none"
    yield "timeout_s", _number(plan.manifest.timeout_s)
    yield "retries", str(plan.retries)
    yield "repeats", str(plan.repeats)
    yield "seed", str(plan.seed)
    yield "interval", plan.interval
    yield "isolation", one.isolation
    for name, value in plan.limits:
        yield f"controls.{name}", "none" if value is None else _number(value)
    yield "controls.on_mismatch", plan.manifest.on_mismatch
    yield "controls.on_exhausted", plan.manifest.on_exhausted
    yield "tasks", _tasks(one, other)


def _tasks(one: Entrant, other: Entrant) -> str:
    """How many tasks, and which of them the other has not, or puts into another cluster."""
    others = {task.task_id: task.cluster_id for task in other.tasks}
    own = []
    for task in one.tasks:
        if task.task_id not in others:
            own.append(f"{task.task_id} is its own")
        elif others[task.task_id] != task.cluster_id:
            own.append(f"{task.task_id} in cluster {task.cluster_id or 'none'}")
    more = [f"{len(own) - _MOST_TASKS} more"] if len(own) > _MOST_TASKS else []
    return ", ".join([f"{len(one.tasks)} tasks", *own[:_MOST_TASKS], *more])


def _number(value: float) -> str:
    """30 and 30.0 alike; nothing is rounded away."""
    return str(int(value)) if value == int(value) else repr(value)
