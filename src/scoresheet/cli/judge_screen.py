"""What a judge sees and types. An agent's text is hostile: none of it steers the terminal, or looks like ours."""

import json
import os
import sys
import termios
import tty
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scoresheet.cli.app import say
from scoresheet.documents.judgment import Decided
from scoresheet.run.judging import Judge
from scoresheet.run.judgments import Material, Pending

Act = Literal["pass", "fail", "skip", "undo", "again", "quit"]
KEYS: dict[str, Act] = {"y": "pass", "n": "fail", "s": "skip", "u": "undo", "v": "again", "q": "quit"}
HELP = "y it is right · n it is wrong · s skip · u undo my last decision · v show all of it again · q quit"
_BAR = "  │ "
"""Begins every line that is not ours."""
_MOST_LINES = 400
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Judged:
    """What a session came to."""

    decided: int
    pending: int


def session(judge: Judge, act: Callable[[], Act], fresh: Callable[[], None] = lambda: None) -> Judged:
    """Show what waits, one by one, and keep each decision the moment it is made, until all is judged or `quit`.

    `fresh` is called before something new is shown.
    """
    queue, skipped, decided = list(judge.queue()), 0, 0
    total = len(queue)
    shown: Pending | None = None
    while queue and skipped < len(queue):
        pending = queue[0]
        material = judge.material(pending)
        if shown != pending:
            fresh()
            say(f"── {total - len(queue) + 1} of {total} " + "─" * 40)
            say(text(pending, material))
            say(HELP)
            shown = pending
        did = act()
        match did:
            case "pass" | "fail":
                verdict: Decided = did
                if judge.decide(pending, verdict, material.sha256) is None:
                    say("another judge was faster: their decision stands")
                else:
                    say(f"judged: {verdict}")
                    decided += 1
                queue.pop(0)
                skipped = 0
            case "skip":
                queue.append(queue.pop(0))
                skipped += 1
            case "undo":
                last = judge.last()
                if last is None or judge.decide(last, "withdrawn", judge.material(last).sha256) is None:
                    say("there is no decision of yours to undo")
                else:
                    say("undone: here it is again")
                    queue.insert(0, last)
                    total, decided, skipped = max(total, len(queue)), max(0, decided - 1), 0
            case "again":
                say(text(pending, material, None))
            case "quit":
                break
    return Judged(decided, len(judge.queue()))


def text(pending: Pending, material: Material, most: int | None = _MOST_LINES) -> str:
    """Task, answer and patch, every line of them behind a bar; `most` lines of each, and how many are left."""
    answer = "none" if material.answer is None else json.dumps(material.answer, indent=2, ensure_ascii=False)
    parts = [f"task {pending.row.task_id}", *_quoted(material.prompt, most), "answer", *_quoted(answer, most)]
    if pending.row.patch_sha256 is not None:
        patch = material.patch.decode("utf-8", "backslashreplace")
        parts += [f"patch, {pending.row.patch_lines} changed lines", *_quoted(patch or "none", most)]
    if material.left_out:
        parts += ["in no patch", *_quoted("\n".join(material.left_out), most)]
    return "\n".join(parts)


def visible(line: str) -> str:
    """The line with everything that a terminal would obey, or that has no shape, written as its number."""
    return "".join(char if char.isprintable() or char == "\t" else _escaped(char) for char in line)


class Keyboard:
    """The keys of a terminal, one a call, without echo; the terminal is as it was after the `with`."""

    def __enter__(self) -> "Keyboard":
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(self, *exc: object) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def fresh(self) -> None:
        """Forget what was typed before the episode was shown: nobody had seen it."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def __call__(self) -> Act:
        """The next key that means something. A pasted row of keys means nothing, for the same reason."""
        while True:
            key = os.read(self._fd, 64).decode("utf-8", "replace").lower()
            if key in ("", "\x04"):
                return "quit"
            if key in KEYS:
                return KEYS[key]
            say(HELP)


def piped() -> Act:
    """The next line of stdin: a key, or what it stands for; the end of stdin quits."""
    while line := sys.stdin.readline():
        word = line.strip().lower()
        if word in KEYS:
            return KEYS[word]
        if word in KEYS.values():
            return next(act for act in KEYS.values() if act == word)
        if word:
            say(f"no key is called {visible(word)[:20]!r}: {HELP}")
    return "quit"


def _quoted(value: str, most: int | None) -> list[str]:
    lines = value.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    kept = lines if most is None else lines[:most]
    more = [f"  … {len(lines) - len(kept)} more lines: v shows them all"] if len(kept) < len(lines) else []
    return [*(_BAR + (visible(line) if most is None else _cut(visible(line))) for line in kept), *more]


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}… {len(line) - _LONGEST} more characters: v"


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
