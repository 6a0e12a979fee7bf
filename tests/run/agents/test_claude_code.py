import json

import pytest

from scoresheet.run.agents import claude_code
from tests.run.agents.givens import DOOR, given


def option(words, name):
    return words[words.index(name) + 1]


def test_it_asks_once_and_nothing_else_reaches_out(monkeypatch, tmp_path):
    words, environment = claude_code.start(given(monkeypatch, tmp_path))
    assert environment["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert environment["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] == "1"
    assert environment["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert json.loads(environment["CLAUDE_CODE_EXTRA_BODY"]) == {"temperature": 0}
    assert option(words, "--model") == "the-model"
    servers = json.loads(option(words, "--mcp-config"))["mcpServers"]
    assert servers["replay"]["url"] == DOOR["SCORESHEET_MCP_URL"]
    assert "--strict-mcp-config" in words


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [
        (None, "Bash,Edit,Read,Write"),
        (["get_item"], ""),
        (["get_item", "Bash", "Grep"], "Bash,Grep"),
        (["WebFetch", "WebSearch", "Read"], "Read"),
    ],
)
def test_its_own_tools_are_those_that_the_card_names_and_never_the_web(monkeypatch, tmp_path, allowed, offered):
    words, _ = claude_code.start(given(monkeypatch, tmp_path, allowed))
    assert option(words, "--tools") == offered


def test_without_a_temperature_it_may_think(monkeypatch, tmp_path):
    it = given(monkeypatch, tmp_path, effort="high")
    it.temperature = None
    words, environment = claude_code.start(it)
    assert "MAX_THINKING_TOKENS" not in environment
    assert option(words, "--effort") == "high"


def lines(*events):
    return b"\n".join(json.dumps(each).encode() for each in ("no event", *events)) + b"\nno JSON\n"


def begun(status="connected"):
    return {"type": "system", "subtype": "init", "mcp_servers": [{"name": "replay", "status": status}]}


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (lines(begun(), {"type": "result", "is_error": False, "result": "done"}), ("done", None)),
        (lines(begun()), (None, "it told no result")),
        (lines(), (None, "it told no result")),
        (
            lines(begun("failed"), {"type": "result", "is_error": False, "result": "done"}),
            (None, "the tools were not connected: failed"),
        ),
        (
            lines(begun(), {"type": "result", "is_error": True, "terminal_reason": "api_error", "result": "no"}),
            (None, "api_error: no"),
        ),
    ],
)
def test_an_exit_of_0_is_not_believed(monkeypatch, tmp_path, printed, found):
    assert claude_code.final(given(monkeypatch, tmp_path), printed) == found
