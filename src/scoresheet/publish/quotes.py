"""The scores that a text holds: report blocks, report JSON, comparisons, rows. Pure: text in, claims out.

A claim is whatever a reader takes for a score, whole or not: a cut block can't be judged, and is a claim all the same.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.publish import block, comparison_text

MARKS = (b"manifest_sha256", b"_mean", b"episode_seed")
"""A file without any of these holds no score."""
MARKS_16 = tuple(mark.decode().encode(code) for mark in MARKS for code in ("utf-16-le", "utf-16-be"))

_BANNERS = (block.BANNER, comparison_text.BANNER)
_FORMAT = "scoresheet-report/"
_COMPARISON = "scoresheet-comparison/"
_RUN = r"(?:[A-Z]|R[0-9]+)"
_PAIR = re.compile(rf"\b{_RUN} - {_RUN}\W{{1,8}}[0-9]+\.[0-9]{{4}}\b")
"""A difference of two runs, as `compare` prints it, in text or in a table."""
_TABLE_OF_RUNS = re.compile(rf"^[ \t]*\|[ \t]*{_RUN}[ \t]*\|.*\b[0-9]\.[0-9]{{4}}\b.*$", re.MULTILINE)
_ROWS_OF = re.compile(rf"rows_sha256 ({_RUN}): ([0-9a-f]{{64}})")
_METRIC = re.compile(r"success(?:_after_[0-9]+_retries)?_(?:mean|ci95)")
_FIGURE = re.compile(r"\bsuccess(?:_after_[0-9]+_retries)?_mean\W{1,12}[0-9]")
_PACK = re.compile(r"\bmanifest_sha256\W{1,12}[0-9a-f]{64}\b|\btool-replay-v[0-9]")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_LINE = re.compile(r"(?P<mark>[\s>*+\-#|`/;%]*)(?P<key>[a-z][a-z0-9_]*+)[`*_]*\s*[:|](?:[\s`*]+(?P<value>.*))?")
_OPENING = re.compile(r"^[ \t>*+\-#|`/;%]*\{", re.MULTILINE)
_ROW = frozenset({"manifest_sha256", "task_id", "repeat", "success"})
_ELISIONS = ("…", "...", "[…]", "[...]")
"""Lines that say that some are left out; they don't end a block."""
_MARKS_OF_QUOTES = ">*#/;% "
_TRIES, _WORK_BYTES = 10_000, 256 << 20


