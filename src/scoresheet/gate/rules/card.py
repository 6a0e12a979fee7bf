"""Rules of the card's own form: what must be there, of which type, and what may not be."""

import difflib
import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from scoresheet.canonical import JsonValue
from scoresheet.documents.model import Many
from scoresheet.documents.protocol_card import Estimates, Exclusion, LeakAllowance
from scoresheet.gate.facts import CardFacts, Findings
from scoresheet.gate.placeholder import is_blank_name, is_placeholder

SCHEMA = "agent-eval-protocol/v1"
_LARGEST = 2**53 - 1
_NOTHING = ("0" * 64, hashlib.sha256(b"").hexdigest())
_MANY = 200
"""Members of one mapping from which nobody misspelt one: looking for the nearest of each would take minutes."""
_WEEK_S = 7 * 24 * 3600

Check = Callable[[JsonValue], str | None]
"""Why a value is not of its type, with the mend after a newline; `None` when it is."""


def _text(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return None
    if isinstance(value, list):
        return "is a list, but must be text\nwrite one value, in quotes"
    return f"is {kind_text(value)}, but must be text\nput the value in quotes"


def _texts(value: JsonValue) -> str | None:
    if not isinstance(value, list):
        return f"is {kind_text(value)}, but must be a list of text\nwrite [a, b], or one `- item` a line"
    for place, item in enumerate(value):
        if not isinstance(item, str):
            return f"holds {kind_text(item)} at position {place + 1}, but must be a list of text\nput it in quotes"
        if is_blank_name(item):
            return f"holds the blank {item!r} at position {place + 1}\nfill it in, or remove it"
    return None


def _bool(value: JsonValue) -> str | None:
    return None if isinstance(value, bool) else f"is {kind_text(value)}, but must be true or false\nwrite false"


def _whole(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"is {kind_text(value)}, but must be a whole number\nwrite digits only, such as 7"
    if not 0 <= value <= _LARGEST:
        return f"is {value}, but must be from 0 to 2^53-1\nwrite a number in that range"
    return None


def _number(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"is {kind_text(value)}, but must be a number\nwrite a plain number, such as 180 or 0.0"
    if (isinstance(value, float) and not math.isfinite(value)) or value < 0:
        return f"is {value}, but must be finite and not negative\nwrite a number from 0 upward"
    return None


def _counts(value: JsonValue) -> str | None:
    if not isinstance(value, dict):
        return f"is {kind_text(value)}, but must map each kind to its number of tasks\nwrite {{bugfix: 3, feature: 2}}"
    for name, count in value.items():
        if is_blank_name(name):
            return f"names the blank {name!r}\nname the kind of task"
        if reason := _whole(count):
            return f"says of {name!r} what {reason}"
    return None


def _lists(value: JsonValue) -> str | None:
    if not isinstance(value, dict):
        return f"is {kind_text(value)}, but must map each origin to its task ids\nwrite {{synthetic: [task-1, task-2]}}"
    for name, items in value.items():
        if reason := _texts(items):
            return f"under {name!r} {reason}"
    return None


def _map(value: JsonValue) -> str | None:
    return (
        None if isinstance(value, dict) else f"is {kind_text(value)}, but must be a mapping\nwrite `name: value` lines"
    )


def _list(value: JsonValue) -> str | None:
    return None if isinstance(value, list) else f"is {kind_text(value)}, but must be a list\nwrite `- item` lines"


@dataclass(frozen=True, slots=True)
class Field:
    """One member of the card."""

    check: Check
    required: bool = True
    may_be_empty: bool = False
    zero_is_empty: bool = False
    mend: str = "fill it in: a score without it is an anecdote"


FIELDS: dict[str, Field] = {
    "schema": Field(_text, mend=f"write schema: {SCHEMA}"),
    "suite.name": Field(_text),
    "suite.git_sha": Field(_text, mend="write the output of `git rev-parse HEAD` of the suite's repository"),
    "suite.fixture_hash": Field(_text, mend="run `scoresheet freeze PACK --tar FILE` and write the tarball's sha256"),
    "suite.license": Field(_text, mend="write the SPDX name of the tasks' licence"),
    "suite.source": Field(_text, mend="say where the tasks come from"),
    "suite.contamination_note": Field(_text, mend="say whether a model may have seen the tasks, and why you think so"),
    "suite.task_count": Field(_whole, zero_is_empty=True),
    "suite.taxonomy": Field(_counts, mend="count the tasks of each kind"),
    "suite.origins": Field(_lists, required=False),
    "dataset_split.train_like": Field(_texts, may_be_empty=True, mend="write [] when there are none"),
    "dataset_split.holdout": Field(_texts),
    "metrics.primary": Field(_text, mend="take it from the decision table (docs/gates)"),
    "metrics.secondary": Field(_texts, mend="the decision table names the one that must be there; add another"),
    "metrics.headline_scalar_allowed": Field(_bool),
    "metrics.decision": Field(_text, required=False),
    "metrics.tie_margin": Field(_number, required=False),
    "metrics.estimates": Field(_map, required=False),
    "controls.runtime": Field(_text, mend="name the agent's runtime and version, such as python-3.12"),
    "controls.lockfile": Field(_text, mend="name the lock file that pins the runtime's packages, or `none`"),
    "controls.tool_allowlist": Field(_texts, mend="list the tools that the agent may call"),
    "controls.test_command": Field(_text, mend="write the command that decides success, or `none` for a replay pack"),
    "controls.wall_clock_s": Field(_number, zero_is_empty=True, mend="write the seconds that one episode may take"),
    "controls.max_tool_calls": Field(_whole, zero_is_empty=True, mend="write the most tool calls of one episode"),
    "controls.temperature": Field(_number),
    "controls.seed": Field(_whole),
    "controls.human_intervention": Field(_text, mend="write none, or logged"),
    "controls.parallel_jobs": Field(_whole, zero_is_empty=True),
    "controls.network": Field(_text, mend="write denied, or model_only"),
    "controls.retries": Field(_whole, required=False),
    "controls.repeats": Field(_whole, required=False, zero_is_empty=True),
    "controls.model": Field(_text, required=False),
    "controls.stale_after_hours": Field(_number, required=False),
    "environment.os": Field(_text, mend="name the operating system and its version"),
    "environment.notes": Field(_text, required=False, may_be_empty=True),
    "publishing.negative_results": Field(_text, mend="write required"),
    "publishing.confound_log": Field(_text, mend="write required"),
    "publishing.excluded": Field(_list, required=False, may_be_empty=True),
    "publishing.upstreams": Field(_map, required=False, may_be_empty=True),
    "triage_defaults": Field(_map, required=False, may_be_empty=True),
    "leak_allow": Field(_list, required=False, may_be_empty=True),
    "attachments": Field(_map, required=False, may_be_empty=True),
}
"""Every member of the card, in the order in which it is written and judged."""

_PARTS: dict[str, TypeAdapter[Any]] = {
    "publishing.excluded": TypeAdapter(Many[Exclusion], config=ConfigDict(strict=True)),
    "publishing.upstreams": TypeAdapter(dict[str, str], config=ConfigDict(strict=True)),
    "leak_allow": TypeAdapter(Many[LeakAllowance], config=ConfigDict(strict=True)),
    "metrics.estimates": TypeAdapter(Estimates),
}
_SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in FIELDS))
_INNER: dict[str, tuple[str, ...]] = {
    section: tuple(name.partition(".")[2] for name in FIELDS if name.startswith(section + ".")) for section in _SECTIONS
}


def is_empty(value: JsonValue, field: Field) -> bool:
    """True for what counts as left out: absent, null, blank or placeholder text, an empty list or map, a needed 0."""
    if isinstance(value, bool):
        return False
    if field.zero_is_empty and value == 0:
        return True
    if field.may_be_empty:
        return value is None
    return value is None or value == [] or value == {} or (isinstance(value, str) and is_placeholder(value))


def _is_blank(value: JsonValue, field: Field) -> bool:
    """True for an optional member that is there and says nothing."""
    return (
        not field.may_be_empty and not isinstance(value, list | dict) and value is not None and is_empty(value, field)
    )


def card_is_mapping(facts: CardFacts) -> Findings:
    """The card is a mapping."""
    if not isinstance(facts.located.value, dict):
        what = f"the card is {kind_text(facts.located.value)}, but must be a mapping"
        yield facts.finding("card-mapping", "", what, "start from the template of `scoresheet init`")


def card_fields(facts: CardFacts) -> Findings:
    """Every required member is there and filled in."""
    if not isinstance(facts.located.value, dict):
        return
    for name, field in FIELDS.items():
        value = facts.get(name)
        if field.required and is_empty(value, field):
            if name == "dataset_split.holdout":
                yield facts.finding(
                    "card-holdout", name, f"{name} must list task ids", "list the ids of the held-out tasks"
                )
            else:
                yield facts.finding("card-empty", name, f"{name} is empty", field.mend)
        elif not field.required and _is_blank(value, field):
            yield facts.finding("card-empty", name, f"{name} is empty", "fill it in, or remove the line")


def card_types(facts: CardFacts) -> Findings:
    """Every member is of its type."""
    for section in _SECTIONS:
        value = facts.get(section)
        if _INNER[section] and value is not None and not isinstance(value, dict):
            yield facts.finding(
                "card-type",
                section,
                f"{section} is {kind_text(value)}, but must be a mapping",
                "indent its members under it",
            )
    for name, field in FIELDS.items():
        value = facts.get(name)
        if value is None or (is_empty(value, field) if field.required else _is_blank(value, field)):
            continue
        if reason := field.check(value):
            what, _, mend = reason.partition("\n")
            yield facts.finding("card-type", name, f"{name} {what}", mend)


def card_unknown(facts: CardFacts) -> Findings:
    """No member that the format does not know: a misspelt one would silently not count."""
    card = facts.located.value
    if not isinstance(card, dict):
        return
    for name, value in card.items():
        if name not in _SECTIONS:
            yield facts.finding(
                "card-unknown", name, f"{name} is not a member of the card", nearest(name, _SECTIONS, len(card))
            )
        elif _INNER[name] and isinstance(value, dict):
            for inner in value:
                if inner not in _INNER[name]:
                    dotted = f"{name}.{inner}"
                    yield facts.finding(
                        "card-unknown",
                        dotted,
                        f"{dotted} is not a member of the card",
                        nearest(inner, _INNER[name], len(value)),
                    )
    estimates = facts.get("metrics.estimates")
    for inner in estimates if isinstance(estimates, dict) else ():
        if inner not in Estimates.model_fields:
            dotted = f"metrics.estimates.{inner}"
            what = f"{dotted} is not a member of the card"
            yield facts.finding(
                "card-unknown", dotted, what, nearest(inner, tuple(Estimates.model_fields), len(estimates))
            )
    yield from _unknown_parts(facts, "leak_allow", ("match_sha256", "reason"))
    yield from _unknown_parts(facts, "publishing.excluded", ("tool", "task", "reason"))


def card_parts(facts: CardFacts) -> Findings:
    """Exclusions, upstreams, leak allowances and estimates are of their form, down to each member."""
    for pointer, adapter in _PARTS.items():
        value = facts.get(pointer)
        if value is None:
            continue
        yield from _blank_reasons(facts, pointer, value)
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False, include_context=False):
                inner = [str(part) for part in fault["loc"]]
                if fault["type"] in ("extra_forbidden", "model_type", "model_attributes_type") or not inner:
                    continue  # other rules name it
                dotted = ".".join((pointer, *inner))
                what = f"{dotted} is not right: {fault['msg'].removeprefix('Value error, ')}"
                yield facts.finding("card-type", dotted, what, "correct it, or remove it")


