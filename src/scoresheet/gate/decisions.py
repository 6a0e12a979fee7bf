"""The decision table, as data: which figure answers a question, what stands beside it, what it is never called."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of the table. Its figures are never averaged with another row's."""

    question: str
    primary: str
    secondary: str
    """Must be among the card's secondaries."""
    forbidden: str
    needs: tuple[Literal["workspace", "tests", "model", "estimate", "card"], ...]
    """What a run must have for the pair to be computed: a workspace, frozen tests, the model's tokens, an estimate, a
    card."""


TABLE: tuple[Decision, ...] = (
    Decision(
        "can the agent land a fix at all?",
        "holdout pass@1 with frozen tests",
        "patch size in changed lines",
        "accuracy",
        ("workspace", "tests"),
    ),
    Decision(
        "is it cheaper than a human here?",
        "tokens + wall clock per passing task",
        "human-minutes estimate, labelled as estimate",
        "10x productivity",
        ("model", "estimate"),
    ),
    Decision(
        "does it stop touching tests?",
        "share of runs that leave tests/ byte-identical",
        "count of test-file diffs",
        "robustness",
        ("workspace",),
    ),
    Decision(
        "does it finish under the budget?",
        "share of runs that exit before wall_clock_s",
        "timeout vs tool-cap vs model error",
        "reliability",
        (),
    ),
    Decision(
        "can another team replay it?",
        "validator exit code on the card",
        "git sha + fixture hash",
        "a screenshot",
        ("card",),
    ),
)

FORBIDDEN: frozenset[str] = frozenset(decision.forbidden for decision in TABLE)


def decision_of(primary: str) -> Decision | None:
    """The row of a primary metric; `None` when the table has none."""
    return next((decision for decision in TABLE if decision.primary == primary), None)
