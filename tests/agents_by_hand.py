"""Ready-made agents as they are published, each with a scripted model: `./full agents`. Needs npm and the network.

    tests/agents_by_hand.py [FOLDER] [NAME…]     FOLDER keeps what is installed, over a gigabyte

Each one solves a recorded task and a coding task in the sandbox. Then it is asked what its own retries are, whether it
can be stopped by the card's cap, and what it would reach beside the model: every name that it asks for is kept. While
it waits for the model, memory, environment, command lines and files of its processes are searched for the real key.
"""

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[1]
sys.path.insert(0, str(HOUSE))

from scoresheet.model.upstream import DUMMY_KEY, Kind  # noqa: E402
from scoresheet.run.agents.ready import READY  # noqa: E402
from tests.e2e import inside, ready  # noqa: E402

HOST = "catalog.example"
TOOLS = ("get_catalog", "get_catalog_by_catalog_name", "get_catalog_by_catalog_name_by_name")
PLAIN = (
    *("Bash", "bash", "exec_command", "write_stdin", "apply_patch", "request_user_input", "view_image", "get_goal"),
    *("create_goal", "update_goal", "tool_search", "server:web_search", "DeferredToolPlaceholder"),
)
"""What they offer when nobody tells them otherwise."""
ANSWER = '{"count": 95}'
WRONG = "    return items[start : start + size - 1]"
RIGHT = "    return items[start : start + size]"
PATCH = f"*** Begin Patch\n*** Update File: pages/offset.py\n@@\n-{WRONG}\n+{RIGHT}\n*** End Patch\n"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True)
class Agent:
    """How a scripted model makes an agent do its work."""

    name: str
    kind: Kind
    program: str = ""
    """Below the folder of what is installed."""
    shell: Callable[[str], dict[str, Any]] | None = None
    """A turn that runs a command, for agents that code."""
    own: tuple[str, ...] = ()
    """Its own tools that the card names for coding."""
    edits: tuple[dict[str, Any], ...] = ()
    """Turns that mend the task's mistake with the agent's own tools; without them the shell does."""
    said: Callable[[str], dict[str, Any]] = field(default=lambda text: {"text": text})
    """A last turn, with the answer if there is one."""
    asks_anew: bool = False
    """It puts random ids into its conversation, so that it can't be answered from a recording."""
    unobserved: frozenset[str] = frozenset()
    """Controls that its requests can't show."""
    plain: str = ""
    """How anybody would start it, to see that what it then reaches for is seen: a command line, or a shell's lines."""


def _submit(text: str) -> dict[str, Any]:
    return _bash(f"{SUBMIT} && echo '{text}'" if text else SUBMIT)


def _bash(command: str) -> dict[str, Any]:
    return {"tool": "bash", "arguments": {"command": command}}


AGENTS = (
    Agent("openai-tools", "openai"),
    Agent(
        "codex",
        "openai",
        "node_modules/.bin/codex",
        lambda command: {"tool": "exec_command", "arguments": {"cmd": command}},
        ("exec_command", "write_stdin", "apply_patch"),
        edits=({"custom": "apply_patch", "input": PATCH},),
        asks_anew=True,
        unobserved=frozenset({"controls.temperature", "controls.seed"}),
        plain="""
mkdir -p $HOME/.codex
cat > $HOME/.codex/config.toml <<END
model = "gpt-5.5"
model_provider = "door"
[model_providers.door]
name = "door"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
END
$PROGRAM exec --skip-git-repo-check hello </dev/null""",
    ),
    Agent(
        "claude-code",
        "anthropic",
        "node_modules/.bin/claude",
        lambda command: {"tool": "Bash", "arguments": {"command": command}},
        ("Bash", "Edit", "Read", "Write"),
        edits=(
            {"tool": "Read", "arguments": {"file_path": "/work/pages/offset.py"}},
            {
                "tool": "Edit",
                "arguments": {"file_path": "/work/pages/offset.py", "old_string": WRONG, "new_string": RIGHT},
            },
        ),
        unobserved=frozenset({"controls.seed"}),
        plain="$PROGRAM -p hello --model stub-model --tools Bash",
    ),
    Agent(
        "mini-swe-agent",
        "openai",
        "mini/bin/mini",
        _bash,
        ("bash",),
        said=_submit,
        plain="$PROGRAM -m openai/stub-model -t hello -y --exit-immediately",
    ),
)


def _figures(tried: ready.Tried) -> str:
    (line,) = [line for line in tried.done.stdout.splitlines() if line.startswith("figures_sha256: ")]
    return line


def install(folder: Path) -> None:
    """The published agents, of the versions that their recipes name, in a folder."""
    wanted = [word for each in READY.values() for word in each.INSTALL.split() if "@" in word[1:]]
    if not (folder / "node_modules").exists():
        (folder / "package.json").write_text("{}")
        _do("npm", "install", "--no-audit", "--no-fund", *wanted, cwd=folder)
    if not (folder / "mini").exists():
        venv.create(folder / "mini", with_pip=True)
        pinned = next(word for word in READY["mini-swe-agent"].INSTALL.split() if "==" in word)
        _do(str(folder / "mini" / "bin" / "pip"), "install", "-q", pinned, cwd=folder)


