"""Cassettes of Betamax and of Ruby's VCR."""

import json
import zlib

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays


def rules(result):
    return [finding.rule for finding in result.left_out]


def test_real_betamax_cassettes_freeze_and_answer(tmp_path):
    done = imported("betamax", (CORPUS / "betamax",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 9
    assert not done.left_out
    org = next(call.response() for call in task.calls if call.request.path.startswith("/orgs/"))
    assert json.loads(zlib.decompress(org.body, wbits=31))["login"]


def test_real_cassettes_of_ruby_freeze_and_answer(tmp_path):
    done = imported("betamax", (CORPUS / "ruby-vcr",), tmp_path / "pack")
    replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == 2


def test_a_betamax_body_that_is_missing_is_never_empty():
    entry = {
        "request": {"method": "GET", "uri": "https://api.test/", "body": "", "headers": {}},
        "response": {
            "status": {"code": 200},
            "headers": {"Content-Length": ["3"]},
            "body": {"string": "", "encoding": None},
        },
    }
    assert rules(gathered("betamax", json.dumps({"http_interactions": [entry]}))) == ["import-body-missing"]


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("betamax", text, "f.json")
