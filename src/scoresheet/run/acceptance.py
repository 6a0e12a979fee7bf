"""Calls that a task lacks, asked of the live services and put into the pack: what `serve --accept-new` does.

No run has this: there a call that was not recorded is a miss, and nothing behind the door could ask anybody.
"""

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from scoresheet.documents.task import Call
from scoresheet.errors import Finding, ScoresheetError, Usage
from scoresheet.pack import draft
from scoresheet.record import commit, recorded
from scoresheet.record.exchange import Exchange
from scoresheet.record.redact import Redaction, redact
from scoresheet.record.relay import Message, Nobody
from scoresheet.record.service import Service
from scoresheet.record.take import own_credentials
from scoresheet.record.upstream import Upstream
from scoresheet.replay.session import Hit, Miss, Recorded

_PLACEHOLDER = re.compile(rb"REDACTED-(\d+)")
Told = Callable[[str], None]
"""Hears a line for people."""


class Acceptance:
    """What is accepted into one task of an unfrozen pack. Any number of threads may ask; each new call is made once."""

    def __init__(
        self,
        root: Path,
        task_path: str,
        upstreams: Sequence[Upstream],
        tell: Told,
        timeout_s: float,
        not_secret: Sequence[str] = (),
    ) -> None:
        self._root, self._task_path, self._tell = root, task_path, tell
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._service = Service(timeout_s, None, self._report)
        self._not_secret = tuple(not_secret)
        self._numbered = max(map(int, _PLACEHOLDER.findall((root / task_path).read_bytes())), default=0)
        self._sent: list[Exchange] = []
        self._accepted: dict[str, Recorded] = {}
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._over = False

    def __call__(self, miss: Miss) -> Hit | None:
        """The live answer to a call that was not recorded, which is recorded then; `None` when it can't be."""
        upstream = self._upstreams.get(miss.request.upstream)
        if upstream is None or not miss.fingerprint:
            return None
        with self._lock:
            known = self._accepted.get(miss.fingerprint)
            if known is not None:
                return Hit(known, True, miss.verdict)
            if self._over:
                return None
            response, _ = self._service.ask(Message.of(miss.request), upstream, Nobody())
            if response.fault is not None:
                self._tell(f"not accepted: {upstream.name} ended in a {response.fault}: {_named(miss)}")
                return None
            exchange = Exchange(miss.request, response)
            try:
                self._add(exchange)
            except (ScoresheetError, OSError) as error:
                self._tell(f"not accepted: {_named(miss)}: {_why(error)}")
                return None
            call = Call.from_value(
                {"request_fingerprint": miss.fingerprint, **recorded.answer(response)}, self._task_path
            )
            found = self._accepted[miss.fingerprint] = Recorded(len(self._accepted), miss.fingerprint, call)
            return Hit(found, False, miss.verdict, accepted=True)

    def end(self) -> None:
        """Accept nothing more; what is being accepted is finished first."""
        with self._lock:
            self._over = True

    def _add(self, exchange: Exchange) -> None:
        redaction = redact((*self._sent, exchange), self._not_secret, own_credentials(), self._numbered)
        if redaction.findings:
            raise ScoresheetError(redaction.findings[-1].what, redaction.findings[-1].where)
        hosts = {upstream.name: upstream.place for upstream in self._upstreams.values()}
        with commit.locked(self._root):
            files = commit.read(self._root)
            draft.refuse_frozen(self._root, files.get(recorded.MANIFEST, b""))
            if self._task_path not in files:
                raise Usage("the task is gone", self._task_path)
            changes = recorded.append(self._task_path, exchange, redaction, files, hosts)
            commit.write(self._root, changes.files)
        self._sent.append(exchange)
        self._tell_redacted(redaction)

    def _tell_redacted(self, redaction: Redaction) -> None:
        for each in redaction.replaced:
            if str(each) not in self._told:
                self._told.add(str(each))
                self._tell(f"  redacted: {each}")

    def _report(self, problem: Finding) -> None:
        if problem.rule != "record-client-gone" and str(problem) not in self._told:
            self._told.add(str(problem))
            self._tell(f"{'error' if problem.severity == 'error' else 'warning'}: {problem}")


def _named(miss: Miss) -> str:
    return f"{miss.request.method} {miss.request.target}"


def _why(error: Exception) -> str:
    mend = getattr(error, "mend", "")
    return f"{error}; {mend}" if mend else str(error)
