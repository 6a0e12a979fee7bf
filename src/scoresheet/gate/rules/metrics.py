"""Rules of the metrics: the primary is in the decision table, stands with its secondary, and has an honest name."""

import difflib
import unicodedata

from scoresheet.gate.decisions import FORBIDDEN, TABLE, decision_of
from scoresheet.gate.facts import CardFacts, Findings
from scoresheet.gate.placeholder import is_placeholder

PRIMARY = "metrics.primary"
SECONDARY = "metrics.secondary"


def metrics_headline(facts: CardFacts) -> Findings:
    """No headline scalar."""
    if facts.get("metrics.headline_scalar_allowed") is True:
        what = "headline_scalar_allowed must stay false for publish"
        mend = "write false: the vector is published, not one number"
        yield facts.finding("metrics-headline", "metrics.headline_scalar_allowed", what, mend)


def metrics_primary(facts: CardFacts) -> Findings:
    """The primary is one of the decision table's."""
    primary = facts.get(PRIMARY)
    if not isinstance(primary, str) or is_placeholder(primary) or _plain(primary) in FORBIDDEN:
        return
    if decision_of(primary) is None:
        known = [decision.primary for decision in TABLE]
        near = difflib.get_close_matches(primary, known, n=1)
        mend = f"write {near[0]!r}" if near else "write one of: " + "; ".join(known)
        yield facts.finding("metrics-primary", PRIMARY, f"{PRIMARY} {primary!r} is not in the decision table", mend)


def metrics_required_secondary(facts: CardFacts) -> Findings:
    """The primary's required secondary is there."""
    primary = facts.get(PRIMARY)
    decision = decision_of(primary) if isinstance(primary, str) else None
    secondaries = facts.texts(SECONDARY)
    if decision is not None and secondaries and decision.secondary not in secondaries:
        what = f"{SECONDARY} lacks {decision.secondary!r}, which {decision.primary!r} needs beside it"
        yield facts.finding("metrics-required-secondary", SECONDARY, what, f"add {decision.secondary!r}")


def metrics_two_secondaries(facts: CardFacts) -> Findings:
    """At least two secondaries, none twice and none the primary again."""
    secondaries = facts.texts(SECONDARY)
    names = [_plain(name) for name in secondaries]
    if secondaries and len(set(names)) < 2:
        what = f"{SECONDARY} lists {len(set(names))} metric, but at least two stand beside a primary"
        yield facts.finding("metrics-two-secondaries", SECONDARY, what, "add another figure that the run computes")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add() gives None: falsy
        yield facts.finding("metrics-two-secondaries", SECONDARY, f"{SECONDARY} lists {twice!r} twice", "keep one")
    primary = facts.get(PRIMARY)
    if isinstance(primary, str) and _plain(primary) in names:
        yield facts.finding("metrics-two-secondaries", SECONDARY, f"{SECONDARY} repeats the primary", "remove it there")


def metrics_forbidden(facts: CardFacts) -> Findings:
    """No metric bears a name that promises more than was measured."""
    for pointer, names in ((PRIMARY, (facts.get(PRIMARY),)), (SECONDARY, facts.texts(SECONDARY))):
        for name in names:
            if isinstance(name, str) and _plain(name) in FORBIDDEN:
                decision = next(decision for decision in TABLE if decision.forbidden == _plain(name))
                what = f"{pointer} says {name!r}, which this must never be called"
                yield facts.finding("metrics-forbidden", pointer, what, f"write {decision.primary!r}")


def metrics_retries(facts: CardFacts) -> Findings:
    """Retries are zero: with them the plain success is another metric, `success_after_N_retries_mean`."""
    retries = facts.get("controls.retries")
    primary = facts.get(PRIMARY)
    if type(retries) is int and retries > 0 and isinstance(primary, str) and "pass@1" in primary:
        what = f"controls.retries is {retries}, but {PRIMARY} {primary!r} is the first attempt's"
        yield facts.finding("metrics-retries", "controls.retries", what, "write retries: 0, or choose another primary")


def metrics_computable(facts: CardFacts) -> Findings:
    """A run of this pack can compute the primary and its secondary."""
    primary = facts.get(PRIMARY)
    decision = decision_of(primary) if isinstance(primary, str) else None
    if decision is None:
        return
    another = f"choose another row of the decision table, such as {TABLE[3].primary!r}"
    if "workspace" in decision.needs and facts.pack is not None and "workspace" not in facts.pack.kinds:
        what = f"{PRIMARY} {decision.primary!r} needs workspace tasks, and the pack has none"
        yield facts.finding("metrics-computable", PRIMARY, what, another)
    elif "tests" in decision.needs and facts.pack is not None and not facts.pack.test_commands:
        what = f"{PRIMARY} {decision.primary!r} needs frozen tests, and no task has an oracle of kind pytest"
        yield facts.finding("metrics-computable", PRIMARY, what, another)
    if "estimate" in decision.needs and facts.get("metrics.estimates.human_minutes_per_task") is None:
        what = f"{PRIMARY} needs metrics.estimates.human_minutes_per_task, which is not there"
        yield facts.finding(
            "metrics-computable", "metrics.estimates", what, "write your estimate: it is printed as one"
        )
    if "model" in decision.needs and facts.get("controls.network") != "model_only":
        what = f"{PRIMARY} needs the model's tokens, but controls.network is not model_only"
        yield facts.finding("metrics-computable", "controls.network", what, "write network: model_only")


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
