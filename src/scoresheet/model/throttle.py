"""How fast an endpoint may be asked: so many calls at once, and how long it asks to be left alone."""

import email.utils
import re
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from scoresheet.model.heads import Pairs
from scoresheet.model.wire import parts

LONGEST_S = 60.0
"""Who asks for more than this gives no answer worth waiting for: it is passed on as it is."""
_FIRST_S = 1.0
_BUSY = (503, 529)
_LOOK_S = 0.2
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class Turnstile:
    """Lets so many calls through at once, first come, first served."""

    def __init__(self, most: int | None = None) -> None:
        """`most` is `None` for as many as come."""
        self._most = most
        self._free = threading.Condition()
        self._inside = 0
        self._waiting: deque[object] = deque()

    @property
    def limited(self) -> bool:
        """Whether a turn may have to be waited for."""
        return self._most is not None

    def enter(self, given_up: Callable[[], bool]) -> bool:
        """Wait for a turn, then be inside; false, and outside, when `given_up` says that nobody waits any more."""
        if self._most is None:
            return True
        ticket = object()
        with self._free:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or self._inside >= self._most:
                    if given_up():
                        return False
                    self._free.wait(_LOOK_S)
                if given_up():
                    return False
                self._inside += 1
                return True
            finally:
                self._waiting.remove(ticket)
                self._free.notify_all()

    def leave(self) -> None:
        """Make room for the next."""
        if self._most is not None:
            with self._free:
                self._inside -= 1
                self._free.notify_all()


def delay_s(status: int, headers: Pairs, tries: int, now: datetime | None = None) -> float | None:
    """How long an answer asks to wait before the same is asked again; `None` when it does not, or for too long.

    429 always asks for it, 503 and 529 where they say how long (RFC 9110 §10.2.3). Without a time it is 1 s, then twice
    as long each time; `tries` counts from 0.
    """
    told = _told(headers, now or datetime.now(UTC))
    if status != 429 and (status not in _BUSY or told is None):
        return None
    if parts.header(headers, "x-should-retry") == "false":
        return None
    delay = _FIRST_S * 2.0 ** min(tries, 10) if told is None else told
    return delay if delay <= LONGEST_S else None


def _told(headers: Pairs, now: datetime) -> float | None:
    exact = parts.header(headers, "retry-after-ms")
    if exact is not None and _SECONDS.fullmatch(exact.strip()):
        return float(exact) / 1000
    told = (parts.header(headers, "retry-after") or "").strip()
    if _SECONDS.fullmatch(told):
        return float(told)
    try:
        until = email.utils.parsedate_to_datetime(told)
    except ValueError:
        return None
    return max((until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - now.timestamp(), 0.0)
