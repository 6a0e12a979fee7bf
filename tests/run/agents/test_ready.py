import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.documents.protocol_card import Controls
from scoresheet.errors import ScoresheetError, Usage
from scoresheet.run.agents import ready
from scoresheet.run.agents.agent import inside
from scoresheet.run.agents.spec import agent_of
from tests import cards

TRUE = str(Path("/bin/true").resolve())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder that is all of PATH, to put programs into."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(TRUE, path)
    return path


def script(path: Path, first: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ready.READY)
def test_a_ready_made_agent_says_all_that_is_asked_of_it(name):
    module = ready.READY[name]
    assert importlib.import_module(module.__name__) is module
    assert (module.NAME, module.KIND) in [(name, "openai"), (name, "anthropic")]
    assert re.search(r"scoresheet\[openai\]|@\d+\.\d+\.\d+$|==\d+\.\d+\.\d+$", module.INSTALL)
    assert "model" in module.OPTIONS
    assert module.__doc__.startswith(f"`{name}`")


@pytest.mark.parametrize("name", ready.READY)
def test_a_ready_made_agent_is_one_file_that_imports_nothing_of_ours(name):
    text = Path(ready.READY[name].__file__ or "").read_text("utf-8")
    imported = {name.partition(".")[0] for name in re.findall(r"^(?:from|import) (\S+)", text, re.MULTILINE)}
    assert imported <= {*sys.stdlib_module_names, "__future__"}


def test_the_page_of_run_and_the_docs_name_every_ready_made_agent():
    house = Path(__file__).parents[3]
    for page in ("commands.md", "ready-made.md"):
        text = (house / "docs" / page).read_text("utf-8")
        assert all(name in text for name in ready.READY), page


@pytest.mark.parametrize("text", ["codex exec hello", "./codex", "codex --version", "python3 codex", "codexx", "'"])
def test_what_is_no_name_with_options_is_a_command_line(text, tmp_path):
    assert ready.ready_made(text, tmp_path) is None


def test_an_agent_that_is_not_installed_is_refused_with_the_command_that_installs_it(installed, tmp_path):
    with pytest.raises(Usage) as refused:
        agent_of("codex", tmp_path)
    assert refused.value.mend.startswith("npm install -g @openai/codex@")
    assert "program=PATH" in refused.value.mend


def test_an_unknown_option_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(Usage) as refused:
        agent_of("codex modell=x", tmp_path)
    assert "model, effort, program" in refused.value.mend


