"""Members of requests that differ between repeats of the same work: what a person may want to `ignore`. Pure.

Only suggested, never applied: an ignored member weakens the test. Two sources of evidence: repeats within a recording
(all else equal, the same answer, values that look made up) and a second recording of the same work. What an earlier
answer gave is never suggested: a replay gives it again. Values are never shown.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scoresheet import digest, json_pointer
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import Request
from scoresheet.pack import fingerprint
from scoresheet.record.exchange import Exchange, readable

_LOOKS = tuple(
    (look, re.compile(pattern))
    for look, pattern in (
        ("a UUID", r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
        ("a time", r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"),
        ("a time in seconds or less", r"1\d{9}(?:\.\d+)?|1\d{12}|1\d{15}|1\d{18}"),
        ("hexadecimal digits at random", r"(?=.*[0-9])(?=.*[a-fA-F])[0-9a-fA-F]{16,}"),
        ("characters at random", r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_+/=-]{16,}"),
        ("a number at random", r"0\.\d{10,}"),
    )
)
_LOOKED_AT = 16
"""Values of a member that are looked up in earlier answers: what a service gives, it gives soon."""
_MAX_TEXT = 4 << 20
"""Characters of answers in which they are looked up."""
_MAX_MEMBERS = 2000
"""Of one request: what has more is data, and is not compared."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule that would let repeats count as the same request."""

    rule: str
    """`/json/<pointer>`, `/query/<name>` or `/form/<name>`."""
    request: str
    """Method and path of the requests that it is about."""
    differing: int
    compared: int
    look: str
    """What its values look like; empty when like nothing in particular."""

    def __str__(self) -> str:
        look = f", looks like {self.look}" if self.look else ""
        return f"{self.rule} of {self.request}: differs in {self.differing} of {self.compared} repeats{look}"


_Key = tuple[str, str, str, str, frozenset[str]]


def suggest(recording: Sequence[Exchange], others: Sequence[Sequence[Exchange]] = ()) -> tuple[Suggestion, ...]:
    """What differs within `recording` between repeats, and between it and other recordings of the same work."""
    found: dict[tuple[str, str], Suggestion] = {}
    for suggestion in _within(recording):
        found[suggestion.rule, suggestion.request] = suggestion
    for other in others:
        for suggestion in _between(recording, other):
            old = found.get((suggestion.rule, suggestion.request))
            if old is None or old.differing < suggestion.differing:
                found[suggestion.rule, suggestion.request] = suggestion
    by_rule: dict[tuple[str, str], list[Suggestion]] = defaultdict(list)
    for key in sorted(found):
        by_rule[found[key].rule, found[key].look].append(found[key])
    return tuple(map(_joined, by_rule.values()))


def _joined(alike: Sequence[Suggestion]) -> Suggestion:
    """One suggestion for what is the same of several paths."""
    first = alike[0]
    more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    differing, compared = sum(each.differing for each in alike), sum(each.compared for each in alike)
    return Suggestion(first.rule, first.request + more, differing, compared, first.look)


def unpaired(recording: Sequence[Exchange], other: Sequence[Exchange]) -> int:
    """How many requests of `other` have no counterpart in `recording`, whatever their members hold."""
    mine, theirs = _grouped(recording), _grouped(other)
    return sum(max(0, len(group) - len(mine.get(key, ()))) for key, group in theirs.items())


def _within(recording: Sequence[Exchange]) -> Iterator[Suggestion]:
    given = _Given(recording)
    for key, group in _grouped(recording).items():
        if len(group) < 2:
            continue
        looks = {rule: _look([members[rule] for members, _ in group]) for rule in key[4]}
        odd = sorted(rule for rule, look in looks.items() if look)
        odd = [rule for rule in odd if not given.to([(exchange, members[rule]) for members, exchange in group])]
        same: dict[tuple[object, ...], list[Mapping[str, str]]] = defaultdict(list)
        for members, exchange in group:
            answer = exchange.response.status, digest.of(exchange.response.body)
            rest = tuple(sorted((rule, value) for rule, value in members.items() if rule not in odd))
            same[(*answer, rest)].append(members)
        for rule in odd:
            repeats = [bucket for bucket in same.values() if len(bucket) > 1]
            differing = sum(len({members[rule] for members in bucket}) - 1 for bucket in repeats)
            if differing:
                compared = sum(len(bucket) - 1 for bucket in repeats)
                yield Suggestion(rule, f"{key[1]} {key[2]}", differing, compared, looks[rule])