@dataclass(frozen=True, slots=True)
class Claim:
    """A score in a text."""

    line: int
    digest: str
    """By which `--accept` names it: of the block's lines, or of the JSON value (RFC 8785)."""
    draft: bool
    pairs: tuple[tuple[str, str], ...] = ()
    """A block: its `key: value` lines."""
    value: Mapping[str, Any] | None = None
    """JSON: the report, or the comparison."""
    compared: tuple[str, ...] = ()
    """A comparison in a text: its lines, and those of the tables that go with it."""
    fault: str = ""
    """Why it is no whole report; empty when it looks like one."""
    rule: str = "claim-block"
    """The rule of `fault`."""

    def get(self, key: str) -> str | None:
        """A member's text; `None` when it is absent or no text."""
        if self.value is not None:
            member = self.value.get(key)
            return member if isinstance(member, str) else None
        return next((value for name, value in self.pairs if name == key), None)

    @property
    def digests(self) -> frozenset[str]:
        """Every digest that it quotes."""
        quoted = json.dumps(self.value) if self.value is not None else " ".join(value for _, value in self.pairs)
        return frozenset(_DIGEST.findall(" ".join((quoted, *self.compared))))

    @property
    def is_comparison(self) -> bool:
        """True when it says how runs stand to each other, and not what one scored."""
        return bool(self.compared) or (self.value is not None and str(self.value.get("format")).startswith(_COMPARISON))

    @property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """(label, digest of its rows) of each run of a comparison."""
        if self.value is None:
            return tuple(match.groups() for line in self.compared if (match := _ROWS_OF.fullmatch(line)))  # type: ignore[misc]  # two groups
        runs = self.value.get("runs")
        found = [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
        return tuple((str(run.get("label")), str(run.get("rows_sha256"))) for run in found)


def decoded(data: bytes) -> str:
    """The text of a file, whatever its encoding; what can't be read stands as U+FFFD."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def is_rows(name: str, data: bytes) -> bool:
    """True for a file of rows, by its name or because half of its lines are rows. `data` may be its beginning only."""
    if name.rpartition("/")[2] == "rows.jsonl":
        return True
    lines = [line for line in data.split(b"\n") if line.strip()]
    if not any(b"task_id" in line for line in lines):
        return False
    return 2 * sum(_is_row(line) for line in lines) >= len(lines) > 0


def _is_row(line: bytes) -> bool:
    try:
        value = json.loads(line, parse_int=canonical.integer)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() >= _ROW


def claims(data: bytes, prose: bool = True) -> tuple[Claim, ...]:
    """Every score in a file, in the order of its text.

    In `prose` a figure that belongs to no block is a claim too; in code it may be a variable.
    """
    text = decoded(data)
    if not _METRIC.search(text) and not _PACK.search(text) and _FORMAT not in text:
        return ()
    spans: list[tuple[int, int]] = []
    found: list[Claim] = []
    for claim, start, end in (*_json(text), *_blocks(text)):
        spans.append((start, end))
        if claim is not None:
            found.append(claim)
    at = next((index for index, claim in enumerate(found) if claim.compared), None)
    if at is not None:  # the tables that go with it are part of what it says
        tables = tuple(_outside(text, spans, (_TABLE_OF_RUNS, _PAIR)))
        found[at] = replace(found[at], compared=(*found[at].compared, *(line for line, _ in tables)))
    elif prose and _PACK.search(text):
        found += _strays(text, spans, _PAIR)
    if prose and _PACK.search(text):
        found += _strays(text, spans, _FIGURE)
    return tuple(sorted(found, key=lambda claim: claim.line))


def _json(text: str) -> Iterator[tuple[Claim | None, int, int]]:
    """Reports in JSON, wherever an object begins a line."""
    if '"' not in text or (_FORMAT not in text and _COMPARISON not in text and not _METRIC.search(text)):
        return
    try:
        value = canonical.loads(text)
    except canonical.JsonError:
        pass
    else:
        for report in _reports(value):
            yield _of_json(report, 1), 0, len(text)
        return
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_int=canonical.integer)
    at = work = tries = 0
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.end() - 1
        if tries == _TRIES or work > _WORK_BYTES:
            fault = "the JSON from here on is too tangled to be judged"
            digest = hashlib.sha256(text[start:].encode("utf-8", "replace")).hexdigest()
            yield Claim(_line_of(text, start), digest, draft=False, fault=fault), start, len(text)
            return
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            tries += 1
            work += getattr(error, "pos", len(text)) - start
            at = opening.end()
            continue
        for report in _reports(value):
            yield _of_json(report, _line_of(text, start)), start, at


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member stands twice")
    return dict(pairs)


def _reports(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """The reports in a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            figures = any(_METRIC.fullmatch(key) for key in one)
            form = str(one.get("format"))
            report = figures and (isinstance(one.get("manifest_sha256"), str) or form.startswith(_FORMAT))
            if report or (form.startswith(_COMPARISON) and one.get("comparable") is not False):
                yield one
            else:
                waiting += one.values()


def _of_json(value: dict[str, JsonValue], line: int) -> Claim:
    try:
        digest = hashlib.sha256(canonical.jcs(value)).hexdigest()
    except canonical.JsonError as error:
        return Claim(line, "", draft=False, value=value, fault=f"the report is not strict JSON: {error.what}")
    try:
        json.dumps(value)
    except ValueError:
        texts = {name: item for name, item in value.items() if isinstance(item, str)}
        return Claim(line, digest, draft=False, value=texts, fault="the report holds an integer of thousands of digits")
    if str(value.get("format")).startswith(_COMPARISON):
        return Claim(line, digest, value.get("draft") is True, value=value)
    fault = "" if isinstance(value.get("rows_sha256"), str) else "the report does not name its rows (rows_sha256)"
    return Claim(line, digest, value.get("draft") is True, value=value, fault=fault)


def _blocks(text: str) -> Iterator[tuple[Claim | None, int, int]]:
    """Runs of `key: value` lines that hold both `protocol` and `manifest_sha256`."""
    if "manifest_sha256" not in text:
        return
    pairs: list[tuple[str, str]] = []
    lines: list[str] = []
    first = start = at = 0
    for number, line in enumerate((*text.split("\n"), ""), 1):
        bare = line.strip()
        match = _LINE.fullmatch(bare)
        if bare.endswith(_BANNERS) or match:
            if not lines:
                first, start = number, at
            lines.append(bare)
            if match and not bare.endswith(_BANNERS):
                value = (match["value"] or "").strip()
                pairs.append((match["key"], value.rstrip(" |`*") if match["mark"].strip() else value))
        elif lines and bare.strip(f"`{_MARKS_OF_QUOTES}") and any(key == "alike" for key, _ in pairs):
            lines.append(bare)  # the lines of a comparison are of many forms; a blank one ends it
        elif lines and bare not in _ELISIONS:
            if _is_block(dict(pairs)):
                yield _of_block(tuple(pairs), lines, first), start, at
            pairs, lines = [], []
        at += len(line) + 1


def _is_block(keys: Mapping[str, str]) -> bool:
    """True for the lines of a report; fields of a class may have the same names, but no such values."""
    if not {"protocol", "manifest_sha256"} <= keys.keys():
        return False
    return keys["protocol"].startswith("tool-replay-") or _DIGEST.search(keys["manifest_sha256"]) is not None


def _of_block(pairs: tuple[tuple[str, str], ...], lines: list[str], line: int) -> Claim:
    digest = hashlib.sha256("".join(f"{each}\n" for each in lines).encode()).hexdigest()
    keys = [key for key, _ in pairs]
    before = pairs[: keys.index("protocol")]
    said, banner = ("draft", "true") in before, any(each.endswith(_BANNERS) for each in lines)
    if said != banner:
        known = comparison_text.BANNER if "alike" in keys else block.BANNER
        lacking = "`draft: true`" if banner else f"`{known}`"
        fault = f"a draft keeps both of its first lines: {lacking} is not there"
        return Claim(line, digest, draft=False, pairs=pairs, fault=fault, rule="claim-draft")
    if "alike" in keys:
        return Claim(line, digest, said, pairs=pairs, compared=tuple(each.lstrip(_MARKS_OF_QUOTES) for each in lines))
    lacking_keys = [] if said else [name for name in _always(keys) if name not in keys]
    fault = f"the block is cut: it has no {', '.join(lacking_keys)}" if lacking_keys else ""
    return Claim(line, digest, said, pairs=pairs, fault=fault)


def _always(keys: list[str]) -> tuple[str, ...]:
    """The lines without which a block is cut: its first twelve, and the rows that it is of."""
    retried = next(
        (key.removesuffix("_mean") for key in keys if re.fullmatch(r"success_after_\d+_retries_mean", key)), ""
    )
    success = retried or "success"
    return (
        "protocol", "manifest_sha256", "timeout_s", "retries", "seed", "repeats_per_task", f"{success}_mean",
        f"{success}_ci95", "unauthorized_rate", "timeout_rate", "live_network", "excluded", "rows_sha256",
    )  # fmt: skip


def _strays(text: str, spans: list[tuple[int, int]], figure: re.Pattern[str]) -> Iterator[Claim]:
    """Figures that stand in no block and in no report."""
    fault = "a figure stands without its block: the lines from `protocol` to `rows_sha256` belong to it"
    if figure is _PAIR:
        fault = "a difference of two runs stands without its comparison: the lines from `protocol` on belong to it"
    for line, at in _outside(text, spans, (figure,)):
        digest = hashlib.sha256(f"{line}\n".encode()).hexdigest()
        yield Claim(_line_of(text, at), digest, draft=False, fault=fault)


def _outside(
    text: str, spans: list[tuple[int, int]], figures: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[str, int]]:
    """(line, place) of figures that are in none of the spans."""
    for figure in figures:
        for match in figure.finditer(text):
            if any(start <= match.start() < end for start, end in spans):
                continue
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            yield text[start : end if end >= 0 else len(text)].strip(), match.start()


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