def _do(*words: str, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL, timeout=1800)


class Trial:
    """One agent's runs."""

    def __init__(self, agent: Agent, installed: Path, scratch: Path) -> None:
        self.agent, self._installed, self._scratch = agent, installed, scratch / agent.name
        self._scratch.mkdir()
        self._spec = agent.name + (f" program={installed / agent.program}" if agent.program else "")
        needs = READY[agent.name]
        self._offers = (*needs.OFFERS, *needs.OFFERS_WITH_MCP)

    def all(self) -> Iterator[str]:
        """What was found, a line each. Raises `AssertionError`."""
        yield self.recorded()
        yield self.replayed()
        if self.agent.shell is not None:
            yield self.as_it_comes()
            yield self.hidden_retries()
            yield self.coding()
            yield self.capped()
            if READY[self.agent.name].OWN:
                yield self.outside_the_allowlist()
        yield self.failing("a model that always answers 500", {"status": 500, "times": "always"})
        yield self.failing("a connection that is always dropped", {"kind": "drop", "times": "always"})
        if self.agent.name in ("codex", "claude-code"):
            yield self.failing("a stream that is always cut", {"kind": "cut", "times": "always"})

    def recorded(self) -> str:
        """A task of recorded calls is solved; no name is asked for; the key is nowhere."""
        looked = []

        def look(runner: int, turn: int | None) -> None:
            if turn == 1 and not looked:
                pids = inside.sandboxed(runner)
                looked.append((pids, inside.holdings(pids, [ready.KEY.encode(), DUMMY_KEY.encode()])))

        turns = [self._call(), self.agent.said(ANSWER)]
        tried = self._run("catalog-v1", ready.COUNT, (), turns, look)
        row = tried.row
        assert (row.success, row.exit_reason, row.answer) == (1, "completed", {"count": 95}), tried.said
        assert (row.tool_calls, row.mismatches) == (1, ())
        for control, seen in row.controls.items():
            assert seen == ("unobserved" if control in self.agent.unobserved else "verified"), (control, seen)
        assert f"live_network: model_endpoint_only({tried.address})" in tried.done.stdout
        (names,) = [path.read_text() for path in tried.out.rglob("dns.jsonl")]
        assert not names, names
        ((pids, found),) = looked
        assert found[ready.KEY.encode()] == [], found
        dummy = {held.where for held in found[DUMMY_KEY.encode()]}
        assert "environ" in dummy
        assert "memory" in dummy
        for path in tried.out.rglob("*"):
            assert not path.is_file() or ready.KEY.encode() not in path.read_bytes(), path
        unobserved = ", ".join(sorted(self.agent.unobserved)) or "none"
        return (
            f"{ready.COUNT} of catalog-v1: success 1, {row.model_calls} model calls, {row.elapsed_s:.1f} s; controls "
            f"verified, unobserved: {unobserved}; live_network: model_endpoint_only; hosts tried: none; the real key "
            f"in memory, environment, command line, files of its {len(pids)} processes and of the run: nowhere"
        )

    def replayed(self) -> str:
        """Its run again, with the model's recorded answers and no model."""
        turns = [self._call(), self.agent.said(ANSWER)]
        live = self._run("catalog-v1", ready.COUNT, (), turns)
        again = ready.run(
            self._spec, live.out.parent / "pack", ready.COUNT, [], live.out.parent / "again", replayed=live.out
        )
        (figures,) = {_figures(each) for each in ((live,) if self.agent.asks_anew else (live, again))}
        if self.agent.asks_anew:
            (why,) = again.row.model_unrecorded
            assert again.row.exit_reason == "mismatch", again.said
            return f"its model's answers replayed: not possible: {why}"
        return f"its model's answers replayed: the same {figures}"

    def as_it_comes(self) -> str:
        """The same agent without its recipe reaches for the world, and that is seen."""
        tried = self._run("catalog-v1", ready.COUNT, (), [{"text": ANSWER}], agent=self._plain())
        row = tried.row
        assert (row.success, row.exit_reason, row.unauthorized) == (0, "mismatch", 1), tried.said
        return f"without its recipe: {row.exit_reason}: it tried {', '.join(each.path for each in row.mismatches)}"

    def hidden_retries(self) -> str:
        """Without its recipe it asks again when the model fails, says nothing of it, and that is seen."""
        faults = {"faults": [{"status": 500, "times": 2}]}
        turns = [{"text": "Done."}]
        tried = self._run("pagination-v1", ready.SLICE, PLAIN, turns, more=faults, agent=self._plain())
        row = tried.row
        assert row.model_retries == 2, tried.said
        assert row.controls["controls.retries"] == "violated", row.controls
        assert row.model_calls == len(tried.heard)
        assert len(tried.heard) >= 3
        (violation,) = [each for each in row.violations if each.startswith("controls.retries")]
        return f"without its recipe, two answers 500: {violation}"

    def _plain(self) -> str:
        module = READY[self.agent.name]
        program = Path(self._installed / self.agent.program)
        native = getattr(module, "native", None)
        program = program if native is None else Path(native(str(program.resolve())))
        spec = self.agent.plain.replace("$PROGRAM", str(program))
        if "\n" in spec:
            script = Path(tempfile.mkdtemp(dir=self._scratch), "plain.sh")
            script.write_text(spec)
            spec = f"sh {script} {program}"
        return spec

    def coding(self) -> str:
        """A coding task is solved."""
        assert self.agent.shell is not None
        last = self.agent.said("") if self.agent.name == "mini-swe-agent" else {"text": "Mended."}
        if self.agent.edits:
            turns = [*self.agent.edits, self.agent.shell("python3 -m pytest -q"), last]
        else:
            turns = [self.agent.shell(ready.MEND), last]
        tried = self._run("pagination-v1", ready.SLICE, self.agent.own, turns)
        row = tried.row
        assert (row.success, row.exit_reason, row.patch_lines) == (1, "completed", 2), tried.said
        assert (row.tests_identical, row.grading_surface) == (1, ()), row
        assert f"live_network: model_endpoint_only({tried.address})" in tried.done.stdout
        assert "passed" in tried.said  # the agent saw the tests pass
        with_tools = ", ".join(turn.get("tool") or turn.get("custom") or "" for turn in turns[:-1])
        return f"{ready.SLICE} of pagination-v1 by {with_tools}: success 1, {row.patch_lines} lines changed"

    def capped(self) -> str:
        """A model that never ends is ended by the card's cap, whatever the agent counts."""
        assert self.agent.shell is not None
        tried = self._run("pagination-v1", ready.SLICE, self.agent.own, [self.agent.shell("true")], cap=3)
        assert (tried.row.success, tried.row.exit_reason) == (0, "tool_cap"), tried.said
        assert tried.row.model_calls == len(tried.heard) == 4  # nothing is sent after the fourth tool call
        return (
            f"a model that never ends: tool_cap after {tried.row.model_calls} model calls, the card says 3 tool calls"
        )

    def outside_the_allowlist(self) -> str:
        """Its shell, which the card does not name."""
        assert self.agent.shell is not None
        own = tuple(tool for tool in self._offers if tool not in READY[self.agent.name].OWN)
        turns = [self.agent.shell("touch /work/there"), self.agent.said("Done.")]
        tried = self._run("pagination-v1", ready.SLICE, ("Read",), turns, offers=own)
        assert (tried.row.success, tried.row.exit_reason) == (0, "mismatch"), tried.said
        offered = {tool.get("name") for each in tried.heard for tool in each["body"]["tools"]}
        assert not offered & set(self.agent.own) - {"Read"}, offered
        return f"a call of its shell, which the card does not name: {tried.row.detail}; it was not offered"

    def failing(self, what: str, fault: dict[str, Any]) -> str:
        """How often a model that fails is asked."""
        turns = [self._call(), self.agent.said(ANSWER)]
        tried = self._run("catalog-v1", ready.COUNT, (), turns, more={"faults": [fault]})
        assert (tried.row.success, tried.row.exit_reason) == (0, "model_error"), tried.said
        assert (len(tried.heard), tried.row.model_retries) == (1, 0), tried.heard
        return f"{what}: asked {len(tried.heard)} time, {tried.row.exit_reason}"

    def _call(self) -> dict[str, Any]:
        if self.agent.name != "mini-swe-agent":
            return ready.COUNT_CALL
        arguments = json.dumps(ready.COUNT_CALL["arguments"])
        return _bash(f"scoresheet-call {ready.COUNT_CALL['tool']} '{arguments}' | head -c 300")

    def _run(
        self,
        name: str,
        task: str,
        own: tuple[str, ...],
        turns: list[dict[str, Any]],
        look: Callable[[int, int | None], None] | None = None,
        more: dict[str, Any] | None = None,
        cap: int = 40,
        offers: tuple[str, ...] | None = None,
        agent: str | None = None,
    ) -> ready.Tried:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        recorded = name == "catalog-v1"
        allowed = [*(TOOLS if recorded else ()), *own, *(self._offers if offers is None else offers)]
        controls = {"tool_allowlist": allowed, "max_tool_calls": cap}
        pack = ready.pack(name, task, folder / "pack", controls, host=HOST if recorded else None)
        return ready.run(agent or self._spec, pack, task, turns, folder / "run", self.agent.kind, more, on_turn=look)


def main(words: list[str]) -> int:
    """0 when every agent did what it must."""
    wanted = [word for word in words if word in READY] or list(READY)
    folders = [Path(word) for word in words if word not in READY]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="scoresheet-agents-") as scratch:
        Path(scratch).chmod(0o755)
        installed = folders[0] if folders else Path(scratch) / "installed"
        installed.mkdir(exist_ok=True, parents=True)
        install(installed.resolve())
        for agent in AGENTS:
            if agent.name not in wanted:
                continue
            print(f"== {agent.name}", flush=True)
            try:
                for line in Trial(agent, installed.resolve(), Path(scratch)).all():
                    print(f"ok: {line}", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"FAILED: {error}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} agents did what they must")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
