import os
from pathlib import Path

import pytest

from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.pack.folder import Pack
from scoresheet.publish.page import folder
from scoresheet.publish.page.episodes import Found
from tests.publish import runs, scored
from tests.publish.page import pages
from tests.run import packs


@pytest.fixture(scope="module")
def draft(tmp_path_factory) -> Path:
    return pages.write(tmp_path_factory.mktemp("draft") / "careful")


@pytest.fixture
def suite(tmp_path) -> Path:
    return scored.laid(tmp_path)


def opened(path, **more) -> folder.Open:
    found = folder.read(path, **more)
    assert isinstance(found, folder.Open)
    return found


def test_a_run_that_is_not_admissible_stays_closed_with_every_reason(draft):
    found = folder.read(draft)
    assert isinstance(found, folder.Closed)
    assert len(found.reasons) == 2
    assert not found.incomplete
    assert not hasattr(found, "page")


def test_as_a_draft_it_is_open_and_says_so(draft):
    found = opened(draft, draft=True)
    assert found.page.draft
    assert found.page.name == "careful"
    assert len(found.attempts) == 60


def test_an_admissible_run_is_open_and_no_draft(suite):
    found = opened(suite / "runs" / "careful")
    assert not found.page.draft
    assert found.page.reasons == ()


def test_an_incomplete_run_says_so_open_or_closed(tmp_path):
    path = runs.write(tmp_path / "cut", runs.plan(), runs.rows(runs.B)[:-3], confounds=b"")
    closed = folder.read(path)
    assert isinstance(closed, folder.Closed)
    assert closed.incomplete
    assert opened(path, draft=True).incomplete


def test_attempts_stand_in_order_however_they_ended(tmp_path):
    rows = [runs.row("t01", 1), runs.row("t01", 0, 0), runs.row("t00", 0, 0, exit_reason="harness_error")]
    rows += [runs.row("t00", 0, 1, attempt=1), runs.row("t00", 1, None)]
    found = opened(runs.write(tmp_path / "mixed", runs.plan(2, 2), rows), draft=True)
    assert [(each.task_id, each.repeat, each.attempt, each.fate) for each in found.attempts] == [
        ("t00", 0, 0, "lost"),
        ("t00", 0, 1, "success"),
        ("t00", 1, 0, "pending"),
        ("t01", 0, 0, "wrong"),
        ("t01", 1, 0, "success"),
    ]
    assert [(each["repeat"], each["attempt"], each["of"]) for each in found.details([*found.attempts][:2])] == [
        (0, 0, 2),
        (0, 1, 2),
    ]


def test_details_are_of_the_attempt_that_is_asked_for(draft):
    found = opened(draft, draft=True)
    (last,) = found.details([*found.attempts][-1:])
    assert last["fate"] == "unrecorded"
    assert [each["outcome"] for each in last["calls"]["rows"]] == ["hit", "hit", "miss"]
    assert [name for name, _ in last["texts"]] == ["patch.diff", "stderr"]
    (first,) = found.details([*found.attempts][:1])
    assert first["fate"] == "success"


def test_a_line_that_is_no_row_is_a_reason_and_no_attempt(tmp_path):
    path = runs.write(tmp_path / "torn", runs.plan(2, 1), [runs.row("t00")])
    with (path / "rows.jsonl").open("ab") as file:
        file.write(b'{"task_id": "../../etc"}\n{"torn')
    found = opened(path, draft=True)
    assert len(found.attempts) == 1
    assert any("rows.jsonl:2" in reason for reason in found.page.reasons)
    (path / "rows.jsonl").unlink()
    assert len(opened(path, draft=True).attempts) == 0


def test_what_is_expected_is_shown_with_the_pack_alone(suite):
    run, pack = suite / "runs" / "careful", Pack.open(suite / "packs" / "shop")
    found = opened(run, pack=pack)
    (one,) = found.details([*found.attempts][:1])
    assert one["expected"]["members"]
    found = opened(run)
    (one,) = found.details([*found.attempts][:1])
    assert "--pack PACK" in one["expected"]["why_not"]


def test_what_a_receipt_keeps_at_home_is_not_shown(suite):
    run = suite / "runs" / "careful"
    lines = (run / "receipts.jsonl").read_bytes().splitlines()
    receipt = ChainedReceipt.from_bytes(lines[0], "receipts.jsonl:1")
    changed = receipt.model_copy(update={"leaf": "quarantine", "runner_seat": None})
    lines[0] = changed.model_dump_json(by_alias=True).encode()
    (run / "receipts.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    found = opened(run, pack=Pack.open(suite / "packs" / "shop"), draft=True)
    (one,) = found.details([*found.attempts][:1])
    assert "its leaf is not score" in one["expected"]["why_not"]


def test_another_pack_than_the_run_s_is_a_reason(suite, tmp_path):
    other = packs.shop(tmp_path / "other", {"t00": "something else"}, repeats=2)
    assert isinstance(folder.read(suite / "runs" / "careful", pack=other), folder.Closed)


def test_nothing_outside_an_episode_s_folder_is_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("key")
    place = pages.episode(tmp_path, runs.row())
    os.symlink(secret, place / "stdout")
    os.mkfifo(place / "stderr")
    (place / "patch.diff").mkdir()
    found = folder.look(tmp_path, "t00", 0, 0, 1000)
    assert {name: text.head for name, text in found.texts.items()} == {"stdout": b"", "stderr": b"", "patch.diff": b""}
    assert all(text.fault and text.fault.startswith("not shown: ") for text in found.texts.values())
    (place / "calls.jsonl").unlink()
    os.symlink(secret, place / "calls.jsonl")
    assert folder.look(tmp_path, "t00", 0, 0, 1000).calls is None


@pytest.mark.parametrize("level", ["episodes", "episodes/t00", "episodes/t00/0.0"])
def test_a_folder_that_is_a_link_is_not_followed(tmp_path, level):
    pages.episode(tmp_path / "elsewhere", runs.row(), {"stdout": b"secret"})
    place = tmp_path / "run" / level
    place.parent.mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere" / level, place)
    assert folder.look(tmp_path / "run", "t00", 0, 0, 1000) == Found()


def test_of_a_large_file_only_the_head_is_read(tmp_path):
    place = pages.episode(tmp_path, runs.row())
    with (place / "stdout").open("wb") as file:
        file.truncate(1 << 40)
    text = folder.look(tmp_path, "t00", 0, 0, 1000).texts["stdout"]
    assert (len(text.head), text.size) == (1000, 1 << 40)


def test_a_journal_with_a_torn_or_endless_line_is_read_as_far_as_it_goes(tmp_path):
    place = pages.episode(tmp_path, runs.row())
    (place / "calls.jsonl").write_bytes(b"{}\n{}\n{")
    calls = folder.look(tmp_path, "t00", 0, 0, 1000).calls
    assert calls is not None
    assert (calls.lines, calls.more) == ((b"{}", b"{}", b"{"), False)
    (place / "calls.jsonl").write_bytes(b"{}\n" + b"x" * (5 << 20))
    calls = folder.look(tmp_path, "t00", 0, 0, 1000).calls
    assert calls is not None
    assert (calls.lines, calls.more) == ((b"{}",), True)
    (place / "calls.jsonl").write_bytes(b"")
    calls = folder.look(tmp_path, "t00", 0, 0, 1000).calls
    assert calls is not None
    assert calls.lines == ()
