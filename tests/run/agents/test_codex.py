import json
import tomllib

from scoresheet.run.agents import codex
from tests.run.agents.givens import DOOR, TOOL, given

KNOWN = [
    {"slug": "new", "tool_mode": "code_mode_only", "use_responses_lite": True, "model_messages": {"a": 1}},
    {"slug": "the-model", "tool_mode": "code_mode_only", "base_instructions": "its own"},
    {"slug": "plain", "base_instructions": "plain"},
]


def started(monkeypatch, folder, allowed=None, tools=(TOOL,), known=KNOWN, **options):
    """(words, configuration, what it knows of the model), with a program that tells which models it knows."""
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\necho '{json.dumps({'models': known})}'\n")
    program.chmod(0o755)
    it = given(monkeypatch, folder, allowed, tools, (str(program),), **options)
    words, environment = codex.start(it)
    home = folder / "home" / ".codex"
    assert environment["CODEX_HOME"] == str(home)
    (model,) = json.loads((home / "models.json").read_text())["models"]
    return words, tomllib.loads((home / "config.toml").read_text()), model


def test_it_asks_once_over_the_door_and_nothing_else_reaches_out(monkeypatch, tmp_path):
    words, config, _ = started(monkeypatch, tmp_path)
    door = config["model_providers"]["door"]
    assert door["base_url"] == DOOR["OPENAI_BASE_URL"]
    assert (door["request_max_retries"], door["stream_max_retries"], door["supports_websockets"]) == (0, 0, False)
    assert config["web_search"] == "disabled"
    assert not any(config["features"][name] for name in ("apps", "plugins", "remote_plugin", "in_app_updates"))
    assert config["otel"] == dict.fromkeys(("exporter", "metrics_exporter", "trace_exporter"), "none")
    assert "--strict-config" in words
    assert words[-1].startswith("What is it?\n\nEnd your last message with the answer")


def test_the_packs_tools_and_no_others_come_over_mcp(monkeypatch, tmp_path):
    _, config, _ = started(monkeypatch, tmp_path)
    assert config["mcp_servers"]["replay"]["url"] == DOOR["SCORESHEET_MCP_URL"]
    assert config["mcp_servers"]["replay"]["enabled_tools"] == ["get_item"]
    assert config["mcp_servers"]["replay"]["required"] is True


def test_without_tools_there_is_no_mcp_and_no_word_on_how_to_answer(monkeypatch, tmp_path):
    words, config, _ = started(monkeypatch, tmp_path, tools=())
    assert ("mcp_servers" in config, words[-1]) == (False, "What is it?\n")


def test_its_own_tools_are_those_that_the_card_names(monkeypatch, tmp_path):
    _, config, model = started(monkeypatch, tmp_path, ["get_item"])
    assert (config["features"]["shell_tool"], model["apply_patch_tool_type"]) == (False, None)
    _, config, model = started(monkeypatch, tmp_path, ["exec_command", "apply_patch"])
    assert (config["features"]["shell_tool"], model["apply_patch_tool_type"]) == (True, "freeform")


def test_a_model_that_it_knows_keeps_its_instructions_and_loses_the_tool_that_hides_tools(monkeypatch, tmp_path):
    _, config, model = started(monkeypatch, tmp_path, model="the-model-2026-01-01", effort="low")
    assert (model["slug"], model["base_instructions"]) == ("the-model-2026-01-01", "its own")
    assert ("tool_mode" in model, model["use_responses_lite"]) == (False, False)
    assert config["model_reasoning_effort"] == "low"


def test_a_model_that_it_does_not_know_gets_the_plainest_instructions(monkeypatch, tmp_path):
    assert started(monkeypatch, tmp_path, model="another")[2]["base_instructions"] == "plain"


def test_what_it_said_last_is_read_from_its_file(monkeypatch, tmp_path):
    it = given(monkeypatch, tmp_path)
    assert codex.final(it, b"") == (None, "it left no last message")
    it.put("last.txt", "done")
    assert codex.final(it, b"") == ("done", None)
