"""One call that came to a model's door, as `model.jsonl` holds it: byte for byte, without credentials. Pure."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.errors import Malformed
from scoresheet.model.heads import Pairs
from scoresheet.model.observed import Exchange
from scoresheet.model.wire import reading

MODEL_LOG = "model.jsonl"
RATE_LIMITED = "rate limited"
"""Fault of a call that the door sent again: the agent never saw this answer."""
UNRECORDED = "unrecorded"
"""Fault of a call that is not in the recording from which the model is replayed."""
_NO_ANSWER = ("unreachable", "redirect")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f\u0100-\U0010ffff]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One call."""

    kind: str
    method: str
    path: str
    """As the agent sent it."""
    request_headers: Pairs
    request: bytes
    status: int | None
    """Of the model's answer; `None` when none came."""
    response_headers: Pairs
    response: bytes
    started_s: float
    """Since the agent started."""
    first_byte_s: float | None
    ended_s: float
    refused: str | None = None
    """Why the door did not send it."""
    fault: str | None = None
    """What went wrong on the way: `unreachable`, `cut`, `client gone`, `redirect`, `ended`, `too large`, `rate limited`
    (sent again by the door), `unrecorded` (replayed, and not in the recording)."""
    said: str | None = None
    """What the door said in the model's place, with status 502."""

    def exchange(self) -> Exchange | None:
        """What it said; `None` for one that asks no model anything: lists of models, counts of tokens."""
        asks_none = self.method == "GET" or self.path.partition("?")[0].endswith("/count_tokens")
        if asks_none and self.fault != UNRECORDED:
            return None
        found = reading.read(self.path, self.request, self.status, self.response_headers, self.response)
        status = None if self.fault in _NO_ANSWER else self.status
        return Exchange(
            self.started_s,
            self.ended_s,
            found,
            status,
            self.refused,
            by_door=self.fault == RATE_LIMITED,
            unrecorded=self.fault == UNRECORDED,
        )

    def line(self) -> bytes:
        """The line."""
        value = {
            "kind": self.kind,
            "method": self.method,
            "path": self.path,
            "request_headers": [list(pair) for pair in self.request_headers],
            "request": _kept(self.request),
            "status": self.status,
            "response_headers": [list(pair) for pair in self.response_headers],
            "response": _kept(self.response),
            "started_s": round(self.started_s, 6),
            "first_byte_s": None if self.first_byte_s is None else round(self.first_byte_s, 6),
            "ended_s": round(self.ended_s, 6),
            "refused": self.refused,
            "fault": self.fault,
            **({} if self.said is None else {"said": self.said}),
        }
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_back(data: bytes) -> Iterator[Entry]:
    """The entries of a log. Raises `Malformed`."""
    for number, line in enumerate(data.splitlines(), 1):
        try:
            value = canonical.loads(line)
            yield Entry(
                kind=_text(value["kind"]),
                method=_text(value["method"]),
                path=_text(value["path"]),
                request_headers=_pairs(value["request_headers"]),
                request=_bytes(value["request"]),
                status=_status(value["status"]),
                response_headers=_pairs(value["response_headers"]),
                response=_bytes(value["response"]),
                started_s=_moment(value["started_s"]),
                first_byte_s=None if value["first_byte_s"] is None else _moment(value["first_byte_s"]),
                ended_s=_moment(value["ended_s"]),
                refused=_text_or_none(value["refused"]),
                fault=_text_or_none(value["fault"]),
                said=_text_or_none(value.get("said")),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Malformed("no line of a model log", f"{MODEL_LOG}:{number}") from error


def _kept(data: bytes) -> JsonValue:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(value: JsonValue) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)


def _pairs(value: JsonValue) -> Pairs:
    """Headers, none of which could end a line where they are sent again."""
    found = tuple((_text(name), _text(told)) for name, told in value)
    if not all(_HEADER.fullmatch(f"{name}:{told}") for name, told in found):
        raise ValueError("no header")
    return found


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _text_or_none(value: JsonValue) -> str | None:
    return None if value is None else _text(value)


def _status(value: JsonValue) -> int | None:
    if value is not None and (type(value) is not int or not 200 <= value <= 599):
        raise ValueError("no status")
    return value


def _moment(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("no number of seconds")
    return float(value)
