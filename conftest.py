"""README.md and docs/ are run: python blocks are executed, console blocks must print what they show.

A console block holds `$ command` lines, each followed by what it prints (both streams, as a terminal shows them).
A line `…` stands for any lines, a `…` inside a line for any text. A command must succeed, unless the next one is
`$ echo $?`. The blocks of one page run in one new folder that holds a copy of examples/.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

HOUSE = Path(__file__).parent

# A shell that starts the tests in the background ignores SIGINT for them, and so would every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A fresh clone has no cache of hypothesis', and a loaded machine is slow: neither is what a property is about. Examples
# are the same in every run, so that a change is judged by what it changed; `./full` looks for new ones.
settings.register_profile(
    "same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def lay_folder(namespace: dict[str, Any]) -> None:
    """A new working folder for the blocks of one page, readable by the sandbox's own uid."""
    folder = Path(tempfile.mkdtemp(prefix="scoresheet-docs-"))
    folder.chmod(0o755)
    shutil.copytree(HOUSE / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    namespace["page_folder"] = folder
    namespace["page_came_from"] = Path.cwd()
    os.chdir(folder)


def clear_folder(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["page_came_from"])
    shutil.rmtree(namespace["page_folder"])


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it must print."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif found and not found[-1][1] and found[-1][0][-1].endswith("\\"):
            found[-1][0].append(line)
        else:
            assert found, f"a console block begins with `$ command`, not {line!r}"
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(output)) for command, output in found]


def as_pattern(shown: str) -> re.Pattern[str]:
    """What a documented output matches: `…` alone on a line is any lines, elsewhere any text of one line."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*?") + r"\n"
        for line in shown.split("\n")
    ]
    return re.compile("".join(lines) if shown else "")


def run_console(example: Example) -> str | None:
    """What is wrong with a console block, or None."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    last = 0
    pairs = commands(example.parsed)
    for position, (command, shown) in enumerate(pairs):
        done = subprocess.run(
            ["bash", "-c", f"(exit {last})\n{command}"],
            cwd=example.namespace["page_folder"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        last = done.returncode
        printed = done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"
        if not as_pattern(shown).fullmatch(printed):
            return f"$ {command}\nthe page shows:\n{shown}\nit printed:\n{printed}"
        told = position + 1 < len(pairs) and pairs[position + 1][0] == "echo $?"
        if last != 0 and not told:
            return (
                f"$ {command}\nended with {last}, and the page does not say so by `$ echo $?`; it printed:\n{printed}"
            )
    return None


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser(language="console", evaluator=run_console),
        SkipParser(),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=lay_folder,
    teardown=clear_folder,
).pytest()
