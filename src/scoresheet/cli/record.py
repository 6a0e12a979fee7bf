"""`scoresheet record`: run a command with a recording proxy in front of its live services."""

import contextlib
import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scoresheet.cli.app import say, show
from scoresheet.errors import ScoresheetError, Usage, counted

if TYPE_CHECKING:
    from scoresheet.documents.tool import Tool
    from scoresheet.record.plan import TaskPlan
    from scoresheet.record.take import Settings, Take
    from scoresheet.record.upstream import Upstream


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--task", help="Id of the task.")
@click.option("--prompt", help="What the agent is asked.")
@click.option("--expected", metavar="JSON", help="The right answer: a JSON object.")
@click.option("--expect-stdout", is_flag=True, help="The right answer is the one that COMMAND gives.")
@click.option("--batch", type=click.Path(path_type=Path), help="Many tasks: JSON lines, or a JSON or YAML list.")
@click.option("--upstream", "upstreams", multiple=True, metavar="NAME=URL", help="A live service.")
@click.option("--mcp", metavar="SERVER", help="A live MCP server: its command, or its address.")
@click.option("--proxy", "--https", "https", is_flag=True, help="Also record calls to the services' own addresses.")
@click.option("--openapi", "descriptions", multiple=True, metavar="[NAME=]FILE", help="Take the tools from here.")
@click.option("--states", is_flag=True, help="Also record which answers changed with what was written before.")
@click.option("--replace", is_flag=True, help="Record a task anew.")
@click.option("--timeout-s", default=30.0, show_default=True, metavar="S", help="How long a service may stay silent.")
@click.option("--wall-clock-s", default=600.0, show_default=True, metavar="S", help="How long COMMAND may take.")
@click.option("--not-secret", multiple=True, metavar="NAME", help="A member of this name is no credential.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def command(
    pack: Path,
    command: tuple[str, ...],
    task: str | None,
    prompt: str | None,
    expected: str | None,
    expect_stdout: bool,
    batch: Path | None,
    upstreams: tuple[str, ...],
    mcp: str | None,
    https: bool,
    descriptions: tuple[str, ...],
    states: bool,
    replace: bool,
    timeout_s: float,
    wall_clock_s: float,
    not_secret: tuple[str, ...],
    as_json: bool,
) -> int:
    """Record a task of PACK: run COMMAND, and keep every call that it makes.

    The environment variable NAME holds the address that COMMAND calls, as it will hold the replay's in a run; an MCP
    server is at $SCORESHEET_MCP_URL, and behind scoresheet-mcp for clients that speak stdio. With --proxy (or --https)
    a command that can't be told another address is recorded at the real one, when its client heeds HTTP_PROXY,
    HTTPS_PROXY and SSL_CERT_FILE. Nothing is written unless COMMAND ends well; credentials never are.

    \b
    Example: scoresheet record packs/shop --task refund-17 --prompt 'May order 17 be refunded?' \\
               --expected '{"refundable": true}' --upstream SHOP=https://shop.example.com -- python3 agent.py
             scoresheet record packs/shop --batch tasks.yaml --upstream SHOP=http://127.0.0.1:8001
             scoresheet record packs/notes --task notes-1 --prompt 'How many notes?' --expect-stdout \\
               --mcp 'npx @modelcontextprotocol/server-memory' -- python3 agent.py
    """
    from importlib.resources import files

    from scoresheet.record.mcp_server import McpServer
    from scoresheet.record.plan import batch as batch_of
    from scoresheet.record.take import Settings
    from scoresheet.record.upstream import Upstream

    services = tuple(map(Upstream.parse, upstreams))
    if https and not services:
        raise Usage("no service has an address", "--https", "give --upstream NAME=https://host")
    if len({service.name for service in services}) < len(services):
        raise Usage("two services have one name", "--upstream", "give each a name of its own: --upstream NAME=URL")
    tools = tuple(tool for text in descriptions for tool in _described(text, services))
    server = None if mcp is None else McpServer.parse(mcp)
    if not services and server is None:
        raise Usage("nothing to record is named", "record", "give --upstream NAME=URL, or --mcp SERVER")
    settings = Settings(
        pack=pack,
        upstreams=services,
        tools=tools,
        replace=replace,
        timeout_s=timeout_s,
        wall_clock_s=wall_clock_s,
        not_secret=not_secret,
        mcp=server,
        https=https,
        states=states,
        mcp_bridge=Path(str(files("scoresheet.sandbox.inside") / "mcp_stdio.py")),
        quiet_command=batch is not None,
    )
    if batch is not None and (task or prompt or expected or expect_stdout):
        raise Usage("--batch names tasks, prompts and answers itself", "--batch", "leave the other options out")
    with _ended_as_by_hand():
        if batch is not None:
            return _record_all(batch_of(batch, command), settings, as_json)
        return _record_one(_plan(task, prompt, command, expected, expect_stdout), settings, as_json)


