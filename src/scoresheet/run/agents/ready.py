"""Agents that are ready made, `--agent NAME`: one module each beside this one, run by `inside/ready_host.py`."""

import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from scoresheet import digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.protocol_card import Controls
from scoresheet.documents.run_plan import AgentIdentity
from scoresheet.errors import ScoresheetError, Usage
from scoresheet.run.agents import claude_code, codex, command, identity, interpreter, mini_swe_agent, openai_tools
from scoresheet.run.agents.agent import PROGRAMS, Agent, Needs, binds, inside, visible
from scoresheet.run.agents.python import own_interpreter, program_file

READY: Mapping[str, ModuleType] = {each.NAME: each for each in (openai_tools, codex, claude_code, mini_swe_agent)}
_HOST = f"{PROGRAMS}/ready_host.py"
_PROGRAM = "program"
_RUN = "import runpy, sys; del sys.path[0], sys.argv[0]; runpy.run_module(sys.argv[0], None, '__main__', True)"
"""Runs an installed package, as `-m` does, but finds nothing of it in the workspace."""


def ready_made(text: str, folder: Path, mounts: Sequence[Path] = (), hidden: Collection[Path] = ()) -> Agent | None:
    """The agent that `NAME [OPTION=VALUE…]` names, or `None` for anything else. Raises `Usage`.

    Its program is looked for on PATH, or is where the option `program` says; nothing of it is ever installed.
    """
    asked = _asked(text)
    if asked is None:
        return None
    module, options = asked
    seen = command.Seen(folder, hidden)
    host = own_interpreter()
    seen.programs.append(host)
    words = _program(module, options.pop(_PROGRAM, None), folder, seen)
    for mount in mounts:
        seen.given(Path(os.path.abspath(folder / mount.expanduser())))
    needs = [need for program in seen.programs for need in program.needs]
    for need in needs:
        seen.refuse_hidden(need)
    interpreters = {str(program.path) for program in seen.programs}
    own = Path(module.__file__ or "").read_bytes()
    driver = program_file("ready_host.py")
    place = f"{PROGRAMS}/{Path(module.__file__ or '').name}"
    shown = [f"{key}={value}" for key, value in options.items()]
    return Agent(
        AgentIdentity(
            kind="ready",
            spec=" ".join([module.NAME, *shown]),
            sha256=identity.of(
                [module.NAME, *shown, *(word for word in words if word not in interpreters)],
                seen.roots,
                [*(program.named for program in seen.programs), _file("agent", own), _file("ready_host", driver)],
                seen.hidden,
            ),
            interpreter=", ".join(program.label for program in seen.programs),
        ),
        (
            *(inside(host.path), "-I", "-S", "-B", _HOST, place, json.dumps(options)),
            *(inside(Path(word)) if word.startswith("/") else word for word in words),
        ),
        binds([*needs, *seen.bound]),
        files=((_HOST, driver), (place, own)),
        path=tuple(dict.fromkeys(inside(p.path.parent) for p in seen.programs if not visible(p.path))),
        notes=tuple(seen.notes),
        needs=Needs(
            name=module.NAME,
            kind=module.KIND,
            model=options.get("model"),
            offers=module.OFFERS,
            offers_with_mcp=module.OFFERS_WITH_MCP,
            together=module.TOGETHER,
        ),
    )


def refuse_unready(needs: Needs | None, kinds: Collection[str], controls: Controls | None, tools: bool) -> None:
    """Raises `Usage` without a model or a name for it, `ScoresheetError` for tools that the card does not allow.

    Each would fail in every episode.

    `kinds`: of the models that there are; `controls`: the card's, if it holds; `tools`: whether the pack has any.
    """
    if needs is None:
        return
    if needs.kind not in kinds:
        raise Usage(f"{needs.name} needs a model", "--model", f"give --model {needs.kind}=URL (docs/model)")
    if needs.model is None and (controls is None or controls.model is None):
        mend = (
            f"--agent '{needs.name} model=NAME', or pin it in card.yaml, controls: {{model: NAME}}; "
            "controls that are not complete pin nothing (`scoresheet check` lists what they lack)"
        )
        raise Usage(f"{needs.name} is not told which model to ask for", "--agent", mend)
    offers = (*needs.offers, *(needs.offers_with_mcp if tools else ()))
    if controls is not None and set(needs.together) & set(controls.tool_allowlist):
        offers += needs.together
    outside = [] if controls is None else [name for name in offers if name not in controls.tool_allowlist]
    if outside:
        what = f"{needs.name} offers tools that the card does not allow: {', '.join(outside)}"
        mend = (
            f"it can't leave them out: name them in card.yaml, controls: {{tool_allowlist: [{', '.join(offers)}, …]}}"
        )
        raise ScoresheetError(what, "controls.tool_allowlist", mend)


def _asked(text: str) -> tuple[ModuleType, dict[str, str]] | None:
    try:
        name, *rest = shlex.split(text) or [""]
    except ValueError:
        return None
    pairs = [word.partition("=") for word in rest]
    if name not in READY or not all(equals and key.isidentifier() for key, equals, _ in pairs):
        return None
    module = READY[name]
    options = {key: value for key, _, value in pairs}
    known = module.OPTIONS if module.PROGRAM is None else (*module.OPTIONS, _PROGRAM)
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        raise Usage(f"{name} has no option {unknown!r}", "--agent", f"its options: {', '.join(known)}")
    return module, options


def _program(module: ModuleType, given: str | None, folder: Path, seen: command.Seen) -> list[str]:
    """The words that start the agent's program; what it needs is seen. Raises `Usage`."""
    if module.PROGRAM is None:
        if importlib.util.find_spec(module.PACKAGE) is None:
            raise Usage(f"{module.NAME} needs the package {module.PACKAGE!r}", "--agent", module.INSTALL)
        return [sys.executable]
    try:
        path = interpreter.find(given or module.PROGRAM, folder)
    except Usage as error:
        mend = f"{module.INSTALL}   (or say where it is: --agent '{module.NAME} program=PATH')"
        raise Usage(f"{module.NAME} is not installed: {error.what}", "--agent", mend) from error
    path = Path(os.path.realpath(path))
    if module.PACKAGE is not None:
        program = interpreter.program(_python_of(path, folder, module.INSTALL))
        seen.programs.append(program)
        return [str(program.path), "-c", _RUN, module.PACKAGE]
    path = Path(module.native(str(path)))
    if interpreter.shebang(path, folder) is not None:
        raise Usage(f"{module.NAME} is not whole: {path.name} is a script, not its program", str(path), module.INSTALL)
    seen.given(path)
    return [str(path)]


def _python_of(path: Path, folder: Path, install: str) -> Path:
    """The interpreter that runs an installed script: the one beside it, else the one that its first line names."""
    beside = path.with_name("python3")
    words = interpreter.shebang(path, folder) or ("",)
    found = beside if beside.exists() else Path(words[0])
    if not found.name.startswith(("python", "pypy")):
        raise Usage("no Python runs this program", str(path), install)
    return found


def _file(name: str, content: bytes) -> dict[str, JsonValue]:
    return {"name": name, "sha256": digest.of(content)}
