"""What people read: the golden blocks, and that nothing in a run can forge a line of one."""

from pathlib import Path
from typing import Any

import pytest

from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.report import Report
from scoresheet.publish import block
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from tests.publish.runs import A, B, baselines, plan, refused, row, rows

GOLDEN = Path(__file__).parents[1] / "golden"
TWELVE = [
    "protocol",
    "manifest_sha256",
    "timeout_s",
    "retries",
    "seed",
    "repeats_per_task",
    "success_mean",
    "success_ci95",
    "unauthorized_rate",
    "timeout_rate",
    "live_network",
    "excluded",
]
THEN = [
    "schema_ok_rate",
    "planned",
    "tasks",
    "episodes",
    "interval_method",
    "mde",
    "tie_margin",
    "exit_reasons",
    "controls",
    "model",
    "agent",
    "baselines",
    "not_called",
    "receipts_head",
    "card_sha256",
    "rows_sha256",
    "figures_sha256",
]


def guesser() -> Report:
    """One unrecorded call in the worked example's agent A, everything else in order."""
    the_plan = plan()
    outcomes = fold(the_plan, (*rows(A)[:-1], refused("t11", 4)))
    return build(the_plan, outcomes, Evidence(baselines=baselines(), confounds=()), "f" * 64)


def retried() -> Report:
    """A v1 pack that was run with retries, without isolation, and not to its end."""
    v1: dict[str, Any] = {"protocol": "tool-replay-v1", "excluded": (), "upstreams": {}, "repeats": None, "retries": 2}
    the_plan = plan(retries=2, manifest=v1, repeats_from="default", isolation="none", pack_verified=False)
    there = [one.model_copy(update={"isolation": "not_isolated"}) for one in rows(B)[:-3]]
    there[0] = row(isolation="not_isolated", schema_unchecked=("lookup", "refund"))
    outcomes = fold(the_plan, there)
    return build(the_plan, outcomes, Evidence(), "f" * 64)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.txt", lambda: block.text(guesser())),
        ("report.md", lambda: block.markdown(guesser())),
        ("report.json", lambda: guesser().text()),
        ("report_retried.txt", lambda: block.text(retried())),
    ],
)
def test_the_report_reads_as_the_golden_one(name, shown):
    assert shown() == (GOLDEN / name).read_text()


def keys(text: str) -> list[str]:
    return [line.partition(": ")[0] for line in text.splitlines() if ": " in line]


def test_confounds_stand_first_then_the_twelve_then_the_rest():
    found = keys(block.text(guesser()))
    assert found[1:4] == ["draft", "confounds", "confound_log"]
    assert found[4:16] == TWELVE
    assert found[16:33] == THEN


def test_the_markdown_holds_the_very_block():
    text = block.text(guesser()).partition("\n\n")[0]
    assert f"```text\n{text}\n```" in block.markdown(guesser())


def test_retries_are_in_the_name_of_the_metric():
    found = keys(block.text(retried()))
    assert found[9:11] == ["success_after_2_retries_mean", "success_after_2_retries_ci95"]
    assert "success_mean" not in found


def test_attendance_is_told_before_any_figure():
    attended = guesser().model_copy(update={"attended": True})
    assert keys(block.text(attended))[1:4] == ["draft", "confounds", "attended"]


def test_an_admissible_report_has_no_banner():
    text = block.text(guesser().model_copy(update={"draft": False, "reasons": ()}))
    assert text.startswith("confounds: 0\n")
    assert "DRAFT" not in text
    assert "not admissible" not in text


def test_no_value_can_begin_a_line_of_its_own_or_steer_a_terminal():
    forged = Exclusion(tool="x", reason="later\nsuccess_mean: 1.0000\x1b[2J\u2028live_network: denied")
    text = block.text(guesser().model_copy(update={"excluded": (forged,)}))
    assert keys(text).count("success_mean") == 1
    assert "\x1b" not in text
    assert "\u2028" not in text


def test_no_reason_can_break_out_of_its_line_or_table():
    text = block.markdown(guesser().model_copy(update={"reasons": ("a\n## b | <img>",)}))
    assert "- a\\u000a## b \\| &lt;img>" in text
    assert block.not_admissible(["a\nb"]) == "not admissible:\n  - a\\u000ab\n"
