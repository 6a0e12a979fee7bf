"""What freezing refuses in workspace tasks and their oracles. Pure."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from scoresheet.documents.task import Oracle, Task
from scoresheet.documents.test_command import command
from scoresheet.errors import Finding

SOLUTIONS = ("solution.patch", "solve.sh")
"""Files of `oracles/<task_id>/` that solve the task."""
_OF_KIND = {
    "pytest": ("test_command", "tests", "expected_ids", "timeout_s", "case_timeout_s"),
    "schema": ("output_file", "output_schema"),
}


class TaskFacts(Protocol):
    """What is asked of a task file."""

    @property
    def path(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def judged(self) -> bool: ...
    @property
    def tests(self) -> tuple[str, ...]: ...


def task_findings(path: str, task: Task) -> Iterator[Finding]:
    """What is wrong with the oracle of one task, by itself."""
    if task.workspace is not None and task.kind != "workspace":
        what = f"a {task.kind} task wishes something of its workspace"
        yield Finding("task-kind", f"{path}#/workspace", what, 'write "kind": "workspace", or remove workspace')
    oracle = task.oracle
    if oracle is None:
        return
    where = f"{path}#/oracle"
    for kind, members in _OF_KIND.items():
        for member in members:
            if oracle.kind != kind and member in oracle.model_fields_set:
                what = f"{member} says nothing to the {oracle.kind} oracle"
                yield Finding("task-oracle-member", f"{where}/{member}", what, f"remove it, or judge by {kind}")
    if (oracle.kind == "pytest" or oracle.output_file is not None) and task.kind != "workspace":
        what = f"a workspace is judged, but it is a {task.kind} task"
        yield Finding("task-kind", f"{path}#/kind", what, 'write "kind": "workspace"')
    if oracle.kind == "human" and task.kind != "workspace" and not task.expected:
        what = "a human judges, and there is no reference answer: the oracle baseline has nothing to show"
        yield Finding("task-solution", path, what, "say one good answer in expected", "warning")
    if oracle.output_file is not None and not _plain(oracle.output_file):
        yield _path(f"{where}/output_file", oracle.output_file)
    if oracle.kind == "pytest":
        yield from _test_findings(where, oracle)


def pack_findings(paths: Collection[str], tasks: Iterable[TaskFacts]) -> Iterator[Finding]:
    """Workspaces, tests and solutions that are missing, and folders that belong to no task."""
    held: dict[str, dict[str, list[str]]] = {"workspaces": {}, "oracles": {}}
    for path in paths:
        top, _, rest = path.partition("/")
        if top in held and rest:
            held[top].setdefault(rest.partition("/")[0], []).append(rest.partition("/")[2])
    known = set()
    for task in tasks:
        known.add(task.task_id)
        work, oracle = (held[top].get(task.task_id, []) for top in ("workspaces", "oracles"))
        if task.works and not work:
            what = f"there is no file in workspaces/{task.task_id}/"
            yield Finding("task-workspace", task.path, what, "put there what the agent is given")
        laid = [*work, *(path for path in oracle if path not in SOLUTIONS)]
        for place, test in enumerate(task.tests):
            inside = test.rstrip("/") + "/"
            if _plain(test) and not any(path == test or path.startswith(inside) for path in laid):
                what = f"{test!r} is neither in the workspace nor among the oracle's files"
                mend = f"put the tests into workspaces/{task.task_id}/, or hidden into oracles/{task.task_id}/"
                yield Finding("task-oracle-tests", f"{task.path}#/oracle/tests/{place}", what, mend)
        if task.judged and not any(path in SOLUTIONS for path in oracle):
            what = "there is no reference solution: nothing shows that the task can be solved"
            mend = f"add oracles/{task.task_id}/solution.patch or solve.sh"
            yield Finding("task-solution", task.path, what, mend, "warning")
    if not known or "" in known:
        return  # a task that can't be read may be the one that they belong to
    for top, folders in held.items():
        for name in sorted(folders.keys() - known):
            what = f"no task is called {name!r}"
            yield Finding("pack-no-such-task", f"{top}/{name}", what, "name the folder as the task, or remove it")


def _test_findings(where: str, oracle: Oracle) -> Iterator[Finding]:
    if oracle.test_command is None:
        yield Finding("task-oracle", where, "the pytest oracle has no test_command", 'such as "python -m pytest tests"')
    else:
        try:
            found = command(oracle.test_command)
        except ValueError as error:
            what = f"the command can't be read: {error}"
            yield Finding("task-oracle-command", f"{where}/test_command", what, "mend the quotes")
        else:
            if not found.pytest:
                what = "it does not run pytest itself, so it counts by its exit status alone"
                mend = "let it fail when no test was run"
                yield Finding("task-oracle-exit", f"{where}/test_command", what, mend, "warning")
    if not oracle.tests:
        what = "the pytest oracle names no tests"
        yield Finding("task-oracle", where, what, "name the files or folders that hold the frozen tests")
    for place, test in enumerate(oracle.tests):
        if not _plain(test):
            yield _path(f"{where}/tests/{place}", test)


def _path(where: str, path: str) -> Finding:
    return Finding("task-oracle-path", where, f"{path!r} is no path of the workspace", "write a path such as tests")


def _plain(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and str(PurePosixPath(path)) == path.rstrip("/") and not {"..", "/"} & set(parts)
