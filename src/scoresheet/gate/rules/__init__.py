"""The rules of a protocol card: one function each, listed here in the order in which their findings are printed.

To add one: write the function, add it to `RULES`, and give it a section in docs/gates and a golden message in its test.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scoresheet.errors import Finding
from scoresheet.gate.facts import CardFacts, Findings
from scoresheet.gate.rules import card, metrics, pack, split, task_card

Rule = Callable[[CardFacts], Findings]

RULES: tuple[Rule, ...] = (
    card.card_is_mapping,
    card.card_schema,
    card.card_fields,
    card.card_types,
    card.card_unknown,
    card.card_parts,
    task_card.card_triage_defaults,
    card.card_git_sha,
    card.card_fixture_hash,
    card.card_human,
    card.card_network,
    card.card_wall_clock,
    card.card_publishing,
    metrics.metrics_headline,
    metrics.metrics_primary,
    metrics.metrics_required_secondary,
    metrics.metrics_two_secondaries,
    metrics.metrics_forbidden,
    metrics.metrics_retries,
    metrics.metrics_computable,
    split.split_overlap,
    split.split_duplicates,
    split.split_known,
    split.split_content,
    split.split_count,
    split.split_origins,
    pack.pack_tools,
    pack.pack_test_command,
    pack.pack_clock,
    pack.pack_seed,
    pack.pack_retries,
)

TASK_CARD_RULES: tuple[Rule, ...] = (
    task_card.task_card_is_mapping,
    task_card.task_card_unknown,
    task_card.task_card_kinds,
    task_card.task_card_types,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules found of one card."""

    rules: int
    """How many rules ran."""
    findings: tuple[Finding, ...]


def judge(facts: CardFacts) -> Judged:
    """Run every rule on a card; every finding, in the order of the rules."""
    return Judged(len(RULES), tuple(finding for rule in RULES for finding in rule(facts)))


def judge_task_card(facts: CardFacts) -> Judged:
    """Run every rule on a task card; every finding, in the order of the rules."""
    return Judged(len(TASK_CARD_RULES), tuple(finding for rule in TASK_CARD_RULES for finding in rule(facts)))
