"""Writes docs/commands.md from the commands themselves: `.venv/bin/python docs/make_commands.py`."""

from pathlib import Path

import click

from scoresheet.cli.app import app
from scoresheet.cli.verbs import VERBS

PAGE = Path(__file__).parent / "commands.md"

HEAD = """\
# Commands

What `--help` says of each verb; made by `docs/make_commands.py`, so the two can't drift. Results go to stdout, progress
and diagnostics to stderr; [exit codes](exit-codes.md) are one table for all verbs.
"""


def page() -> str:
    """The text of docs/commands.md: one section a verb, as `--help` prints it on a terminal of 100 columns."""
    settings = dict(app.context_settings) | {"terminal_width": 100, "color": False}
    top = click.Context(app, info_name="scoresheet", **settings)
    sections = [HEAD, section("scoresheet", app.get_help(top))]
    for verb in VERBS:
        command = app.get_command(top, verb)
        assert command is not None
        context = click.Context(command, info_name=verb, parent=top, terminal_width=100, color=False)
        sections.append(section(verb, command.get_help(context)))
    return "\n".join(sections)


def section(name: str, text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join([f"## {name}", "", "```text", *lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
