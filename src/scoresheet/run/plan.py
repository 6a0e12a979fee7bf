"""Which episodes a run has, in which order, and which of them are still to do. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scoresheet.canonical import JsonValue
from scoresheet.documents.row import Row, episode_seed
from scoresheet.documents.run_plan import RunPlan


@dataclass(frozen=True, slots=True)
class Episode:
    """One task, one repeat, one attempt."""

    task_id: str
    repeat: int
    attempt: int
    seed: int
    counted: int = 0
    """Attempts before it that count: those that our own errors ended do not."""

    @property
    def folder(self) -> str:
        """Where its journal lies, below the run directory."""
        return f"episodes/{self.task_id}/{self.repeat}.{self.attempt}"


def episodes(task_ids: Iterable[str], repeats: int, seed: int) -> Iterator[Episode]:
    """First attempts, in the one order that every run of this plan has: task by task, repeat by repeat."""
    for task_id in task_ids:
        for repeat in range(repeats):
            yield Episode(task_id, repeat, 0, episode_seed(seed, task_id, repeat))


@dataclass(slots=True)
class Attempts:
    """What the rows say of one episode so far."""

    next: int = 0
    """The number that its next attempt gets."""
    scored: int = 0
    """Attempts that count against the retry budget: a harness error never does."""
    succeeded: bool = False
    harness_error: bool = False
    """True when the last attempt was our failure."""

    def add(self, row: Row) -> None:
        """Count one more attempt."""
        self.next = max(self.next, row.attempt + 1)
        self.harness_error = row.exit_reason == "harness_error"
        if not self.harness_error:
            self.scored += 1
            self.succeeded = row.success != 0

    def done(self, retries: int) -> bool:
        """True when no attempt is left to make: it succeeded, or its budget of 1 + `retries` is spent."""
        return not self.harness_error and (self.succeeded or self.scored > retries)


@dataclass(slots=True)
class Progress:
    """The rows of a run, folded as they come: memory grows with the episodes that were begun, not with their rows."""

    retries: int
    episodes: dict[tuple[str, int], Attempts] = field(default_factory=dict)
    rows: int = 0
    exit_reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> Attempts:
        """Count one row; the state of its episode."""
        attempts = self.episodes.setdefault((row.task_id, row.repeat), Attempts())
        attempts.add(row)
        self.rows += 1
        self.exit_reasons[row.exit_reason] += 1
        return attempts

    def remaining(self, plan: Iterable[Episode]) -> Iterator[Episode]:
        """What is still to do of `plan`, each with the attempt number that it gets next."""
        for episode in plan:
            attempts = self.episodes.get((episode.task_id, episode.repeat))
            if attempts is None:
                yield episode
            elif not attempts.done(self.retries):
                yield Episode(episode.task_id, episode.repeat, attempts.next, episode.seed, attempts.scored)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which a run that is to be resumed differs from what is asked."""

    field: str
    recorded: JsonValue
    asked: JsonValue

    def __str__(self) -> str:
        return f"{self.field}: recorded {self.recorded}, asked {self.asked}"


def differences(recorded: RunPlan, asked: RunPlan) -> tuple[Difference, ...]:
    """Every field that can change a result and that differs; a run is resumed only when there is none.

    Seat, host, jobs, versions and the interval may change: they are not what an episode's outcome rests on.
    """
    before, now = _decisive(recorded), _decisive(asked)
    return tuple(Difference(name, before[name], now[name]) for name in before if before[name] != now[name])


def _decisive(plan: RunPlan) -> Mapping[str, JsonValue]:
    return {
        "manifest_sha256": plan.manifest_sha256,
        "agent.sha256": plan.agent.sha256,
        "model_endpoints": list(plan.model_endpoints),
        "model_replayed": None if plan.model_replayed is None else plan.model_replayed.recording_sha256,
        "prices_sha256": plan.prices_sha256,
        "seed": plan.seed,
        "repeats": plan.repeats,
        "retries": plan.retries,
        "timeout_s": plan.manifest.timeout_s,
        **{f"limits.{name}": value for name, value in plan.limits.model_dump().items()},
        "isolation": plan.isolation,
        "tasks": [task.task_id for task in plan.tasks],
        "card_sha256": plan.card_sha256,
    }
