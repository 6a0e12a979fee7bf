"""What a run directory holds of the baselines: the verdict, and the rows that it is made of where these are at hand."""

import pytest

from scoresheet import atomic_file
from scoresheet.run import baselines, journal
from tests.publish import runs


@pytest.fixture
def made(tmp_path):
    """A folder with both runs, and their verdict."""
    folder = tmp_path / "runs" / "sound-baselines"
    for kind, successes in (("null", 0), ("oracle", 1)):
        plan = runs.plan(2, 1)
        plan = plan.model_copy(update={"agent": plan.agent.model_copy(update={"kind": kind})})
        runs.write(folder / kind, plan, [runs.row(f"t{task:02}", 0, successes) for task in range(2)])
    found = baselines.of_runs(folder)
    assert found.sound
    atomic_file.replace(folder / journal.BASELINES, found.text())
    return folder, found


def laid(out):
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


WHOLE = sorted(
    ["baselines.json", *(f"baselines/{kind}/{name}" for kind in ("null", "oracle") for name in baselines.FILES)]
)


def test_the_rows_of_both_are_laid_beside_the_verdict(made):
    folder, found = made
    out = folder.parent / "careful"
    out.mkdir()
    baselines.lay(found, out)
    assert laid(out) == WHOLE
    again = baselines.of_runs(out / baselines.FOLDER)
    assert (again.null, again.oracle) == (found.null, found.oracle)


@pytest.mark.parametrize("given", ["", journal.BASELINES])
def test_they_are_found_where_they_were_given(made, tmp_path, given):
    folder, found = made
    out = tmp_path / "elsewhere" / "careful"
    out.mkdir(parents=True)
    baselines.lay(found, out, str(folder / given))
    assert laid(out) == WHOLE


def test_a_run_beside_it_that_carries_them_will_do(made, tmp_path):
    folder, found = made
    first, second = tmp_path / "two" / "first", tmp_path / "two" / "second"
    for out in (first, second):
        out.mkdir(parents=True)
    baselines.lay(found, first, str(folder))
    baselines.lay(found, second)
    assert laid(second) == WHOLE


def test_rows_of_another_digest_are_not_taken(made):
    folder, found = made
    out = folder.parent / "careful"
    out.mkdir()
    rows = folder / "null" / journal.ROWS
    rows.write_bytes(rows.read_bytes().replace(b'"success":0', b'"success":1'))
    baselines.lay(found, out)
    assert laid(out) == ["baselines.json"]
