"""A run's model calls as a recording: sealed by `--record-model`, read by `--replay-model`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scoresheet import atomic_file, digest
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
    kinds: set[ModelKind] = set(plan.model_kinds)
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    calls = 0
    for row in _counted(run):
        folder = Episode(row.task_id, row.repeat, row.attempt, row.episode_seed).folder
        path = run / folder / MODEL_LOG
        if not path.exists():
            if kinds:
                raise Usage("the model calls of an episode are not there", str(path), "restore the run as it was")
            continue
        data = _content(path)
        try:
            for entry in read_back(data):
                calls += entry.refused is None
                kinds |= {kind for kind in KINDS if kind == entry.kind}
        except Malformed as error:
            raise Malformed(error.what, f"{run.name}/{folder}/{error.where}") from error
        found.setdefault((row.task_id, row.repeat), []).append((digest.of(data), folder))
    endpoints = plan.model_endpoints if plan.model_replayed is None else plan.model_replayed.endpoints
    return ModelRecording(
        manifest_sha256=plan.manifest_sha256,
        kinds=tuple(sorted(kinds)),
        endpoints=endpoints,
        calls=calls,
        episodes=tuple(
            RecordedEpisode(
                task_id=task_id,
                repeat=repeat,
                attempts=tuple(sha256 for sha256, _ in attempts),
                folders=tuple(folder for _, folder in attempts),
            )
            for (task_id, repeat), attempts in sorted(found.items(), key=lambda item: (item[0][0].encode(), item[0][1]))
        ),
    )


def seal(run: Path, plan: RunPlan) -> Digest:
    """Write the recording of a run that is over; its name."""
    text = made(run, plan).text()
    atomic_file.replace(run / RECORDING, text)
    return digest.of(text)


def _sealed(run: Path) -> Digest | None:
    path = run / RECORDING
    return digest.of(_content(path)) if path.exists() else None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Usage(f"can't be read: {error.strerror}", str(path)) from error


def _counted(run: Path) -> Iterator[Row]:
    """Rows in order of (task, repeat, attempt), without those that our own errors ended."""
    rows = (row for row in journal.read_rows(run / journal.ROWS) if row.exit_reason != "harness_error")
    yield from sorted(rows, key=lambda row: (row.task_id.encode(), row.repeat, row.attempt))