@pytest.mark.parametrize(
    ("name", "wrapper", "native"),
    [
        ("codex", "codex/bin/codex.js", "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        (
            "codex",
            "codex/bin/codex.js",
            "codex/node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ),
        ("claude-code", "claude-code/bin/claude.exe", "claude-code-linux-x64/claude"),
    ],
)
def test_the_program_behind_npms_wrapper_is_what_runs_and_the_only_thing_that_is_shown(
    installed, tmp_path, name, wrapper, native
):
    packages = tmp_path / "node_modules" / "@some"
    found = script(packages / wrapper, "#!/usr/bin/env node")
    real = program(packages / native)
    (installed / ready.READY[name].PROGRAM).symlink_to(found)
    agent = agent_of(name, tmp_path)
    assert agent.argv[-1] == str(real)
    assert [bind.source for bind in agent.binds if packages in bind.source.parents] == [real]
    assert (agent.identity.kind, agent.identity.spec) == ("ready", name)


def test_a_wrapper_without_its_program_is_refused(installed, tmp_path):
    (installed / "codex").symlink_to(script(tmp_path / "codex" / "bin" / "codex.js", "#!/bin/sh"))
    with pytest.raises(Usage, match="is not whole"):
        agent_of("codex", tmp_path)


def test_a_program_that_npm_has_linked_over_its_wrapper_is_taken_as_it_is(installed, tmp_path):
    real = program(tmp_path / "claude-code" / "bin" / "claude.exe")
    (installed / "claude").symlink_to(real)
    assert agent_of("claude-code", tmp_path).argv[-1] == str(real)


def test_where_a_program_is_does_not_change_who_the_agent_is_but_what_it_is_does(tmp_path):
    one, two = program(tmp_path / "one" / "codex"), program(tmp_path / "two" / "deep" / "codex")

    def of(text):
        return agent_of(text, tmp_path).identity

    assert of(f"codex program={one}") == of(f"codex program={two}")
    assert of(f"codex program={one}").sha256 != of(f"codex program={one} effort=low").sha256
    assert of(f"codex program={one} effort=low").spec == "codex effort=low"
    before = of(f"codex program={two}").sha256
    with two.open("ab") as file:
        file.write(b"\n")
    assert of(f"codex program={two}").sha256 != before


def test_a_python_agent_is_run_by_the_interpreter_beside_it_else_by_that_of_its_first_line(tmp_path):
    alone = script(tmp_path / "alone" / "mini", f"#!{sys.executable}")
    beside = script(tmp_path / "beside" / "mini", "#!/bin/sh")
    (beside.parent / "python3").symlink_to("/usr/bin/python3")
    assert inside(Path(sys.executable)) in agent_of(f"mini-swe-agent program={alone}", tmp_path).argv
    assert str(beside.parent / "python3") in agent_of(f"mini-swe-agent program={beside}", tmp_path).argv
    with pytest.raises(Usage, match="no Python runs"):
        agent_of(f"mini-swe-agent program={script(tmp_path / 'mini')}", tmp_path)


def test_where_the_interpreter_of_a_python_agent_is_does_not_change_who_the_agent_is(tmp_path):
    one, two = script(tmp_path / "one" / "mini"), script(tmp_path / "two" / "mini")
    for each in (one, two):
        (each.parent / "python3").symlink_to("/usr/bin/python3")
    found = [agent_of(f"mini-swe-agent program={each}", tmp_path).identity for each in (one, two)]
    assert found[0] == found[1]


def test_a_python_agent_takes_no_module_from_the_folder_that_it_works_in(tmp_path):
    (tmp_path / "place.py").write_text("print('the workspace')")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "agent_package.py").write_text(
        "import sys\ntry:\n    import place\nexcept ImportError:\n    print('nothing', sys.argv[1:])"
    )
    words = [sys.executable, "-c", ready._RUN, "agent_package", "-t", "x"]
    environment = {"PYTHONPATH": str(tmp_path / "lib")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == "nothing ['-t', 'x']\n", done.stderr


def test_the_loop_has_no_program_of_its_own(tmp_path):
    with pytest.raises(Usage, match="has no option 'program'"):
        agent_of("openai-tools program=/bin/true", tmp_path)
    assert agent_of("openai-tools", tmp_path).argv[-1] == inside(Path(sys.executable))


def controls(**more):
    fixed = cards.controls(seed=7, parallel_jobs=1, network="model_only", model="the-model")
    return Controls.from_value(fixed | more, "card")


CODEX = ("request_user_input", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource")


@pytest.mark.parametrize(
    ("kinds", "card", "tools", "said"),
    [
        ((), controls(), True, "needs a model"),
        (("anthropic",), controls(), True, "needs a model"),
        (("openai",), controls(model=None), True, "which model"),
        (("openai",), None, True, "which model"),
        (("openai",), controls(), True, ", ".join(CODEX)),
        (("openai",), controls(), False, "does not allow: request_user_input"),
        (("openai",), controls(tool_allowlist=[*CODEX[1:]]), True, "does not allow: request_user_input"),
        (("openai",), controls(tool_allowlist=[*CODEX, "exec_command"]), True, "does not allow: write_stdin"),
    ],
)
def test_what_would_fail_in_every_episode_is_refused_at_once(tmp_path, kinds, card, tools, said):
    needs = agent_of(f"codex program={TRUE}", tmp_path).needs
    with pytest.raises(ScoresheetError) as refused:
        ready.refuse_unready(needs, kinds, card, tools)
    assert said in refused.value.what
    assert refused.value.mend
    assert refused.value.exit_code == (1 if "allow" in refused.value.what else 2)  # the card says no; a wrong call


def test_a_card_that_names_what_the_agent_offers_is_enough(tmp_path):
    needs = agent_of(f"codex program={TRUE}", tmp_path).needs
    ready.refuse_unready(needs, ("openai",), controls(tool_allowlist=list(CODEX)), True)
    ready.refuse_unready(needs, ("openai",), controls(tool_allowlist=["request_user_input"]), False)
    ready.refuse_unready(needs, ("openai",), controls(tool_allowlist=[*CODEX, "exec_command", "write_stdin"]), True)
    named = agent_of(f"codex program={TRUE} model=mine", tmp_path).needs
    ready.refuse_unready(named, ("openai",), controls(model=None, tool_allowlist=list(CODEX)), True)
    ready.refuse_unready(agent_of("sh -c true", tmp_path).needs, (), None, True)
