"""A progress bar on stderr: only on a terminal, and only for what takes more than a second."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_S = 1.0


@contextmanager
def bytes_bar(label: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A callback that takes the bytes done and the bytes in all."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn(label),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    work = bar.add_task(label)
    started = time.monotonic()
    drawn = 0.0

    def show(done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - started < _PATIENCE_S or now - drawn < 0.1:
            return
        drawn = now
        bar.start()
        bar.update(work, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()