def _between(recording: Sequence[Exchange], other: Sequence[Exchange]) -> Iterator[Suggestion]:
    mine, theirs = _grouped(recording), _grouped(other)
    given = _Given(recording)
    for key, group in mine.items():
        left, right = _unequal(group, theirs.get(key, []))
        compared = min(len(group), len(theirs.get(key, ())))
        for rule in sorted(key[4]):
            pairs = [(one, two) for one, two in zip(left, right, strict=False) if one[0][rule] != two[0][rule]]
            if given.to([(exchange, members[rule]) for (members, exchange), _ in pairs]):
                continue
            values = [(one[rule], two[rule]) for (one, _), (two, _) in pairs]
            if values:
                look = _look([value for pair in values for value in pair])
                yield Suggestion(rule, f"{key[1]} {key[2]}", len(values), compared, look)


_Group = list[tuple[dict[str, str], Exchange]]


def _unequal(mine: _Group, theirs: _Group) -> tuple[_Group, _Group]:
    """What has no equal on the other side, in its order."""
    spare = Counter(_frozen(members) for members, _ in theirs)
    left = []
    for pair in mine:
        if spare[_frozen(pair[0])]:
            spare[_frozen(pair[0])] -= 1
        else:
            left.append(pair)
    right = []
    for pair in reversed(theirs):  # of equal ones, the first were taken
        if spare[_frozen(pair[0])]:
            spare[_frozen(pair[0])] -= 1
            right.append(pair)
    return left, right[::-1]


def _frozen(members: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(members.items()))


class _Given:
    """What answers gave, and when."""

    def __init__(self, recording: Sequence[Exchange]) -> None:
        self._when = {id(exchange): place for place, exchange in enumerate(recording)}
        texts = (
            f"{each.headers} {(readable(each.headers, each.body) or b'').decode('utf-8', 'replace')}\n"
            for each in (exchange.response for exchange in recording)
        )
        self._ends = [0]
        kept: list[str] = []
        for text in texts:
            room = max(0, _MAX_TEXT - self._ends[-1])
            kept.append(text[:room])
            self._ends.append(self._ends[-1] + len(kept[-1]))
        self._text = "".join(kept)

    def to(self, sent: Sequence[tuple[Exchange, str]]) -> bool:
        """Whether one of the first values that were sent stood in an answer before it."""
        return any(
            self._text.find(value, 0, self._ends[self._when[id(exchange)]]) >= 0
            for exchange, value in sent[:_LOOKED_AT]
        )


def _grouped(recording: Sequence[Exchange]) -> dict[_Key, _Group]:
    groups: dict[_Key, _Group] = defaultdict(list)
    for exchange in recording:
        request = exchange.request
        form = fingerprint.form(request)
        members = dict(_members(form))
        if 0 < len(members) <= _MAX_MEMBERS:
            key = request.upstream, request.method, str(form["path"]), str(form["body"][0]), frozenset(members)
            groups[key].append((members, exchange))
    return groups


def _members(form: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Rule → value, as text, of everything that an `ignore` can remove."""
    yield from _pairs("query", form["query"])
    match form["body"]:
        case ["form", list() as pairs]:
            yield from _pairs("form", pairs)
        case ["json", dict() as value]:
            yield from _leaves("/json", value)


def _pairs(kind: str, pairs: Sequence[JsonValue]) -> Iterator[tuple[str, str]]:
    values: dict[str, list[JsonValue]] = defaultdict(list)
    for name, value in pairs:
        if isinstance(name, str):
            values[name].append(value)
    for name, found in values.items():
        yield f"/{kind}/{json_pointer.step(name)}", _text(found[0] if len(found) == 1 else found)


def _leaves(pointer: str, value: dict[str, JsonValue]) -> Iterator[tuple[str, str]]:
    for name, item in value.items():
        where = f"{pointer}/{json_pointer.step(name)}"
        if isinstance(item, dict) and item:
            yield from _leaves(where, item)
        else:
            yield where, _text(item)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _look(values: Sequence[str]) -> str:
    for look, pattern in _LOOKS:
        if all(len(value) < 512 and pattern.fullmatch(value) for value in values):
            return look
    return ""


def applies(rule: str, request: Request) -> bool:
    """Whether an `ignore` rule removes something of a request."""
    return bool(fingerprint.canonical(request, ignore=(rule,)).removed)
