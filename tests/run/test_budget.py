import json
from typing import Any

import pytest

from scoresheet.documents.prices import PriceTable
from scoresheet.model.entry import Entry
from scoresheet.model.observed import Exchange
from scoresheet.model.wire.parts import Asked
from scoresheet.run.budget import Budget, Limit, keep_lost, on_disk
from scoresheet.run.plan import Episode
from scoresheet.stats import bill

PATH = "/v1/chat/completions"
TABLE: Any = {"currency": "USD", "date": "2026-11-30", "models": {"m": {"input": 1, "output": 10}}}
PRICES = PriceTable.from_value(TABLE, "prices.yaml")


def entry(tokens=100, model="m", usage=True, status=200, **more) -> Entry:
    said: Any = {"model": model, "choices": [{"finish_reason": "stop", "message": {"content": "x"}}]}
    if usage:
        said["usage"] = {"prompt_tokens": tokens, "completion_tokens": tokens // 10}
    request = json.dumps({"model": model, "messages": []}).encode()
    fields: Any = {"fault": None, "refused": None} | more
    headers = (("content-type", "application/json"),)
    return Entry("openai", "POST", PATH, (), request, status, headers, json.dumps(said).encode(), 0, 0, 1, **fields)


def call(*args, **more) -> Exchange:
    found = entry(*args, **more).exchange()
    assert found is not None
    return found


def asks(model="m") -> Asked:
    return Asked("chat", model, "sha256:0")


def test_calls_are_admitted_until_the_tokens_are_spent():
    budget = Budget(Limit(tokens=220))
    for _ in range(2):
        assert budget.refusal(PATH, asks()) is None
        budget.take(call())
    assert budget.over == "max_tokens_total 220 is spent: 220 tokens"
    assert budget.refusal(PATH, asks()) == budget.over
    assert (budget.told().spent_tokens, budget.told().stopped) == (220, budget.over)


def test_calls_are_admitted_until_the_money_is_spent():
    budget = Budget(Limit(cost=bill.parsed("0.0003")), PRICES)
    budget.take(call())
    assert budget.over is None
    budget.take(call())
    assert budget.over == "max_cost 0.0003 USD is spent: 0.0004 USD"
    assert (budget.told().spent_cost, budget.told().max_cost) == ("0.0004", "0.0003")


def test_without_a_limit_everything_is_counted_and_nothing_refused():
    budget = Budget(Limit(), PRICES)
    budget.take(call())
    budget.take(call(model="free"))
    assert (budget.refusal("/v1/embeddings", None), budget.over) == (None, None)
    assert (budget.told().spent_tokens, budget.told().spent_cost) == (220, None)


@pytest.mark.parametrize(
    ("limit", "path", "asked", "why"),
    [
        (Limit(tokens=9), "/v1/embeddings", None, "nothing is known of what /v1/embeddings costs"),
        (Limit(cost=9), PATH, asks("dear"), "the price table does not name dear"),
    ],
)
def test_a_call_whose_price_nobody_knows_stops_the_run_before_it_is_sent(limit, path, asked, why):
    budget = Budget(limit, PRICES)
    assert why in (budget.refusal(path, asked) or "")
    assert why in (budget.over or "")


def test_a_count_of_tokens_is_free():
    assert Budget(Limit(tokens=9)).refusal("/v1/messages/count_tokens?beta=true", None) is None


def test_an_answer_that_tells_no_tokens_stops_a_run_that_has_a_limit():
    bounded, free = Budget(Limit(tokens=999)), Budget()
    for budget in (bounded, free):
        budget.take(call(usage=False))
    assert (bounded.over, free.over) == ("the budget can't be kept: an answer told no tokens", None)


def test_a_model_that_answers_under_another_name_without_a_price_stops_a_run_with_a_cost():
    budget = Budget(Limit(cost=10**12), PRICES)
    budget.take(call(model="other"))
    assert budget.over == "max_cost can't be kept: the price table does not name other"


def test_errors_and_refusals_cost_nothing():
    budget = Budget(Limit(tokens=1))
    budget.take(call(usage=False, status=500))
    budget.take(call(refused="no"))
    assert (budget.over, budget.told().spent_tokens) == (None, 0)


def test_a_run_goes_on_from_what_it_spent():
    budget = Budget(Limit(tokens=200, cost=10**12), PRICES)
    budget.begin(150, bill.parsed("0.5"))
    assert budget.over is None
    budget.take(call())
    assert budget.over == "max_tokens_total 200 is spent: 260 tokens"
    assert budget.told().spent_cost == "0.5002"
    spent = Budget(Limit(tokens=200))
    spent.begin(200, None)
    assert spent.over == "max_tokens_total 200 is spent: 200 tokens"


def test_what_a_killed_run_had_spent_is_read_from_its_logs(tmp_path):
    for number, lines in enumerate((entry().line() * 2, entry().line() + entry().line()[:50], b"")):
        folder = tmp_path / "episodes" / "t" / f"{number}.0"
        folder.mkdir(parents=True)
        (folder / "model.jsonl").write_bytes(lines)
    assert on_disk(tmp_path, PRICES) == (330, bill.parsed("0.0006"))
    assert on_disk(tmp_path, None) == (330, None)


def test_what_was_spent_by_an_attempt_that_is_run_again_stays_on_the_disk(tmp_path):
    again = (Episode("t", 0, 1, 5), Episode("t", 1, 0, 5))
    for kills in range(3):
        for episode in again:
            (tmp_path / episode.folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / episode.folder / "model.jsonl").write_bytes(entry().line())
        keep_lost(tmp_path, again)
        assert on_disk(tmp_path, None) == (220 * (kills + 1), None)
        assert not list(tmp_path.glob("episodes/*/*/model.jsonl"))
    keep_lost(tmp_path, again)
    assert on_disk(tmp_path, None) == (660, None)
