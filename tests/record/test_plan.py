import pytest

from scoresheet.errors import Malformed, ScoresheetError, Usage
from scoresheet.record.plan import TaskPlan, batch, described, expected_of

YAML = """
- task: a.1
  prompt: Is it so?
  command: [python3, agent.py, --norway, no]
  expected: {answer: no, n: 1.5, m: 010}
  tags: [x]
  origin: synthetic
- task_id: b
  prompt: And "this"?
  command: python3 'my agent.py' 7
  expect_stdout: true
"""


def test_a_batch_in_yaml_is_read_as_yaml_1_2(tmp_path):
    path = tmp_path / "batch.yaml"
    path.write_text(YAML)
    assert batch(path) == (
        TaskPlan(
            "a.1",
            "Is it so?",
            ("python3", "agent.py", "--norway", "no"),
            {"answer": "no", "n": 1.5, "m": "010"},
            {"origin": "synthetic", "tags": ["x"]},
        ),
        TaskPlan("b", 'And "this"?', ("python3", "my agent.py", "7")),
    )


def test_a_batch_in_json_lines_takes_the_command_given_beside_it(tmp_path):
    path = tmp_path / "batch.jsonl"
    path.write_text(
        '{"task": "a", "prompt": "p", "expected": {"x": 1}}\n\n{"task_id": "b", "prompt": "q", "expect_stdout": true}\n'
    )
    assert [plan.command for plan in batch(path, ("agent",))] == [("agent",), ("agent",)]
    assert [plan.expected for plan in batch(path, ("agent",))] == [{"x": 1}, None]


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ("{}", "a list of tasks"),
        ("[]", "a list of tasks"),
        ("[1]", "not an object"),
        ('[{"task": "a", "prompt": "p", "command": "c"}]', "either expected or expect_stdout"),
        ('[{"task": "a", "prompt": "p", "command": "c", "expected": {"a": 1}, "expect_stdout": true}]', "either"),
        ('[{"task": "a", "prompt": "p", "command": "c", "expected": {}}]', "at least one member"),
        ('[{"task": "a", "prompt": "p", "command": "c", "expected": [1]}]', "at least one member"),
        ('[{"task": "a", "prompt": "p", "expect_stdout": true}]', "command is missing"),
        ('[{"prompt": "p", "command": "c", "expect_stdout": true}]', "task is missing"),
        ('[{"task": "a", "prompt": "p", "command": "c", "expect_stdout": true, "promt": 1}]', "'promt' is unknown"),
        ('[{"task": "a/b", "prompt": "p", "command": "c", "expect_stdout": true}]', "can't name a task"),
        ('[{"task": "a", "prompt": "p", "command": "c", "expect_stdout": true}, '
         '{"task": "a", "prompt": "p", "command": "c", "expect_stdout": true}]', "given twice"),
    ],
)  # fmt: skip
def test_a_batch_that_cannot_be_recorded_says_what_is_wrong(tmp_path, entries, what):
    path = tmp_path / "batch.json"
    path.write_text(entries)
    with pytest.raises(ScoresheetError, match=what):
        batch(path)


def test_a_line_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "batch.jsonl"
    path.write_text('{"task": "a", "prompt": "p", "expected": {"x": 1}}\n{"task": \n')
    with pytest.raises(Malformed) as caught:
        batch(path, ("c",))
    assert caught.value.where == f"{path}:2:10"


def test_files_that_are_not_there_are_a_usage_error(tmp_path):
    for read in (batch, described):
        with pytest.raises(Usage):
            read(tmp_path / "none.yaml")


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_an_expected_answer_is_strict_json_with_members(text):
    with pytest.raises(Usage):
        expected_of(text, "--expected")
