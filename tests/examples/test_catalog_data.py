"""What the catalog's questions rest on: rows, and answers worked out from them alone."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.examples.rows import invented_rows

PACKS = Path(__file__).parents[2] / "examples" / "packs"


@pytest.fixture(scope="module")
def catalog():
    """The module `examples/packs/catalog.py`."""
    spec = importlib.util.spec_from_file_location("catalog", PACKS / "catalog.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["catalog"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_question_is_asked_of_any_rows(catalog, tmp_path):
    for seed in range(10):
        data = catalog.read(invented_rows(tmp_path, seed))
        asked = catalog.questions(catalog.shuffled(data, seed) if seed % 2 else data)
        assert len(asked) == 33
        assert len({question.task_id for question in asked}) == 33


def test_other_rows_have_other_answers(catalog, tmp_path):
    data = catalog.read(invented_rows(tmp_path, 1))
    mine = {question.task_id: question.expected for question in catalog.questions(data)}
    other = {question.task_id: question.expected for question in catalog.questions(catalog.shuffled(data, 1))}
    assert sum(mine[name] != other[name] for name in mine) > len(mine) / 2


def test_a_tie_is_not_asked_about(catalog):
    rows = [{"sky": "sun"}, {"sky": "rain"}]
    with pytest.raises(ValueError, match="equally frequent"):
        catalog.most_frequent("sky", rows)
    with pytest.raises(ValueError, match="two rows have the largest wind"):
        catalog.end("date", [{"date": "a", "wind": 1}, {"date": "b", "wind": 1}], "largest", "wind")
