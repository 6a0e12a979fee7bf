"""Grades a workspace: in a sandbox of its own, without network, on the pack's files with the agent's patch applied.

Nothing that the agent could have bent is there: frozen tests and runner configuration are laid back, and what it
changed of the grading surface is left out (see `surface`).
"""

import contextlib
import importlib.metadata
import importlib.util
import json
import platform
import sysconfig
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.task import Oracle, Task
from scoresheet.errors import Finding, ScoresheetError
from scoresheet.pack.folder import Pack
from scoresheet.run import surface, verdict, workspace
from scoresheet.run.agents import interpreter
from scoresheet.run.agents.agent import PROGRAMS, binds, inside, visible
from scoresheet.run.agents.python import own_interpreter, program_file
from scoresheet.run.patch import Change, Entry, Link
from scoresheet.run.verdict import Crash, Verdict
from scoresheet.run.workspace import Work
from scoresheet.sandbox.spec import ANSWER, HOME, WORK, Ended, Launch, Limits, Opened, Sandbox, SandboxSpec

RUNNER = f"{PROGRAMS}/run_tests.py"
REPORT_BYTES = 16 << 20
_PATH = "/usr/local/bin:/usr/bin:/bin"

Watch = Callable[[Opened], AbstractContextManager[object]]


class OracleFailed(ScoresheetError):
    """The oracle itself failed: the episode has no verdict, and that is not the agent's failure."""


class Stopped(ScoresheetError):
    """Grading was ended from outside."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The interpreter that grades, with what is installed there."""

    program: interpreter.Program
    packages: tuple[Path, ...]
    pytest: str | None
    """Its version; `None` when it is not installed."""


def runtime() -> Runtime:
    """The interpreter that runs scoresheet: what is installed beside it is there when tests are run."""
    paths = sysconfig.get_paths()
    packages = [Path(paths[name]) for name in ("purelib", "platlib")]
    found = importlib.util.find_spec("pytest")
    if found is not None and found.origin is not None:
        packages.append(Path(found.origin).parent.parent)
    version = None if found is None else importlib.metadata.version("pytest")
    return Runtime(own_interpreter(), tuple(dict.fromkeys(packages)), version)


def versions() -> dict[str, str]:
    """Component → version of what grades."""
    python = platform.python_version()
    found = importlib.util.find_spec("pytest")
    return {"test python": python} | ({} if found is None else {"pytest": importlib.metadata.version("pytest")})


def unready(pack: Pack, task: Task) -> Finding | None:
    """Why this host can't run or grade the task; `None` when it can."""
    work = workspace.of(pack, task)
    if work is not None and (finding := workspace.ready(work)) is not None:
        return finding
    if task.oracle is None or task.oracle.kind != "pytest" or task.oracle.test_command is None:
        return None
    if verdict.command(task.oracle.test_command).pytest and importlib.util.find_spec("pytest") is None:
        what = f"{task.task_id} is graded by pytest, which is not installed beside scoresheet"
        return Finding("task-oracle-runner", task.task_id, what, "pip install 'scoresheet[pytest]'")
    return None


