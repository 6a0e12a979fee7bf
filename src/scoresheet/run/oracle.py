"""Was the answer right? What an agent answered, and what the task's oracle says of it. Pure."""

from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.task import Task
from scoresheet.errors import Finding


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
    """Whether the answer is right, and the answer as it counts (one that breaks `answer_schema` is none)."""
    if answer.value is not None and task.answer_schema is not None:
        fault = _schema_fault(task.answer_schema, answer.value)
        if fault is not None:
            answer = Answer(None, f"the answer does not fit answer_schema: {fault}")
    if answer.value is None:
        return False, answer
    match kind_of(task):
        case "match":
            return matches(task.expected, answer.value), answer
        case "schema":
            return True, answer
        case _:
            raise AssertionError("a task without an oracle that this version has is refused before any episode")


def matches(expected: dict[str, JsonValue], answer: dict[str, JsonValue]) -> bool:
    """True when every key of a non-empty `expected` is in the answer with an equal value; extra keys are allowed.

    Equal is: the same RFC 8785 text. So types are strict (`1` is not `true` and not `"1"`), order of members does not
    matter, order of items does, and a number is its value (`1`, `1.0` and `1e0` are one number).
    """
    return bool(expected) and all(
        key in answer and canonical.jcs(answer[key]) == canonical.jcs(value) for key, value in expected.items()
    )


def kind_of(task: Task) -> str | None:
    """The task's oracle: as declared, else `match` when `expected` is not empty, else `None`."""
    if task.oracle is not None:
        return task.oracle.kind
    return "match" if task.expected else None


def unscorable(task: Task, where: str) -> Finding | None:
    """Why no episode of this task could be scored; `None` when it can."""
    kind = kind_of(task)
    if kind is None:
        return Finding("task-oracle", where, f"{task.task_id} has no oracle: `expected` is empty", "say what is right")
    if kind == "match" and not task.expected:
        what = f"{task.task_id} is matched against an empty `expected`"
        return Finding("task-oracle", where, what, "say what is right")
    if kind == "schema" and task.answer_schema is None:
        what = f"{task.task_id} is judged by schema, but has no answer_schema"
        return Finding("task-oracle", where, what, "add answer_schema")
    if kind not in ("match", "schema"):
        what = f"{task.task_id} needs the {kind} oracle, which this version can't run yet"
        return Finding("task-oracle", where, what, "leave the task out with --tasks")
    if task.kind != "replay":
        what = f"{task.task_id} is a {task.kind} task, which this version can't run yet"
        return Finding("task-kind", where, what, "leave the task out with --tasks")
    if task.answer_schema is not None:
        try:
            _validator(task.answer_schema)
        except ValueError as error:
            return Finding("task-answer-schema", where, f"answer_schema is no JSON Schema: {error}", "mend it")
    return None


def _parsed(data: bytes, source: str) -> Answer:
    try:
        value = canonical.loads(data)
    except canonical.JsonError as error:
        return Answer(None, f"{source} is not strict JSON: {error.what}")
    if not isinstance(value, dict):
        return Answer(None, f"{source} is not a JSON object")
    return Answer(value)


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
