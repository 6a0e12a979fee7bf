import pytest

from scoresheet.publish.page.listing import STANDINGS, Listed, Question, chosen, packs

RUNS = (
    Listed("r1", "careful", "admissible", "python3 careful.py", "billing", "a" * 64, "laptop-a"),
    Listed("r2", "hasty", "not admissible", "python3 hasty.py", "billing", "a" * 64, "laptop-b"),
    Listed("r3", "careful-old", "admissible", "sh careful.sh", "shop", "b" * 64, "laptop-a"),
    Listed("r4", "gone", "can't be read"),
)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        (Question(), "r1 r2 r3 r4"),
        (Question(text="CAREFUL"), "r1 r3"),
        (Question(text="laptop-b"), "r2"),
        (Question(text="bbbb"), "r3"),
        (Question(text="nothing is like this"), ""),
        (Question(standing="admissible"), "r1 r3"),
        (Question(standing="can't be read"), "r4"),
        (Question(standing="made up"), ""),
        (Question(pack="a" * 64), "r1 r2"),
        (Question("careful", "admissible", "a" * 64), "r1"),
    ],
)
def test_a_question_leaves_the_runs_that_are_like_it(question, left):
    assert [run.key for run in chosen(RUNS, question)] == left.split()


def test_a_question_is_read_from_an_address():
    assert Question.of({}) == Question()
    asked = Question.of({"text": [" a ", "b"], "standing": ["baseline"], "pack": ["x" * 1000], "other": ["?"]})
    assert asked == Question("a", "baseline", "x" * 200)


def test_every_pack_is_named_once():
    assert packs(RUNS) == (("a" * 64, "billing (aaaaaaaaaaaa…)"), ("b" * 64, "shop (bbbbbbbbbbbb…)"))
    assert {run.standing for run in RUNS} <= set(STANDINGS)
