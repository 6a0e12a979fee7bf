"""An agent that is a Python function: `py:FILE_OR_MODULE:FUNCTION`, called as `function(task, call)`.

It runs inside the sandbox, in scoresheet's own interpreter and environment, under a small host that is an ordinary
client of the replay (`sandbox/inside/agent_host.py`).
"""

import importlib.util
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.errors import Usage
from scoresheet.run.agents import command, defined, identity, interpreter
from scoresheet.run.agents.agent import PROGRAMS, Agent, Files, binds, inside, visible
from scoresheet.sandbox import inside as programs

HOST = f"{PROGRAMS}/agent_host.py"


def python(spec: str, folder: Path, mounts: Sequence[Path] = (), hidden: Collection[Path] = ()) -> Agent:
    """The agent that `py:FILE_OR_MODULE:FUNCTION` names. Raises `Usage`."""
    target, colon, function = spec.removeprefix("py:").rpartition(":")
    if not colon or not target or not all(part.isidentifier() for part in function.split(".")):
        raise Usage(f"{spec!r} names no function", "--agent", "write py:agent.py:solve or py:package.module:solve")
    seen = command.Seen(folder, hidden)
    program = own_interpreter()
    seen.programs.append(program)
    if target.endswith(".py") or "/" in target:
        path = Path(os.path.abspath(folder / Path(target).expanduser()))
        if not path.is_file():
            raise Usage("no such file", str(path), "py:FILE:FUNCTION takes FILE from the current folder")
        if path.suffix != ".py":
            raise Usage("not the name of a Python file: it ends in .py", str(path), "write py:agent.py:solve")
        _refuse_lacking(path, function)
        seen.script(path)
        place, module = inside(path.parent), inside(path)
        words = [str(path), function]
    else:
        place, module = _module(target, folder, seen), target
        source = _source(target, folder)
        if source is not None:
            _refuse_lacking(source, function)
        words = [target, function]
    for mount in mounts:
        seen.given(Path(os.path.abspath(folder / mount.expanduser())))
    for need in program.needs:
        seen.refuse_hidden(need)
    host = program_file("agent_host.py")
    return Agent(
        AgentIdentity(
            kind="python",
            spec="py:" + ":".join(identity.shown([word], seen.roots) for word in words),
            sha256=identity.of(words, seen.roots, [program.named], seen.hidden),
            interpreter=program.label,
        ),
        (inside(program.path), "-I", "-B", HOST, place, module, function),
        binds([*program.needs, *seen.bound]),
        files=((HOST, host),),
        path=() if visible(program.path) else (inside(program.path.parent),),
        notes=tuple(seen.notes),
    )


def builtin(kind: str, name: str) -> Agent:
    """One of our own programs (`sandbox/inside/<name>`) as an agent that sees nothing else."""
    program = own_interpreter()
    place = f"{PROGRAMS}/{name}"
    content = program_file(name)
    named = {key: value for key, value in program.named.items() if key != "packages"}
    return Agent(
        AgentIdentity.from_value(
            {"kind": kind, "spec": kind, "sha256": identity.of_bytes(content, named), "interpreter": program.label},
            kind,
        ),
        (inside(program.path), "-I", "-S", "-B", place),
        binds(program.needs),
        files=((place, content),),
    )


def own_interpreter() -> interpreter.Program:
    """The interpreter that runs scoresheet, with its environment."""
    return interpreter.program(Path(sys.executable))


def program_file(name: str) -> bytes:
    """The source of one of the programs that run inside."""
    return (Path(next(iter(programs.__path__))) / name).read_bytes()


def _module(name: str, folder: Path, seen: command.Seen) -> str:
    """The folder that goes on the module path for `name`, `-` when it is installed; what it needs is seen."""
    top = name.partition(".")[0]
    for candidate in (folder / top, folder / f"{top}.py"):
        if candidate.exists():
            seen.given(candidate)
            return inside(folder)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    origin = next(iter(spec.submodule_search_locations or []), spec.origin) if spec else None
    if origin is None or not os.path.exists(origin):
        mend = "py:FILE:FUNCTION or py:MODULE:FUNCTION: both are looked for in the current folder"
        raise Usage(f"no module {top!r} here or among what is installed", str(folder), mend)
    path = Path(origin)
    if seen.in_program(path):
        return "-"
    seen.given(path)
    return inside(path.parent)


def _source(name: str, folder: Path) -> Path | None:
    """The file that the module `name` is made of, as far as that is known without importing it.

    Raises `Usage` when its package has no such module.
    """
    top, *rest = name.split(".")
    if top in sys.stdlib_module_names:
        return None
    if (folder / top).is_dir() or (folder / f"{top}.py").is_file():
        place = folder
    else:
        spec = importlib.util.find_spec(top)
        origin = Path(spec.origin) if spec is not None and spec.origin is not None else None
        if origin is None or origin.suffix != ".py":
            return None
        place = origin.parent.parent if origin.name == "__init__.py" else origin.parent
    for number, part in enumerate((top, *rest)):
        package, file = place / part / "__init__.py", place / f"{part}.py"
        last = number == len(rest)
        if last and (package.is_file() or file.is_file()):
            return package if package.is_file() else file
        if package.is_file():
            text = package.read_bytes()
            following = rest[number]
            there = any(each.name.partition(".")[0] == following for each in (place / part).iterdir())
            if not there and b"__path__" not in text and b"modules" not in text:
                raise Usage(f"no module {following!r} in this package", str(place / part), "name one of its files")
            place /= part
        elif file.is_file():
            what = f"{'.'.join((top, *rest)[: number + 1])} is a module, not a package that holds {rest[number]!r}"
            raise Usage(what, str(file), f"write py:{'.'.join((top, *rest)[: number + 1])}:FUNCTION")
        else:
            return None
    return None


def _refuse_lacking(path: Path, function: str) -> None:
    """Raises `Usage` when the file at `path` can't have the function, so that no episode is spent on it."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise Usage(f"can't be read: {error.strerror}", str(path), "--agent py:FILE:FUNCTION") from error
    found = defined.lack(source, function.partition(".")[0])
    if found is not None:
        raise Usage(found.what, str(path) if found.line is None else f"{path}:{found.line}", found.mend)


__all__ = ["HOST", "Files", "builtin", "own_interpreter", "program_file", "python"]
