"""Entries that scoresheet must have written, and that are not in the log."""

import pytest

from scoresheet.documents.confound import Confound
from scoresheet.publish.confound_audit import findings
from scoresheet.run.deviations import deviations
from tests.publish.runs import plan
from tests.run.test_deviations import RECORD

AT = "2026-09-22T11:00:00Z"


def entry(kind, text="", at=AT, by="scoresheet", **more):
    return Confound(at=at, by=by, kind=kind, text=text, **more)


def told(log=(), card=None, violated=(), **more):
    return [finding.what for finding in findings(log, card, plan(**more), RECORD, violated)]


def test_a_run_in_which_nothing_deviated_needs_no_entry():
    assert told() == []


def test_each_deviation_of_the_run_from_its_card_must_be_there():
    card = {"controls": {"parallel_jobs": 99}}
    (deviation,) = deviations(card, plan(), RECORD)
    pinned = {"control": deviation.control, "pinned": deviation.pinned, "seen": deviation.seen}
    (found,) = told(card=card)
    assert found.startswith(
        "scoresheet wrote down that the run had controls.parallel_jobs otherwise than the card pins"
    )
    assert told([entry("deviation", str(deviation), **pinned)], card) == []
    assert told([entry("deviation", str(deviation), by="person", **pinned)], card) != []
    assert told([entry("deviation", "nothing", **pinned)], card) != []


@pytest.mark.parametrize(("status", "missing"), [("finished", 1), ("interrupted", 0)])
def test_a_violated_control_must_be_there_when_the_run_ended(status, missing):
    assert len(told(violated=["controls.seed"], status=status)) == missing
    assert told([entry("deviation", "seen", control="controls.seed")], violated=["controls.seed"], status=status) == []


def test_resumptions_are_those_of_the_plan():
    assert told(resumed_at=(AT,)) == [
        f"scoresheet wrote down that the run was resumed at {AT}; the log does not say it"
    ]
    assert told([entry("resumed")], resumed_at=(AT,)) == []
    assert told([entry("resumed")]) == [f"the log says that the run was resumed at {AT}, which run.json does not know"]
    assert told([entry("resumed")], resumed_at=("2026-09-22T10:30:00Z", AT)) == []  # the first may have been killed
