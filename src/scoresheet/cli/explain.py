"""`scoresheet explain`: how a request is compared, and what a pack knows of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from scoresheet.documents.tool import Request
    from scoresheet.pack.folder import Pack


@click.command()
@click.argument("pack", type=click.Path(exists=True, file_okay=False))
@click.argument("request")
@click.option("--task", help="Look in this task only.")
@click.option("--upstream", metavar="NAME", help="The upstream, when the pack has several.")
@click.option("--header", "-H", "headers", multiple=True, metavar="NAME:VALUE", help="A header of the request.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
def command(
    pack: str, request: str, task: str | None, upstream: str | None, headers: tuple[str, ...], as_json: bool
) -> None:
    """Show the canonical form and the fingerprint of REQUEST, and its recordings in PACK, or the nearest one.

    REQUEST is 'METHOD TARGET [BODY]', 'CALL TOOL ARGUMENTS', or @FILE with such words or a whole HTTP request.

    \b
    Example: scoresheet explain billing-v3 'POST /v1/refunds {"payment": "1842"}'
    """
    from scoresheet.pack.folder import Pack

    opened = Pack.open(pack)
    facts = _explain(opened, _request(opened, request, upstream, headers), task)
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        _print(facts)


def _explain(pack: "Pack", request: "Request", task_id: str | None) -> dict[str, Any]:
    from scoresheet.canonical import JsonError, loads, v1_text
    from scoresheet.pack import fingerprint
    from scoresheet.pack.toolbox import Toolbox
    from scoresheet.replay.session import Absent, Tape

    toolbox = Toolbox(pack.tools.values())
    tool, vary, ignore = toolbox.rules_for(request)
    fingerprints: tuple[str, ...]
    removed: tuple[str, ...] = ()
    if pack.manifest.protocol == "tool-replay-v1":
        texts = {"method": request.method, "path": request.target}
        try:
            text = v1_text(texts | {"body": loads(request.body) if request.body else None}).decode()
        except JsonError as error:
            text = f"none: the body is not strict JSON ({error.what})"
        fingerprints = fingerprint.v1_of(request)
    else:
        found = fingerprint.canonical(request, vary, ignore)
        text, fingerprints, removed = found.text.decode(), (found.fingerprint,), found.removed
    recorded: list[dict[str, Any]] = []
    nearest: list[dict[str, Any]] = []
    for task in [pack.task(task_id)] if task_id else pack.tasks():
        tape = Tape.of(task, toolbox, pack.manifest.protocol, pack.manifest.on_exhausted)
        for place, call in enumerate(task.calls):
            if call.request_fingerprint in fingerprints:
                state = {} if call.state is None else {"state": call.state.as_json()}
                recorded.append({"task": task.task_id, "call": place, "status": call.response_status} | state)
        looked = tape.look(request)
        if isinstance(looked, Absent):
            near = looked.miss.nearest()
            if near is not None:
                nearest.append({"task": task.task_id} | near.as_json())
    nearest.sort(key=lambda entry: (len(entry["difference"]), entry["task"]))
    return {
        "protocol": pack.manifest.protocol,
        "tool": tool.name if tool is not None else None,
        "canonical": text,
        "fingerprints": list(fingerprints),
        "ignored": list(removed),
        "recorded": recorded,
        "nearest": [] if recorded else nearest[:3],
    }


def _request(pack: "Pack", text: str, upstream: str | None, headers: Sequence[str]) -> "Request":
    from scoresheet import bounded_file
    from scoresheet.documents.tool import CALL, Request
    from scoresheet.errors import Usage

    data = text.encode("utf-8", "surrogateescape")
    if text.startswith("@"):
        try:
            data = bounded_file.read(Path(text[1:]), mend="a request has not so many bytes: name another file")
        except OSError as error:
            raise Usage(f"the request can't be read: {error.strerror}", text[1:]) from error
    first, _, rest = data.lstrip().partition(b"\n")
    method, target, *more = first.decode("utf-8", "surrogateescape").strip().split(None, 2) + [""] * 2
    if not target:
        mend = "write 'METHOD TARGET [BODY]', such as 'GET /v1/payments/1842', or @FILE that holds one"
        raise Usage(f"{text!r} is no request", "REQUEST", mend)
    pairs = [_header(line) for line in headers]
    if more[0].startswith("HTTP/"):
        head, blank, body = rest.replace(b"\r\n", b"\n", rest.count(b"\r\n")).partition(b"\n\n")
        if blank and b"\r\n\r\n" in rest:
            body = rest.partition(b"\r\n\r\n")[2]
        pairs += [_header(line) for line in head.decode("utf-8", "surrogateescape").split("\n") if line.strip()]
    else:
        body = (more[0].encode("utf-8", "surrogateescape") + (b"\n" + rest if rest else b"")).strip()
    if body and method != CALL and not any(name.lower() == "content-type" for name, _ in pairs):
        pairs.append(("Content-Type", "application/json"))
    if upstream is None:
        upstream = "" if method == CALL else _upstream(pack)
    return Request(upstream, method, target, tuple(pairs), body)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise click.BadParameter(f"{line!r} is not NAME:VALUE", param_hint="--header")
    return name.strip(), value.strip()


def _upstream(pack: "Pack") -> str:
    from scoresheet.errors import Usage

    if pack.manifest.protocol == "tool-replay-v1":
        return ""
    names = {*pack.manifest.upstreams, *(tool.http.upstream for tool in pack.tools.values() if tool.http is not None)}
    if len(names) > 1:
        mend = f"give --upstream NAME, one of {', '.join(sorted(names))}"
        raise Usage("the pack has several upstreams", str(pack.root), mend)
    return names.pop() if names else ""


def _print(facts: dict[str, Any]) -> None:
    click.echo(f"tool: {facts['tool'] or 'none'}")
    click.echo(f"canonical: {facts['canonical']}")
    for fingerprint in facts["fingerprints"]:
        click.echo(f"fingerprint: {fingerprint}")
    for rule in facts["ignored"]:
        click.echo(f"ignored: {rule}")
    for entry in facts["recorded"]:
        state = _state(entry["state"]) if "state" in entry else ""
        click.echo(f"recorded: task {entry['task']}, call {entry['call']}, status {entry['status']}{state}")
    if facts["recorded"]:
        return
    click.echo("recorded: no")
    for entry in facts["nearest"]:
        click.echo(f"nearest: task {entry['task']}, {entry['method']} {entry['path']}")
        for line in entry["difference"]:
            click.echo(f"  {line}")


def _state(state: dict[str, str]) -> str:
    where = f", when {state['scenario']} is {state['requires']}" if "requires" in state else ""
    return where + (f", sets {state['scenario']} to {state['sets']}" if "sets" in state else "")
