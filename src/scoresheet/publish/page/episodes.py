"""One attempt as the page shows it: facts, answer against expected, calls, patch, what happened when. Pure.

Every text comes from an agent, so it leaves here visible (`page.visible`) and cut to the room that the page has for it;
what was cut says so, and where the whole of it lies.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.row import Row
from scoresheet.publish.page.visible import decoded, line, visible
from scoresheet.run import oracle

PAGE_ROOM = 24 << 20
"""Characters that a page spends on what agents wrote, over all its episodes."""
_LEAST, _MOST = 512, 256 << 10
_ROWS = 400
"""Lines of a list that are shown at most: calls, or moments of the trajectory."""


@dataclass(frozen=True, slots=True)
class Text:
    """The head of something that an agent wrote, and how much of it there is."""

    head: bytes
    size: int
    fault: str | None = None
    """Why it is not shown: it is no regular file, or can't be read."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A journal: its first lines, and how many more there are (at least)."""

    lines: tuple[bytes, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in an episode's folder. `None`: it is not there."""

    calls: Lines | None = None
    model: Lines | None = None
    trajectory: Text | None = None
    """trajectory.json, in ATIF: its head may be all of it."""
    texts: Mapping[str, Text] = field(default_factory=dict)
    """`patch.diff`, `stdout`, `stderr`, those that are there."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a right answer holds, or why that is not shown."""

    members: Mapping[str, JsonValue] | None = None
    why_not: str = "name the pack to show it: --pack PACK"


def room(attempts: int) -> int:
    """Characters for one attempt, when a page has so many."""
    return min(_MOST, max(_LEAST, PAGE_ROOM // max(1, attempts)))


class _Purse:
    """The room of one attempt, spent in the order in which people ask."""

    def __init__(self, characters: int) -> None:
        self.left = characters

    def take(self, text: str, where: str = "rows.jsonl", more: bool = False, size: int | None = None) -> str:
        """The text, or its head and where the whole of it is. `more`: it is the head of something, of so many bytes."""
        kept = text[: max(0, self.left)]
        self.left -= len(kept)
        if len(kept) == len(text) and not more:
            return kept
        return f"{kept}\n… cut here: the whole of it is in {where}" + (f" ({size} bytes)" if size else "")


def attempt(row: Row, attempts: int, fate: str, found: Found, expected: Expected, characters: int) -> dict[str, Any]:
    """The value that the page's script reads: one of so many attempts at its repeat."""
    purse = _Purse(characters)
    folder = f"episodes/{row.task_id}/{row.repeat}.{row.attempt}"
    trajectory = _trajectory(found.trajectory)
    return {
        "repeat": row.repeat,
        "attempt": row.attempt,
        "of": attempts,
        "fate": fate,
        "facts": [[key, line(value)[:2000]] for key, value in _facts(row)],
        "answer": purse.take(_json(row.answer)),
        "expected": _expected(row.answer, expected, purse),
        "calls": _calls(found.calls, purse, folder),
        "texts": [
            [name, text.fault or _shown(text, purse, f"{folder}/{name}")]
            for name, text in ((name, found.texts[name]) for name in _ORDER if name in found.texts)
        ],
        "steps": _steps(trajectory, purse, folder),
        "moments": [] if trajectory else _moments(found, purse),
    }


def _shown(text: Text, purse: _Purse, where: str) -> str:
    return purse.take(decoded(text.head), where, text.size > len(text.head), text.size)


_ORDER = ("patch.diff", "stderr", "stdout")


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    yield "exit_reason", row.exit_reason
    if row.detail:
        yield "detail", row.detail
    if row.limit is not None:
        at = "" if row.limit_at_s is None else f" after {row.limit_at_s:g} s"
        yield "limit", f"{row.limit}{at}"
    yield "success", "waits for a human, or was judged by one" if row.success is None else str(row.success)
    yield "schema_ok, unauthorized, timeout", f"{row.schema_ok}, {row.unauthorized}, {row.timeout}"
    yield "tool calls", f"{row.tool_calls}, {row.repeated_calls} of them beyond the recording"
    yield "elapsed, cpu", f"{row.elapsed_s:.3f} s, {row.cpu_s:.3f} s"
    yield "recorded latency", f"{row.recorded_latency_ms:g} ms"
    if row.model_calls is not None:
        tokens = f"{_known(row.tokens_in)} tokens in, {_known(row.tokens_out)} out"
        yield "model", f"{', '.join(row.models) or 'none'}: {row.model_calls} calls, {tokens}"
    for name, state in row.controls.items():
        yield f"control {name}", state
    for name, values in (
        ("violation", row.violations),
        ("schema error", row.schema_errors),
        ("frozen test changed", row.tests_changed),
        ("test added", row.tests_added),
        ("grading surface", row.grading_surface),
        ("left out of the patch", row.patch_left_out),
    ):
        for value in values[:50]:
            yield name, value
    for rule, calls in row.ignored.items():
        yield "ignored in matching", f"{rule}, in {calls} calls"
    if row.patch_lines is not None:
        yield "patch", f"{row.patch_lines} lines, sha256 {row.patch_sha256}"
    yield "isolation", row.isolation
    yield "agent exit", "none" if row.agent_exit is None else str(row.agent_exit)
    yield "episode seed", str(row.episode_seed)
    yield "started", f"{row.started_at} on {row.host}"


def _known(count: int | None) -> str:
    return "uncounted" if count is None else str(count)


def _json(value: JsonValue) -> str:
    """A value on lines of its own, keys sorted: `null` where there was no answer."""
    try:
        return visible(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))
    except ValueError:  # an integer of more digits than Python writes
        return visible(canonical.jcs(value).decode())


def _expected(answer: JsonValue, expected: Expected, purse: _Purse) -> dict[str, Any]:
    """Member by member, as the `match` oracle reads them: types are strict, more members are allowed."""
    if expected.members is None:
        return {"why_not": expected.why_not, "members": []}
    given = answer if isinstance(answer, dict) else {}
    members = []
    for key in sorted(expected.members):
        same = oracle.matches({key: expected.members[key]}, given)
        shown = purse.take(_json(given[key])) if key in given else "not there"
        members.append([line(key)[:200], purse.take(_json(expected.members[key]), where="the pack"), shown, int(same)])
    return {"why_not": None, "members": members}


def _calls(found: Lines | None, purse: _Purse, folder: str) -> dict[str, Any]:
    """Every request at the door; of a miss the nearest recording and how it differs."""
    if found is None:
        return {"rows": [], "note": f"{folder}/calls.jsonl is not there"}
    rows, left = [], 0
    for data in found.lines[:_ROWS]:
        if purse.left <= 0:
            left += 1
            continue
        value = _object(data)
        asked = f"{_word(value, 'method')} {_word(value, 'path')}".strip()
        nearest = value.get("nearest")
        rows.append(
            {
                "at": _number(value, "at_s"),
                "asked": purse.take(line(asked), where="calls.jsonl"),
                "via": line(_word(value, "via") or "?")[:40],
                "tool": line(_word(value, "tool"))[:200],
                "outcome": line(_word(value, "outcome") or "not a call")[:40],
                "kind": line(_word(value, "kind"))[:40],
                "status": _number(value, "status"),
                "repeat": int(value.get("repeat") is True),
                "errors": [purse.take(line(each)) for each in _words(value.get("schema_errors"))[:20]],
                "body": purse.take(_body(value.get("body")), where="calls.jsonl"),
                "nearest": _nearest(nearest, purse) if isinstance(nearest, dict) else None,
            }
        )
    left += max(0, len(found.lines) - _ROWS)
    note = "" if not left and not found.more else f"more calls are in {folder}/calls.jsonl: {_atleast(left, found)}"
    return {"rows": rows, "note": note}


def _atleast(left: int, found: Lines) -> str:
    return f"at least {left + 1}" if found.more else str(left)


def _nearest(value: dict[str, JsonValue], purse: _Purse) -> dict[str, Any]:
    asked = f"{_word(value, 'method')} {_word(value, 'path')}".strip()
    return {
        "asked": purse.take(line(asked)),
        "difference": [purse.take(line(each)) for each in _words(value.get("difference"))[:40]],
    }


def _trajectory(text: Text | None) -> list[JsonValue]:
    """The steps of a trajectory; none of one that is not there, or is too large or too odd to be read."""
    if text is None or text.fault is not None or text.size > len(text.head):
        return []
    try:
        steps = canonical.as_object(canonical.loads(text.head)).get("steps")
    except canonical.JsonError:
        return []
    return steps if isinstance(steps, list) else []


def _steps(steps: list[JsonValue], purse: _Purse, folder: str) -> list[list[str]]:
    """The trajectory step by step: (number, who, what was said, asked and seen)."""
    shown: list[list[str]] = []
    for number, step in enumerate(steps, 1):
        if purse.left <= 0 or number > _ROWS:
            shown.append(["", "", f"… cut here: {len(steps) - number + 1} more steps are in {folder}/trajectory.json"])
            break
        if isinstance(step, dict):
            what = "\n".join(part for part in _said(step) if part)
            said = purse.take(visible(what), where=f"{folder}/trajectory.json")
            shown.append([str(number), line(_word(step, "source"))[:40], said])
    return shown


def _said(step: dict[str, JsonValue]) -> Iterator[str]:
    thought = _word(step, "reasoning_content")
    yield f"(thought) {thought}" if thought else ""
    yield _content(step.get("message"))
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield f"→ {_word(call, 'function_name')} {_compact(call.get('arguments'))}"
    observed = step.get("observation")
    results = observed.get("results") if isinstance(observed, dict) else None
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            yield f"← {_content(result.get('content'))}"


def _content(value: JsonValue) -> str:
    """Text, or the texts of parts; what is no text is named by its type."""
    if isinstance(value, str):
        return value
    parts = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    return "\n".join(_word(part, "text") or f"[{_word(part, 'type') or 'part'}]" for part in parts)


def _compact(value: JsonValue) -> str:
    return "" if value is None else canonical.jcs(value).decode()


def _moments(found: Found, purse: _Purse) -> list[list[str]]:
    """The episode as it went, by the doors' own clocks: (seconds, who, what). Calls of tools and of the model."""
    if not (found.model and found.model.lines):
        return []  # the calls alone stand in their own table
    seen: list[tuple[float, str, str]] = []
    for data in found.calls.lines[:_ROWS] if found.calls else ():
        value = _object(data)
        what = f"{_word(value, 'method')} {_word(value, 'path')} → {_word(value, 'outcome')} {_status(value)}"
        seen.append((_seconds(value, "at_s"), "tool", what))
    for data in found.model.lines[:_ROWS]:
        value = _object(data)
        fault = _word(value, "refused") or _word(value, "fault")
        what = f"{_word(value, 'method')} {_word(value, 'path')} → {fault or _status(value)}"
        took = _seconds(value, "ended_s") - _seconds(value, "started_s")
        seen.append((_seconds(value, "started_s"), "model", f"{what}, {took:.3f} s"))
    moments = []
    for at, who, what in sorted(seen, key=lambda moment: moment[0]):
        if purse.left <= 0:
            moments.append(["", "", "… cut here: the rest is in calls.jsonl and model.jsonl"])
            break
        moments.append([f"{at:.3f}", who, purse.take(line(what))])
    return moments


def _object(data: bytes) -> dict[str, JsonValue]:
    """A line of a journal; of one that is none its text stands as the path."""
    try:
        value = canonical.loads(data)
    except canonical.JsonError:
        value = None
    if isinstance(value, dict):
        return value
    return {"path": data[:400].decode("utf-8", "backslashreplace"), "outcome": "no line of a journal"}


def _word(value: Mapping[str, JsonValue], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _words(value: JsonValue) -> Sequence[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _seconds(value: Mapping[str, JsonValue], key: str) -> float:
    found = value.get(key)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e9 else 0.0


def _number(value: Mapping[str, JsonValue], key: str) -> str:
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) >= 1e9:
        return ""
    return f"{found:.3f}" if key == "at_s" else f"{found:g}"


def _status(value: Mapping[str, JsonValue]) -> str:
    return _number(value, "status") or "no answer"


def _body(value: JsonValue) -> str:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) else _json(value)
