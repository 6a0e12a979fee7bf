"""The engine of one host: threads that run episodes, one synced row per attempt, interruptible and resumable."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from scoresheet import atomic_file, errors
from scoresheet.documents.confound import Confound
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import RunPlan, Status
from scoresheet.documents.task import Task
from scoresheet.errors import Incomplete, NotIsolated, Usage
from scoresheet.pack.folder import Pack
from scoresheet.replay.http import ReplayServer
from scoresheet.replay.session import Tape
from scoresheet.run import journal, workspace
from scoresheet.run.admission import Admission
from scoresheet.run.agents.agent import Agent
from scoresheet.run.budget import INTERRUPTED, keep_lost, on_disk
from scoresheet.run.episode import EpisodeSpec, Interrupted, run_episode
from scoresheet.run.fold import harness_error
from scoresheet.run.grading import Grader
from scoresheet.run.models import NO_MODELS, Models
from scoresheet.run.plan import Episode, Progress, differences, episodes
from scoresheet.run.prepare import now, upstreams_of
from scoresheet.run.prices import PRICES
from scoresheet.run.workspace import Work
from scoresheet.sandbox.spec import Opened, Sandbox
from scoresheet.stats import bill

_DURABLE = 3
"""Harness errors in a row that end a run: what fails this often is no accident of one episode."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where a run stands after one more row."""

    row: Row | None
    """`None` at the start."""
    done: int
    planned: int
    failing: int
    harness_errors: int


def quiet(_step: Step) -> None:
    """Says nothing."""


def run(
    pack: Pack,
    agent: Agent,
    plan: RunPlan,
    out: Path,
    sandbox: Sandbox,
    resume: bool = False,
    progress: Callable[[Step], None] = quiet,
    admission: Admission | None = None,
    models: Models = NO_MODELS,
) -> RunPlan:
    """Run what is left of `plan` in the run directory `out`; the plan as it ended.

    With an `admission` its receipts are written and synced before the first episode, and only what it lets start is
    started.

    `out` must not exist, unless `resume`. Raises `NotIsolated` when isolation was not proved, `ScoresheetError` when a
    run to be resumed differs or is being run, `Incomplete` when our side keeps failing, `KeyboardInterrupt` after every
    running episode was ended: in all cases the run directory can be resumed. The status is `incomplete` when episodes
    that we failed to run are left, or that the budget of the models left no room for.
    """
    if resume:
        recorded = journal.read_plan(out)
        refuse_changed(recorded, plan, out)
        _go_on_spending(recorded, out, models)
        plan = recorded.model_copy(
            update={
                "resumed_at": (*recorded.resumed_at, now()),
                "jobs": plan.jobs,
                "status": "running",
                "draft": plan.draft,
                "model_recording_sha256": None,
            }
        )
    else:
        refuse_used(out)
    with sandbox:  # its refusal leaves nothing behind
        if not resume:
            out.mkdir(parents=True, exist_ok=True)
        with journal.held(out):
            if admission is not None:
                plan = admission.write(out, plan)
            if models.prices is not None:
                atomic_file.replace(out / PRICES, models.prices.data)
            return _run(pack, agent, plan, out, sandbox, progress, models)


def _run(
    pack: Pack,
    agent: Agent,
    plan: RunPlan,
    out: Path,
    sandbox: Sandbox,
    progress: Callable[[Step], None],
    models: Models,
) -> RunPlan:
    plan = _with_budget(plan, models)
    journal.write_plan(out, plan)
    status: Status = "incomplete"
    try:
        with journal.Rows(out / journal.ROWS) as rows, ReplayServer() as server:
            done = Progress(plan.retries)
            for row in journal.read_rows(out / journal.ROWS):
                done.add(row)
            journal.add_confounds(out, _resumption(plan, done))
            if plan.resumed_at and models.doors:
                keep_lost(out, done.remaining(_planned(plan)))
            _Work(pack, agent, plan, out, sandbox, server, rows, done, progress, models).run()
        journal.add_confounds(out, _violations(out))
        if next(done.remaining(_planned(plan)), None) is None:
            status = "finished"
    except NotIsolated:
        status = "aborted"
        raise
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        models.close()
        plan = _with_budget(plan.model_copy(update={"status": status, "ended_at": now()}), models)
        journal.write_plan(out, plan)
    return plan


def _with_budget(plan: RunPlan, models: Models) -> RunPlan:
    """The plan with what was spent by now; a run that came to its end was not stopped."""
    if not models.doors:
        return plan
    told = models.budget.told()
    if plan.status == "finished":
        told = told.model_copy(update={"stopped": None})
    return plan.model_copy(update={"budget": told})


