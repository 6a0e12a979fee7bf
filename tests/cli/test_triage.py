"""`scoresheet triage` on task cards and packs: leaf, reason and what to do, and a receipt of each."""

import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scoresheet.cli import app
from scoresheet.gate import receipts
from scoresheet.pack import bundle_digest
from tests.run.packs import shop

VECTORS = Path(__file__).parents[1] / "vectors"
GOOD = {
    "task_id": "fix-1",
    "goal": "mend the parser",
    "oracle_kind": "pytest",
    "mutation_scope": "workspace",
    "writable_root": "/work",
    "age_hours": 2,
    "stale_after_hours": 24,
    "leak_flag": False,
}


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "fixtures"
    folder.mkdir()
    (folder / "parser.py").write_text("def parse(text):\n    return text.split()\n")
    (folder / "test_parser.py").write_text("def test_it():\n    assert True\n")
    return folder


def triage(tmp_path, card, *more):
    (tmp_path / "task.json").write_text(json.dumps(card))
    return app.run(["triage", str(tmp_path / "task.json"), "--quiet", *map(str, more)])


def test_a_card_whose_bundle_is_what_it_says_gets_score(tmp_path, bundle, capsys):
    card = GOOD | {"fixture_sha256": bundle_digest.v2_of(bundle)}
    assert triage(tmp_path, card, "--bundle", bundle, "--seat", "laptop-a") == 0
    out, err = capsys.readouterr()
    assert out == "score: fix-1: oracle, scope, digest and age hold. Bind a runner seat, then run\n"
    found = receipts.read(tmp_path / "receipts.jsonl")
    assert found is not None
    assert str(found.head) in err
    assert (found.findings, found.latest["fix-1"].runner_seat) == ((), "laptop-a")
    assert found.latest["fix-1"].manifest_sha256 is None


@pytest.mark.parametrize("formula", [bundle_digest.v1_of, bundle_digest.v2_of])
@pytest.mark.parametrize("prefix", ["", "sha256:"])
def test_both_formulas_are_accepted_by_their_value(tmp_path, bundle, formula, prefix):
    assert triage(tmp_path, GOOD | {"fixture_sha256": prefix + formula(bundle)}, "--bundle", bundle) == 0


def test_a_digest_that_the_files_contradict_counts_as_missing(tmp_path, bundle, capsys):
    card = GOOD | {"fixture_sha256": bundle_digest.v2_of(bundle)}
    (bundle / "parser.py").write_text("changed\n")
    assert triage(tmp_path, card, "--bundle", bundle) == 1
    out, err = capsys.readouterr()
    assert out == "refresh: fix-1: no fixture digest. Rebuild locally; do not score\n"
    assert "its digest counts as missing" in err


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"oracle_kind": ""}, "refuse: fix-1: no oracle kind"),
        ({"leak_flag": True}, "refuse: fix-1: the leak flag is set"),
        ({"mutation_scope": "secrets"}, "quarantine: fix-1: the mutation scope is secrets. Do not upload the bundle"),
        ({"writable_root": None}, "quarantine: fix-1: the scope is workspace, but no writable root is named"),
        ({"age_hours": 25}, "refresh: fix-1: 25 hours old, over the window of 24. Rebuild locally; do not score"),
    ],
)
def test_each_leaf_is_told_with_its_reason_and_what_to_do(tmp_path, members, told, capsys):
    card = GOOD | {"fixture_sha256": "ab" * 32} | members
    assert triage(tmp_path, {name: value for name, value in card.items() if value is not None}, "--seat", "s") == 1
    assert capsys.readouterr().out.startswith(told)
    assert json.loads((tmp_path / "receipts.jsonl").read_text())["runner_seat"] is None


def test_the_age_is_taken_from_the_time_of_freezing(tmp_path, capsys):
    old = (datetime.now(UTC) - timedelta(hours=30)).isoformat()
    card = {name: value for name, value in GOOD.items() if name != "age_hours"}
    assert triage(tmp_path, card | {"fixture_sha256": "ab" * 32, "frozen_at": old}) == 1
    assert capsys.readouterr().out.startswith("refresh: fix-1: ")
    young = datetime.now(UTC).isoformat()
    assert triage(tmp_path, card | {"fixture_sha256": "ab" * 32, "frozen_at": young}) == 1, "the same bytes, made young"
    assert triage(tmp_path, card | {"fixture_sha256": "cd" * 32, "frozen_at": young}) == 0


