"""Did another host get the same: verdicts, reasons, and what is never asked when the packs differ."""

from dataclasses import replace

import pytest

from scoresheet.publish import report
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.replication import Side, replicate
from tests.publish import runs


def side(name, passed=runs.A, seat=None, rows_sha256=None, **plan):
    """An admissible run, as the verdict sees it."""
    the_plan = runs.plan(tasks=len(passed), seat=seat or f"seat-{name}", **plan)
    pack = the_plan.manifest_sha256
    rows = [row.model_copy(update={"manifest_sha256": pack}) for row in runs.rows(passed)]
    outcomes = fold(the_plan, rows)
    built = report.build(the_plan, outcomes, Evidence(), rows_sha256 or name * 64)
    return Side(name, the_plan, built.model_copy(update={"reasons": (), "draft": False}), outcomes)


def test_two_hosts_with_the_same_outcomes_replicate_with_one_digest():
    a, b = side("a"), side("b")
    found = replicate(a, b)
    assert (found.verdict, found.reasons) == ("replicated", ())
    figures = dict(found.figures)
    assert figures["figures_sha256"] == a.report.figures_sha256 == b.report.figures_sha256
    assert figures["tasks_identical"] == "12 of 12"
    assert figures["episodes_identical"] == "60 of 60"
    assert figures["sign_flip_p"] == "1.0000"


def test_a_few_other_outcomes_still_replicate_and_are_counted():
    b = side("b", (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 4, 5))
    found = replicate(side("a"), b)
    assert found.verdict == "replicated"
    figures = dict(found.figures)
    assert (figures["figures_sha256"], figures["tasks_identical"]) == ("differs", "10 of 12")
    assert figures["episodes_identical"] == "58 of 60"
    assert ("t10", "11111", "11110") in found.tasks


def test_outcomes_that_differ_by_task_are_not_replicated_though_the_intervals_overlap():
    """notes/statistics 3.2: the exact p of these two is 2/256."""
    found = replicate(side("a"), side("b", runs.B))
    assert found.verdict == "not replicated"
    assert dict(found.figures)["intervals"] == "overlap"
    assert found.reasons == ("the outcomes differ by task (exact sign-flip p 0.0079 < 0.05)",)


def test_intervals_apart_are_not_replicated():
    found = replicate(side("a", (5,) * 12), side("b", (0,) * 12))
    assert found.verdict == "not replicated"
    assert "the intervals of success do not overlap" in found.reasons


def test_few_tasks_that_all_went_wrong_are_not_replicated_though_no_test_can_say_so():
    """5 tasks that differ have an exact p of 2/32, and wide intervals overlap."""
    found = replicate(side("a", (5, 5, 5, 5, 5, 0)), side("b", (0, 0, 0, 0, 0, 0)))
    assert dict(found.figures)["sign_flip_p"] == "0.0625"
    assert found.verdict == "not replicated"
    assert any("outside the interval" in reason or "do not overlap" in reason for reason in found.reasons)


def test_another_pack_ends_it_at_the_digest():
    found = replicate(side("a"), side("b", manifest_sha256="5" * 64))
    assert found.verdict == "not comparable"
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("another pack: ")
    assert (found.figures, found.tasks, found.notes) == ((), (), ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seat": "seat-a"}, "both ran at the seat 'seat-a'"),
        ({"repeats": 4}, "repeats differs: a 5, b 4"),
        ({"seed": 7}, "seed differs"),
        ({"rows_sha256": "a" * 64}, "both have the same rows"),
        ({"interval": "rows-v1"}, "interval method differs: a cluster, b rows-v1"),
    ],
)
def test_what_was_not_the_same_is_named_on_both_sides(change, told):
    found = replicate(side("a"), side("b", **change))
    assert found.verdict == "not comparable"
    assert any(told in reason for reason in found.reasons), found.reasons


def test_a_run_that_does_not_hold_or_is_a_draft_replicates_nothing():
    b = side("b")
    assert replicate(side("a"), replace(b, faults=("rows.jsonl:3: edited",))).verdict == "not comparable"
    draft = replace(b, report=b.report.model_copy(update={"reasons": ("no protocol card",)}))
    found = replicate(side("a"), draft)
    assert (found.verdict, found.reasons) == ("not comparable", ("b is not admissible: no protocol card",))


def test_another_card_is_not_comparable():
    b = side("b")
    other = replace(b, report=b.report.model_copy(update={"card_sha256": "5" * 64}))
    assert replicate(side("a"), other).reasons == (f"card_sha256 differs: a None, b {'5' * 64}",)


def test_without_an_interval_only_identical_outcomes_replicate():
    assert replicate(side("a", (5, 4, 3)), side("b", (5, 4, 3))).verdict == "replicated"
    found = replicate(side("a", (5, 4, 3)), side("b", (5, 4, 4)))
    assert found.verdict == "not comparable"
    assert "none (3 tasks)" in found.reasons[0]


def test_other_agents_pythons_and_systems_are_noted_and_decide_nothing():
    host = runs.plan().host.model_copy(update={"python": "3.13.0", "system": "Linux 5.0 aarch64"})
    found = replicate(side("a"), side("b", host=host))
    assert found.verdict == "replicated"
    assert "python: 3.11.7 and 3.13.0" in found.notes
    assert not any("alike" in note for note in found.notes)