def card_schema(facts: CardFacts) -> Findings:
    """The schema is the one that these rules are for."""
    schema = facts.get("schema")
    if isinstance(schema, str) and not is_placeholder(schema) and schema != SCHEMA:
        yield facts.finding(
            "card-schema",
            "schema",
            f"schema is {schema!r}, but these are the rules of {SCHEMA}",
            f"write schema: {SCHEMA}",
        )


def card_human(facts: CardFacts) -> Findings:
    """Human intervention is none or logged."""
    value = facts.get("controls.human_intervention")
    if value is not None and not (isinstance(value, str) and is_placeholder(value)) and value not in ("none", "logged"):
        mend = (
            'write human_intervention: none (in quotes: "none"), or logged and note each one with `scoresheet confound`'
        )
        yield facts.finding(
            "card-human", "controls.human_intervention", "human_intervention must be none or logged", mend
        )


def card_network(facts: CardFacts) -> Findings:
    """The network is denied, or reaches the model only."""
    value = facts.get("controls.network")
    if isinstance(value, str) and not is_placeholder(value) and value not in ("denied", "model_only"):
        yield facts.finding(
            "card-network",
            "controls.network",
            f"controls.network is {value!r}, but must be denied or model_only",
            "write denied, or model_only",
        )


def card_wall_clock(facts: CardFacts) -> Findings:
    """The wall clock is a time that somebody would wait for."""
    value = facts.get("controls.wall_clock_s")
    if isinstance(value, int | float) and not isinstance(value, bool) and value > _WEEK_S:
        yield facts.finding(
            "card-wall-clock",
            "controls.wall_clock_s",
            f"controls.wall_clock_s is {value}: more than a week",
            "write seconds",
        )


