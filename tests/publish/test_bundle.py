"""A run in one file: the same bytes anywhere, every flipped byte found, every tampering named."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from scoresheet import canonical, digest
from scoresheet.cli import app
from scoresheet.digest import Digest, FileDigest
from scoresheet.documents.bundle import BundleIndex
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Refused, ScoresheetError, Usage
from scoresheet.gate import chain
from scoresheet.pack import archive
from scoresheet.pack.folder import Pack
from scoresheet.publish import audit, block, bundle, bundle_file, run_folder
from tests.command import SCORESHEET, call
from tests.run.packs import OBEY, shop

SIX = {f"t{number}": "careful" for number in range(6)}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A pack of six tasks, and a real run of it."""
    folder = tmp_path_factory.mktemp("bundled")
    pack = shop(folder / "pack", SIX, repeats=1)
    words = ["run", pack.root, "--agent", OBEY, "--seat", "laptop-a", "--out", folder / "run", "--quiet"]
    done = subprocess.run([SCORESHEET, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("admissible\n")
    return folder, pack


def made(run, out, pack=None, agent=None):
    """The bundle of a run, without asking whether the run holds."""
    folder = run_folder.read(run)
    ready = bundle.Ready(run, folder.plan, folder.report(), run_folder.frozen_at(run), pack, agent)
    return bundle.write(ready, out)


@pytest.fixture(scope="module")
def bundled(scored):
    """The bundle of that run, with its pack."""
    folder, pack = scored
    made(folder / "run", folder / "whole.tar", pack)
    return folder / "whole.tar"


def content(tar, member):
    """The bytes of a file of an open tar."""
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def verified(path, pack=None):
    with tempfile.TemporaryDirectory() as scratch:
        return audit.read(path, Path(scratch), pack)


def findings(path, pack=None):
    return [(each.rule, each.where, each.what) for each in verified(path, pack).findings]


def named(path, pack=None):
    return {(rule, where) for rule, where, _ in findings(path, pack)}


# the same bytes, and what holds


def test_a_bundle_of_a_real_run_holds_and_says_what_rests_on_the_submitters_word(bundled):
    seen = verified(bundled)
    assert seen.findings == ()
    with tarfile.open(bundled) as tar:
        assert seen.sha256 == digest.of(content(tar, "bundle.json"))
    assert "folded again from calls.jsonl and evidence.json: 6 of 6 rows" in seen.checked
    assert "answers: 6 judged again by their task's oracle" in seen.checked
    assert any("outputs" in line or "agents wrote" in line for line in seen.unchecked)
    assert len(seen.word) == 7


def test_the_same_run_gives_the_same_bytes_wherever_and_by_whom(scored, bundled, tmp_path):
    folder, _ = scored
    shutil.copytree(folder / "run", tmp_path / "elsewhere")
    shutil.copytree(folder / "pack", tmp_path / "the-pack")
    for path in sorted((tmp_path / "elsewhere").rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    (tmp_path / "elsewhere" / "report.txt").write_text("old")
    made(tmp_path / "elsewhere", tmp_path / "again.tar", Pack.open(tmp_path / "the-pack"))
    assert (tmp_path / "again.tar").read_bytes() == bundled.read_bytes()


def test_coreutils_alone_check_the_bundle(bundled, tmp_path):
    subprocess.run(["tar", "-xf", bundled, "-C", tmp_path], check=True)
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    index = json.loads((tmp_path / "bundle.json").read_text())
    assert index["sums_sha256"] == digest.of((tmp_path / "SHA256SUMS").read_bytes())
    assert index["rows_sha256"] == digest.of((tmp_path / "rows.jsonl").read_bytes())


def test_the_report_in_the_bundle_is_made_anew(scored, tmp_path):
    folder, _ = scored
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run" / "report.json").write_text("{}")
    made(tmp_path / "run", tmp_path / "b.tar")
    report = run_folder.read(tmp_path / "run").report()
    with tarfile.open(tmp_path / "b.tar") as tar:
        assert content(tar, "report.json").decode() == report.text()
        assert content(tar, "report.txt").decode() == block.text(report)
    assert findings(tmp_path / "b.tar") == []


def test_the_commands_bundle_and_verify_a_run(scored, tmp_path, capsys):
    folder, _ = scored
    words = ["bundle", str(folder / "run"), "-o", str(tmp_path / "b.tar"), "--pack", str(folder / "pack")]
    assert app.run(words) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(f" {tmp_path / 'b.tar'}")
    assert app.run(["verify", str(tmp_path / "b.tar")]) == 0
    text = capsys.readouterr().out
    assert "signature: none\n" in text
    assert "does not hold" not in text
    assert text.endswith("\nverified\n")
    assert app.run(["verify", str(folder / "run"), "--pack", str(folder / "pack"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["verified"], facts["findings"], facts["signature"]["state"]) == (True, [], "none")


def test_nothing_is_overwritten_unasked(scored, tmp_path, capsys):
    folder, _ = scored
    precious = tmp_path / "page.html"
    precious.write_text("precious")
    assert app.run(["bundle", str(folder / "run"), "-o", str(precious)]) == 2
    assert f"something is there already, and is not overwritten — {precious}\n  mend: " in capsys.readouterr().err
    assert precious.read_text() == "precious"
    assert app.run(["bundle", str(folder / "run"), "-o", str(precious), "--replace"]) == 0
    assert findings(precious) == []


def test_a_pack_that_a_receipt_bars_stays_where_it_is(scored, tmp_path):
    folder, pack = scored
    shutil.copytree(folder / "run", tmp_path / "run")
    assert bundle.carried(tmp_path / "run", pack) == (pack, "")
    path = tmp_path / "run" / "receipts.jsonl"
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(before) + last.replace(b'"score"', b'"quarantine"'))
    carried, why = bundle.carried(tmp_path / "run", pack)
    assert carried is None
    assert "quarantine" in why
    path.write_bytes(b"".join(before))
    assert bundle.carried(tmp_path / "run", pack)[0] is None


def test_the_agent_travels_with_its_bits(scored, tmp_path):
    folder, _ = scored
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "run.sh").write_text("#!/bin/sh\n")
    (agent / "run.sh").chmod(0o755)
    (agent / "notes.md").write_text("plain")
    made(folder / "run", tmp_path / "b.tar", agent=agent)
    with tarfile.open(tmp_path / "b.tar") as tar:
        assert [oct(tar.getmember(f"agent/{name}").mode) for name in ("notes.md", "run.sh")] == ["0o644", "0o755"]
    assert findings(tmp_path / "b.tar") == []


def test_a_run_that_contradicts_itself_is_not_bundled(scored, tmp_path, capsys):
    folder, _ = scored
    shutil.copytree(folder / "run", tmp_path / "run")
    edit_row(tmp_path / "run", 0, tool_calls=9)
    assert app.run(["bundle", str(tmp_path / "run"), "-o", str(tmp_path / "b.tar")]) == 1
    assert "tool_calls does not follow" in capsys.readouterr().err
    assert not (tmp_path / "b.tar").exists()


def test_nothing_is_written_into_the_run_and_nothing_is_left_behind(scored, tmp_path):
    folder, _ = scored
    with pytest.raises(Usage, match="inside the run"):
        made(folder / "run", folder / "run" / "b.tar")
    with pytest.raises(Usage, match="can't be written"):
        made(folder / "run", tmp_path / "no" / "b.tar")
    assert list(tmp_path.iterdir()) == []


# every byte


def flips(path, offsets):
    """Offsets at which a flipped byte went unseen, or was not placed."""
    unseen = []
    with path.open("r+b") as file:
        for offset in offsets:
            byte = os.pread(file.fileno(), 1, offset)
            os.pwrite(file.fileno(), bytes([byte[0] ^ (1 << offset % 8)]), offset)
            found = findings(path)
            if not found or not all(where for _, where, _ in found):
                unseen.append(offset)
            os.pwrite(file.fileno(), byte, offset)
    return unseen


@pytest.fixture
def small(scored, tmp_path):
    """A bundle of one episode, without its pack."""
    folder, _ = scored
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    rows = (run / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (run / "rows.jsonl").write_bytes(next(row for row in rows if b'"t0"' in row))
    plan = json.loads((run / "run.json").read_bytes()) | {"status": "interrupted"}
    (run / "run.json").write_bytes(canonical.pretty(plan))
    made(run, tmp_path / "small.tar")
    assert findings(tmp_path / "small.tar") == []
    return tmp_path / "small.tar"


def test_flipped_bytes_are_found_and_placed(small):
    size = small.stat().st_size
    assert flips(small, range(0, size, 199)) == []
    assert flips(small, range(0, 1536, 7)) == []  # the first headers and the index
    assert flips(small, range(size - 10240, size, 997)) == []


@pytest.mark.long
def test_every_flipped_byte_is_found_and_placed(small):
    assert flips(small, range(small.stat().st_size)) == []


def test_a_flipped_byte_is_placed_in_its_file(bundled, tmp_path):
    with tarfile.open(bundled) as tar:
        members = [(each.name, each.offset, each.offset_data, each.size) for each in tar][::4]
    path = tmp_path / "b.tar"
    shutil.copyfile(bundled, path)
    with path.open("r+b") as file:
        for name, header, content, size in members:
            for offset in (header + 100, *([content + size // 2] if size else ())):
                byte = os.pread(file.fileno(), 1, offset)
                os.pwrite(file.fileno(), bytes([byte[0] ^ 1]), offset)
                assert any(name in where for _, where, _ in findings(path)), name
                os.pwrite(file.fileno(), byte, offset)


@pytest.mark.parametrize("kept", [0, 100, 512, 5000, -1, -10240])
def test_a_cut_bundle_is_told(bundled, tmp_path, kept):
    data = bundled.read_bytes()
    (tmp_path / "cut.tar").write_bytes(data[:kept])
    assert findings(tmp_path / "cut.tar")


def test_bytes_after_the_end_are_told(bundled, tmp_path):
    (tmp_path / "more.tar").write_bytes(bundled.read_bytes() + bytes(10240))
    assert findings(tmp_path / "more.tar")[0][1] == "the end of the bundle"


# tampering, everything rebuilt around it


def edit_row(run, number, **members):
    path = run / "rows.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = canonical.line(json.loads(lines[number]) | members)
    path.write_bytes(b"".join(lines))


def a_row_edited(run):
    edit_row(run, 2, recorded_latency_ms=1.0)


def a_success_invented(run):
    edit_row(run, 2, success=0)


def an_isolation_invented(run):
    path = next(run.glob("episodes/*/*/evidence.json"))
    value = json.loads(path.read_text())
    value["checks"][0] |= {"verdict": "REACHED", "inside": "reached"}
    path.write_bytes(canonical.pretty(value))


def a_journal_edited_and_its_row_rebuilt(run):
    """One more call, with everything of the row made to follow."""
    row = json.loads((run / "rows.jsonl").read_bytes().splitlines()[0])
    path = run / "episodes" / row["task_id"] / f"{row['repeat']}.{row['attempt']}" / "calls.jsonl"
    call = json.loads(path.read_text().splitlines()[0])
    more = call | {"seq": 1, "fingerprint": "sha256:" + "5" * 64, "path": "/items/7"}
    path.write_bytes(path.read_bytes() + json.dumps(more, separators=(",", ":")).encode() + b"\n")
    edit_row(run, 0, tool_calls=2, recorded_latency_ms=80.0, calls_sha256=digest.of(path.read_bytes()))


def a_miss_hidden(run):
    row = json.loads((run / "rows.jsonl").read_bytes().splitlines()[0])
    path = run / "episodes" / row["task_id"] / f"{row['repeat']}.{row['attempt']}" / "calls.jsonl"
    call = json.loads(path.read_text()) | {"outcome": "miss", "kind": "no_match", "status": 403}
    path.write_bytes(json.dumps(call, separators=(",", ":")).encode() + b"\n")
    edit_row(run, 0, calls_sha256=digest.of(path.read_bytes()))


def a_row_dropped(run):
    path = run / "rows.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


def a_row_doubled(run):
    path = run / "rows.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[0]]))


def a_receipt_swapped(run):
    path = run / "receipts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0], lines[1] = lines[1], lines[0]
    path.write_bytes(b"".join(lines))


def a_receipt_chained_anew(run):
    found = chain.read((run / "receipts.jsonl").read_bytes())
    receipts = [each.receipt.model_copy(update={"runner_seat": "elsewhere"}) for each in found.placed]
    (run / "receipts.jsonl").write_bytes(chain.chained(receipts)[0])


def another_card(run):
    card = json.loads((run / "card.yaml").read_text())
    card["metrics"]["tie_margin"] = 0.5
    (run / "card.yaml").write_text(json.dumps(card))


def another_record(run):
    record = json.loads((run / "pack.json").read_text())
    record["tasks"]["t0"]["content_sha256"] = "5" * 64
    (run / "pack.json").write_bytes(canonical.pretty(record))
    plan = RunPlan.from_bytes((run / "run.json").read_bytes(), "run.json")
    plan = plan.model_copy(update={"pack_record_sha256": digest.of((run / "pack.json").read_bytes())})
    (run / "run.json").write_bytes(plan.text())


@pytest.mark.parametrize(
    ("tamper", "rule", "where"),
    [
        (a_row_edited, "row-follows", "rows.jsonl:3"),
        (a_success_invented, "row-oracle", "rows.jsonl:3"),
        (an_isolation_invented, "evidence-state", "evidence.json"),
        (a_journal_edited_and_its_row_rebuilt, "journal-recording", "calls.jsonl:2"),
        (a_miss_hidden, "row-follows", "rows.jsonl:1"),
        (a_row_dropped, "rows-missing", "rows.jsonl"),
        (a_row_doubled, "rows-duplicate", "rows.jsonl:7"),
        (a_receipt_swapped, "receipt-chain", "receipts.jsonl:1"),
        (a_receipt_chained_anew, "receipt-head", "receipts.jsonl"),
        (another_card, "audit-card", "card.yaml"),
        (another_record, "audit-record", "pack.json"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_was_edited_is_named_though_every_digest_was_rebuilt(scored, tmp_path, tamper, rule, where):
    folder, pack = scored
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    tamper(run)
    made(run, tmp_path / "b.tar", pack)
    assert any(found == rule and place.endswith(where) for found, place in named(tmp_path / "b.tar")), findings(
        tmp_path / "b.tar"
    )
    assert any(found == rule and place.endswith(where) for found, place in named(run, pack))


@pytest.mark.parametrize("name", ["calls.jsonl", "evidence.json", "trajectory.json"])
def test_a_pipe_in_the_place_of_an_episodes_file_is_not_waited_for(scored, tmp_path, name):
    folder, pack = scored
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    place = next(run.glob(f"episodes/*/*/{name}"))
    place.unlink()
    os.mkfifo(place)
    assert name == "trajectory.json" or any("is not there" in what for _, _, what in findings(run, pack))
    assert verified(run, pack).ok == (name == "trajectory.json")


def rebuilt(bundled, path, change, index_text=None):
    """The bundle, its files changed by `change` (path → bytes, in order), with digests and index made to fit.

    `index_text`: another bundle.json in its place.
    """
    with tarfile.open(bundled) as tar:
        files = {each.name: content(tar, each) for each in tar}
    index = BundleIndex.from_bytes(files.pop("bundle.json"), "bundle.json")
    del files["SHA256SUMS"]
    files = change(files) or files
    sums = b"".join(bundle_file.sums_line(digest.of(data), name) for name, data in files.items())
    changed = {"sums_sha256": digest.of(sums), "sums_size": len(sums), "files": len(files)}
    changed["rows_sha256"] = digest.of(files["rows.jsonl"])
    head = {"bundle.json": index_text or index.model_copy(update=changed).text(), "SHA256SUMS": sums}
    out = io.BytesIO()
    for name, data in (head | files).items():
        out.write(archive.header(name, FileDigest(Digest(digest.of(data)), len(data), False, 1)))
        out.write(data + bytes(-len(data) % 512))
    out.write(archive.end(out.tell()))
    path.write_bytes(out.getvalue())
    return path


def test_a_bundle_rebuilt_as_it_was_is_the_same(bundled, tmp_path):
    assert rebuilt(bundled, tmp_path / "b.tar", lambda files: None).read_bytes() == bundled.read_bytes()


def test_a_receipt_of_an_impossible_task_is_a_finding_and_no_crash(bundled, tmp_path):
    def edited(files):
        files["receipts.jsonl"] = files["receipts.jsonl"].replace(b'"task_id":"t3"', b'"task_id":"|3"')

    assert findings(rebuilt(bundled, tmp_path / "b.tar", edited))


def test_a_dropped_row_leaves_its_episode_behind(bundled, tmp_path):
    def dropped(files):
        files["rows.jsonl"] = b"".join(files["rows.jsonl"].splitlines(keepends=True)[1:])

    found = named(rebuilt(bundled, tmp_path / "b.tar", dropped))
    assert any(rule == "audit-episode" for rule, _ in found)
    assert ("audit-report", "report.json") in found


def test_reordered_rows_are_told_by_the_report(bundled, tmp_path):
    def reordered(files):
        files["rows.jsonl"] = b"".join(files["rows.jsonl"].splitlines(keepends=True)[::-1])

    told = [
        what for rule, _, what in findings(rebuilt(bundled, tmp_path / "b.tar", reordered)) if rule == "audit-report"
    ]
    assert any("rows_sha256" in what for what in told)


def test_an_edited_confound_log_is_told_by_the_report(bundled, tmp_path):
    def edited(files):
        entry = {"at": "2026-09-22T10:00:00Z", "by": "person", "kind": "human", "text": "nothing happened"}
        files["confounds.jsonl"] = canonical.line(entry)

    told = findings(rebuilt(bundled, tmp_path / "b.tar", edited))
    assert any(rule == "audit-report" and "confounds" in what for rule, _, what in told)


def test_an_edited_report_is_told_figure_by_figure(bundled, tmp_path):
    def better(files):
        files["report.txt"] = files["report.txt"].replace(b"timeout_rate: 0.0000", b"timeout_rate: 0.5000")

    told = findings(rebuilt(bundled, tmp_path / "b.tar", better))
    assert told == [("audit-report", "report.txt", "timeout_rate says 0.5000, the rows give 0.0000")]


def test_an_index_that_says_other_figures_is_told(bundled, tmp_path):
    data = bundled.read_bytes()
    with tarfile.open(bundled) as tar:
        index = BundleIndex.from_bytes(content(tar, "bundle.json"), "bundle.json")
    text = index.model_copy(update={"figures_sha256": "5" * 64}).text()
    (tmp_path / "b.tar").write_bytes(data[:512] + text + data[512 + len(text) :])
    assert ("bundle-index", "bundle.json") in named(tmp_path / "b.tar")


# baselines, and what judges were shown


def test_baselines_are_made_again_from_their_rows(bundled):
    with tarfile.open(bundled) as tar:
        names = [each.name for each in tar if each.name.startswith("baselines/")]
    assert names == list(bundle_file.BASELINE)
    seen = verified(bundled)
    assert "baselines: made again from the rows of both" in seen.checked
    assert not any("baselines" in each for each in seen.unchecked)


def test_baselines_stay_where_the_pack_stays_for_they_hold_its_answers(scored, tmp_path):
    folder, _ = scored
    made(folder / "run", tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as tar:
        assert not any(each.name.startswith("baselines/") for each in tar)
    assert any(each.startswith("baselines.json: the rows") for each in verified(tmp_path / "b.tar").unchecked)


def an_oracle_row_failed(files):
    rows = files["baselines/oracle/rows.jsonl"]
    files["baselines/oracle/rows.jsonl"] = rows.replace(b'"success":1', b'"success":0', 1)
    rebuild_baselines(files)


def an_oracle_row_dropped(files):
    files["baselines/oracle/rows.jsonl"] = b"".join(files["baselines/oracle/rows.jsonl"].splitlines(True)[1:])
    rebuild_baselines(files)


def a_null_row_doubled(files):
    rows = files["baselines/null/rows.jsonl"]
    files["baselines/null/rows.jsonl"] = rows + rows.splitlines(True)[0]
    rebuild_baselines(files)


def baselines_of_another_pack(files):
    plan = json.loads(files["baselines/null/run.json"]) | {"manifest_sha256": "5" * 64}
    files["baselines/null/run.json"] = canonical.pretty(plan)


def baselines_changed_round(files):
    for name in ("rows.jsonl", "run.json"):
        null, oracle = f"baselines/null/{name}", f"baselines/oracle/{name}"
        files[null], files[oracle] = files[oracle], files[null]


def a_better_verdict(files):
    files["baselines.json"] = files["baselines.json"].replace(b'"successes": 6', b'"successes": 5')


def no_oracle_rows(files):
    del files["baselines/oracle/rows.jsonl"]


def rebuild_baselines(files):
    """Let baselines.json name the digests of the rows that are there."""
    value = json.loads(files["baselines.json"])
    for kind in ("null", "oracle"):
        value[kind]["rows_sha256"] = digest.of(files[f"baselines/{kind}/rows.jsonl"])
    files["baselines.json"] = canonical.pretty(value)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (an_oracle_row_failed, "baselines.json"),
        (an_oracle_row_dropped, "baselines/oracle/rows.jsonl"),
        (a_null_row_doubled, "baselines/null/rows.jsonl:7"),
        (baselines_of_another_pack, "baselines/null/run.json"),
        (baselines_changed_round, "baselines/null/run.json"),
        (a_better_verdict, "baselines.json"),
        (no_oracle_rows, "baselines"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_baselines_that_do_not_follow_from_their_rows_are_named(bundled, tmp_path, change, where):
    assert where in {place for _, place in named(rebuilt(bundled, tmp_path / "b.tar", change))}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A run whose episodes a human judged, and its pack."""
    folder = tmp_path_factory.mktemp("judged")
    pack = shop(folder / "pack", {"a": "careful", "b": "wrong"}, repeats=1, extra={"oracle": {"kind": "human"}})
    words = ["run", pack.root, "--agent", OBEY, "--seat", "s", "--out", folder / "run", "--quiet", "--draft"]
    done = subprocess.run([SCORESHEET, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 4, done.stderr
    words = ["judge", str(folder / "run"), "--judge", "alice"]
    done = subprocess.run([SCORESHEET, *words], input="y\nn\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    made(folder / "run", folder / "judged.tar", pack)
    return folder / "judged.tar"


def test_what_judges_were_shown_is_held_against_what_they_say_that_they_saw(judged):
    seen = verified(judged)
    assert seen.findings == ()
    assert "judgments: what the judges were shown, in 2 episodes" in seen.checked


@pytest.mark.parametrize("rule", ["row-task", "row-shown"])
def test_another_task_before_the_judge_is_named(judged, tmp_path, rule):
    def edited(files):
        files["episodes/a/0.0/task.json"] = files["episodes/a/0.0/task.json"].replace(b"careful", b"generous")

    assert (rule, "episodes/a/0.0/task.json") in named(rebuilt(judged, tmp_path / "b.tar", edited))


def test_what_no_file_can_tell_is_said_to_rest_on_the_submitters_word(scored, tmp_path, capsys):
    """A time that was edited in a row, with all else made to fit, contradicts nothing: only a signer answers for it."""
    folder, pack = scored
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    edit_row(run, 2, elapsed_s=0.001, cpu_s=0.001)
    made(run, tmp_path / "b.tar", pack)
    assert app.run(["verify", str(tmp_path / "b.tar")]) == 0
    said = capsys.readouterr().out
    assert "signature: none\n" in said
    word = said.partition("on the submitter's word:\n")[2]
    assert "  - which agent ran, how it ended, what it answered, and the time, memory and tokens that it took\n" in word
    (tmp_path / "signers").write_text("")
    assert app.run(["verify", str(tmp_path / "b.tar"), "--allowed-signers", str(tmp_path / "signers")]) == 1


# malicious archives


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/evil", "pack/../../evil", "pack//evil", "pack/./evil", "evil", "pack/e\\vil", "episodes/", "x/y"],
)
def test_a_path_that_leads_elsewhere_is_refused(bundled, tmp_path, name):
    def added(files):
        return {**{path: data for path, data in files.items() if path in bundle_file.TOP}, name: b"evil"}

    found = findings(rebuilt(bundled, tmp_path / "b.tar", added))
    assert any(rule == "bundle-path" for rule, _, _ in found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar"]


@pytest.mark.parametrize(
    "names",
    [("pack/a", "pack/a-b", "pack/a/b"), ("pack/" + "x" * 300,), ("pack/" + "d/" * 900 + "x",)],
    ids=["a file that is a folder", "too long", "too deep"],
)
def test_a_name_that_no_file_can_have_is_a_finding_and_no_crash(bundled, tmp_path, names):
    def added(files):
        more = files | dict.fromkeys(names, b"x")
        return {path: more[path] for path in sorted(more, key=bundle_file.place)}

    found = findings(rebuilt(bundled, tmp_path / "b.tar", added))
    assert any(rule == "bundle-path" for rule, _, _ in found), found


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_devices_and_folders_are_refused(bundled, tmp_path, kind):
    with tarfile.open(bundled) as tar:
        at = tar.getmember("run.json").offset
    link = tarfile.TarInfo("run.json")
    link.type, link.linkname = kind, "/etc/passwd"
    data = bytearray(bundled.read_bytes())
    data[at : at + 512] = link.tobuf(tarfile.USTAR_FORMAT)[:512]
    (tmp_path / "b.tar").write_bytes(data)
    assert ("bundle-byte", "run.json") in named(tmp_path / "b.tar")


def test_a_doubled_file_is_refused(bundled, tmp_path):
    with tarfile.open(bundled) as tar:
        files = {each.name: content(tar, each) for each in tar}
    index = BundleIndex.from_bytes(files.pop("bundle.json"), "bundle.json")
    del files["SHA256SUMS"]
    pairs = [*((name, data) for name, data in files.items() if name in bundle_file.TOP)]
    pairs.insert(1, pairs[0])
    sums = b"".join(bundle_file.sums_line(digest.of(data), name) for name, data in pairs)
    text = index.model_copy(update={"sums_sha256": digest.of(sums), "sums_size": len(sums), "files": len(pairs)}).text()
    out = b""
    for name, data in [("bundle.json", text), ("SHA256SUMS", sums), *pairs]:
        out += archive.header(name, FileDigest(Digest(digest.of(data)), len(data), False, 1))
        out += data + bytes(-len(data) % 512)
    (tmp_path / "b.tar").write_bytes(out + archive.end(len(out)))
    assert any(rule == "bundle-order" for rule, _ in named(tmp_path / "b.tar"))


def test_a_huge_size_is_refused_at_once_and_a_sparse_giant_is_no_bundle(bundled, tmp_path):
    data = bytearray(bundled.read_bytes())
    data[:512] = archive.header("bundle.json", FileDigest(Digest(""), 8**11 - 1, False, 1))
    (tmp_path / "b.tar").write_bytes(data)
    assert named(tmp_path / "b.tar") == {("bundle-cut", "bundle.json")}
    with (tmp_path / "giant.tar").open("wb") as file:
        file.truncate(1 << 40)
    assert named(tmp_path / "giant.tar") == {("bundle-byte", "bundle.json")}
    assert "this is no bundle" in str(findings(tmp_path / "giant.tar"))


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b" + bytes(600), b"PK\x03\x04" + bytes(600), os.urandom(4096)])
def test_what_is_no_bundle_is_said_to_be_none(tmp_path, data):
    (tmp_path / "b.tar").write_bytes(data)
    assert findings(tmp_path / "b.tar")


def test_a_bundle_without_its_run_is_told(bundled, tmp_path):
    def without(files):
        return {path: data for path, data in files.items() if path != "run.json"}

    found = named(rebuilt(bundled, tmp_path / "b.tar", without))
    assert ("audit-run", "run.json") in found


@pytest.mark.parametrize("left", [None, b""])
def test_a_run_without_a_row_is_not_verified_and_not_bundled(scored, tmp_path, left):
    run = tmp_path / "run"
    shutil.copytree(scored[0] / "run", run)
    (run / "rows.jsonl").unlink()
    if left is not None:
        (run / "rows.jsonl").write_bytes(left)
    for words in (["verify", run], ["bundle", run, "-o", tmp_path / "b.tar"]):
        done = call(*words)
        assert done.returncode == 1, done.stderr
        assert "nothing of this run can be checked" in done.stdout + done.stderr
    assert not (tmp_path / "b.tar").exists()


def test_memory_stays_flat_as_journals_grow(scored, tmp_path):
    folder, _ = scored
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    row = json.loads((run / "rows.jsonl").read_bytes().splitlines()[0])
    path = run / "episodes" / row["task_id"] / "0.0" / "calls.jsonl"
    call = json.loads(path.read_text())
    with path.open("wb") as file:
        for seq in range(6_000):
            file.write(canonical.line(call | {"seq": seq, "body": "x" * 7000}))
    edit_row(run, 0, tool_calls=6_000, recorded_latency_ms=240_000.0, calls_sha256=digest.of_file(path).sha256)
    assert path.stat().st_size > 40 << 20
    tracemalloc.start()
    try:
        made(run, tmp_path / "b.tar")
        assert findings(tmp_path / "b.tar") == []
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_errors_are_of_the_house(tmp_path):
    with pytest.raises(Usage):
        verified(tmp_path / "none.tar")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Usage):
        verified(tmp_path / "fifo")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScoresheetError):
        verified(tmp_path / "empty")
    assert issubclass(Refused, ScoresheetError)
