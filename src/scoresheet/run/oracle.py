"""Was the answer right? What an agent answered, and what the task's oracle says of it. Pure."""

import re
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.task import Oracle, Task
from scoresheet.errors import Finding
from scoresheet.run.verdict import command

MAX_LEVELS = canonical.MAX_DEPTH - 10
"""How deep an answer may be nested: a row and what is made of it hold it some levels deeper."""
_DIGITS = 4000
_LARGE = 10**_DIGITS
_LONG = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1))


@dataclass(frozen=True, slots=True)
class Answer:
    """What was taken as the agent's answer; `value` is `None` when there is none, and `fault` then may say why."""

    value: dict[str, JsonValue] | None
    fault: str | None = None


def answer_of(file: bytes | None, file_fault: str | None, submitted: bytes | None, stdout: bytes) -> Answer:
    """The first that exists: answer file, last `submit_answer`, last non-blank line of stdout if it is an object.

    One that exists but is invalid is no answer: it never falls through to the next.
    """
    if file_fault is not None:
        return Answer(None, f"the answer file is no answer: {file_fault}")
    if file is not None:
        return _parsed(file, "the answer file")
    if submitted is not None:
        return _parsed(submitted, "the submitted answer")
    line = _last_line(stdout)
    if not line.startswith(b"{"):
        return Answer(None, "the agent gave no answer")
    return _parsed(line, "the last line of stdout")


def judged(task: Task, answer: Answer) -> tuple[bool, Answer]:
    """Whether the answer is right, and the answer as it counts (one that breaks `answer_schema` is none).

    For the human oracle: whether there is an answer, which a person then judges.
    """
    if answer.value is not None and task.answer_schema is not None:
        fault = _schema_fault(task.answer_schema, answer.value)
        if fault is not None:
            answer = Answer(None, f"the answer does not fit answer_schema: {fault}")
    if answer.value is None:
        return False, answer
    match kind_of(task):
        case "match":
            return matches(task.expected, answer.value), answer
        case "schema" | "human":
            return True, answer
        case _:
            raise AssertionError("a task without an oracle that this version has is refused before any episode")


def matches(expected: dict[str, JsonValue], answer: dict[str, JsonValue]) -> bool:
    """True when every key of a non-empty `expected` is in the answer with an equal value; extra keys are allowed.

    Equal is: the same RFC 8785 text. So types are strict (`1` is not `true` and not `"1"`), order of members does not
    matter, order of items does, and a number is its value (`1`, `1.0` and `1e0` are one number).
    """
    return bool(expected) and all(key in answer and _same(answer[key], value) for key, value in expected.items())


def _same(one: JsonValue, other: JsonValue) -> bool:
    if type(one) is type(other) and isinstance(one, str | int):
        return bool(one == other)
    return canonical.jcs(one) == canonical.jcs(other)


def kind_of(task: Task) -> str | None:
    """The task's oracle: as declared, else `match` when `expected` is not empty, else `None`."""
    if task.oracle is not None:
        return task.oracle.kind
    return "match" if task.expected else None


def by_human(task: Task) -> bool:
    """True when a person decides, after the run (`scoresheet judge`)."""
    return kind_of(task) == "human"


def by_work(task: Task) -> bool:
    """True when the work in the workspace is judged, and no answer: by tests, or as a named output file."""
    return task.oracle is not None and (
        task.oracle.kind == "pytest" or (task.oracle.kind == "schema" and task.oracle.output_file is not None)
    )


def unscorable(task: Task, where: str) -> Finding | None:
    """Why no episode of this task could be scored; `None` when it can."""
    kind = kind_of(task)
    if kind is None:
        return Finding("task-oracle", where, f"{task.task_id} has no oracle: `expected` is empty", "say what is right")
    if kind == "match" and not task.expected:
        what = f"{task.task_id} is matched against an empty `expected`"
        return Finding("task-oracle", where, what, "say what is right")
    by_file = task.oracle is not None and task.oracle.output_file is not None
    if by_file and task.oracle is not None and task.oracle.output_schema is None and task.answer_schema is None:
        what = f"{task.task_id} judges {task.oracle.output_file} by schema, but has no output_schema"
        return Finding("task-oracle", where, what, "add output_schema")
    if kind == "schema" and task.answer_schema is None and not by_file:
        what = f"{task.task_id} is judged by schema, but has no answer_schema"
        return Finding("task-oracle", where, what, "add answer_schema")
    if kind not in ("match", "schema", "pytest", "human"):
        what = f"{task.task_id} needs the {kind} oracle, which this version can't run yet"
        return Finding("task-oracle", where, what, "leave the task out with --tasks")
    if by_work(task) and task.kind != "workspace":
        what = f"{task.task_id} judges a workspace, but it is a {task.kind} task"
        return Finding("task-kind", where, what, 'write "kind": "workspace"')
    if task.kind == "drill":
        what = f"{task.task_id} is a {task.kind} task, which this version can't run yet"
        return Finding("task-kind", where, what, "leave the task out with --tasks")
    for name, schema in (
        ("answer_schema", task.answer_schema),
        ("output_schema", None if task.oracle is None else task.oracle.output_schema),
    ):
        if schema is not None:
            try:
                _validator(schema)
            except ValueError as error:
                return Finding(f"task-{name.replace('_', '-')}", where, f"{name} is no JSON Schema: {error}", "mend it")
    if kind == "pytest" and task.oracle is not None:
        return _untestable(task.task_id, task.oracle, where)
    return None


def _untestable(task_id: str, oracle: Oracle, where: str) -> Finding | None:
    if oracle.test_command is None or not oracle.tests:
        what = f"{task_id} is graded by tests, but names no {'tests' if oracle.test_command else 'test_command'}"
        return Finding("task-oracle", where, what, "say the test_command, and the paths of the frozen tests")
    try:
        command(oracle.test_command)
    except ValueError as error:
        return Finding("task-oracle-command", where, f"the test_command of {task_id} can't be read: {error}", "mend it")
    return None


def _parsed(data: bytes, source: str) -> Answer:
    try:
        value = canonical.loads(data)
    except canonical.JsonError as error:
        return Answer(None, f"{source} is not strict JSON: {error.what}")
    if not isinstance(value, dict):
        return Answer(None, f"{source} is not a JSON object")
    fault = _unkept(value) if data.count(b"[") + data.count(b"{") > MAX_LEVELS or _LONG.search(data) else None
    return Answer(value) if fault is None else Answer(None, f"{source} {fault}")


def _unkept(value: JsonValue) -> str | None:
    """Why a row can't hold this, though it is JSON: who reads it back has limits."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_LEVELS:
            return f"is nested more than {MAX_LEVELS} levels deep"
        below: list[JsonValue] = []
        for each in level:
            for item in each.values() if isinstance(each, dict) else each:
                if isinstance(item, dict | list):
                    below.append(item)
                elif isinstance(item, int) and not -_LARGE < item < _LARGE:
                    return f"holds an integer of more than {_DIGITS} digits"
        level = below
    return None


def _last_line(stdout: bytes) -> bytes:
    end = len(stdout)
    while end > 0:
        start = stdout.rfind(b"\n", 0, end) + 1
        line = stdout[start:end].strip()
        if line:
            return line
        end = start - 1
    return b""


def _schema_fault(schema: JsonValue, value: JsonValue) -> str | None:
    for error in _validator(schema).iter_errors(value):
        return str(error.message)[:200]
    return None


def _validator(schema: JsonValue) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, retriever=_refuse)


def _refuse(uri: str) -> JsonValue:
    raise ValueError(f"{uri} is outside the task, and nothing is fetched")
