"""The comparison as people read it, against texts that are kept, and safe to show."""

from pathlib import Path

import pytest

from scoresheet.publish.comparable import differences
from scoresheet.publish.comparison import build
from scoresheet.publish.comparison_text import findings, markdown, rank_set, ranks, rows, text
from tests.publish.compared import PRICES, C, agent, entrant, entrants
from tests.publish.runs import A, B
from tests.stats.test_interval import TOKENS_A, TOKENS_B

GOLDEN = Path(__file__).parent.parent / "golden"
NEARLY = (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 4, 4)


def worked():
    careful = entrant(A, tokens=TOKENS_A, prices=PRICES)
    return build(entrants(careful, entrant(B, "hasty", tokens=TOKENS_B, prices=PRICES)), ["timeout"])


def several():
    null = entrant((0,) * 12, "null", agent=agent("null", "null"))
    return build(entrants(entrant(A), null, entrant(NEARLY, "nearly"), entrant(C, "third")))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("comparison.txt", lambda: text(worked())),
        ("comparison.md", lambda: markdown(worked())),
        ("comparison.json", lambda: worked().text()),
        ("comparison_several.txt", lambda: text(several())),
    ],
)
def test_a_comparison_is_what_it_was(name, made):
    assert made() == (GOLDEN / name).read_text(encoding="utf-8")


def test_ties_are_printed_as_ties():
    found = several()
    assert ranks(found) == "A 1-2 (tie with C); C 1-2 (tie with A); D 3"
    lines = text(found).splitlines()
    assert next(line for line in lines if line.startswith("A - C:")).endswith("tie: unresolved")
    assert next(line for line in lines if line.startswith("A - D:")).endswith("A is better")
    assert [rank_set(run) for run in found.runs] == ["1-2", "", "1-2", "3"]


def test_the_reading_is_always_there():
    for found in (worked(), several()):
        assert "a ranking that moves less than the interval is a tie" in text(found)
        assert "A ranking that moves less than the interval is a tie" in markdown(found)


def test_a_difference_of_two_runs_stands_in_the_table_and_more_runs_have_none():
    assert [*rows(worked())][:3] == [
        ("task", "A", "B", "A - B"), ("t00", "5/5", "4/5", "+0.2000"), ("t01", "5/5", "5/5", "0"),
    ]  # fmt: skip
    assert next(rows(several())) == ("task", "A", "B", "C", "D")


def test_names_can_not_steer_a_terminal_or_break_a_table():
    bad = entrant(B, "x\x1b[2J\nmetric: forged | <script>")
    bad_agent = bad.plan.agent.model_copy(update={"spec": "python3 a.py\n| <b>\x1b[0m"})
    found = build(entrants(entrant(A), entrant(B, bad.name, agent=bad_agent)))
    for shown in (text(found), markdown(found)):
        assert "\x1b" not in shown
        assert not any(line.startswith("metric: forged") for line in shown.splitlines())
    assert "\\| &lt;b>" in markdown(found)


def test_a_finding_names_the_field_on_both_sides():
    (found,) = findings(differences(entrants(entrant(A), entrant(B, "hasty", jobs=3, seed=7))))
    assert found.what == "seed is 20260922 in A, and 7 in B"
    assert (found.rule, found.where) == ("compare-field", "A and B")
