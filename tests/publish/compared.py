"""Runs to compare, as values."""

from collections.abc import Sequence
from typing import Any

from scoresheet import digest
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.publish.admissible import Card, Evidence
from scoresheet.publish.comparable import Entrant, labelled
from scoresheet.publish.outcomes import fold
from tests.publish import runs

C = (0, 1, 0, 0, 0, 3, 0, 1, 4, 0, 1, 2)


def agent(name: str, kind: Any = "command") -> AgentIdentity:
    """An agent whose digest is of its name's first letter."""
    return AgentIdentity(kind=kind, spec=f"python3 {name}.py", sha256=f"{ord(name[0]):02x}" * 32)


def entrant(
    passed: Sequence[int],
    name: str = "careful",
    tokens: Sequence[int] | None = None,
    card: Card | None = None,
    **more: Any,
) -> Entrant:
    """A run in which so many of each task's repeats succeed; `tokens` are each task's total.

    `clusters` gives the cluster of a task's number; `more` is what the plan has else.
    """
    fields: dict[str, Any] = {"agent": agent(name), **more}
    clusters = fields.pop("clusters", None)
    plan = runs.plan(len(passed), **fields)
    if clusters is not None:
        tasks = tuple(task.model_copy(update={"cluster_id": clusters(n)}) for n, task in enumerate(plan.tasks))
        plan = plan.model_copy(update={"tasks": tasks})
    rows = runs.rows(passed, plan.repeats)
    if tokens is not None:
        rows = [_counted(row, tokens[int(row.task_id[1:])]) for row in rows]
    outcomes = fold(plan, rows)
    return Entrant(
        "", name, plan, outcomes, Evidence(card=card, confounds=()), digest.of(repr((name, passed)).encode())
    )


def entrants(*given: Entrant) -> tuple[Entrant, ...]:
    """The same with their labels, every one with rows of its own."""
    return labelled(given)


def _counted(row: Row, total: int) -> Row:
    return row.model_copy(update={"tokens_in": total if row.repeat == 0 else 0, "tokens_out": 0})