class Grader:
    """Grades the workspaces of one run."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._runtime = runtime()
        self._controls: dict[str, Verdict | Crash] = {}
        self._lock = threading.Lock()

    def grade(
        self,
        task: Task,
        work: Work,
        kept: Sequence[Change],
        folder: Path,
        limits: Limits,
        watch: Watch = contextlib.nullcontext,
    ) -> Verdict:
        """The verdict on a patch whose harmless part is `kept`; what the tests said is kept in `folder`.

        When the tests crash or run out of time, they are run once more without the patch: where they work, the patch
        broke them, and that is the agent's failure. Raises `OracleFailed` where they don't, `Stopped`, and
        `NotIsolated`.
        """
        assert task.oracle is not None
        folder.mkdir(parents=True, exist_ok=True)
        found = self._run(task.oracle, work, kept, folder, limits, watch)
        if isinstance(found, Verdict):
            return found
        control = self._control(task.oracle, work, folder, limits, watch)
        if isinstance(control, Crash):
            raise OracleFailed(f"{found.detail}; without the patch: {control.detail}", task.task_id)
        return Verdict(False, f"{found.detail}; without the patch the tests can be run")

    def _control(self, oracle: Oracle, work: Work, folder: Path, limits: Limits, watch: Watch) -> Verdict | Crash:
        with self._lock:
            known = self._controls.get(work.task_id)
        if known is None:
            known = self._run(oracle, work, (), folder / "control", limits, watch)
            with self._lock:
                self._controls[work.task_id] = known
        return known

    def _run(
        self, oracle: Oracle, work: Work, kept: Sequence[Change], folder: Path, limits: Limits, watch: Watch
    ) -> Verdict | Crash:
        folder.mkdir(parents=True, exist_ok=True)
        start: dict[bytes, Entry | None] = dict.fromkeys((*work.files, *work.hidden))
        tree = surface.tree(start, kept, work.laid_over())
        command = verdict.command(oracle.test_command or "")
        with workspace.temporary(folder / workspace.FOLDER) as place:
            workspace.lay_graded(work, tree, place)
            spec = SandboxSpec(
                doors=(),
                limits=limits,
                binds=binds([*self._runtime.program.needs, *self._runtime.packages]),
                files=((RUNNER, program_file("run_tests.py")),),
                workspace=place,
                workspace_bytes=work.size_bytes,
            )
            launch = self._launch(oracle, command, work, tree, place)
            with self._sandbox.open(spec) as opened, watch(opened):
                ended = opened.start(launch)
        self._keep(folder, ended)
        if ended.stopped is not None:
            raise Stopped(ended.stopped, work.task_id)
        if ended.limit == "wall_clock":
            return Crash(f"the test command did not end within {limits.wall_clock_s:g} s")
        if ended.limit is not None:
            return Crash(f"the test command crossed the limit of {ended.limit}")
        if not command.pytest:
            return verdict.of_exit(ended.exit_code)
        if ended.answer_fault is not None:
            return Crash(f"the test report can't be read: {ended.answer_fault}")
        return verdict.of_pytest(oracle, ended.exit_code, ended.answer)

    def _launch(
        self,
        oracle: Oracle,
        command: verdict.Command,
        work: Work,
        tree: dict[bytes, Entry | None],
        place: Path,
    ) -> Launch:
        program = self._runtime.program
        python = inside(program.path)
        path = _PATH if visible(program.path) else f"{inside(program.path.parent)}:{_PATH}"
        environment = {
            "HOME": HOME,
            "PATH": path,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **dict(command.environment),
        }
        words: tuple[str, ...] = command.words
        if command.python:
            words = (python, *words)
        elif command.pytest:
            read = {name: (place / name.decode()).read_bytes() for name in _configurations(tree)}  # none is a link
            configured = surface.configuration(read)
            if not verdict.paths_named(words, tuple(tree)):
                words = (*words, *oracle.tests)
            words = (
                *(python, "-s", "-P", "-S", "-B", RUNNER),
                ":".join(inside(place) for place in self._runtime.packages),
                f"{oracle.case_timeout_s:g}",
                "here" if command.here else "-",
                *("-p", "no:cacheprovider", f"--rootdir={WORK}", f"--confcutdir={WORK}"),
                *("-c", "/dev/null" if configured is None else configured.decode()),
                *words,
                *("-o", "junit_family=xunit2", "-o", "junit_logging=no", f"--junitxml={ANSWER}"),
            )
        return Launch(words, tuple(environment.items()), b"")

    @staticmethod
    def _keep(folder: Path, ended: Ended) -> None:
        (folder / "stdout").write_bytes(ended.stdout)
        (folder / "stderr").write_bytes(ended.stderr)
        if ended.answer is not None:
            (folder / "report.xml").write_bytes(ended.answer)
        told = {
            "exit_code": ended.exit_code,
            "limit": ended.limit,
            "elapsed_s": round(ended.elapsed_s, 6),
            "cpu_s": round(ended.cpu_s, 6),
        }
        (folder / "ended.json").write_text(json.dumps(told) + "\n")


def limits_for(oracle: Oracle, memory_bytes: int | None, work_bytes: int, pids: int) -> Limits:
    """What bounds one grading."""
    return Limits(
        wall_clock_s=oracle.timeout_s,
        pids=pids,
        memory_bytes=memory_bytes,
        work_bytes=work_bytes,
        answer_bytes=REPORT_BYTES,
    )


def of_output(task: Task, data: bytes | None) -> Verdict:
    """The verdict on a named output file by its schema."""
    assert task.oracle is not None
    name = task.oracle.output_file
    if data is None:
        return Verdict(False, f"there is no file {name}")
    try:
        value = canonical.loads(data)
    except canonical.JsonError as error:
        return Verdict(False, f"{name} is not strict JSON: {error.what}")
    schema = task.answer_schema if task.oracle.output_schema is None else task.oracle.output_schema
    fault = next(iter(_validator(schema).iter_errors(value)), None)
    if fault is not None:
        return Verdict(False, f"{name} does not fit its schema: {str(fault.message)[:200]}")
    return Verdict(True)


def _validator(schema: JsonValue) -> Any:
    def refuse(uri: str) -> JsonValue:
        raise ValueError(f"{uri} is outside the task, and nothing is fetched")

    return jsonschema_rs.Draft202012Validator(schema, retriever=refuse)


def _configurations(tree: dict[bytes, Entry | None]) -> list[bytes]:
    names = (
        b"pytest.toml",
        b".pytest.toml",
        b"pytest.ini",
        b".pytest.ini",
        b"pyproject.toml",
        b"tox.ini",
        b"setup.cfg",
    )
    return [name for name in names if name in tree and not isinstance(tree[name], Link)]
