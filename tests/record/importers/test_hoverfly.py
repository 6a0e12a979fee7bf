"""Hoverfly simulations."""

import pytest

from scoresheet.errors import Malformed
from tests.record.importers.replayed import CORPUS, gathered, imported, replays


def test_real_simulations_freeze_and_answer(tmp_path):
    done = imported("hoverfly", (CORPUS / "hoverfly",), tmp_path / "pack")
    task = replays(tmp_path / "pack", tmp_path / "run")
    assert done.calls == len(task.calls) == 4
    assert {finding.rule for finding in done.left_out} == {"import-pattern"}
    assert b"base64 encoded" in [call.response().body for call in task.calls]


@pytest.mark.parametrize("text", ["", "7", "[1", '"x"', "{}", '{"item": 7, "data": 7, "mappings": 7}', "[" * 100_000])
def test_what_is_of_another_format_is_refused(text):
    with pytest.raises(Malformed):
        gathered("hoverfly", text, "f.json")
