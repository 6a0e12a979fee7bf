from scoresheet.publish import comparable, comparison
from scoresheet.publish.page import comparing
from tests.publish import compared
from tests.publish.runs import A, B


def page(*given, more=()):
    return comparing.page(comparison.build(compared.entrants(*given), more))


def test_two_runs_stand_with_their_difference_and_who_is_better():
    found = page(compared.entrant(A), compared.entrant(B, "hasty"))
    (pair,) = found.pairs
    assert (pair.difference, pair.ci95, pair.verdict, pair.tie) == ("+0.2000", "[0.1000, 0.3000]", "A is better", False)
    assert found.ranks == "A 1; B 2"
    assert found.title == "A careful against B hasty"
    assert found.draft


def test_a_tie_stands_as_one():
    found = page(compared.entrant(A), compared.entrant((*A[:-1], 3), "nearly"))
    assert found.pairs[0].tie
    assert found.pairs[0].verdict == "tie: unresolved"
    assert "tie with" in found.ranks


def test_a_baseline_is_shown_and_never_ranked():
    null = compared.entrant([0] * 12, "null", agent=compared.agent("null", "null"))
    found = page(compared.entrant(A), null, compared.entrant(B, "hasty"))
    run = found.runs[1]
    assert (run.label, run.ranks, run.cells[-1]) == ("B", "baseline, not ranked", "baseline")
    assert found.marks[1].kind == "reference"
    assert len(found.pairs) == 1


def test_other_metrics_say_that_they_rank_nobody():
    found = page(compared.entrant(A), compared.entrant(B, "hasty"), more=["unauthorized"])
    name, means, pairs = found.others[0]
    assert name == "unauthorized_rate (fewer is better; not adjusted for multiplicity)"
    assert [(each.key, each.value) for each in means] == [("A", "0.0000"), ("B", "0.0000")]
    assert pairs[0].tie


def test_tokens_stand_apart_or_say_why_not():
    assert page(compared.entrant(A), compared.entrant(B, "hasty")).tokens[0].value.startswith("not compared: ")
    counted = page(compared.entrant(A, tokens=[900] * 12), compared.entrant(B, "hasty", tokens=[400] * 12))
    assert [entry.key for entry in counted.tokens] == [
        "tokens A",
        "tokens B",
        "tokens A / B",
        "tokens per success A / B",
    ]


def test_money_stands_beside_the_tokens_or_says_why_not():
    assert page(compared.entrant(A), compared.entrant(B, "hasty")).money[0].value.startswith("not compared: no run has")
    careful = compared.entrant(A, tokens=[900] * 12, prices=compared.PRICES)
    priced = page(careful, compared.entrant(B, "hasty", tokens=[400] * 12, prices=compared.PRICES))
    assert [entry.key for entry in priced.money] == [
        "prices A, B",
        "cost A",
        "cost B",
        "cost A / B",
        "cost per success A / B",
    ]
    half = page(careful, compared.entrant(B, "hasty", tokens=[400] * 12))
    assert half.money[2].value == "not known: no price table (run --prices FILE)"
    assert half.money[3].value == "not computed: B: no price table (run --prices FILE)"


def test_under_five_tasks_a_run_has_no_interval():
    found = page(compared.entrant((5, 0, 3)), compared.entrant((0, 5, 2), "hasty"))
    assert (found.marks[0].kind, found.runs[0].ci95) == ("point", "none (3 tasks)")
    assert found.pairs[0].ci95 == "no interval"


def test_what_is_not_alike_is_named_by_field_with_both_runs():
    given = compared.entrants(compared.entrant(A), compared.entrant(B, "hasty", seed=7))
    names = {each.label: f"{each.label} {each.name}" for each in given}
    assert [*comparing.unlike(comparable.differences(given), names)] == [
        comparing.Unlike("seed", "A careful", "20260922", "B hasty", "7")
    ]
