"""A bundle laid out, and what `view` shows of it: the same as of its run, and nothing of one that does not hold."""

import shutil
from functools import partial

import pytest

from scoresheet.errors import Usage
from scoresheet.publish import laid
from scoresheet.publish.page.folder import Open
from scoresheet.publish.view import site
from scoresheet.publish.view.runs import Runs, find
from tests import command
from tests.run.packs import OBEY, shop

call = partial(command.call, ok=0)
FIVE = {f"t{number}": "careful" for number in range(5)}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with a real run, and its bundles with and without the pack."""
    folder = tmp_path_factory.mktemp("laid")
    pack = shop(folder / "pack", FIVE, repeats=1)
    call("run", pack.root, "--agent", OBEY, "--seat", "laptop-a", "--out", folder / "run", "--quiet")
    call("bundle", folder / "run", "--pack", pack.root, "-o", folder / "whole.tar")
    call("bundle", folder / "run", "-o", folder / "bare.tar")
    return folder


@pytest.fixture
def altered(scored, tmp_path):
    """That bundle with a byte of its rows flipped."""
    data = bytearray((scored / "whole.tar").read_bytes())
    data[data.index(b'"elapsed_s":') + 14] ^= 1
    (tmp_path / "altered.tar").write_bytes(data)
    return tmp_path / "altered.tar"


def journals(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("calls.jsonl")}


def test_a_bundle_is_laid_out_with_the_journals_of_its_run(scored, tmp_path):
    found = laid.lay(scored / "whole.tar", tmp_path)
    assert found.faults == ()
    assert journals(found.root) == journals(scored / "run")
    assert len(journals(found.root)) == 5
    assert found.pack is not None
    assert (found.root / "rows.jsonl").read_bytes() == (scored / "run" / "rows.jsonl").read_bytes()


def test_a_bundle_without_its_pack_has_none(scored, tmp_path):
    assert laid.lay(scored / "bare.tar", tmp_path).pack is None


def test_of_one_that_does_not_hold_no_journal_is_laid_out(altered, tmp_path):
    (tmp_path / "into").mkdir()
    found = laid.lay(altered, tmp_path / "into")
    assert {finding.rule for finding in found.faults} >= {"bundle-byte"}
    assert journals(tmp_path / "into") == {}


def test_there_must_be_a_bundle(tmp_path):
    with pytest.raises(Usage, match="can't be read"):
        laid.lay(tmp_path / "nowhere.tar", tmp_path)


def test_bundles_are_viewed_like_their_runs(scored, altered, tmp_path):
    shutil.copy(scored / "bare.tar", tmp_path / "pack")  # a name that a bundle's own folders have, too
    (tmp_path / "scratch").mkdir()
    found = find([scored / "whole.tar", tmp_path / "pack", altered, scored / "run"], tmp_path / "scratch")
    runs = Runs(found)
    whole, bare, wrong, run = runs.listed()
    assert [each.name for each in (whole, bare, wrong, run)] == ["whole.tar", "pack", "altered.tar", "run"]
    assert whole.standing == bare.standing == run.standing == "admissible"
    assert whole.figures == bare.figures == run.figures
    assert (wrong.standing, wrong.figures) == ("can't be read", ())
    assert any("bundle-byte" in reason for reason in wrong.reasons)
    opened = runs.seen("r1").found
    assert isinstance(opened, Open)
    (detail, *_) = opened.details(opened.attempts)
    assert detail["calls"]["rows"][0]["asked"] == "GET /items/1"
    assert detail["expected"]["members"] == [["price", "12", "12", 1]]
    text = "".join(site.answer(runs, "compare?run=r1&run=r3").pieces)
    assert "A run can" in text
    assert "bundle-byte" in text