def _go_on_spending(recorded: RunPlan, out: Path, models: Models) -> None:
    """Count what the run spent before, also where its runner was killed and could not tell."""
    tokens = recorded.budget.spent_tokens if recorded.budget is not None else 0
    told = recorded.budget.spent_cost if recorded.budget is not None else None
    cost = None if told is None else bill.parsed(told)
    if recorded.status == "running" and models.doors:
        found, priced = on_disk(out, None if models.prices is None else models.prices.table)
        tokens = max(tokens, found)
        cost = None if priced is None else max(cost or 0, priced)
    models.budget.begin(tokens, cost)


def refuse_used(out: Path) -> None:
    """Raises `Usage` when something is there, for nothing is overwritten, and where no folder can be made."""
    atomic_file.refuse_unmakeable(out, "the run", "choose another --out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        mend = "choose another --out, or continue that run with --resume"
        raise Usage("the run directory is not empty", str(out), mend)


def refuse_changed(recorded: RunPlan, asked: RunPlan, out: Path) -> None:
    """Raises `ScoresheetError` naming every decisive field in which `asked` is not what was `recorded`."""
    found = differences(recorded, asked)
    if found:
        findings = [
            errors.Finding("resume-differs", f"{out.name}/{journal.PLAN}#/{change.field}", str(change))
            for change in found
        ]
        mend = "start a new run, or ask for what was recorded"
        raise errors.Refused("the run can't be resumed: it would not be the same run", findings, str(out), mend)


def _planned(plan: RunPlan) -> Iterator[Episode]:
    left_out = set(plan.not_started)
    started = (task.task_id for task in plan.tasks if task.task_id not in left_out)
    return episodes(started, plan.repeats, plan.seed)


def _resumption(plan: RunPlan, done: Progress) -> Iterator[Confound]:
    """The entries of a run that goes on: that it does, and what is run again after errors of our own."""
    if not plan.resumed_at:
        return
    at = plan.resumed_at[-1]
    text = f"the run was resumed with {done.rows} attempts made"
    yield Confound(at=at, by="scoresheet", kind="resumed", text=text)
    for (task_id, repeat), attempts in done.episodes.items():
        if attempts.harness_error:
            text = f"{task_id} repeat {repeat} is run again after an error of scoresheet's own"
            yield Confound(at=at, by="scoresheet", kind="rerun", text=text)


def _violations(out: Path) -> Iterator[Confound]:
    """One entry for each control of the card that a model's calls violated, unless the log holds it already."""
    seen: dict[str, list[Row]] = {}
    for row in journal.read_rows(out / journal.ROWS):
        for control, status in row.controls.items():
            if status == "violated":
                seen.setdefault(control, []).append(row)
    told = {each.text for each in journal.read_confounds(out)}
    for control, rows in seen.items():
        first = next(text for text in rows[0].violations if text.startswith(f"{control}:"))
        text = f"{control} was violated in {len(rows)} episodes, as the model's door saw; the first: {first}"
        if text not in told:
            yield Confound(at=now(), by="scoresheet", kind="deviation", text=text, control=control)


class _Work:
    """Episodes handed out to threads, and everything that they share."""

    def __init__(
        self,
        pack: Pack,
        agent: Agent,
        plan: RunPlan,
        out: Path,
        sandbox: Sandbox,
        server: ReplayServer,
        rows: journal.Rows,
        done: Progress,
        progress: Callable[[Step], None],
        models: Models,
    ) -> None:
        self._models = models
        self._pack, self._agent, self._plan, self._out = pack, agent, plan, out
        self._sandbox, self._server, self._rows = sandbox, server, rows
        self._done, self._progress = done, progress
        self._upstreams = upstreams_of(pack)
        self._grader = Grader(sandbox)
        self._works: dict[str, Work | None] = {}
        self._lock = threading.Lock()
        self._pack_lock = threading.Lock()
        self._todo = self._done.remaining(_planned(plan))
        self._running: set[Opened] = set()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._in_a_row = 0
        self._to_run = (len(plan.tasks) - len(plan.not_started)) * plan.repeats
        self._tapes: dict[str, tuple[Task, Tape]] = {}
        self._finished = sum(1 for attempts in done.episodes.values() if attempts.done(plan.retries))
        self._failing = sum(
            1 for a in done.episodes.values() if a.done(plan.retries) and not a.succeeded and not a.harness_error
        )

    def run(self) -> None:
        """Every remaining episode. Raises what ended it early."""
        self._progress(self._step(None))
        # the plan is walked by the threads while rows are added to what it looks at: what is left is fixed now
        self._todo = iter(list(self._todo)) if self._done.rows else _planned(self._plan)
        threads = [
            threading.Thread(target=self._worker, name=f"scoresheet-{number}", daemon=True)
            for number in range(self._plan.jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self._stop()
            for thread in threads:
                while thread.is_alive():
                    with contextlib.suppress(
                        KeyboardInterrupt
                    ):  # ending is bounded: a second interrupt changes nothing
                        thread.join()
            raise
        if self._failure is not None:
            raise self._failure

    def _worker(self) -> None:
        try:
            while not self._ends:
                with self._lock:
                    episode = next(self._todo, None)
                if episode is None:
                    return
                self._to_its_end(episode)
        except Interrupted:
            return
        except BaseException as error:  # noqa: BLE001  # handed to the thread that waits for us
            with self._lock:
                self._failure = self._failure or error
            self._stop()

    @property
    def _ends(self) -> bool:
        """True when no further episode begins: the run was stopped, or its budget is spent."""
        return self._over.is_set() or self._models.budget.over is not None

    def _to_its_end(self, episode: Episode) -> None:
        """One episode, with the further attempts that `retries` gives it."""
        while not self._ends:
            row = self._attempt(episode)
            try:
                self._rows.append(row)
            except OSError as error:
                what = f"a row can't be written: {error.strerror}"
                raise Incomplete(what, str(self._out), "mend the cause, then continue with --resume") from error
            with self._lock:
                attempts = self._done.add(row)
                over = attempts.done(self._plan.retries)
                self._finished += over
                self._failing += over and not attempts.succeeded
                self._in_a_row = self._in_a_row + 1 if attempts.harness_error else 0
                failing_for_good = self._in_a_row >= _DURABLE
                self._progress(self._step(row))
            if failing_for_good:
                raise Incomplete(
                    f"{_DURABLE} episodes in a row failed on our side: {row.detail}",
                    str(self._out),
                    "mend the cause, then continue with --resume",
                )
            if over or attempts.harness_error:
                return
            episode = replace(episode, attempt=attempts.next, counted=attempts.scored)

    def _attempt(self, episode: Episode) -> Row:
        began = datetime.now(UTC)
        try:
            task, tape = self._tape(episode.task_id)
            spec = EpisodeSpec(
                episode=episode,
                manifest_sha256=self._pack.manifest_sha256,
                manifest=self._pack.manifest,
                task=task,
                tape=tape,
                tools=self._pack.tools,
                upstreams=self._upstreams,
                agent=self._agent,
                limits=self._plan.limits,
                folder=self._out / episode.folder,
                host=self._plan.host.label,
                work=self._work(task),
                grader=self._grader,
                models=self._models,
            )
            return run_episode(spec, self._sandbox, self._server, self._watched)
        except (Interrupted, NotIsolated):
            raise
        except Exception as error:  # our failure, whatever it is, is never the agent's
            if self._over.is_set():
                raise Interrupted("the episode was interrupted", episode.folder) from error
            return harness_error(
                self._pack.manifest_sha256,
                episode,
                f"{type(error).__name__}: {error}",
                began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                self._plan.host.label,
                (datetime.now(UTC) - began).total_seconds(),
            )

    def _tape(self, task_id: str) -> tuple[Task, Tape]:
        """The task and its tape; those of the last few tasks are kept, whatever the size of the pack."""
        with self._pack_lock:
            found = self._tapes.get(task_id)
            if found is None:
                task = self._pack.task(task_id)
                manifest = self._pack.manifest
                tape = Tape.of(task, self._pack.tools, manifest.protocol, manifest.on_exhausted)
                found = self._tapes[task_id] = task, tape
                for old in list(itertools.islice(self._tapes, max(0, len(self._tapes) - 2 * self._plan.jobs))):
                    del self._tapes[old]
            return found

    def _work(self, task: Task) -> Work | None:
        """The task's workspace; looked up in the manifest once."""
        with self._pack_lock:
            if task.task_id not in self._works:
                self._works[task.task_id] = workspace.of(self._pack, task)
            return self._works[task.task_id]

    @contextlib.contextmanager
    def _watched(self, opened: Opened) -> Iterator[None]:
        with self._lock:
            self._running.add(opened)
        try:
            if self._over.is_set():
                opened.stop(INTERRUPTED)
            yield
        finally:
            with self._lock:
                self._running.discard(opened)

    def _stop(self) -> None:
        self._over.set()
        with self._lock:
            running = tuple(self._running)
        for opened in running:
            opened.stop(INTERRUPTED)

    def _step(self, row: Row | None) -> Step:
        errors_made = self._done.exit_reasons["harness_error"]
        return Step(row, self._finished, self._to_run, self._failing, errors_made)
