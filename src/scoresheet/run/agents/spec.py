"""What `--agent` may say → an agent. One line a kind."""

from collections.abc import Collection, Sequence
from pathlib import Path

from scoresheet.run.agents import command, python, ready
from scoresheet.run.agents.agent import Agent


def agent_of(text: str, folder: Path, mounts: Sequence[Path] = (), hidden: Collection[Path] = ()) -> Agent:
    """The agent that `text` names: `py:FILE_OR_MODULE:FUNCTION`, a ready-made one, else a command line. Raises `Usage`.

    Relative paths are taken from `folder`; `mounts` are shown as well; nothing of `hidden` ever is.
    """
    if text.startswith("py:"):
        return python.python(text, folder, mounts, hidden)
    return ready.ready_made(text, folder, mounts, hidden) or command.command(text, folder, mounts, hidden)
