"""`scoresheet serve`: replay one task outside a run, for agent development."""

import shlex
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoresheet.cli.app import say
from scoresheet.errors import counted

if TYPE_CHECKING:
    from scoresheet.documents.call_record import CallRecord
    from scoresheet.documents.task import Task
    from scoresheet.pack.folder import Pack
    from scoresheet.record.upstream import Upstream
    from scoresheet.replay.http import Public, ReplayServer
    from scoresheet.run.acceptance import Acceptance


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.option("--task", "task_id", required=True, metavar="ID", help="The task to replay.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="First port on 127.0.0.1 [any free ones].")
@click.option("--https", is_flag=True, help="Also answer the recorded hosts under their https:// names, by a proxy.")
@click.option(
    "--accept-new",
    is_flag=True,
    help="Ask the live services for what was not recorded, and add it to an unfrozen PACK.",
)
@click.option("--upstream", "live", multiple=True, metavar="NAME=URL", help="With --accept-new: a live service.")
@click.option("--not-secret", multiple=True, metavar="NAME", help="With --accept-new: this member is no credential.")
@click.option(
    "--timeout-s",
    default=30.0,
    show_default=True,
    metavar="S",
    help="With --accept-new: how long a service is waited for.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each call as one line of JSON; all else on stderr.")
def command(
    pack: str,
    task_id: str,
    port: int | None,
    https: bool,
    accept_new: bool,
    live: tuple[str, ...],
    not_secret: tuple[str, ...],
    timeout_s: float,
    as_json: bool,
) -> None:
    """Replay a task of PACK on this machine, for an agent that you are writing, until Ctrl-C.

    The environment that an agent would find is printed first, to be exported; then every call as it happens, a call
    that was not recorded with its nearest recording and the difference. Nothing is isolated and nothing is scored.
    One `serve` is one episode: recorded sequences go on where they are; start again for a fresh one.

    With --accept-new a call that the task lacks is asked of its live service, stripped of credentials as `record` does,
    added to the task, and answered. A frozen pack is never added to.

    \b
    Example: scoresheet serve examples/packs/billing-v3 --task billing.refund.v1
             scoresheet serve packs/shop --task refund-17 --accept-new --upstream SHOP=https://shop.example.com
    """
    import queue
    import tempfile

    from scoresheet.pack import draft
    from scoresheet.pack.folder import Pack
    from scoresheet.replay.http import CALL_DOOR, MCP_DOOR, PROXY_DOOR, ReplayServer
    from scoresheet.replay.journal import CallJournal
    from scoresheet.replay.session import Session, Tape
    from scoresheet.run.prepare import upstreams_of

    services = _services(accept_new, live)
    opened = _with_hosts(draft.opened(pack), services) if accept_new else Pack.open(pack)
    task = opened.task(task_id)
    tape = Tape.of(task, opened.tools, opened.manifest.protocol, opened.manifest.on_exhausted)
    upstreams = {f"http-{number}": name for number, name in enumerate(upstreams_of(opened))}
    heard: queue.SimpleQueue[CallRecord | None] = queue.SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started us with SIGINT ignored
        signal.signal(number, lambda *_: heard.put(None))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scoresheet-serve-")))
        sockets = {
            name: stack.enter_context(_listen(port and port + number))
            for number, name in enumerate((*upstreams, CALL_DOOR, MCP_DOOR, *((PROXY_DOOR,) if https else ())))
        }
        server = stack.enter_context(ReplayServer(http2=not accept_new))
        acceptance = None
        if accept_new:
            acceptance = _acceptance(opened, task_id, services, timeout_s, not_secret)
            stack.callback(acceptance.end)
        session = Session(tape, task.limits.max_tool_calls)
        journal = CallJournal(folder / "calls.jsonl")
        public = _public(opened, server) if https else None
        view = stack.enter_context(
            server.episode(sockets, upstreams, session, journal, on_call=heard.put, public=public, elsewhere=acceptance)
        )
        tell = say if as_json else _out
        environment = _environment(opened, task, sockets, upstreams, folder)
        if public is not None:
            environment |= _trust(public, sockets[PROXY_DOOR], folder)
        for name, value in environment.items():
            tell(f"export {name}={shlex.quote(value)}")
        tell(f"# replaying {task_id}, {counted(len(task.calls), 'recorded call')}; Ctrl-C ends it")
        for service in services:
            tell(f"# what is missing is asked of {service.name} ({service.authority}) and added to the task")
        tally: dict[str, int] = {}
        while (record := heard.get()) is not None:
            tally[record.outcome] = tally.get(record.outcome, 0) + 1
            _out(record.model_dump_json() if as_json else "\n".join(_lines(record)))
        answer = view.answer
    tell(_summary(tally))
    if answer is not None:
        tell(f"answer: {answer.decode('utf-8', 'replace')}")


def _services(accept_new: bool, live: tuple[str, ...]) -> "tuple[Upstream, ...]":
    from scoresheet.errors import Usage
    from scoresheet.record.upstream import Upstream

    if not accept_new and live:
        raise Usage("a replay asks no live service", "--upstream", "add --accept-new, or leave it out")
    if accept_new and not live:
        raise Usage("no live service is named", "--accept-new", "give --upstream NAME=URL, as for record")
    services = tuple(map(Upstream.parse, live))
    if len({service.name for service in services}) < len(services):
        raise Usage("two services have one name", "--upstream", "give each a name of its own: --upstream NAME=URL")
    return services


def _with_hosts(pack: "Pack", services: "tuple[Upstream, ...]") -> "Pack":
    """The pack, its manifest naming also the services that it has not recorded yet."""
    hosts = {**{service.name: service.place for service in services}, **pack.manifest.upstreams}
    return type(pack)(pack.root, pack.manifest.model_copy(update={"upstreams": hosts}), pack.manifest_sha256)


def _acceptance(
    pack: "Pack", task_id: str, services: "tuple[Upstream, ...]", timeout_s: float, not_secret: tuple[str, ...]
) -> "Acceptance":
    from scoresheet.run.acceptance import Acceptance

    path = next(path for path in pack.manifest.tasks if pack.task_at(path).task_id == task_id)
    return Acceptance(pack.root, path, services, say, timeout_s, not_secret)


def _listen(port: int | None) -> socket.socket:
    from scoresheet.errors import Usage

    try:
        return socket.create_server(("127.0.0.1", port or 0))
    except (OSError, OverflowError) as error:
        raise Usage(f"can't listen on port {port}: {error}", "--port", "give another --port, or none") from error


def _environment(
    pack: "Pack", task: "Task", sockets: dict[str, socket.socket], upstreams: dict[str, str], folder: Path
) -> dict[str, str]:
    from scoresheet.documents.row import episode_seed
    from scoresheet.replay.http import CALL_DOOR, MCP_DOOR
    from scoresheet.replay.mcp import PATH

    urls = {name: "http://{}:{}".format(*listening.getsockname()) for name, listening in sockets.items()}
    environment = {upstream: urls[door] for door, upstream in upstreams.items() if upstream}
    if len(upstreams) == 1:
        environment["SCORESHEET_TOOLS_URL"] = urls[next(iter(upstreams))]
    environment["SCORESHEET_CALL_URL"] = urls[CALL_DOOR]
    environment["SCORESHEET_MCP_URL"] = urls[MCP_DOOR] + PATH
    environment["SCORESHEET_TASK"] = str(_task_file(pack, task, folder))
    environment["SCORESHEET_SEED"] = str(episode_seed(pack.manifest.seed, task.task_id, 0))
    return environment


def _public(pack: "Pack", server: "ReplayServer") -> "Public":
    from scoresheet.errors import Usage
    from scoresheet.replay.dns import NameLog
    from scoresheet.replay.hosts import Hosts
    from scoresheet.replay.http import Public

    hosts = Hosts.of(pack.manifest.upstreams)
    if not hosts.names:
        raise Usage("the pack was recorded from no public host", "--https", "use the addresses that are printed")
    return Public(hosts, server.authority, NameLog())


def _trust(public: "Public", proxy: socket.socket, folder: Path) -> dict[str, str]:
    from scoresheet.run.public import variables

    certificate, java = folder / "ca.pem", folder / "ca.p12"
    certificate.write_bytes(public.authority.pem)
    java.write_bytes(public.authority.java_truststore)
    return variables("http://{}:{}".format(*proxy.getsockname()), str(certificate), str(java))


def _task_file(pack: "Pack", task: "Task", folder: Path) -> Path:
    from scoresheet.documents.run_plan import RunLimits
    from scoresheet.run.episode import limits_of, task_view

    limits = limits_of(RunLimits(wall_clock_s=float(pack.manifest.timeout_s)), task)
    path = folder / "task.json"
    path.write_bytes(task_view(task, pack.tools, limits))
    return path


def _lines(record: "CallRecord") -> list[str]:
    what = {"hit": "repeated" if record.repeat else "recorded", "miss": f"MISS {record.kind}"}.get(
        record.outcome, record.outcome.upper()
    )
    status = record.status or "fault"
    lines = [f"{record.at_s:9.3f}s  {record.method} {record.path} -> {status} {what}"]
    if record.tool:
        lines[0] += f" [{record.tool}]"
    details = [f"schema: {error}" for error in record.schema_errors]
    if record.state is not None and record.state.sets is not None:
        details.append(f"state: {record.state.scenario} is now {record.state.sets}")
    if record.states:
        details.append("state: " + ", ".join(f"{scenario} is {state}" for scenario, state in record.states.items()))
    if record.outcome == "malformed":
        details.append(f"not a request: {record.body}")
    if record.outcome == "miss":
        if record.nearest is None:
            details.append(
                "nearest: unknown, for no recording of this task holds its request (v1 keeps fingerprints only)"
            )
        else:
            details.append(f"nearest: {record.nearest.method} {record.nearest.path}")
            details += record.nearest.difference
    return lines + [f"{'':12}{detail}" for detail in details]


def _summary(tally: dict[str, int]) -> str:
    calls = sum(tally.get(outcome, 0) for outcome in ("hit", "miss", "capped", "accepted"))
    outcomes = ("accepted", "capped", "malformed", "answer")
    more = [f"{outcome}: {tally[outcome]}" for outcome in outcomes if tally.get(outcome)]
    return ", ".join([f"calls: {calls}", f"misses: {tally.get('miss', 0)}", *more])


def _out(text: Any) -> None:
    click.echo(text)
    sys.stdout.flush()
