import json

import pytest

from scoresheet.run.agents import mini_swe_agent
from tests.run.agents.givens import DOOR, given


def test_it_asks_once_over_the_door_with_what_the_card_pins(monkeypatch, tmp_path):
    words, environment = mini_swe_agent.start(given(monkeypatch, tmp_path, effort="low"))
    config = json.loads((tmp_path / "home" / "scoresheet.yaml").read_text())
    arguments = config["model"]["model_kwargs"]
    assert (arguments["api_base"], arguments["seed"], arguments["temperature"]) == (DOOR["OPENAI_BASE_URL"], 7, 0)
    assert (arguments["num_retries"], arguments["max_retries"], arguments["reasoning_effort"]) == (0, 0, "low")
    assert config["model"]["model_name"] == "openai/the-model"
    assert environment["MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT"] == "1"
    assert environment["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert words[0] == "/opt/agent"


def test_the_packs_tools_are_a_command_in_its_shell(monkeypatch, tmp_path):
    words, _ = mini_swe_agent.start(given(monkeypatch, tmp_path))
    prompt = words[words.index("-t") + 1]
    assert "scoresheet-call TOOL 'ARGUMENTS AS JSON'" in prompt
    assert '{"name": "get_item"' in prompt
    words, _ = mini_swe_agent.start(given(monkeypatch, tmp_path, tools=()))
    assert words[words.index("-t") + 1] == "What is it?\n"


@pytest.mark.parametrize(
    ("info", "found"),
    [
        ({"exit_status": "Submitted", "submission": '{"a": 1}\n'}, ('{"a": 1}\n', None)),
        ({"exit_status": "Submitted", "submission": None}, ("", None)),
        ({"exit_status": "LimitsExceeded", "submission": ""}, (None, "it ended with LimitsExceeded")),
        ({}, (None, "it ended with None")),
    ],
)
def test_an_exit_of_0_is_not_believed(monkeypatch, tmp_path, info, found):
    it = given(monkeypatch, tmp_path)
    it.put("trajectory.json", json.dumps({"info": info}))
    assert mini_swe_agent.final(it, b"") == found
