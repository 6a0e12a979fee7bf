"""An agent that is a command line, in any language."""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.errors import Usage
from scoresheet.run.agents import identity, interpreter
from scoresheet.run.agents.agent import Agent, binds, inside, visible

_RUNS_SCRIPTS = re.compile(
    r"(python|pypy)[0-9.]*|node|nodejs|deno|bun|sh|bash|dash|zsh|ruby|perl|lua|php|Rscript"
).fullmatch
_SHEBANGS = 4


def command(text: str, folder: Path, mounts: Sequence[Path] = (), hidden: Collection[Path] = ()) -> Agent:
    """The agent that a command line names, its relative paths taken from `folder`.

    Bound: paths on the line that exist, the script's folder, what its interpreter needs, `mounts`. Never a path of
    `hidden` (the pack, runs): an agent that could see them could read the answers. Raises `Usage`.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Usage(f"the agent's command line can't be split: {error}", text) from error
    if not words:
        raise Usage("the agent's command line is empty", mend="--agent 'python3 agent.py'")
    seen = Seen(folder, hidden)
    words = seen.program(words)
    words = seen.paths(words)
    for mount in mounts:
        seen.given(Path(os.path.abspath(folder / mount.expanduser())))
    programs = tuple(seen.programs)
    needs = [need for program in programs for need in program.needs]
    for need in needs:
        seen.refuse_hidden(need)
    return Agent(
        AgentIdentity(
            kind="command",
            spec=identity.shown(words, seen.roots),
            sha256=identity.of(words, seen.roots, [program.named for program in programs], seen.hidden),
            interpreter=", ".join(program.label for program in programs) or None,
        ),
        tuple(_inside(word, folder) for word in words),
        binds([*needs, *seen.bound]),
        path=tuple(dict.fromkeys(inside(p.path.parent) for p in programs if not visible(p.path))),
        notes=tuple(seen.notes),
    )


class Seen:
    """What an agent gets to see, gathered word by word."""

    def __init__(self, folder: Path, hidden: Collection[Path]) -> None:
        self._folder = folder
        self.hidden = set(hidden)
        """Where answers lie: never shown."""
        self.programs: list[interpreter.Program] = []
        self.roots: list[Path] = []
        """The agent's own files: what its identity is made of."""
        self.bound: list[Path] = []
        self.notes: list[str] = []

    def program(self, words: list[str]) -> list[str]:
        """The line with its program as a path, and the interpreter of a script before it."""
        path = interpreter.find(words[0], self._folder)
        for _ in range(_SHEBANGS):
            if re.fullmatch(r"(python|pypy)[0-9.]*", path.name):
                break  # also a shim, which is a script: the interpreter itself says where it leads
            line = interpreter.shebang(path, self._folder)
            if line is None:
                break
            self.script(path)
            words = [line[0], *line[1:], str(path), *words[1:]]
            path = interpreter.find(words[0], self._folder)
        own = not visible(path) and not _RUNS_SCRIPTS(path.name)
        if own:
            self.script(path)
            return [str(path), *words[1:]]
        program = interpreter.program(path)
        self.programs.append(program)
        return [str(program.path), *words[1:]]

    def paths(self, words: list[str]) -> list[str]:
        """The line with its relative paths made absolute, each path that exists seen."""
        script_expected = bool(self.programs) and _RUNS_SCRIPTS(Path(words[0]).name) is not None
        made = [words[0]]
        for place, word in enumerate(words[1:], 1):
            previous = words[place - 1]
            if script_expected and previous in ("-c", "-e", "-m", "--eval"):
                script_expected = False
                made.append(word)
                continue
            if script_expected and not word.startswith("-"):
                script_expected = False
                path = self._existing(word)
                if path is not None and path.is_file():
                    self.script(path)
                    made.append(str(path))
                    continue
                if path is None and place == 1 and ("." in word or "/" in word):
                    self.notes.append(f"no file {word} is here: the agent has it only where a task's workspace does")
            option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
            path = self._existing(value) if "/" in value or "." in value else None
            if path is None or visible(path):
                made.append(word)
                continue
            self.given(path)
            made.append(f"{option}{equals}{path}")
        return made

    def script(self, path: Path) -> None:
        """The agent's own script, and with it the folder that it lies in."""
        folder = path.parent
        if self._known(path):
            return
        if path.is_symlink():
            self.script(path.resolve())  # beside the real file lies what it imports
        if self.in_program(path) or (folder.parent / "pyvenv.cfg").is_file():
            self.roots.append(path)  # installed with its interpreter, which is seen anyway
            return
        if interpreter.too_broad(folder):
            self.notes.append(f"only {path.name} is bound: its folder {folder} holds far more than an agent")
            self._own(path)
            return
        self.refuse_inside(path)
        self.hidden |= set(identity.answers_below(folder))
        if folder in self.hidden:
            raise Usage("the agent lies among answers", str(path), "keep it in a folder of its own")
        self.roots.append(folder)
        self.bound += _without(folder, self.hidden)

    def given(self, path: Path) -> None:
        """A path that the user named: bound as it is, or refused."""
        self.refuse_inside(path)
        self.refuse_hidden(path)
        if self._known(path):
            return
        if interpreter.too_broad(path):
            raise Usage("an agent may not see such a folder whole", str(path), "name what it needs below it")
        if not path.exists():
            raise Usage("nothing is there to mount", str(path), "name a file or a folder that is there: --mount PATH")
        self._own(path)

    def refuse_inside(self, path: Path) -> None:
        """Raises `Usage` for a path in a hidden folder."""
        for place in self.hidden:
            if any(place in (one, *one.parents) for one in (path, path.resolve())):
                raise Usage(
                    f"the agent would see {place}, where answers lie", str(path), "keep it in a folder of its own"
                )

    def refuse_hidden(self, path: Path) -> None:
        """Raises `Usage` for a folder that holds a hidden one."""
        for place in self.hidden:
            if any(one in (place, *place.parents) for one in (path, path.resolve())):
                raise Usage(f"the agent would see {place}, where answers lie", str(path), "name a folder without it")

    def in_program(self, path: Path) -> bool:
        """True for what the agent's interpreter brings along."""
        return visible(path) or any(
            path == need or need in path.parents for program in self.programs for need in program.needs
        )

    def _own(self, path: Path) -> None:
        self.roots.append(path)
        self.bound.append(path)
        real = path.resolve()
        if real != path and path.is_symlink():
            self.bound.append(real)

    def _known(self, path: Path) -> bool:
        return any(path == root or root in path.parents for root in self.roots)

    def _existing(self, word: str) -> Path | None:
        if not word or "\0" in word or "\n" in word or len(word) > 4096:
            return None
        path = Path(os.path.abspath(self._folder / word))
        try:
            return path if os.path.lexists(path) else None
        except OSError:
            return None


def _without(folder: Path, hidden: Collection[Path]) -> list[Path]:
    """The fewest paths that show `folder` but nothing of `hidden`."""
    if not any(folder in place.parents for place in hidden):
        return [folder]
    parts: list[Path] = []
    for part in sorted(folder.iterdir()):
        if part not in hidden:
            parts += _without(part, hidden)
    return parts


def _inside(word: str, folder: Path) -> str:
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return f"{option}{equals}{inside(Path(value))}" if value.startswith("/") else word