def test_a_leak_in_the_bundle_refuses_it_and_the_receipts_remember_that(tmp_path, bundle, capsys):
    token = "glpat-" + secrets.token_hex(10)
    (bundle / "notes.txt").write_text(f"token = {token}\n")
    card = GOOD | {"fixture_sha256": bundle_digest.v2_of(bundle)}
    assert triage(tmp_path, card, "--bundle", bundle) == 1
    out, err = capsys.readouterr()
    assert out.startswith("refuse: fix-1: the leak flag is set. Do not call a model")
    assert f"{bundle}/notes.txt:1" in err
    assert triage(tmp_path, card | {"task_id": "another"}) == 1, "without its bundle, under another name"
    assert triage(tmp_path, card, "--receipts", tmp_path / "new.jsonl") == 0, "a file that knows nothing"
    assert token not in out + err + (tmp_path / "receipts.jsonl").read_text()


def test_a_misspelt_card_is_an_error_and_no_leaf(tmp_path, capsys):
    assert triage(tmp_path, GOOD | {"mutation_scop": "network"}) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "mutation_scop" in err
    assert not (tmp_path / "receipts.jsonl").exists()


def test_samples_of_the_published_leaves_through_the_command(tmp_path, capsys):
    table = json.loads((VECTORS / "leaves.json").read_text())
    for number, row in enumerate(table["rows"][::151]):
        *facts, leaf = row
        card = {name: fact for name, fact in zip(table["columns"][:-1], facts, strict=True) if fact is not None}
        file = tmp_path / f"{number}.jsonl"  # each by itself: a shared file would remember the leaks
        assert triage(tmp_path, card, "--receipts", file) == (0 if leaf == "score" else 1), row
        assert capsys.readouterr().out.startswith(f"{leaf}: "), row


def test_the_published_receipts_through_the_command(tmp_path, capsys):
    for number, case in enumerate(json.loads((VECTORS / "receipts.json").read_text())):
        card = {name: value for name, value in case["card"].items() if value is not None}
        seat = ["--seat", case["seat"]] if case["seat"] else []
        triage(tmp_path, card, "--json", "--receipts", tmp_path / f"{number}.jsonl", *seat)
        printed = json.loads(capsys.readouterr().out)
        assert {name: printed[name] for name in case["receipt"]} == case["receipt"]


def test_every_task_of_a_pack_is_told(tmp_path, capsys):
    pack = shop(tmp_path / "pack", {"a": "careful", "b": "careful"}, repeats=1)
    assert app.run(["triage", str(pack.root), "--seat", "s"]) == 0
    assert capsys.readouterr().out.count("score: ") == 2
    found = receipts.read(pack.root / "receipts.jsonl")
    assert found is not None
    assert {receipt.manifest_sha256 for receipt in found.latest.values()} == {pack.manifest_sha256}
    assert pack.verify() == ()


def test_a_changed_file_leaves_every_task_without_a_digest(tmp_path, capsys):
    pack = shop(tmp_path / "pack", {"a": "careful", "b": "careful"}, repeats=1)
    (pack.root / "tasks" / "a.json").write_text("{}")
    assert app.run(["triage", str(pack.root)]) == 1
    out, err = capsys.readouterr()
    assert "refuse: a: no oracle kind" in out
    assert "refresh: b: no fixture digest" in out
    assert "tasks/a.json" in err


def test_a_pack_whose_receipts_were_edited_is_refused(tmp_path, capsys):
    pack = shop(tmp_path / "pack", {"a": "careful"}, repeats=1)
    app.run(["triage", str(pack.root)])
    path = pack.root / "receipts.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"leaf":"score"', b'"leaf":"refuse"'))
    capsys.readouterr()
    assert app.run(["triage", str(pack.root)]) == 1
    assert "[receipt-leaf]" in capsys.readouterr().err


def test_a_bundle_beside_a_pack_is_a_wrong_call(tmp_path, bundle, capsys):
    pack = shop(tmp_path / "pack", {"a": "careful"}, repeats=1)
    assert app.run(["triage", str(pack.root), "--bundle", str(bundle)]) == 2


def test_a_fifo_in_the_bundle_is_not_opened(tmp_path, bundle):
    card = GOOD | {"fixture_sha256": bundle_digest.v2_of(bundle)}
    os.mkfifo(bundle / "pipe")
    assert triage(tmp_path, card, "--bundle", bundle) == 1


@pytest.mark.parametrize(("name", "what"), [("card.yaml", "protocol card"), ("tasks/t.json", "task of a pack")])
def test_what_is_no_task_card_is_named_and_so_is_what_to_give(name, what, tmp_path, capsys):
    pack = shop(tmp_path / "pack", {"t": "careful"})
    assert app.run(["triage", str(pack.root / name), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: this is a {what}, not a task card — {pack.root / name}\n")
    assert f"  mend: scoresheet triage {pack.root} decides on " in told
    assert not list(tmp_path.rglob("receipts.jsonl"))
