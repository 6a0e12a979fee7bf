"""`scoresheet model-stub`: a scripted model server, for tests of agents without a key."""

import json
import signal
import threading
from typing import Any

import click

from scoresheet.cli.app import say


@click.command()
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 [a free one].")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Decides what `choose` chooses.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each request as one line of JSON; all else on stderr.")
def command(script: str, port: int, seed: int, as_json: bool) -> None:
    """Answer model calls from SCRIPT (YAML or JSON, docs/model) on this machine, until Ctrl-C.

    Speaks OpenAI's chat completions and responses and Anthropic's messages, streaming and not, with faults where the
    script has them. The environment that leads an agent here is printed first. Nothing is sent anywhere.

    \b
    Example: scoresheet model-stub refund.yaml --port 8099
    """
    from scoresheet import yaml12
    from scoresheet.errors import ScoresheetError, Usage
    from scoresheet.gate import reading
    from scoresheet.model.script import Script
    from scoresheet.model.stub import ModelStub

    content = reading.content(script)
    try:
        scripted = Script.of(yaml12.load(content).value)
    except ScoresheetError as error:
        raise error.with_place(script) from None
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        stub = ModelStub(scripted, seed, port, _print if as_json else _tell)
    except OSError as error:
        raise Usage(f"can't listen on port {port}: {error}", "--port", "give another --port, or none") from error
    with stub:
        out = say if as_json else click.echo
        out(f"export OPENAI_BASE_URL={stub.address}/v1")
        out("export OPENAI_API_KEY=stub")
        out(f"export ANTHROPIC_BASE_URL={stub.address}")
        out("export ANTHROPIC_API_KEY=stub")
        out(f"# {len(scripted.turns)} turns of {script}; Ctrl-C ends it")
        over.wait()


def _print(told: dict[str, Any]) -> None:
    click.echo(json.dumps(told))


def _tell(told: dict[str, Any]) -> None:
    turn = "" if told["turn"] is None else f" turn {told['turn']}"
    click.echo(f"{told['number']:4} {told['path']}{turn} -> {told['answer']}")
