"""`scoresheet view`: the pages of many runs, for one person at this machine."""

import signal
from functools import partial
from pathlib import Path

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 [any free one].")
@click.option(
    "--pack",
    "packs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PACK",
    help="Show answers beside what this pack expects, when its receipts allow it. May be given again.",
)
@click.option("--draft", is_flag=True, help="Show the figures of runs that are not admissible, under a DRAFT banner.")
def command(runs: tuple[Path, ...], port: int, packs: tuple[Path, ...], draft: bool) -> None:
    """Serve the pages of many runs: list, filter, compare, drill down.

    RUN is a run directory, a directory that holds some, or a bundle, which is verified first. On this machine only,
    under an address that holds a secret; nothing can be written through it, and runs are read again when they change.
    Runs that are not admissible are listed with their reasons and without figures. Prints the address; Ctrl-C ends it.

    \b
    Example: scoresheet view runs
    """
    import queue
    import threading
    from tempfile import TemporaryDirectory

    from scoresheet.cli import page
    from scoresheet.gate.output import plain
    from scoresheet.pack.folder import Pack

    render = page.renderer()
    from scoresheet.publish.view import runs as read
    from scoresheet.publish.view import site
    from scoresheet.publish.view.server import Server

    opened = [Pack.open(pack) for pack in packs]
    with TemporaryDirectory(prefix="scoresheet-") as scratch:
        found = read.find(runs, Path(scratch))
        served = read.Runs(found, opened, draft=draft)
        for note in found.passed:
            say(f"note: {plain(note)}")
        ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started us with SIGINT ignored
            signal.signal(number, lambda *_: ended.put(None))
        with Server(partial(site.answer, served), render.policy(forms=True), port) as server:
            click.echo(server.url)
            say(f"{len(found.paths)} {'run' if len(found.paths) == 1 else 'runs'}; Ctrl-C ends it")
            threading.Thread(target=served.read_all, daemon=True).start()
            ended.get()
