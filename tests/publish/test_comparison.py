"""The comparison of runs: the worked example, rank sets, ties, and what never ranks."""

from dataclasses import replace

import pytest

from scoresheet.documents.comparison import Comparison
from scoresheet.publish.admissible import Card
from scoresheet.publish.comparison import build
from scoresheet.publish.outcome import Episodes
from tests.publish.compared import C, agent, entrant, entrants
from tests.publish.runs import A, B
from tests.stats.test_interval import TOKENS_A, TOKENS_B

NEARLY = (5, 5, 4, 2, 0, 5, 5, 3, 5, 1, 4, 4)


def pair(found: Comparison, index: int = 0):
    return found.metrics[0].pairs[index]


def test_the_worked_example_is_decided_although_the_two_intervals_overlap():
    found = build(entrants(entrant(A, tokens=TOKENS_A), entrant(B, "hasty", tokens=TOKENS_B)))
    first, second = found.runs
    assert (first.mean, first.ci95, first.successes) == (0.7333, (0.4552, 0.8948), 44)
    assert (second.mean, second.ci95, second.successes) == (0.5333, (0.3, 0.75), 32)
    assert first.ci95[0] < second.ci95[1]  # type: ignore[operator]  # both are intervals, by the lines above
    one = pair(found)
    assert (one.difference, one.ci95, one.verdict, one.tie) == (0.2, (0.1, 0.3), "better", False)
    assert one.interval_method.endswith("k=107")
    assert (one.sign_flip_p, one.sign_flip_exact, one.different, one.clusters) == (0.0078, "1/128", 8, 12)
    assert (first.best_rank, first.worst_rank, second.best_rank, second.worst_rank) == (1, 1, 2, 2)
    assert found.tokens is not None
    assert found.tokens.per_success == ("6393.7500 [1748, 17950]", "9012.5000 [2688.1, 26738.9]")
    (cost,) = found.tokens.pairs
    assert cost.per_success is not None
    assert (cost.per_success.ratio, cost.per_success.low, cost.per_success.high) == (0.7094, 0.4742, 0.8936)
    assert cost.geometric is not None
    assert cost.geometric.verdict == "less"


def test_a_tie_is_one_even_where_the_means_differ():
    found = build(entrants(entrant(A), entrant(NEARLY, "hasty")))
    one = pair(found)
    assert (one.verdict, one.tie, one.difference) == ("unresolved", True, 0.0167)
    assert [(run.best_rank, run.worst_rank) for run in found.runs] == [(1, 2), (1, 2)]
    assert any(note.startswith("fewer than 6 tasks differ") for note in found.notes)


def test_a_gap_whose_intervals_do_not_overlap_can_still_be_a_tie_of_too_few_tasks():
    found = build(entrants(entrant((5,) * 5), entrant((0,) * 5, "hasty")))
    assert isinstance(found.runs[0].ci95, tuple)
    assert isinstance(found.runs[1].ci95, tuple)
    assert found.runs[0].ci95[0] > 0.4 > found.runs[1].ci95[1] - 0.2
    assert (pair(found).verdict, pair(found).tie, found.runs[0].worst_rank) == ("unresolved", True, 2)


def test_under_five_tasks_there_is_no_interval():
    found = build(entrants(entrant((5,) * 4), entrant((0,) * 4, "hasty")))
    assert (pair(found).ci95, pair(found).interval_method, pair(found).mde) == (None, "none (4 tasks)", None)


def test_three_agents_get_rank_sets():
    found = build(entrants(entrant(A), entrant(NEARLY, "nearly"), entrant(C, "third")))
    assert found.metrics[0].method == "Bonferroni-t intervals, Holm-t decisions"
    assert [(run.best_rank, run.worst_rank) for run in found.runs] == [(1, 2), (1, 2), (3, 3)]
    assert [each.verdict for each in found.metrics[0].pairs] == ["unresolved", "better", "better"]
    wide, alone = pair(found, 1).ci95, pair(found, 1).single_ci95
    assert wide is not None
    assert alone is not None
    assert wide[1] - wide[0] > alone[1] - alone[0]


