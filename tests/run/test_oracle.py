import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoresheet import canonical
from scoresheet.documents.task import Oracle, Task
from scoresheet.run.oracle import Answer, answer_of, judged, matches, unscorable


@pytest.mark.parametrize(
    ("file", "fault", "submitted", "stdout", "value"),
    [
        (b'{"a": 1}', None, b'{"a": 2}', b'{"a": 3}', {"a": 1}),
        (None, None, b'{"a": 2}', b'{"a": 3}', {"a": 2}),
        (None, None, None, b'noise\n{"a": 3}\n\n  \n', {"a": 3}),
        (None, None, None, b'{"a": 3}\r\n', {"a": 3}),
        (None, None, None, b'{"a": 3}\nnoise', None),
        (None, None, None, b"[1]\n", None),
        (None, None, None, b"", None),
        (b"", None, b'{"a": 2}', b'{"a": 3}', None),
        (b"[1]", None, b'{"a": 2}', b'{"a": 3}', None),
        (b'{"a": 1, "a": 1}', None, None, b'{"a": 3}', None),
        (b'{"a": NaN}', None, None, b'{"a": 3}', None),
        (b"\xff", None, None, b'{"a": 3}', None),
        (None, "not a regular file", b'{"a": 2}', b'{"a": 3}', None),
        (None, None, b"", b'{"a": 3}', None),
        (None, None, b"nonsense", b'{"a": 3}', None),
        (None, None, None, b'{"a": 3\n', None),
        (b'{"a": %b}' % (b"[" * 90 + b"]" * 90), None, None, b"", None),
        (b'{"a": %b}' % (b"9" * 4001), None, None, b"", None),
        (b'{"a": ["\\ud83d\\ude00", -%b]}' % (b"9" * 5000), None, None, b"", None),
    ],
)
def test_the_first_answer_that_exists_counts_even_when_it_is_invalid(file, fault, submitted, stdout, value):
    answer = answer_of(file, fault, submitted, stdout)
    assert answer.value == value
    assert (answer.fault is None) == (value is not None)


@pytest.mark.parametrize(
    "value",
    [b"[" * 89 + b"]" * 89, b"9" * 4000, b"-" + b"9" * 4000, b'"%b"' % (b"9" * 5000), b"[%b0]" % (b"[]," * 200)],
)
def test_every_answer_that_is_taken_can_be_kept_in_a_row_and_read_back(value):
    taken = answer_of(b'{"a": %b}' % value, None, None, b"").value
    assert taken is not None
    assert canonical.loads(canonical.line({"answer": taken, "more": [[[taken]]]})) is not None


@pytest.mark.parametrize(
    ("expected", "answer", "right"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 0.1}, {"a": 1e-1}, True),
        ({"a": 0}, {"a": False}, False),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 2**70}, {"a": 2**70}, True),
        ({"a": "é"}, {"a": "e\u0301"}, False),
        ({}, {"a": 1}, False),
    ],
)
def test_match_is_strict_about_types_and_lenient_about_extra_keys(expected, answer, right):
    assert matches(expected, answer) is right


@given(st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.booleans(), st.text(max_size=3)), min_size=1))
def test_every_answer_matches_itself(value):
    assert matches(value, canonical.loads(canonical.jcs(value)))


def task(**more) -> Task:
    return Task.from_value({"task_id": "t", "prompt": "p"} | more, "t.json")


def test_the_schema_oracle_accepts_what_fits():
    schema = {"type": "object", "required": ["a"]}
    judge = task(oracle=Oracle(kind="schema"), answer_schema=schema)
    assert judged(judge, Answer({"a": 1})) == (True, Answer({"a": 1}))
    right, answer = judged(judge, Answer({}))
    assert (right, answer.value) == (False, None)


def test_no_answer_is_never_right():
    assert judged(task(expected={"a": 1}), Answer(None, "why")) == (False, Answer(None, "why"))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "no oracle"),
        ({"oracle": {"kind": "match"}}, "empty"),
        ({"oracle": {"kind": "schema"}}, "answer_schema"),
        ({"oracle": {"kind": "pytest"}, "kind": "workspace"}, "test_command"),
        ({"oracle": {"kind": "pytest", "test_command": "pytest"}, "kind": "workspace"}, "tests"),
        ({"oracle": {"kind": "pytest", "test_command": "'", "tests": ["t"]}, "kind": "workspace"}, "can't be read"),
        ({"oracle": {"kind": "pytest", "test_command": "pytest", "tests": ["t"]}}, "workspace"),
        ({"oracle": {"kind": "schema", "output_file": "a.json"}, "kind": "workspace"}, "output_schema"),
        ({"expected": {"a": 1}, "kind": "drill"}, "drill"),
        ({"expected": {"a": 1}, "answer_schema": {"type": "nonsense"}}, "JSON Schema"),
        ({"expected": {"a": 1}, "answer_schema": {"$ref": "https://example.com/x.json"}}, "JSON Schema"),
    ],
)
def test_a_task_that_can_not_be_scored_says_why(more, what):
    finding = unscorable(task(**more), "t.json")
    assert finding is not None
    assert what in finding.what


def test_a_task_with_expected_values_can_be_scored():
    assert unscorable(task(expected={"a": 1}), "t.json") is None
