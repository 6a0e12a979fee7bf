"""Runs as they lie: read, read again when they change, and never through a link."""

import json
import os
import shutil
from pathlib import Path

import pytest

from scoresheet.documents.comparison import Comparison
from scoresheet.errors import Usage
from scoresheet.pack.folder import Pack
from scoresheet.publish.page import render
from scoresheet.publish.page.folder import Closed, Open
from scoresheet.publish.view import site, stamp
from scoresheet.publish.view.runs import NotCompared, Runs, Sources, Unreadable, find
from tests.publish import runs as made
from tests.publish import scored
from tests.publish.page import pages

HOSTILE = "<script>document.title='owned'</script>&\"'\x1b[2J\n"


def succeed(run, *task_ids):
    """Let the episodes of these tasks alone succeed."""
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_bytes().splitlines()]
    for row in rows:
        row["success"] = int(row["task_id"] in task_ids)
    (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs side by side: an admissible one, another of the same pack, a draft, one that can't be read, a baseline."""
    root = tmp_path_factory.mktemp("runs")
    suite = scored.laid(root / "suite")
    careful = root / "careful"
    shutil.copytree(suite / "runs" / "careful", careful)
    hasty = root / "hasty"
    shutil.copytree(careful, hasty)
    succeed(hasty, "t00", "t01")
    pages.write(root / HOSTILE.replace("/", "_"))
    shutil.copytree(careful, root / "torn")
    (root / "torn" / "run.json").write_text("{")
    null = root / "null"
    shutil.copytree(careful, null)
    plan = json.loads((null / "run.json").read_text())
    plan["agent"]["kind"] = "null"
    succeed(null)
    (null / "run.json").write_text(json.dumps(plan))
    shutil.rmtree(suite)
    return root


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the admissible run, to be spoiled."""
    shutil.copytree(folder / "careful", tmp_path / "careful")
    return tmp_path / "careful"


def page(runs, target):
    found = site.answer(runs, target)
    return found.status, "".join(found.pieces)


def test_runs_below_a_directory_are_found_and_links_are_not_followed(folder, tmp_path):
    (tmp_path / "runs").mkdir()
    shutil.copytree(folder / "careful", tmp_path / "runs" / "careful")
    (tmp_path / "runs" / "nothing").mkdir()
    (tmp_path / "runs" / "link").symlink_to(folder / "hasty")
    (tmp_path / "runs" / "some.tar").write_bytes(b"")
    found = find([tmp_path / "runs", folder / "hasty", folder / "hasty"], tmp_path)
    assert found.paths == (tmp_path / "runs" / "careful", folder / "hasty")
    assert found.passed == (
        "link in runs is a link, and was not followed",
        "some.tar in runs was not read: name a bundle itself",
        "no run lies in 1 folder of runs: nothing",
    )


def test_a_folder_is_named_also_where_view_was_started_in_it(folder, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    shutil.copytree(folder / "careful", tmp_path / "runs" / "careful")
    (tmp_path / "runs" / "link").symlink_to(folder / "hasty")
    monkeypatch.chdir(tmp_path / "runs")
    assert find([Path(".")], tmp_path).passed == ("link in runs is a link, and was not followed",)


def test_a_directory_without_a_run_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(Usage, match="no run lies here"):
        find([tmp_path / "empty"], tmp_path)


def test_every_path_that_is_neither_a_run_nor_a_bundle_is_named_at_once(folder, tmp_path):
    (tmp_path / "README.md").write_text("# no bundle\n" * 100)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bundles").mkdir()
    (tmp_path / "bundles" / "a.tar").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    wrong = [tmp_path / name for name in ("README.md", "empty", "bundles", "pipe")]
    with pytest.raises(Usage, match="no run lies in 4 of the 5 paths") as refused:
        find([wrong[0], folder / "careful", *wrong[1:]], tmp_path)
    for path, why in zip(wrong, ("no bundle", "has a run.json", "name them", "is a file"), strict=True):
        assert f"{path} (" in refused.value.where
        assert why in refused.value.where
    assert "scoresheet run --out DIR" in refused.value.mend


def test_folders_without_a_run_beside_runs_are_told(folder, tmp_path):
    shutil.copytree(folder / "careful", tmp_path / "careful")
    (tmp_path / "notes").mkdir()
    (tmp_path / "old").mkdir()
    assert find([tmp_path], tmp_path).passed == (f"no run lies in 2 folders of {tmp_path.name}: notes, old",)


def test_a_run_whose_rows_are_gone_while_its_page_is_made_is_told(copy, monkeypatch):
    runs = Runs(Sources((copy,)))
    seen = runs.seen("r1")
    assert isinstance(seen.found, Open)
    monkeypatch.setattr(runs, "seen", lambda key: seen)  # what was read before they went
    (copy / "rows.jsonl").write_text("{}\n")
    status, text = page(runs, "run/r1")
    assert (status, "careful changed while it was read" in text, "rows.jsonl" in text) == (503, True, True)
    (copy / "rows.jsonl").unlink()
    status, text = page(runs, "run/r1")
    assert (status, "careful changed while it was read" in text) == (503, True)
    assert "rows.jsonl: No such file or directory" in text
    assert str(copy) not in text


def test_a_run_that_can_not_be_read_is_no_page_like_others(folder):
    status, text = page(Runs(Sources((folder / "torn",))), "run/r1")
    assert (status, "torn can&#39;t be read" in text) == (503, True)


def test_the_list_shows_figures_of_admissible_runs_alone(folder):
    found = find([folder], folder)
    listed = {run.name: run for run in Runs(found).listed()}
    careful = listed["careful"]
    assert careful.standing == "admissible"
    assert careful.figures[0][0] == "success_mean"
    assert careful.figures[0][1].startswith("0.7500 [")
    assert careful.reasons == ()
    draft = next(run for name, run in listed.items() if name.startswith("<script>"))
    assert (draft.standing, draft.figures) == ("not admissible", ())
    assert any("no protocol card" in reason for reason in draft.reasons)
    assert (listed["torn"].standing, listed["null"].standing) == ("can't be read", "baseline")
    assert listed["null"].figures == ()
    assert [run.key for run in listed.values()] == [f"r{number}" for number in range(1, len(found.paths) + 1)]


def test_no_figure_of_an_inadmissible_run_is_on_any_page(folder):
    path = next(each for each in folder.iterdir() if each.name.startswith("<script>"))
    report = made.plan()  # its mean is that of the worked example
    assert report.repeats == 5
    runs = Runs(Sources((path,)))
    for target in ("", "run/r1"):
        status, text = page(runs, target)
        assert status == 200
        assert "0.7333" not in text
        assert "no protocol card" in text
    open_ = Runs(Sources((path,)), draft=True)
    assert "0.7333" not in page(open_, "")[1]
    status, text = page(open_, "run/r1")
    assert "0.7333" in text
    assert "DRAFT" in text


def test_what_others_wrote_is_text_on_every_page(folder):
    found = find([folder], folder)
    runs = Runs(found)
    for target in ("", "?text=<script>x", *(f"run/{key}" for key in runs), "compare?run=r1&run=r2", "compare?run=<b>"):
        _, text = page(runs, target)
        assert "<script>document" not in text
        assert "<script>x" not in text
        assert "<b>" not in text
        assert "\x1b" not in text


def test_a_run_that_changed_a_moment_ago_is_read_again_for_the_next_change_might_not_be_seen(copy, monkeypatch):
    monkeypatch.setattr(stamp, "_SETTLED_NS", 10**18)
    runs = Runs(Sources((copy,)))
    assert runs.seen("r1") is not runs.seen("r1")
    page(runs, "run/r1")
    assert runs.pages.get("r1", b"") is None


@pytest.fixture
def drawn(monkeypatch):
    """What is rendered, page by page."""
    made = []
    run = render.run

    def counted(*given):
        made.append(given)
        return run(*given)

    monkeypatch.setattr(render, "run", counted)
    return made


def test_a_page_is_made_once_while_nothing_of_the_run_changes(copy, settled, drawn):
    runs = Runs(Sources((copy,)))
    first = page(runs, "run/r1")
    assert page(runs, "run/r1") == first
    assert len(drawn) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda run: (run / "episodes/t04/0.0/patch.diff").write_text("+ another line\n"),
        lambda run: (run / "episodes/t04/0.0/calls.jsonl").write_text(""),
        lambda run: shutil.rmtree(run / "episodes" / "t04"),
        lambda run: shutil.copy(run / "confounds.jsonl", run / "confounds.new").replace(run / "confounds.jsonl"),
        lambda run: shutil.move(run / "episodes/t04", run / "episodes/t05"),
    ],
    ids=["a patch", "calls", "an episode gone", "the same bytes in another file", "an episode elsewhere"],
)
def test_a_page_is_made_again_when_anything_that_it_shows_changes(tmp_path, settled, drawn, change):
    run = pages.write(tmp_path / "run", (1, 0, 5, 5, 2), repeats=1)
    runs = Runs(Sources((run,)), draft=True)
    page(runs, "run/r1")
    page(runs, "run/r1")
    assert len(drawn) == 1
    shutil.rmtree(run / "episodes" / "t05", ignore_errors=True)
    change(run)
    _, after = page(runs, "run/r1")
    assert len(drawn) == 2
    assert after == page(Runs(Sources((run,)), draft=True), "run/r1")[1]


@pytest.fixture
def settled(monkeypatch):
    """Files that changed a moment ago count as settled: so nobody need wait."""
    monkeypatch.setattr(stamp, "_SETTLED_NS", -(10**18))


def test_a_run_is_read_again_when_its_files_change(copy, settled):
    runs = Runs(Sources((copy,)))
    before = runs.seen("r1")
    assert runs.seen("r1") is before
    assert isinstance(before.found, Open)
    with (copy / "rows.jsonl").open("ab") as rows:
        rows.write(b"{}\n")
    after = runs.seen("r1")
    assert isinstance(after.found, Closed)
    assert after.listed.figures == ()
    shutil.rmtree(copy)
    assert isinstance(runs.seen("r1").found, Unreadable)


@pytest.mark.parametrize(
    "name", ["run.json", "rows.jsonl", "confounds.jsonl", "card.yaml", "receipts.jsonl", "pack.json"]
)
def test_a_link_or_a_pipe_among_its_files_is_not_read(copy, tmp_path, name):
    (tmp_path / "secret").write_text("a secret of this machine\n")
    for lay in (lambda path: path.symlink_to(tmp_path / "secret"), os.mkfifo):
        (copy / name).unlink()
        lay(copy / name)
        runs = Runs(Sources((copy,)))
        seen = runs.seen("r1")
        assert seen.listed.standing == "can't be read"
        assert f"{name}: " in seen.listed.reasons[0]
        for target in ("", "run/r1", "compare?run=r1&run=r1"):
            assert "secret" not in page(runs, target)[1]


def test_runs_are_compared_behind_the_gate_of_compare(folder):
    runs = Runs(
        Sources(
            (
                folder / "careful",
                folder / "hasty",
                folder / "null",
                folder / "torn",
            )
        )
    )
    found = runs.compare(["r1", "r2", "r3"])
    assert isinstance(found, Comparison)
    assert [run.name for run in found.runs] == ["careful", "hasty", "null"]
    status, text = page(runs, "compare?run=r1&run=r2&metric=timeout")
    assert status == 200
    assert "A careful against B hasty" in text
    assert 'href="run/r2"' in text


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ([], "A comparison needs two runs"),
        (["r1"], "A comparison needs two runs"),
        (["r1", "r1"], "A comparison needs two runs"),
        (["r1", "r3"], "A comparison needs two runs"),
        (["r1", "r9"], "No such run"),
        (["r1", "../../etc/passwd"], "No such run"),
        (["r1", "r4"], "A run can't be read"),
        (["r1", "r5"], "They are one and the same run"),
        (["r1", "r6"], "The runs are not comparable"),
        (["r1", "r7"], "A run is not admissible"),
    ],
)
def test_what_is_not_compared_says_why(folder, tmp_path, keys, what):
    same, other = tmp_path / "same", next(each for each in folder.iterdir() if each.name.startswith("<script>"))
    shutil.copytree(folder / "careful", same)
    unmet = tmp_path / "unmet"
    shutil.copytree(folder / "hasty", unmet)
    (unmet / "confounds.jsonl").unlink()
    paths = [folder / "careful", folder / "hasty", folder / "null", folder / "torn", same, other, unmet]
    found = Runs(Sources(tuple(paths))).compare(keys)
    assert isinstance(found, NotCompared)
    assert found.what == what
    assert found.reasons
    assert bool(found.fields) == (what == "The runs are not comparable")


def test_runs_that_are_not_alike_are_set_side_by_side_field_by_field(folder):
    other = next(each for each in folder.iterdir() if each.name.startswith("<script>"))
    _, shown = page(Runs(Sources((folder / "careful", other))), "compare?run=r1&run=r2")
    assert '<th scope="row">manifest_sha256</th><td><small>A careful</small>' in shown
    assert "<small>B &lt;script&gt;" in shown


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("run", 404),
        ("run/", 404),
        ("run/r9", 404),
        ("run/../r1", 404),
        ("run/r1/", 404),
        ("run/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("../../etc/passwd", 404),
        ("/etc/passwd", 404),
        ("compare/", 404),
        ("compare/x", 404),
        ("rows.jsonl", 404),
        ("\x00", 404),
        ("a" * 9000, 414),
        ("?" + "&".join(f"a{number}" for number in range(1000)), 400),
        ("?text=%ff%fe", 200),
    ],
)
def test_no_address_names_a_file(folder, target, status):
    found, text = page(Runs(Sources((folder / "careful",))), target)
    assert found == status
    assert "root:" not in text


def test_the_list_is_filtered_by_its_address(folder):
    runs = Runs(
        Sources(
            (
                folder / "careful",
                folder / "hasty",
            )
        )
    )
    _, text = page(runs, "?text=HASTY")
    assert 'href="run/r2"' in text
    assert 'href="run/r1"' not in text
    assert "1 of 2 runs" in text
    _, none = page(runs, "?text=nobody")
    assert "No run is like that" in none


def test_an_address_that_looks_like_a_broken_host_is_refused_without_an_error():
    for target in ("/[", "/[x]y", "//["):
        assert page(Runs(Sources(())), target)[0] in (400, 404), target


def test_a_pack_that_was_edited_after_the_run_is_not_compared_either(tmp_path):
    suite = scored.laid(tmp_path / "suite")
    careful, hasty = suite / "runs" / "careful", tmp_path / "hasty"
    shutil.copytree(careful, hasty)
    succeed(hasty, "t00", "t01")
    pack = Pack.open(next(suite.rglob("manifest.json")).parent)
    edited = pack.root / next(iter(pack.manifest.tasks))
    edited.write_bytes(edited.read_bytes() + b"\n")
    runs = Runs(Sources((careful, hasty)), [pack])
    assert {run.standing for run in runs.listed()} == {"not admissible"}
    assert isinstance(Runs(Sources((careful, hasty))).compare(["r1", "r2"]), Comparison)
    found = runs.compare(["r1", "r2"])
    assert isinstance(found, NotCompared)
    assert found.what == "A run is not admissible"