def test_the_margin_of_the_card_makes_a_tie_an_equivalence():
    tasks = (3,) * 200
    card = Card("c" * 64, (), frozenset(f"t{number:02}" for number in range(200)), attended=False, tie_margin=0.05)
    found = build(entrants(entrant(tasks, card=card), entrant(tasks, "hasty", card=card)))
    assert (pair(found).verdict, pair(found).tie, found.tie_margin) == ("equivalent", True, 0.05)
    assert pair(build(entrants(entrant(tasks), entrant(tasks, "hasty")))).verdict == "unresolved"


def test_a_baseline_is_shown_and_never_ranked():
    null = entrant((0,) * 12, "null", agent=agent("null", "null"))
    found = build(entrants(null, entrant(A), entrant(B, "hasty")))
    assert [(run.label, run.baseline, run.best_rank) for run in found.runs] == [
        ("A", True, None), ("B", False, 1), ("C", False, 2),
    ]  # fmt: skip
    assert [(each.first, each.second) for each in found.metrics[0].pairs] == [("B", "C")]
    assert found.per_task[0].successes == (0, 5, 4)
    assert "A is the null baseline: shown, never ranked" in found.notes
    with pytest.raises(ValueError, match="two runs"):
        build(entrants(null, entrant(A)))


def test_what_is_better_when_fewer_is_said_so():
    found = build(entrants(entrant(A), entrant(B, "hasty")), ["unauthorized", "schema_ok", "success"])
    primary, unauthorized, schema_ok = found.metrics
    assert (primary.metric, primary.primary) == ("success_mean", True)
    assert (unauthorized.metric, unauthorized.higher_is_better, unauthorized.primary) == (
        "unauthorized_rate",
        False,
        False,
    )
    assert schema_ok.metric == "schema_ok_rate"


def test_more_unauthorized_calls_are_worse():
    wild = entrant(A, "wild")
    episodes = Episodes(wild.outcomes.episodes.grid)
    for at, each in enumerate(wild.outcomes.episodes):
        episodes.put(at, each._replace(unauthorized=int(each.repeat < 3)))
    outcomes = replace(wild.outcomes, episodes=episodes)
    found = build(entrants(entrant(A), replace(wild, outcomes=outcomes)), ["unauthorized"])
    (one,) = found.metrics[1].pairs
    assert (one.difference, one.verdict) == (-0.6, "better")


def test_retries_change_the_name():
    found = build(entrants(entrant(A, retries=1), entrant(B, "hasty", retries=1)))
    assert found.metrics[0].metric == "success_after_1_retries_mean"


def test_tokens_that_were_not_counted_are_said_so():
    found = build(entrants(entrant(A, tokens=TOKENS_A), entrant(B, "hasty")))
    assert (found.tokens, found.why_no_tokens) == (None, "60 of 60 planned episodes of B count no tokens")
    free = build(entrants(entrant(A, tokens=TOKENS_A), entrant(B, "hasty", tokens=(0, *TOKENS_B[1:]))))
    assert free.tokens is not None
    assert free.tokens.pairs[0].why_no_geometric == "1 tasks cost one of the two no token"


def test_tasks_of_one_cluster_are_resampled_together():
    def cluster(number: int) -> str:
        return f"repo-{number % 5}"

    found = build(entrants(entrant(A, clusters=cluster), entrant(B, "hasty", clusters=cluster)))
    assert (pair(found).clusters, pair(found).tie) == (5, True)
    assert "under 6 tasks (or clusters) nobody wins: no exact test could tell" in found.notes


def test_a_run_that_is_not_admissible_makes_a_draft_and_says_whose():
    found = build(entrants(entrant(A), entrant(B, "hasty")))
    assert found.draft
    assert {reason[:2] for reason in found.reasons} == {"A:", "B:"}


def test_the_same_agent_twice_and_other_jobs_are_noted():
    found = build(entrants(entrant(A), entrant(B, jobs=4)))
    assert any("same agent's files" in note for note in found.notes)
    assert "the runs had different parallel jobs: 2, 4" in found.notes


def test_the_order_of_runs_changes_signs_alone():
    there, back = build(entrants(entrant(A), entrant(B, "h"))), build(entrants(entrant(B, "h"), entrant(A)))
    assert (pair(there).difference, pair(back).difference) == (0.2, -0.2)
    assert pair(back).verdict == "worse"
    assert [run.best_rank for run in back.runs] == [2, 1]
