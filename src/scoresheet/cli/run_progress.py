"""How a run stands, on stderr: a live line on a terminal (done, failing, time left), plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scoresheet.cli.app import say
from scoresheet.errors import counted
from scoresheet.run.local import Step

_PLAIN_EVERY_S = 5.0


@contextmanager
def run_progress(label: str, quiet: bool = False) -> Iterator[Callable[[Step], None]]:
    """A callback that shows each step of a run."""
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        with _live(label) as show:
            yield show
    else:
        yield _plain(label)


def _plain(label: str) -> Callable[[Step], None]:
    """A line at the start, at the end, and every few seconds between."""
    told = 0.0

    def show(step: Step) -> None:
        nonlocal told
        now = time.monotonic()
        if step.row is None or step.done == step.planned or now - told >= _PLAIN_EVERY_S:
            told = now
            harness = f", {step.harness_errors} lost to harness errors" if step.harness_errors else ""
            say(f"{label}: {step.done} of {counted(step.planned, 'episode')} done, {step.failing} failing{harness}")

    return show


@contextmanager
def _live(label: str) -> Iterator[Callable[[Step], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("failing {task.fields[failing]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        work = bar.add_task(label, total=None, failing=0)  # until the first step says how many

        def show(step: Step) -> None:
            bar.update(work, total=step.planned, completed=step.done, failing=step.failing)

        yield show
