"""What runs an agent's script: where the program is, what it needs to see, and what names it on any host."""

import functools
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scoresheet import digest
from scoresheet.canonical import JsonValue
from scoresheet.errors import Usage
from scoresheet.run.agents import identity
from scoresheet.run.agents.agent import visible

_PYTHON = re.compile(r"(python|pypy)[0-9.]*").fullmatch
_ASK = (
    "import sys, json, platform; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix,"
    " sys.implementation.name, platform.python_version()]))"
)
_SYSTEM = frozenset(
    {
        *(Path("/"), Path("/boot"), Path("/dev"), Path("/etc"), Path("/home"), Path("/media"), Path("/mnt")),
        *(Path("/opt"), Path("/proc"), Path("/root"), Path("/run"), Path("/srv"), Path("/sys"), Path("/tmp")),
        *(Path("/usr"), Path("/var"), Path("/var/lib"), Path("/var/tmp")),
    }
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is not the agent's own, and what must be seen for it to run."""

    path: Path
    needs: tuple[Path, ...]
    """Host paths to bind; what is visible anyway may be among them."""
    named: dict[str, JsonValue]
    """What names it without a path: name, version when it tells, sha256 of the binary, packages."""

    @property
    def label(self) -> str:
        """For people: `cpython 3.11.7 (sha256 …)`."""
        version = f" {self.named['version']}" if "version" in self.named else ""
        return f"{self.named['name']}{version} sha256:{self.named['sha256']}"


def find(name: str, folder: Path) -> Path:
    """The program that `name` is on this host; relative paths are taken from `folder`. Raises `Usage`."""
    if "/" in name:
        path = Path(os.path.normpath(folder / Path(name).expanduser()))
        if not path.is_file():
            raise Usage("no such program", str(path), "paths are taken from the current folder")
        return path
    found = shutil.which(name)
    if found is None:
        mend = "give its path, or install it (docs/ready-made lists the agents that go by a name)"
        raise Usage(f"no program {name!r} on PATH", "--agent", mend)
    return Path(os.path.abspath(found))


@functools.cache
def program(path: Path) -> Program:
    """What the program at `path` needs and is. Raises `Usage`."""
    if _PYTHON(path.name):
        return _python(path)
    real = path.resolve()
    return Program(path, (*_hops(path), *_prefix(real)), {"name": path.name, "sha256": digest.of_file(real).sha256})


def shebang(path: Path, folder: Path) -> tuple[str, ...] | None:
    """The words that a script's first line names, its program as a path; `None` when `path` is no such script."""
    try:
        with path.open("rb") as file:
            first = file.read(4096).partition(b"\n")[0]
    except OSError as error:
        raise Usage(f"can't be read: {error.strerror}", str(path)) from error
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").strip().split(None, 1)
    if not words:
        return None
    if Path(words[0]).name == "env":
        rest = shlex.split(words[1]) if len(words) > 1 else []
        if rest and rest[0] == "-S":
            rest = rest[1:]
        if not rest or rest[0].startswith("-") or "=" in rest[0]:
            return (words[0], *rest)
        return (str(find(rest[0], folder)), *rest[1:])
    return tuple(words)


def _python(path: Path) -> Program:
    """Asked of the interpreter itself: shims and virtual environments know where they lead."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _ASK], capture_output=True, timeout=30, check=True, stdin=subprocess.DEVNULL
        )
        executable, prefix, base, name, version = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Usage(f"the interpreter does not start: {error}", str(path)) from error
    real = Path(executable).resolve()
    named: dict[str, JsonValue] = {"name": name, "version": version, "sha256": digest.of_file(real).sha256}
    needs = [*_hops(Path(executable)), Path(base), Path(base).resolve()]
    if prefix != base:
        needs.append(Path(prefix))
        named["packages"] = list(identity.packages(Path(prefix)))
    return Program(Path(executable), tuple(needs), named)


def _hops(path: Path) -> tuple[Path, ...]:
    """Every file on the way of symlinks from `path` to the real one."""
    hops = [path]
    while path.is_symlink() and len(hops) < 40:
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
        hops.append(path)
    hops.append(path.resolve())
    return tuple(dict.fromkeys(hops))


def _prefix(real: Path) -> tuple[Path, ...]:
    """The tree of a program that is installed as `<prefix>/bin/<name>` with a `lib` beside it (nvm, conda)."""
    prefix = real.parent.parent
    installed = real.parent.name == "bin" and (prefix / "lib").is_dir()
    return (prefix,) if installed and not visible(real) and not too_broad(prefix) else ()


def _homes() -> set[Path]:
    """Of this account: by its environment, and by the system, which need not know it (as in many containers)."""
    found = set()
    with suppress(RuntimeError):
        found.add(Path.home())
    with suppress(KeyError):
        found.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return found


def too_broad(folder: Path) -> bool:
    """True for folders that hold far more than one agent: they are never bound whole."""
    homes = _homes()
    around = {parent for home in homes for parent in home.parents}
    return folder in homes | around | {home / ".local" for home in homes} | _SYSTEM
