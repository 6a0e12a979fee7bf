"""What transcripts have in common: calls by id, results as text, tools as models are told of them."""

import pytest

from scoresheet.record.importers.calls import JSON, TEXT, Calls, arguments_of, describe, media, result, words
from scoresheet.record.importers.intake import Intake
from scoresheet.record.importers.shape import LeftOut


def test_results_are_text():
    assert result("ü") == "ü".encode()
    assert result([{"type": "text", "text": "a"}, "b"]) == b"ab"
    assert result({"b": 1.0, "a": 2}) == b'{"a":2,"b":1}'
    for odd in (None, 7, [{"type": "image_url"}], [{"type": "text"}]):
        with pytest.raises(LeftOut):
            result(odd)


def test_a_result_is_json_when_it_is():
    assert media(b'{"a": 1}') == JSON
    assert media(b"plain") == TEXT


def test_arguments_are_json_text_or_a_value():
    assert [arguments_of(each) for each in ('{"a": 1}', "", None, {"a": 1})] == [{"a": 1}, {}, {}, {"a": 1}]
    for odd in ("{", '{"a": 1, "a": 2}', "NaN"):
        with pytest.raises(LeftOut):
            arguments_of(odd)


def test_calls_stand_in_the_order_in_which_they_were_made():
    intake = Intake()
    calls = Calls(intake)
    calls.made("1", "x", "f", {})
    calls.made("2", "y", "g", {})
    assert calls.answered("y", "2")
    assert calls.answered("x", "1")
    assert not calls.answered("z", "3")
    calls.finish()
    assert [exchange.request.target for exchange in intake.gathered().exchanges] == ["f", "g"]


def test_tools_are_described_nested_or_flat():
    intake = Intake()
    nested = {"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}
    describe("w", [nested, {"type": "function", "name": "b"}, {"type": "web_search"}, 7], intake)
    result = intake.gathered()
    assert [tool.name for tool in result.tools] == ["a", "b"]
    assert [finding.rule for finding in result.left_out] == ["import-tool"]


def test_the_words_of_a_message_are_its_text():
    assert words(" a ") == "a"
    assert words([{"type": "text", "text": "a"}, {"type": "image_url"}]) == "a"
    assert words(None) == ""
