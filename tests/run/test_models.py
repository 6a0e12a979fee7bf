import contextlib
import socket
from typing import Any

import httpx
import pytest

from scoresheet.model import view
from scoresheet.model.log import MODEL_LOG, read_back
from scoresheet.model.script import Script
from scoresheet.model.stub import ModelStub
from scoresheet.run.models import Models
from scoresheet.run.plan import Episode
from tests import cards

CONTROLS = cards.controls(max_tool_calls=2, temperature=0.5, seed=7, parallel_jobs=1, network="model_only", model="m")


class Listening:
    """What an episode's doors need of its sandbox; `stopped` keeps the reasons for which it was to end."""

    def __init__(self, listening):
        self.sockets = {"model-openai": listening}
        self.addresses = {"model-openai": listening.getsockname()}
        self.stopped = []

    def stop(self, reason):
        self.stopped.append(reason)


@contextlib.contextmanager
def serving(folder, turn, controls=CONTROLS):
    """(what asks the model once, its answers' status; the sandbox; requests that the model got)."""
    heard = []
    with ModelStub(Script.of({"turns": [turn]}), on_request=heard.append) as stub:
        models = Models.of([f"openai={stub.address}/v1"], [], {}, {"controls": controls})
        with socket.create_server(("127.0.0.1", 0)) as listening, contextlib.closing(models):
            opened: Any = Listening(listening)
            tool = {"type": "function", "function": {"name": "get_item", "parameters": {}}}
            body = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": [tool]}

            def ask():
                url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions"
                return httpx.post(url, json=body, timeout=300).status_code

            with models.episode(opened, folder, Episode("task", 0, 0, 7), None):
                yield ask, opened, heard


@pytest.mark.parametrize(
    ("turn", "allowed", "reason"),
    [
        ({"tool": "get_item"}, 3, "tool_cap"),
        ({"calls": [{"tool": "get_item"}] * 3}, 1, "tool_cap"),
        ({"tool": "bash"}, 1, "mismatch"),
    ],
)
def test_nothing_more_is_sent_once_an_episode_ends_for_a_tool_call(tmp_path, monkeypatch, turn, allowed, reason):
    monkeypatch.setattr(view, "_SETTLE_S", 300.0)  # however slow this machine is
    with serving(tmp_path, turn) as (ask, opened, heard):
        for _ in range(allowed):
            assert ask() == 200
        after = [ask() for _ in range(2)]  # whoever asks next finds what came before told
        assert (after, opened.stopped[0], len(heard)) == ([403, 403], reason, allowed)
    entries = list(read_back((tmp_path / MODEL_LOG).read_bytes()))
    assert [entry.refused is None for entry in entries] == [True] * allowed + [False] * 2


def test_an_agent_is_told_what_the_card_pins_of_its_side(tmp_path):
    models = Models.of(["openai=http://127.0.0.1:9/v1"], [], {}, {"controls": CONTROLS})
    told = models.environment({"model-openai": "http://127.0.0.1:8060"})
    assert told["SCORESHEET_MODEL"] == "m"
    assert told["SCORESHEET_TEMPERATURE"] == "0.5"
    assert told["SCORESHEET_TOOL_ALLOWLIST"] == '["get_item"]'
    assert told["OPENAI_BASE_URL"] == "http://127.0.0.1:8060/v1"
    without = Models.of(["openai=http://127.0.0.1:9/v1"], [], {}, {"controls": {**CONTROLS, "model": None}})
    assert "SCORESHEET_MODEL" not in without.environment({"model-openai": "http://127.0.0.1:8060"})
