"""A run's model calls as a recording: sealed by `--record-model`, read by `--replay-model`."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from scoresheet import atomic_file, canonical, digest
from scoresheet.digest import Digest
from scoresheet.documents.model_recording import ModelKind, ModelRecording, RecordedEpisode
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import ReplayedModel, RunPlan
from scoresheet.errors import Malformed, ScoresheetError, Usage
from scoresheet.model.entry import MODEL_LOG, read_back
from scoresheet.model.playback import SharedTape
from scoresheet.model.recording import Tape
from scoresheet.model.upstream import KINDS
from scoresheet.run import journal
from scoresheet.run.plan import Episode

RECORDING = "recording.json"
_NO_EPISODE = b'\n  "episodes": []'
"""Can stand in no string: a line begins so."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that is there to be replayed."""

    run: Path
    document: ModelRecording
    sha256: Digest
    episodes: Mapping[tuple[str, int], RecordedEpisode]

    @classmethod
    def of(cls, run: Path, manifest_sha256: str) -> "Recorded":
        """The recording of the run in `run`, whose pack must be the one that is to run.

        A run that was not sealed, or that went on after it was, is taken as it lies.

        Raises `ScoresheetError`, `Usage`, `Refused`.
        """
        plan = journal.read_plan(run)
        if plan.manifest_sha256 != manifest_sha256:
            what = f"the recording is of the pack {plan.manifest_sha256}, which is not this one"
            raise ScoresheetError(what, str(run), "replay it on its own pack: its tasks are what the model was asked")
        document = made(run, plan)
        if not document.kinds:
            mend = f"record one: scoresheet run … --model KIND=URL --record-model --out {run.name}"
            raise ScoresheetError("the run has no model calls to replay", str(run), mend)
        sha256 = digest.of(document.text())
        if plan.model_recording_sha256 is not None and not plan.model_recording_sha256 == sha256 == _sealed(run):
            mend = "restore the run as it was recorded"
            raise ScoresheetError("the model's recording is not what was sealed", str(run / RECORDING), mend)
        return cls(run, document, sha256, {(each.task_id, each.repeat): each for each in document.episodes})

    @property
    def kinds(self) -> tuple[ModelKind, ...]:
        """Which models there were."""
        return self.document.kinds

    @property
    def planned(self) -> ReplayedModel:
        """How the plan of the run that replays it names it."""
        name, endpoints = self.run.resolve().name, self.document.endpoints
        return ReplayedModel(recording_sha256=self.sha256, run=name, endpoints=endpoints)

    def tape(self, episode: Episode) -> SharedTape:
        """The calls of an episode; none where it was not recorded.

        Raises `ScoresheetError` when the log is no longer what it was.
        """
        recorded = self.episodes.get((episode.task_id, episode.repeat))
        if recorded is None:
            return SharedTape(Tape(()))
        place = min(episode.counted, len(recorded.attempts) - 1)
        path = self.run / recorded.folders[place] / MODEL_LOG
        data = _content(path)
        if digest.of(data) != recorded.attempts[place]:
            raise ScoresheetError("the model's recording changed while it was replayed", str(path))
        return SharedTape(Tape(read_back(data)))


def made(run: Path, plan: RunPlan) -> ModelRecording:
    """The recording that lies in a run directory. Raises `Usage` when a log is missing, `Malformed`."""
    logs = _Logs(set(plan.model_kinds))
    logs.read(run, journal.read_rows(run / journal.ROWS))
    return _document(plan, logs, tuple(logs.episodes()))


def pieces(run: Path, plan: RunPlan, rows: Iterable[Row]) -> Iterator[bytes]:
    """The bytes of `made`, one episode at a time: there may be very many. Raises as `made` does."""
    logs = _Logs(set(plan.model_kinds))
    logs.read(run, rows)
    whole = _document(plan, logs, ()).text()
    before, mark, after = whole.partition(_NO_EPISODE)
    yield before + mark[:-1]
    between = b"\n"
    for episode in logs.episodes():
        text = canonical.pretty(episode.model_dump(mode="json")).rstrip()
        yield between + b"    " + text.replace(b"\n", b"\n    ")
        between = b",\n"
    yield (b"" if between == b"\n" else b"\n  ") + mark[-1:] + after


def seal(run: Path, plan: RunPlan) -> Digest:
    """Write the recording of a run that is over; its name."""
    text = made(run, plan).text()
    atomic_file.replace(run / RECORDING, text)
    return digest.of(text)


@dataclass(slots=True)
class _Logs:
    """The logs of a run's model calls, in few bytes each. Those of attempts that our own errors ended do not count."""

    kinds: set[ModelKind]
    calls: int = 0
    _attempts: "dict[str, array[int]]" = field(default_factory=dict)
    """Task → repeat and attempt of each log, one after the other."""
    _digests: dict[str, bytearray] = field(default_factory=dict)

    def read(self, run: Path, rows: Iterable[Row]) -> None:
        """Take the log of every row, in any order."""
        needed = bool(self.kinds)
        for row in rows:
            if row.exit_reason == "harness_error":
                continue
            folder = Episode(row.task_id, row.repeat, row.attempt, row.episode_seed).folder
            path = run / folder / MODEL_LOG
            if not path.exists():
                if needed:
                    raise Usage("the model calls of an episode are not there", str(path), "restore the run as it was")
                continue
            data = _content(path)
            try:
                for entry in read_back(data):
                    self.calls += entry.refused is None
                    self.kinds |= {kind for kind in KINDS if kind == entry.kind}
            except Malformed as error:
                raise Malformed(error.what, f"{run.name}/{folder}/{error.where}") from error
            self._attempts.setdefault(row.task_id, array("Q")).extend((row.repeat, row.attempt))
            self._digests.setdefault(row.task_id, bytearray()).extend(bytes.fromhex(digest.of(data)))

    def episodes(self) -> Iterator[RecordedEpisode]:
        """Every episode, in order of (task's bytes, repeat)."""
        for task_id in sorted(self._attempts, key=str.encode):
            numbers, digests = self._attempts[task_id], self._digests[task_id]
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            placed = sorted((repeat, attempt, place) for place, (repeat, attempt) in enumerate(pairs))
            for repeat, some in groupby(placed, key=itemgetter(0)):
                attempts = tuple(some)
                yield RecordedEpisode(
                    task_id=task_id,
                    repeat=repeat,
                    attempts=tuple(digests[32 * place : 32 * place + 32].hex() for _, _, place in attempts),
                    folders=tuple(Episode(task_id, repeat, attempt, 0).folder for _, attempt, _ in attempts),
                )


def _document(plan: RunPlan, logs: _Logs, episodes: tuple[RecordedEpisode, ...]) -> ModelRecording:
    return ModelRecording(
        manifest_sha256=plan.manifest_sha256,
        kinds=tuple(sorted(logs.kinds)),
        endpoints=plan.model_endpoints if plan.model_replayed is None else plan.model_replayed.endpoints,
        calls=logs.calls,
        episodes=episodes,
    )


def _sealed(run: Path) -> Digest | None:
    path = run / RECORDING
    return digest.of(_content(path)) if path.exists() else None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Usage(f"can't be read: {error.strerror}", str(path)) from error