def card_publishing(facts: CardFacts) -> Findings:
    """Negative results and the confound log are published."""
    for name in ("publishing.negative_results", "publishing.confound_log"):
        value = facts.get(name)
        if isinstance(value, str) and not is_placeholder(value) and value != "required":
            yield facts.finding(
                "card-publishing",
                name,
                f"{name} is {value!r}, but must be required",
                f"write {name.partition('.')[2]}: required",
            )


def card_git_sha(facts: CardFacts) -> Findings:
    """The commit is named in full, and the repository has it when there is one."""
    value = facts.get("suite.git_sha")
    if not isinstance(value, str) or is_placeholder(value):
        return
    mend = "write the output of `git rev-parse HEAD`: a tag moves, a short one is ambiguous"
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", value):
        yield facts.finding(
            "card-git-sha",
            "suite.git_sha",
            f"suite.git_sha {value!r} is not a full commit id (40 or 64 hex digits)",
            mend,
        )
    elif not value.strip("0"):
        yield facts.finding("card-git-sha", "suite.git_sha", f"suite.git_sha {value} names no commit", mend)
    elif facts.git_sha_known is False:
        yield facts.finding("card-git-sha", "suite.git_sha", f"suite.git_sha {value} is not in this repository", mend)


def card_fixture_hash(facts: CardFacts) -> Findings:
    """The fixture hash is a sha256, and the tarball's when there is one."""
    value = facts.get("suite.fixture_hash")
    if not isinstance(value, str) or is_placeholder(value):
        return
    name = "suite.fixture_hash"
    plain = value.casefold().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", plain):
        yield facts.finding(
            "card-fixture-hash",
            name,
            f"{name} {value!r} is not a sha256 (64 hex digits)",
            "run `scoresheet freeze PACK --tar FILE`, then `sha256sum FILE`",
        )
    elif plain in _NOTHING:
        what = f"{name} {value!r} is the digest of nothing"
        yield facts.finding("card-fixture-hash", name, what, "run `scoresheet freeze PACK --tar FILE`")
    elif facts.fixture_sha256 is not None and plain != facts.fixture_sha256:
        what = f"fixture_hash mismatch: card={plain} file={facts.fixture_sha256}"
        yield facts.finding(
            "card-fixture-hash", name, what, "find out which of the two changed; a changed suite is another suite"
        )


