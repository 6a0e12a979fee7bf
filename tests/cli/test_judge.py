import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scoresheet import canonical
from scoresheet.cli import app
from scoresheet.cli.judge_screen import text, visible
from scoresheet.documents.judgment import Judgment
from scoresheet.errors import Malformed, Refused, Usage
from scoresheet.publish import run_folder
from scoresheet.run.judging import judge_of
from scoresheet.run.judgments import Material, Pending, read
from tests.publish.judged import PATCH, waiting
from tests.publish.runs import row

COMMAND = [sys.executable, "-m", "scoresheet", "judge"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return waiting(tmp_path / "run")


def judged(run: Path, keys: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What the installed command does with keys from a pipe."""
    command = [*COMMAND, str(run), "--judge", "alice", *options]
    return subprocess.run(command, input=keys, capture_output=True, text=True, timeout=300)


def lines(run: Path) -> list[Judgment]:
    return [Judgment.from_bytes(each, "j") for each in (run / "judgments.jsonl").read_bytes().splitlines()]


def test_a_run_with_pending_judgments_is_incomplete(run, capsys):
    assert app.run(["report", str(run)]) == 4
    assert "6 of 6 planned episodes wait for a human's judgment" in capsys.readouterr().out


def test_piped_keys_judge_one_a_line_and_the_report_folds_them_in(run, capsys):
    before = (run / "rows.jsonl").read_bytes()
    done = judged(run, "y\nn\npass\nfail\ny\ny\n")
    assert (done.returncode, done.stdout) == (0, "judged: 6, pending: 0\n")
    assert [each.verdict for each in lines(run)] == ["pass", "fail", "pass", "fail", "pass", "pass"]
    assert {each.judge for each in lines(run)} == {"alice"}
    assert (run / "rows.jsonl").read_bytes() == before  # never rewritten
    assert app.run(["report", str(run), "--draft", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["success_mean"] == 0.6667
    assert (report["pending"], report["judging"]["judged"], report["judging"]["judges"]) == (0, 6, ["alice"])
    assert json.loads((run / "report.json").read_text()) == report
    assert "judged: 6 episodes by alice, blind; 0 pending\n" in (run / "report.txt").read_text()


def test_an_end_of_input_leaves_the_rest_for_the_next_call(run):
    first = judged(run, "y\nn\n")
    assert (first.returncode, first.stdout) == (4, "judged: 2, pending: 4\n")
    assert "4 episodes wait for a judge" in first.stderr
    second = judged(run, "y\ny\ny\ny\n")
    assert (second.returncode, second.stdout) == (0, "judged: 4, pending: 0\n")
    assert len({each.row_sha256 for each in lines(run)}) == 6


def test_judging_is_blind(run):
    seen = judged(run, "s\n" * 6)
    both = seen.stdout + seen.stderr.replace(str(run), "")
    assert both.count("Write a greeting") == 6
    for secret in ("secret-agent", "secret-host", "repeat", "attempt", "a" * 64):
        assert secret not in both
    assert next(line for line in both.splitlines() if "──" in line).startswith("── 1 of 6 ")


def test_a_skipped_episode_comes_last_and_skipping_all_ends(run):
    done = judged(run, "s\ny\ny\ny\ny\ny\nn\n")
    assert (done.returncode, lines(run)[-1].verdict) == (0, "fail")
    first_shown = [line for line in done.stderr.splitlines() if "Write a greeting" in line]
    assert first_shown[0] == first_shown[-1]


def test_undo_withdraws_by_a_line_of_its_own_and_shows_it_again(run):
    done = judged(run, "y\nu\nn\nu\nq\n")
    assert (done.returncode, done.stdout) == (4, "judged: 0, pending: 6\n")
    assert [each.verdict for each in lines(run)] == ["pass", "withdrawn", "fail", "withdrawn"]
    assert len({each.row_sha256 for each in lines(run)}) == 1
    assert "there is no decision of yours to undo" in judged(run, "u\nq\n").stderr


def test_undo_reaches_back_to_an_earlier_call_but_not_to_another_judge(run):
    judged(run, "y\n")
    other = subprocess.run(
        [*COMMAND, str(run), "--judge", "bob"], input="u\nn\nq\n", capture_output=True, text=True, timeout=60
    )
    assert "no decision of yours" in other.stderr
    assert [(each.judge, each.verdict) for each in lines(run)] == [("alice", "pass"), ("bob", "fail")]
    judged(run, "u\nq\n")
    assert [(each.judge, each.verdict) for each in lines(run)][2:] == [("alice", "withdrawn")]
    assert read((run / "judgments.jsonl").read_bytes()).findings == ()


def test_of_two_judges_at_once_one_is_kept(run):
    """Both have the same episode before them; the second to decide is told, and adds nothing."""
    judge, other = judge_of(run, "alice"), judge_of(run, "bob")
    pending = judge.queue()[0]
    assert other.queue()[0] == pending
    assert judge.decide(pending, "pass", "5" * 64) is not None
    assert other.decide(pending, "fail", "5" * 64) is None
    assert [(each.judge, each.verdict) for each in lines(run)] == [("alice", "pass")]


def test_many_judges_at_once_never_judge_an_episode_twice(tmp_path):
    run = waiting(tmp_path / "run", tasks=4, repeats=5)
    names = ("alice", "bob", "carol")
    processes = [
        subprocess.Popen([*COMMAND, str(run), "--judge", name], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for name in names
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"y\n" * 20)
        process.stdin.close()
    for process in processes:
        assert process.wait(120) == 0
    found = read((run / "judgments.jsonl").read_bytes())
    assert (len(found.standing), found.lines, found.findings) == (20, 20, ())


def test_a_judge_that_is_killed_loses_no_decision_and_its_torn_line_is_cut(run):
    judged(run, "y\ny\n")
    with (run / "judgments.jsonl").open("ab") as file:
        file.write(b'{"task_id":"t0')
    assert "judgments-torn" in {finding.rule for finding in run_folder.read(run).evidence.findings}
    done = judged(run, "y\n" * 4)
    assert (done.returncode, done.stdout) == (0, "judged: 4, pending: 0\n")
    assert run_folder.read(run).evidence.findings == ()


def test_an_edited_decision_stops_judging_and_keeps_the_report_a_draft(run):
    judged(run, "n\ny\ny\ny\ny\ny\n")
    path = run / "judgments.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"verdict":"fail"', b'"verdict":"pass"'))
    reasons = " ".join(map(str, run_folder.read(run).unmet))
    assert "judgments-chain" in reasons
    assert judged(run, "u\n").returncode == 1


def test_a_decision_on_a_row_that_is_not_there_is_named(run):
    judged(run, "y\n" * 6)
    rows = (run / "rows.jsonl").read_bytes()
    (run / "rows.jsonl").write_bytes(rows.replace(b'"elapsed_s":0.25', b'"elapsed_s":0.26'))
    found = run_folder.read(run)
    assert {finding.rule for finding in found.evidence.findings} == {"judgments-row"}
    assert found.outcomes.count("pending") == 6  # the edited rows have no judgment


def test_a_patch_that_is_not_the_rows_is_not_shown(run):
    for path in run.rglob("patch.diff"):
        path.write_bytes(b"+ something nicer\n")
    done = judged(run, "y\n")
    assert done.returncode == 1
    assert "the patch is not the one that the row names" in done.stderr
    assert not (run / "judgments.jsonl").exists()


def test_an_episode_without_its_task_says_so(run):
    for path in run.rglob("task.json"):
        path.unlink()
    judge = judge_of(run, "alice")
    with pytest.raises(Malformed, match="what the agent was asked"):
        judge.material(judge.queue()[0])


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_judge_has_a_name(run, name):
    with pytest.raises(Usage):
        judge_of(run, name)


def test_a_broken_file_of_judgments_is_refused(run):
    (run / "judgments.jsonl").write_bytes(b"{}\n")
    with pytest.raises(Refused):
        judge_of(run, "alice").queue()


def test_the_facts_are_there_as_json(run):
    done = judged(run, "y\nq\n", "--json")
    assert json.loads(done.stdout) == {"judge": "alice", "decided": 1, "pending": 5, "judgments": 1}


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\n── 1 of 1 ──\ny it is right\n\u202egnp.exe\x9b31m\u2028z"


def test_hostile_output_neither_steers_the_terminal_nor_looks_like_ours(tmp_path):
    run = waiting(tmp_path / "run", 1, 1, answer={"text": HOSTILE}, patch_left_out=("a\x1b[1m: symlink",))
    seen = judged(run, "q\n").stderr
    assert not {char for char in seen if not char.isprintable()} - {"\n"}
    assert "\\x1b[2J" in seen
    assert "+print('\\x1b[2Jyes')" in seen
    assert "a\\x1b[1m: symlink" in seen
    ours = [line for line in seen.splitlines() if not line.startswith("  │ ")]
    assert len([line for line in ours if line.startswith("──")]) == 1


def test_a_prompt_that_has_lines_like_ours_stays_behind_its_bar():
    shown = text(Pending(row("t", 0, None, patch_lines=0), "0" * 64), Material("a\n── 2 of 2\nb", None, b""))
    assert "\n  │ ── 2 of 2\n" in shown


def test_what_is_long_is_cut_and_says_how_much_is_left():
    material = Material("x\n" * 1000, None, b"")
    pending = Pending(row("t", 0, None), "0" * 64)
    assert "  … 600 more lines: v shows them all" in text(pending, material)
    assert "more lines" not in text(pending, material, None)
    long = Material("x" * 10_000, None, b"")
    assert "x… 6000 more characters: v\n" in text(pending, long)
    assert "x" * 10_000 in text(pending, long, None)


def test_text_of_any_language_stays_as_it_is():
    assert visible("Grüße, 世界 ✓\t→") == "Grüße, 世界 ✓\t→"
    assert visible("\x07\u200b\U000e0001") == "\\x07\\u200b\\U000e0001"


class Terminal:
    """The command on a real pseudo-terminal."""

    def __init__(self, run: Path) -> None:
        self.host, inside = pty.openpty()
        command = [*COMMAND, str(run), "--judge", "alice"]
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, env={**os.environ, "TERM": "xterm"},
            start_new_session=True, preexec_fn=lambda: _own(inside),
        )  # fmt: skip
        os.close(inside)
        self.seen = ""

    def until(self, wanted: str, count: int = 1) -> None:
        """Read until `wanted` was seen `count` times."""
        end = time.monotonic() + 60
        while self.seen.count(wanted) < count:
            assert time.monotonic() < end, self.seen
            if select.select([self.host], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.host, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        assert self.seen.count(wanted) >= count, self.seen

    def press(self, keys: bytes) -> None:
        os.write(self.host, keys)

    def end(self) -> int:
        """Exit status, with everything read that it wrote."""
        while True:
            try:
                part = os.read(self.host, 65536)
            except OSError:  # Linux: the last writer has closed the terminal
                break
            self.seen += part.decode("utf-8", "replace")
        code = self.process.wait(120)
        os.close(self.host)
        return code


def _own(terminal: int) -> None:
    """Make it the controlling terminal, so that Ctrl-C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(run: Path) -> Iterator[Terminal]:
    made = Terminal(run)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_one_key_decides_on_a_terminal(run, terminal):
    for number, key in enumerate(b"ynyyny", 1):
        terminal.until("q quit", number)
        terminal.press(bytes([key]))
    assert terminal.end() == 0
    assert "judged: 6, pending: 0" in terminal.seen
    assert [each.verdict for each in lines(run)] == ["pass", "fail", "pass", "pass", "fail", "pass"]
    assert "\x1b[2J" not in terminal.seen
    assert "\\x1b[2Jyes" in terminal.seen


def test_pasted_and_unknown_keys_judge_nothing(run, terminal):
    terminal.until("q quit")
    terminal.press(b"yyyyyy")  # nobody has seen what the later ones would judge
    terminal.until("q quit", 2)
    terminal.press(b"\x1b[A")
    terminal.until("q quit", 3)
    assert not (run / "judgments.jsonl").exists()
    terminal.press(b"q")
    assert terminal.end() == 4
    assert "yyy" not in terminal.seen  # no echo


def test_an_interrupt_ends_as_130_and_what_was_decided_stays(run, terminal):
    terminal.until("q quit")
    terminal.press(b"y")
    terminal.until("q quit", 2)
    terminal.press(b"\x03")
    assert terminal.end() == 130
    assert [each.verdict for each in lines(run)] == ["pass"]


def test_a_killed_judge_leaves_every_decision_on_the_disk(run, terminal):
    terminal.until("q quit")
    terminal.press(b"n")
    terminal.until("q quit", 2)
    terminal.process.send_signal(signal.SIGKILL)
    terminal.process.wait(120)
    assert [each.verdict for each in lines(run)] == ["fail"]
    assert judged(run, "y\n" * 5).returncode == 0


def test_every_decision_is_bound_to_what_was_shown(run):
    judged(run, "y\n")
    (made,) = lines(run)
    view = json.loads((run / "episodes" / made.task_id / f"{made.repeat}.0" / "task.json").read_text())
    shown = Material(view["prompt"], {"text": f"hello {int(made.task_id[1:])}"}, PATCH)
    assert made.shown_sha256 == shown.sha256
    there = [canonical.loads(each) for each in (run / "rows.jsonl").read_bytes().splitlines()]
    assert {"task_id": made.task_id, "repeat": made.repeat}.items() <= max(
        (canonical.as_object(each) for each in there),
        key=lambda each: (each["task_id"], each["repeat"]) == (made.task_id, made.repeat),
    ).items()
