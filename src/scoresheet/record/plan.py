"""What is to be recorded: one task, or the many of a batch file."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scoresheet import bounded_file, canonical
from scoresheet.canonical import JsonValue
from scoresheet.errors import Malformed, Usage

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MEMBERS = frozenset(
    "answer_schema card cluster_id licence limits oracle origin split tags".split()  # noqa: SIM905  # one line each would hide the list
)
"""Members of a task file that a batch entry may hold beside what is recorded."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A task that is to be recorded."""

    task_id: str
    prompt: str
    command: tuple[str, ...]
    expected: Mapping[str, JsonValue] | None = None
    """The right answer; `None` takes it from what the command answers."""
    members: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named(self.task_id)
        if not self.command:
            raise Usage("no command to record", self.task_id, "put it after `--`, as in: -- python3 agent.py")


def named(task_id: str) -> str:
    """The id, when it can name a task. Raises `Usage`."""
    if not _TASK_ID.fullmatch(task_id):
        mend = "use letters, digits, `.`, `_` and `-`, at most 128, the first a letter or a digit"
        raise Usage(f"{task_id!r} can't name a task", "task", mend)
    return task_id


def expected_of(text: str, where: str) -> dict[str, JsonValue]:
    """The answer that is expected, from the strict JSON text of an option. Raises `Usage`."""
    try:
        return _expected(canonical.loads(text), where)
    except canonical.JsonError as error:
        raise Usage(f"not JSON: {error}", where, f"write a JSON object: {where} '{{\"total\": 3}}'") from error
    except Malformed as error:
        raise Usage(error.what, where, f"write a JSON object: {where} '{{\"total\": 3}}'") from error


def batch(path: Path, command: tuple[str, ...] = ()) -> tuple[TaskPlan, ...]:
    """The tasks of a batch file: JSON lines, or a JSON or YAML list; `command` is that of entries without their own.

    Raises `Usage` and `Malformed`.
    """
    try:
        text = bounded_file.read(path, mend="split the file").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"the batch file can't be read: {_why(error)}", str(path)) from error
    if path.suffix in (".jsonl", ".ndjson"):
        entries: JsonValue = [
            _line(line, f"{path}:{number}") for number, line in enumerate(text.splitlines(), start=1) if line.strip()
        ]
    else:
        entries = described(path, text)
    if not isinstance(entries, list) or not entries:
        raise Malformed("a batch file is a list of tasks", str(path), "give one entry a task: task, prompt, command…")
    plans = tuple(_plan(entry, command, f"{path}#{place}") for place, entry in enumerate(entries))
    twice = {plan.task_id for plan in plans if sum(other.task_id == plan.task_id for other in plans) > 1}
    if twice:
        raise Malformed(f"the task {min(twice)} is given twice", str(path))
    return plans


def described(path: Path, text: str | None = None) -> JsonValue:
    """The value of a JSON or YAML file that people wrote for another tool (OpenAPI) or a batch.

    Plain scalars are read as YAML 1.2 does: `no` and `010` are text. Raises `Usage` and `Malformed`.
    """
    import yaml

    try:
        source = bounded_file.read(path, mend="split the file").decode() if text is None else text
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"the file can't be read: {_why(error)}", str(path)) from error
    if path.suffix == ".json":
        return canonical.loads(source)
    try:
        return yaml.load(source, _core_loader())
    except yaml.YAMLError as error:
        raise Malformed(f"not YAML: {' '.join(str(error).split())}", str(path)) from error


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "unknown" if isinstance(error, OSError) else f"not UTF-8 at byte {error.start}"


def _line(line: str, where: str) -> JsonValue:
    try:
        return canonical.loads(line)
    except canonical.JsonError as error:
        raise Malformed(f"not JSON: {error.what}", f"{where}:{error.where.rpartition(':')[2]}") from error


def _plan(entry: JsonValue, command: tuple[str, ...], where: str) -> TaskPlan:
    if not isinstance(entry, dict):
        raise Malformed("an entry is not an object", where)
    entry = {"command": list(command), **entry}
    if "task_id" in entry:
        entry["task"] = entry.pop("task_id")
    known = {"task", "prompt", "command", "expected", "expect_stdout", *_MEMBERS}
    unknown = sorted(entry.keys() - known)
    if unknown:
        raise Malformed(f"{unknown[0]!r} is unknown", where, f"known are {', '.join(sorted(known))}")
    for name in ("task", "prompt", "command"):
        if not entry.get(name):
            raise Malformed(f"{name} is missing", where)
    if ("expected" in entry) == bool(entry.get("expect_stdout")):
        raise Malformed("an entry has either expected or expect_stdout: true", where)
    own = entry["command"]
    argv = shlex.split(own) if isinstance(own, str) else [str(part) for part in own]
    members = {name: _plain(entry[name]) for name in sorted(_MEMBERS & entry.keys())}
    expected = _expected(_plain(entry["expected"]), where) if "expected" in entry else None
    return TaskPlan(str(entry["task"]), str(entry["prompt"]), tuple(argv), expected, members)


def _plain(value: JsonValue) -> JsonValue:
    return canonical.loads(json.dumps(value, default=str))


def _expected(value: JsonValue, where: str) -> dict[str, JsonValue]:
    if not isinstance(value, dict) or not value:
        raise Malformed(
            "what is expected must be a JSON object with at least one member", where, 'write, say, {"total": 3}'
        )
    return value


def _core_loader() -> Any:
    import yaml

    class Core(yaml.SafeLoader):
        """YAML 1.2 core scalars (YAML 1.2.2 §10.3.2)."""

    Core.yaml_implicit_resolvers = {}
    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", "~nN"),
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
        ("float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", "-+0123456789"),
    ):
        Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), [*first])
    Core.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^$"), [""])
    return Core