def _blank_reasons(facts: CardFacts, pointer: str, items: JsonValue) -> Findings:
    for place, item in enumerate(items if isinstance(items, list) else ()):
        reason = item.get("reason") if isinstance(item, dict) else None
        if isinstance(reason, str) and is_placeholder(reason):
            dotted = f"{pointer}.{place}.reason"
            yield facts.finding("card-empty", dotted, f"{dotted} is empty", "say why")


def _unknown_parts(facts: CardFacts, pointer: str, known: tuple[str, ...]) -> Findings:
    items = facts.get(pointer)
    for place, item in enumerate(items if isinstance(items, list) else ()):
        where = f"{pointer}.{place}"
        if not isinstance(item, dict):
            what = f"{pointer} holds {kind_text(item)} at position {place + 1}, but must hold mappings"
            yield facts.finding("card-type", where, what, f"write {', '.join(known)} under each `-`")
            continue
        for name in item:
            if name not in known:
                what = f"{where}.{name} is not a member of the card"
                yield facts.finding(
                    "card-unknown", f"{where}.{name}", what, nearest(name, known, len(item) * len(items))
                )


def nearest(name: str, known: tuple[str, ...], among: int = 1) -> str:
    """The mend of a member that the format does not know; `among` so many that no nearest is looked for."""
    near = [] if among > _MANY else difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "remove it, or keep it under attachments"


def kind_text(value: JsonValue) -> str:
    """A value as a message names it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "a list" if isinstance(value, list) else "a mapping"