@contextlib.contextmanager
def _ended_as_by_hand() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does: the recorded command must not outlive us."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _plan(
    task: str | None, prompt: str | None, command: tuple[str, ...], expected: str | None, expect_stdout: bool
) -> "TaskPlan":
    from scoresheet.record.plan import TaskPlan, expected_of

    if not task or not prompt:
        raise Usage("a recording needs a task and a prompt", "record", "give --task and --prompt, or --batch FILE")
    if (expected is None) != expect_stdout:
        raise Usage("give either --expected or --expect-stdout", "record", "a task without an answer can't be scored")
    return TaskPlan(task, prompt, command, None if expected is None else expected_of(expected, "--expected"))


def _record_one(plan: "TaskPlan", settings: "Settings", as_json: bool) -> int:
    from scoresheet.record.take import record

    take = record(plan, settings)
    if as_json:
        click.echo(json.dumps(take.as_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(_line(take))
    _tell(take, set())
    _tell_dropped(take.dropped_headers)
    say(f"next: scoresheet freeze {settings.pack}")
    return 0


def _record_all(plans: "tuple[TaskPlan, ...]", settings: "Settings", as_json: bool) -> int:
    from scoresheet.record.take import record

    takes: list[Take] = []
    failed: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    dropped: Counter[str] = Counter()
    for number, plan in enumerate(plans, start=1):
        try:
            take = record(plan, settings)
        except ScoresheetError as error:
            failed[plan.task_id] = str(error)
            say(f"[{number}/{len(plans)}] {plan.task_id}: failed")
            show(error)
            continue
        takes.append(take)
        dropped.update(dict(take.dropped_headers))
        say(f"[{number}/{len(plans)}] {_line(take)}")
        _tell(take, told)
    _tell_dropped(tuple(sorted(dropped.items())))
    if as_json:
        facts = {"recorded": [take.as_json() for take in takes], "failed": failed}
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        calls = sum(take.calls for take in takes)
        click.echo(f"recorded {len(takes)} of {counted(len(plans), 'task')}, {counted(calls, 'call')}")
        for task_id, why in failed.items():
            click.echo(f"failed {task_id}: {why}")
    if takes:
        say(f"next: scoresheet freeze {settings.pack}")
    return 1 if failed else 0


def _described(text: str, services: "tuple[Upstream, ...]") -> "tuple[Tool, ...]":
    from scoresheet.record import openapi
    from scoresheet.record.plan import described

    by_name = {service.name: service for service in services}
    name, equals, path = text.partition("=")
    if not (equals and name in by_name):
        name, path = services[0].name, text
        if len(services) > 1:
            raise Usage("which service does the description belong to?", "--openapi", "write --openapi NAME=FILE")
    return openapi.tools(described(Path(path)), name, by_name[name].base, path)


def _line(take: "Take") -> str:
    faults = f", {take.faults} of them failed" if take.faults else ""
    return f"{take.task_id}: {counted(take.calls, 'call')}{faults}; tools: {', '.join(take.tools) or 'none'}"


def _tell(take: "Take", told: set[tuple[str, str]]) -> None:
    """What a person must know of a recording beside its line; a warning once."""
    for replacement in take.redactions:
        say(f"  redacted: {replacement}")
    if take.ignored:
        say(f"  ignored in matching from now on: {', '.join(take.ignored)}")
    for scenario, states in take.scenarios.items():
        say(f"  states of {scenario}: {' → '.join(states)}")
    for warning in take.warnings:
        if (warning.rule, warning.where) not in told:
            told.add((warning.rule, warning.where))
            say(f"  warning: {warning.what} — {warning.where} [{warning.rule}]")


def _tell_dropped(headers: tuple[tuple[str, int], ...]) -> None:
    if headers:
        say("request headers left out: " + ", ".join(f"{name} ({count})" for name, count in headers))
