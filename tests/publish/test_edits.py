"""Each member of each file of a run is edited, with all around it made to fit: it is noticed, or a printed line says
that it can't be known. A new member fails here until somebody decides which."""

import tempfile
from pathlib import Path

import pytest

from scoresheet import canonical
from scoresheet.documents.bundle import BundleIndex
from scoresheet.errors import ScoresheetError
from scoresheet.pack.folder import Pack
from scoresheet.publish import audit, bundle, run_folder, word
from tests.publish import edits
from tests.publish.test_bundle import rebuilt

UNTRIED = {
    "run.json": {"model_replayed.recording_sha256", "model_replayed.run", "model_replayed.endpoints"},
    "calls.jsonl": {"state.scenario", "state.requires", "state.sets"},
}
"""Members that none of the runs has a place for; a line stands for each."""
DOCUMENTS = sorted(edits.DOCUMENTS.keys() - {"bundle.json"})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return edits.runs(tmp_path_factory.mktemp("edits"))


def verified(run: Path, pack: Pack | None, bundled: bool) -> audit.Audit | None:
    """What verify says; `None`: it refuses to read it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            if not bundled:
                return audit.of_run(run, pack)
            known = run_folder.read(run)
            ready = bundle.Ready(run, known.plan, known.report(), run_folder.frozen_at(run), pack)
            bundle.write(ready, folder / "b.tar")
            (folder / "into").mkdir()
            return audit.of_bundle(folder / "b.tar", folder / "into")
        except ScoresheetError:
            return None


def noticed(seen: audit.Audit | None) -> bool:
    """Whether it is; a trajectory that tells of the edit does not count: its writer would have made it anew."""
    return seen is None or any(finding.rule != "row-trajectory" for finding in seen.findings)


def unknown(seen: audit.Audit | None, document: str, member: str) -> bool:
    """Whether an edit went unnoticed and no line says that it may."""
    return seen is not None and not noticed(seen) and not word.covering((*seen.word, *seen.unchecked), document, member)


def told(seen: audit.Audit | None) -> str:
    return "noticed" if seen is None or noticed(seen) else "no line says that it can't be known"


def test_the_runs_hold_as_they_are(found):
    for name, (run, pack) in found.items():
        for bundled in (False, True):
            for at_hand in (None, pack):
                seen = verified(run, at_hand, bundled)
                assert seen is not None, name
                assert [str(finding) for finding in seen.findings] == [], name


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_edited_member_is_noticed_or_said_to_be_unknown(found, tmp_path, document):
    """In a bundle without its pack, where least is at hand; in the run with its pack, where only that was lacking."""
    wrong, untried = [], set()
    for number, member in enumerate(edits.members(document)):
        place = edits.place(found, document, member)
        if place is None:
            untried.add(member)
            continue
        run = edits.copied(found[place.run][0], tmp_path / str(number))
        edits.edit(run, place, edits.edited(document, member, place.value))
        seen = verified(run, None, bundled=True)
        if unknown(seen, document, member):
            wrong.append(f"{member}, in a bundle without its pack")
        if seen is not None and not noticed(seen) and not word.covering(seen.word, document, member):
            seen = verified(run, found[place.run][1], bundled=False)
            if unknown(seen, document, member):
                wrong.append(f"{member}, in the run with its pack")
    assert wrong == []
    assert untried == UNTRIED.get(document, set())
    assert all(any(word.stands_for(line, document, each) for line in word.LINES) for each in untried)


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS)
def test_so_it_is_of_runs_and_bundles_with_the_pack_and_without(found, tmp_path, document):
    for number, member in enumerate(edits.members(document)):
        place = edits.place(found, document, member)
        if place is None:
            continue
        run = edits.copied(found[place.run][0], tmp_path / str(number))
        edits.edit(run, place, edits.edited(document, member, place.value))
        for bundled in (False, True):
            for pack in (None, found[place.run][1]):
                assert not unknown(verified(run, pack, bundled), document, member), (member, bundled, pack)


@pytest.mark.parametrize("member", edits.members("bundle.json"))
def test_every_edited_member_of_the_index_is_noticed(found, tmp_path, member):
    run, _ = found["models"]
    known = run_folder.read(run)
    bundle.write(bundle.Ready(run, known.plan, known.report()), tmp_path / "whole.tar")
    index = canonical.loads((tmp_path / "whole.tar").read_bytes()[512:].partition(b"\n")[0])
    assert isinstance(index, dict)
    value = edits.edited("bundle.json", member, index[member])
    try:
        text = BundleIndex.from_value(index | {member: value}, "bundle.json").text()
    except ScoresheetError:
        return  # no index any more
    rebuilt(tmp_path / "whole.tar", tmp_path / "b.tar", lambda files: None, text)
    (tmp_path / "into").mkdir()
    assert noticed(audit.of_bundle(tmp_path / "b.tar", tmp_path / "into"))


def test_an_added_member_would_be_noticed_or_fail_here(found, tmp_path):
    """The harness itself: an edit that nothing notices and no line stands for is told."""
    run, _ = found["calls"]
    seen = verified(run, None, bundled=False)
    assert unknown(seen, "rows.jsonl", "a_new_member")
    assert not unknown(seen, "rows.jsonl", "elapsed_s")


def test_every_member_that_a_line_stands_for_is_one():
    for line in word.LINES:
        for each in line.covers:
            file, *patterns = each.split()
            for pattern in patterns:
                lone = word.Line(line.text, (f"{file} {pattern}",))
                assert any(word.stands_for(lone, file, member) for member in edits.members(file)), (file, pattern)
