"""Runs to compare, as values."""

from collections.abc import Sequence
from typing import Any

from scoresheet import digest
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.row import ModelUsage, Row
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.publish.admissible import Card, Evidence
from scoresheet.publish.comparable import Entrant, labelled
from scoresheet.publish.outcomes import fold
from scoresheet.stats import bill
from tests.publish import runs

PRICES = PriceTable.from_value(
    {"currency": "USD", "date": "2026-11-30", "models": {"m": {"input": "2.5", "output": 10}}}, "prices.yaml"
)
C = (0, 1, 0, 0, 0, 3, 0, 1, 4, 0, 1, 2)


def agent(name: str, kind: Any = "command") -> AgentIdentity:
    """An agent whose digest is of its name's first letter."""
    return AgentIdentity(kind=kind, spec=f"python3 {name}.py", sha256=f"{ord(name[0]):02x}" * 32)


def entrant(
    passed: Sequence[int],
    name: str = "careful",
    tokens: Sequence[int] | None = None,
    prices: PriceTable | None = None,
    card: Card | None = None,
    **more: Any,
) -> Entrant:
    """A run in which so many of each task's repeats succeed; `tokens` are each task's total.

    With `prices` these tokens are read by the model `m`, and priced; `prices_sha256` is else that of the table.
    `clusters` gives the cluster of a task's number; `more` is what the plan has else.
    """
    fields: dict[str, Any] = {"agent": agent(name), **more}
    clusters = fields.pop("clusters", None)
    if prices is not None:
        fields.setdefault("prices_sha256", digest.of(prices.model_dump_json().encode()))
    plan = runs.plan(len(passed), **fields)
    if clusters is not None:
        tasks = tuple(task.model_copy(update={"cluster_id": clusters(n)}) for n, task in enumerate(plan.tasks))
        plan = plan.model_copy(update={"tasks": tasks})
    rows = runs.rows(passed, plan.repeats)
    if tokens is not None:
        rows = [_counted(row, tokens[int(row.task_id[1:])], prices) for row in rows]
    outcomes = fold(plan, rows, prices)
    evidence = Evidence(card=card, confounds=(), prices=prices)
    return Entrant("", name, plan, outcomes, evidence, digest.of(repr((name, passed)).encode()))


def entrants(*given: Entrant) -> tuple[Entrant, ...]:
    """The same with their labels, every one with rows of its own."""
    return labelled(given)


def _counted(row: Row, total: int, prices: PriceTable | None) -> Row:
    total = total if row.repeat == 0 else 0
    counted: dict[str, Any] = {"tokens_in": total, "tokens_out": 0}
    if prices is not None:
        used = ModelUsage(model="m", calls=1, input=total, output=0)
        cost = bill.text(bill.bill((used,), prices).amount)
        counted |= {"model_calls": 1, "model_untold": 0, "model_usage": (used,), "cost": cost}
    return row.model_copy(update=counted)
