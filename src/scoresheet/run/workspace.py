"""The files of one workspace task: laid out fresh for every attempt, each verified while it is copied.

Nothing is ever linked to the pack, and nothing is written where an agent has written.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from scoresheet.documents.manifest import FrozenFile
from scoresheet.documents.task import Task
from scoresheet.errors import Finding, Refused, ScoresheetError, Usage
from scoresheet.pack import tree
from scoresheet.pack.folder import Pack
from scoresheet.pack.workspaces import SOLUTIONS
from scoresheet.run.patch import Entry, File, Link
from scoresheet.run.surface import Frozen

FOLDER = "workspace"
"""Where it lies, in the folder of its episode, as long as the episode runs."""
GIT = b".git"
_FICLONE = 0x4004_9409
_CHUNK = 1 << 20
_DATE = "2000-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Work:
    """What the pack holds of one task's workspace and oracle."""

    pack: Pack
    task_id: str
    files: Mapping[bytes, FrozenFile]
    """Path in the workspace → facts: all that the agent may see."""
    hidden: Mapping[bytes, FrozenFile]
    """Files of the workspace that the task's card does not name: the agent does not see them, grading does."""
    over: Mapping[bytes, FrozenFile]
    """Files of the oracle, laid over the workspace to grade it."""
    tests: tuple[bytes, ...]
    writable: bool = True
    git: bool = False
    solution: str | None = None
    """`solution.patch` or `solve.sh`, when the oracle has one."""
    size_bytes: int = field(default=0)

    @property
    def frozen(self) -> Frozen:
        """What grading needs to know of the paths."""
        return Frozen(tuple(self.files), self.tests, (*self.over, *self.hidden))

    def content(self, path: bytes) -> bytes:
        """The bytes of a file of the workspace, verified."""
        return self.pack.read(f"workspaces/{self.task_id}/{path.decode()}")

    def laid_over(self) -> dict[bytes, File]:
        """Path → file of all that the oracle lays over the workspace, verified."""
        prefix = f"oracles/{self.task_id}/"
        return {path: File(self.pack.read(prefix + path.decode()), facts.exec) for path, facts in self.over.items()}

    def solution_bytes(self) -> bytes | None:
        """The reference solution, verified; `None` when there is none."""
        if self.solution is None:
            return None
        return self.pack.read(f"oracles/{self.task_id}/{self.solution}")


def of(pack: Pack, task: Task) -> Work | None:
    """The workspace of a task; `None` when it has none."""
    prefix = f"workspaces/{task.task_id}/"
    found = {path[len(prefix) :].encode(): facts for path, facts in pack.files_under(prefix).items()}
    if not found and task.kind != "workspace":
        return None
    shown, hidden = _divided(found, task)
    prefix = f"oracles/{task.task_id}/"
    oracle = {path[len(prefix) :]: facts for path, facts in pack.files_under(prefix).items()}
    tests = () if task.oracle is None else tuple(_clean(path) for path in task.oracle.tests)
    return Work(
        pack=pack,
        task_id=task.task_id,
        files=shown,
        hidden=hidden,
        over={path.encode(): facts for path, facts in oracle.items() if path not in SOLUTIONS},
        tests=tests,
        writable=_scope(task) != "read_only",
        git=task.workspace is not None and task.workspace.git,
        solution=next((name for name in SOLUTIONS if name in oracle), None),
        size_bytes=sum(facts.size for facts in shown.values()),
    )


def ready(work: Work) -> Finding | None:
    """Why this host can't make the workspace; `None` when it can."""
    if work.git and shutil.which("git") is None:
        what = f"{work.task_id} wants a git repository, and there is no git here"
        return Finding("task-workspace-git", work.task_id, what, "install git")
    return None


def _scope(task: Task) -> str:
    if isinstance(task.card, dict) and isinstance(scope := task.card.get("mutation_scope"), str):
        return scope
    return "workspace" if task.kind == "workspace" else "read_only"


def _divided(
    files: Mapping[bytes, FrozenFile], task: Task
) -> tuple[Mapping[bytes, FrozenFile], Mapping[bytes, FrozenFile]]:
    """(files that the agent sees, files that it does not): all, unless the card names `inputs` or `reads`."""
    named: list[bytes] = []
    if isinstance(task.card, dict):
        for member in ("inputs", "reads"):
            value = task.card.get(member)
            named += [_clean(path) for path in value if isinstance(path, str)] if isinstance(value, list) else []
    if not named:
        return files, {}
    shown = {
        path: facts
        for path, facts in files.items()
        if any(path == place or path.startswith(place + b"/") for place in named)
    }
    return shown, {path: facts for path, facts in files.items() if path not in shown}


def _clean(path: str) -> bytes:
    return path.removeprefix("/work/").removeprefix("./").rstrip("/").encode()


# Laying out.


def lay(work: Work, target: Path) -> None:
    """The workspace at `target`, which must not exist. Raises `Refused` for a file that is not what was frozen."""
    target.mkdir(mode=0o755)
    target.chmod(0o755)
    with tree.opened_root(work.pack.root) as root_fd:
        _fill(work, dict.fromkeys(work.files), root_fd, target)
    if work.git:
        _repository(target)


