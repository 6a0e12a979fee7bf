import hashlib
import io
from dataclasses import replace

import pytest

from scoresheet.documents.protocol_card import Controls
from scoresheet.errors import Malformed
from scoresheet.model.entry import UNRECORDED
from scoresheet.model.observed import Pinned
from scoresheet.run import model_calls
from tests import cards
from tests.run.test_trajectory import ASKED, FINAL, USER, chat

CONTROLS = cards.controls(
    wall_clock_s=10, max_tool_calls=9, temperature=0.5, seed=3, parallel_jobs=1, network="model_only"
)
PINNED = Pinned(0.0, (3,), "m", frozenset({"get_item"}), 9)


def seen(*entries, pinned: Pinned | None = PINNED):
    data = b"".join(entry.line() for entry in entries)
    reading = model_calls.Reading(io.BytesIO(data), pinned)
    walked = list(reading.exchanges())
    found = reading.seen()
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    return walked, found.observation


def test_a_log_is_read_as_its_calls_began():
    walked, found = seen(chat(2.0, [USER], FINAL, 500), chat(1.0, [USER], ASKED))
    assert [entry.started_s for entry, _ in walked] == [1.0, 2.0]
    assert (found.calls, found.retries, found.tool_calls, found.tokens_in) == (2, 0, 1, 200)
    assert found.gave_up is not None  # the last to begin, not the last line


def test_what_asks_no_model_is_not_walked():
    walked, found = seen(chat(1.0, [USER], FINAL, method="GET", path="/v1/models"))
    assert (walked, found.calls) == ([], 0)


def test_without_a_card_that_holds_nothing_is_compared():
    _, found = seen(chat(1.0, [USER], ASKED), pinned=None)
    assert (found.controls, found.ending, found.tokens_in) == ((), None, 100)
    missed = chat(1.0, [USER], FINAL, None, refused="never recorded", fault=UNRECORDED)
    assert seen(missed, pinned=None)[1].ending == "mismatch"


def test_a_log_that_is_none_is_refused_with_its_line():
    reading = model_calls.Reading(io.BytesIO(b"{}\n"), None)
    with pytest.raises(Malformed) as error:
        list(reading.exchanges())
    assert error.value.where == "model.jsonl:1"


def test_a_task_may_only_lower_the_cap():
    controls = Controls.from_value(CONTROLS, "card.yaml")
    found = model_calls.pinned(controls, 77, 4)
    assert found == Pinned(0.5, (77, 3), None, frozenset({"get_item"}), 4)
    assert model_calls.pinned(controls, 77, 40) == replace(found, max_tool_calls=9)
    assert model_calls.pinned(controls, 77, None) == replace(found, max_tool_calls=9)
    assert model_calls.pinned(None, 77, 4) is None


def test_controls_that_do_not_hold_pin_nothing():
    assert model_calls.held({"controls": CONTROLS}) == Controls.from_value(CONTROLS, "card.yaml")
    for card in (None, {}, {"controls": []}, {"controls": {**CONTROLS, "seed": "x"}}):
        assert model_calls.held(card) is None