def lay_graded(work: Work, entries: Mapping[bytes, Entry | None], target: Path) -> None:
    """A tree to grade at `target`, which must not exist; `None` is a file of the workspace as it was frozen."""
    target.mkdir(mode=0o755)
    target.chmod(0o755)
    with tree.opened_root(work.pack.root) as root_fd:
        _fill(work, entries, root_fd, target)


def _fill(work: Work, entries: Mapping[bytes, Entry | None], root_fd: int, target: Path) -> None:
    prefix = f"workspaces/{work.task_id}/"
    made: set[bytes] = set()
    links: list[tuple[bytes, bytes]] = []
    copies: list[tuple[str, FrozenFile, bytes]] = []
    top = os.fsencode(target)
    for path in sorted(entries):
        entry = entries[path]
        _folders(top, path.rpartition(b"/")[0], made)
        place = os.path.join(top, path)
        match entry:
            case None:
                facts = work.files[path] if path in work.files else work.hidden[path]
                copies.append((prefix + path.decode(), facts, place))
            case File(content, executable):
                with _created(place, executable) as file:
                    _write(file.fileno(), content)
            case Link(link):
                links.append((place, link))
    with ThreadPoolExecutor(tree.workers()) as pool:  # hashing and copying leave the interpreter to the others
        for _ in pool.map(lambda copy: _copy(root_fd, *copy), copies):
            pass
    for place, link in links:  # last: nothing is ever written through one
        os.symlink(link, place)


def _folders(top: bytes, path: bytes, made: set[bytes]) -> None:
    """The folder `path` below `top`, and those above it; open to all, whatever the umask."""
    wanted = [] if path in made else path.split(b"/")
    for depth in range(1, len(wanted) + 1):
        folder = b"/".join(wanted[:depth])
        if folder and folder not in made:
            os.mkdir(os.path.join(top, folder))
            os.chmod(os.path.join(top, folder), 0o755)
            made.add(folder)


def _created(place: bytes, executable: bool):  # type: ignore[no-untyped-def]  # the builtin's own type
    mode = 0o755 if executable else 0o644
    fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    os.fchmod(fd, mode)
    return open(fd, "r+b", buffering=0)


def _copy(root_fd: int, path: str, facts: FrozenFile, place: bytes) -> None:
    """One frozen file: shared with the pack until it is written to where the file system can, else copied."""
    try:
        source = tree.opened(root_fd, path)
    except OSError as error:
        raise _differs(path, f"it can't be read: {error.strerror}") from error
    try:
        with _created(place, facts.exec) as target:
            if facts.size <= _CHUNK:
                data = os.read(source, facts.size + 1)
                _write(target.fileno(), data)
                _compare(path, facts, len(data), hashlib.sha256(data).hexdigest())
                return
            if not _cloned(source, target.fileno()):
                _copied(source, target.fileno(), facts.size)
            hashed = hashlib.sha256()  # of the copy: what the agent gets is what is compared
            size = 0
            os.lseek(target.fileno(), 0, os.SEEK_SET)
            buffer = memoryview(bytearray(_CHUNK))
            while (count := os.readv(target.fileno(), [buffer])) and size <= facts.size:
                size += count
                hashed.update(buffer[:count])
    finally:
        os.close(source)
    _compare(path, facts, size, hashed.hexdigest())


def _compare(path: str, facts: FrozenFile, size: int, sha256: str) -> None:
    if size != facts.size or sha256 != facts.sha256:
        raise _differs(path, "its bytes are not those that were frozen")


def _cloned(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        return False
    return True


def _copied(source: int, target: int, size: int) -> None:
    """At most one byte more than `size`: that there is more is all that must be seen."""
    left = size + 1
    try:
        while left and (count := os.copy_file_range(source, target, left)):
            left -= count
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF):
            raise
        while left and (data := os.read(source, min(_CHUNK, left))):
            left -= len(data)
            _write(target, data)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _differs(path: str, what: str) -> Refused:
    return Refused(what, [Finding("pack-differs", path, what, "restore it, or freeze again")], path)


def _repository(target: Path) -> None:
    """A repository with one commit of all files: the same files always give the same commit."""
    person = {"NAME": "scoresheet", "EMAIL": "scoresheet@localhost", "DATE": _DATE}
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in person.items()},
    }
    settings = (
        "-c",
        "core.fsync=none",
        "-c",
        "gc.auto=0",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.autocrlf=false",
    )
    for words in (
        ("init", "-q", "--template=", "-b", "main"),
        ("add", "-A", "-f"),
        ("commit", "-q", "--allow-empty", "--no-verify", "-m", "The task's state"),
    ):
        done = subprocess.run(
            ["git", *settings, *words], cwd=target, env=environment, capture_output=True, check=False, timeout=300
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-200:]
            raise ScoresheetError(f"git {words[0]} failed: {said}", str(target))


def remove(place: Path) -> None:
    """Nothing is there any more, whatever an agent left: folders without permissions, any depth, any number."""
    if not os.path.lexists(place):
        return
    environment = {"PATH": "/usr/bin:/bin"}
    for words in (("rm", "-rf"), ("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        subprocess.run([*words, "--", str(place)], env=environment, capture_output=True, check=False)
        if not os.path.lexists(place):
            return
    raise Usage("a workspace can't be removed", str(place))


@contextlib.contextmanager
def temporary(place: Path):  # type: ignore[no-untyped-def]  # a generator of nothing
    """A place for a tree that is removed at the end, whatever happens."""
    remove(place)
    try:
        yield place
    finally:
        remove(place)
