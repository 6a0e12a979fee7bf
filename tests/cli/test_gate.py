import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.cli import app
from scoresheet.documents.row import Row
from scoresheet.stats import bill
from tests import repositories
from tests.command import call
from tests.pack.packs import lay
from tests.publish import runs, scored
from tests.repositories import Repo

ROWS = "runs/careful/rows.jsonl"
CARDS = ("runs/careful/card.yaml", "packs/shop/card.yaml")


@pytest.fixture(autouse=True)
def no_ci(monkeypatch):
    for name in ("GITHUB_BASE_REF", "PRE_COMMIT_FROM_REF"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def suite(tmp_path: Path) -> Repo:
    """A suite that nothing was scored on yet, on a branch of its own."""
    repo = repositories.new(tmp_path / "suite", scored.without_run())
    repo.branch("pr")
    return repo


@pytest.fixture
def published(tmp_path: Path) -> Repo:
    """A suite whose main branch holds a score, quoted in its README; on a branch of its own."""
    repo = repositories.new(tmp_path / "published", scored.files() | {"README.md": scored.readme().encode()})
    repo.branch("pr")
    return repo


def gate(repo: Repo, capsys, *options: str, base: str = "main") -> tuple[int, str]:
    """Exit code and stdout."""
    capsys.readouterr()
    code = app.run(["gate", "--repo", str(repo.root), "--base", base, *options])
    return code, capsys.readouterr().out


def rules(out: str) -> set[str]:
    return set(re.findall(r"\[([a-z-]+)\]$", out, re.MULTILINE))


def test_rows_alone_are_refused_and_named_with_all_that_they_lack(suite, capsys):
    suite.commit({ROWS: scored.files()[ROWS]})
    code, out = gate(suite, capsys)
    assert code == 1
    assert f"{ROWS}: rows: refused" in out
    assert "rows without a protocol card" in out
    assert rules(out) == {"claim-run", "claim-card", "claim-receipts"}
    assert "changed files: 1\nscores judged: 1 (0 ok, 1 refused)\n" in out


def test_a_whole_run_passes(suite, capsys):
    suite.commit(scored.run_only())
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (0, set()), out
    assert out.endswith("scores ok\n")


def test_a_run_whose_card_is_nowhere_is_refused(suite, capsys):
    for card in CARDS:
        suite.write(card, b"")
    suite.commit({path: data for path, data in scored.run_only().items() if path not in CARDS})
    code, out = gate(suite, capsys)
    assert code == 1
    assert rules(out) == {"claim-card"}
    assert "no protocol card at head has the digest that it names" in out


def test_quoted_figures_are_computed_again(suite, capsys):
    text, value = scored.report()
    suite.commit(scored.run_only() | {"README.md": scored.readme().encode(), "report.json": value.encode()})
    assert gate(suite, capsys)[0] == 0
    suite.commit({"README.md": scored.readme().replace("success_mean: 0.7500", "success_mean: 0.9500")})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "error: success_mean says 0.9500, the rows give 0.7500 — README.md:6 [claim-figures]" in out
    assert rules(out) == {"claim-figures"}
    suite.commit({"README.md": text, "report.json": value.replace('"success_mean": 0.75', '"success_mean": 0.95')})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-figures"})
    assert "success_mean says 0.95, the rows give 0.75 — report.json:1" in out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("success_ci95: [0.3846, 0.9487]", "success_ci95: [0.7000, 0.8000]"),
        ("live_network: denied", "live_network: model_endpoint_only(api.example:443)"),
        ("confounds: 0", "confounds: 3"),
        ("planned: 16", "planned: 160"),
        ("never_solved: t04", "never_solved: none"),
        ("retries: 0", "retries: 0\nsuccess_mean: 0.9900"),
        ("tasks: 8", "tasks: 8\nhuman_level: 0.5000"),
    ],
)
def test_any_line_that_the_rows_do_not_give_is_refused(suite, capsys, before, after):
    assert before in scored.readme()
    suite.commit(scored.run_only() | {"README.md": scored.readme().replace(before, after).encode()})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-figures"}), out


def test_a_block_without_its_rows_is_refused(suite, capsys):
    suite.commit({"README.md": scored.readme()})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-rows"})


def test_nothing_scored_passes_and_says_how_much_was_looked_at(suite, capsys):
    suite.commit({"src/a.py": "print(1)\n", "notes.md": "protocol: we met on Monday\n"})
    code, out = gate(suite, capsys)
    assert code == 0
    assert out == "changed files: 2\nscores judged: 0\nno score changed\n"


def test_no_change_at_all_is_said_plainly(suite, capsys):
    code, out = gate(suite, capsys)
    assert code == 0
    assert out.startswith("changed files: 0: nothing changed between base and head, so nothing was judged\n")


@pytest.mark.parametrize("path", ["run.json", "receipts.jsonl", "baselines.json", "confounds.jsonl"])
def test_deleting_what_stands_behind_an_unchanged_score_is_refused(published, capsys, path):
    published.git("rm", "-q", f"runs/careful/{path}")
    published.commit()
    code, out = gate(published, capsys)
    assert code == 1, out
    assert f"{ROWS}: rows: refused" in out
    assert "README.md:6: report block: refused" in out


def test_deleting_the_last_card_behind_a_score_is_refused(published, capsys):
    published.git("rm", "-q", CARDS[0])
    published.commit()
    assert gate(published, capsys)[0] == 0  # the same card stands beside the pack
    published.git("rm", "-q", CARDS[1])
    published.commit()
    code, out = gate(published, capsys)
    assert (code, rules(out)) == (1, {"claim-card"})
    assert "README.md:6: report block: refused" in out


def test_editing_the_card_behind_a_score_is_refused(published, capsys):
    card = scored.files()[CARDS[1]].replace(b"license: Apache-2.0", b"license: MIT")
    published.commit(dict.fromkeys(CARDS, card))
    code, out = gate(published, capsys)
    assert (code, rules(out)) == (1, {"claim-card"})


def test_editing_a_frozen_task_behind_a_score_is_refused(published, capsys):
    task = scored.files()["packs/shop/tasks/t03.json"]
    published.commit({"packs/shop/tasks/t03.json": task.replace(b"12", b"13")})
    code, out = gate(published, capsys)
    assert code == 1
    assert "packs/shop/tasks/t03.json is not what the manifest pins" in out
    assert "claim-pack" in rules(out)


def test_deleting_the_manifest_behind_a_score_is_refused(published, capsys):
    published.git("rm", "-q", "packs/shop/manifest.json")
    published.commit()
    code, out = gate(published, capsys)
    assert (code, "claim-manifest" in rules(out)) == (1, True)


def test_deleting_rows_that_a_readme_still_quotes_is_refused(published, capsys):
    published.git("rm", "-q", "-r", "runs")
    published.commit()
    code, out = gate(published, capsys)
    assert (code, rules(out)) == (1, {"claim-rows"})
    published.commit({"README.md": "nothing is claimed any more\n"})
    assert gate(published, capsys)[0] == 0


def test_editing_rows_is_refused_even_when_the_readme_is_let_be(published, capsys):
    rows = scored.files()[ROWS].replace(b'"success":0', b'"success":1', 1)
    assert rows != scored.files()[ROWS]
    published.commit({ROWS: rows})
    code, out = gate(published, capsys)
    assert (code, rules(out)) == (1, {"claim-rows"})


def test_a_dropped_row_is_refused(suite, capsys):
    rows = b"".join(scored.files()[ROWS].splitlines(keepends=True)[:-1])
    suite.commit(scored.run_only() | {ROWS: rows})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"report-missing"})


def test_a_renamed_run_still_holds(published, capsys):
    published.git("mv", "runs/careful", "runs/renamed")
    published.commit()
    code, out = gate(published, capsys)
    assert code == 0, out
    assert "runs/renamed/rows.jsonl: rows: holds" in out


def test_rows_moved_away_from_their_run_are_refused(published, capsys):
    published.git("mv", ROWS, "results.jsonl")
    published.commit()
    code, out = gate(published, capsys)
    assert code == 1
    assert "results.jsonl: rows: refused" in out


def test_a_renamed_card_still_holds(published, capsys):
    published.git("mv", CARDS[1], "packs/shop/protocol.yml")
    published.git("rm", "-q", CARDS[0])
    published.commit()
    assert gate(published, capsys)[0] == 0


def test_rows_are_known_by_their_content(suite, capsys):
    suite.commit({"results/final.txt": scored.files()[ROWS]})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "results/final.txt: rows: refused" in out


def test_a_change_of_many_commits_is_judged_by_what_it_leaves(suite, capsys):
    suite.commit({ROWS: scored.files()[ROWS]})
    for number in range(20):
        suite.commit({f"notes/{number}.md": "more\n"})
    assert gate(suite, capsys)[0] == 1
    suite.commit(scored.run_only())
    assert gate(suite, capsys)[0] == 0
    suite.git("rm", "-q", "-r", "runs")
    suite.commit()
    code, out = gate(suite, capsys)
    assert (code, "changed files: 20\n" in out) == (0, True)


def test_what_the_base_did_meanwhile_is_not_this_change(suite, capsys):
    suite.commit({"notes.md": "mine\n"})
    suite.git("checkout", "-q", "main")
    suite.commit({ROWS: scored.files()[ROWS]}, "a bad score, by another road")
    suite.git("checkout", "-q", "pr")
    code, out = gate(suite, capsys)
    assert (code, "changed files: 1\n" in out) == (0, True)


def test_a_merge_of_the_base_is_not_this_change_but_one_of_a_score_is(suite, capsys):
    suite.commit({"notes.md": "mine\n"})
    suite.git("checkout", "-q", "main")
    suite.commit({"base.md": "theirs\n"})
    suite.git("checkout", "-q", "-b", "other", "main")
    suite.commit({ROWS: scored.files()[ROWS]})
    suite.git("checkout", "-q", "pr")
    suite.git("merge", "-q", "--no-edit", "main")
    code, out = gate(suite, capsys)
    assert (code, "changed files: 1\n" in out) == (0, True)
    suite.git("merge", "-q", "--no-edit", "other")
    assert gate(suite, capsys)[0] == 1


def test_a_shallow_clone_is_never_a_pass(suite, capsys, tmp_path):
    suite.commit({ROWS: scored.files()[ROWS]})
    suite.commit({"notes.md": "more\n"})
    shallow = suite.clone(tmp_path / "shallow", "--depth", "1", "--branch", "pr")
    for base in ("origin/main", "main"):
        assert gate(shallow, capsys, base=base)[0] == 2
    shallow.git("fetch", "-q", "--depth", "1", "origin", "main:refs/remotes/origin/main")
    capsys.readouterr()
    assert app.run(["gate", "--repo", str(shallow.root), "--base", "origin/main"]) == 2
    error = capsys.readouterr().err
    assert "no common commit" in error
    assert "fetch-depth: 0" in error
    shallow.git("fetch", "-q", "--unshallow", "origin")
    assert gate(shallow, capsys, base="origin/main")[0] == 1


def test_the_base_is_what_ci_says_and_it_is_said_aloud(suite, capsys, tmp_path, monkeypatch):
    suite.commit({ROWS: scored.files()[ROWS]})
    clone = suite.clone(tmp_path / "clone", "--branch", "pr")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert app.run(["gate", "--repo", str(clone.root)]) == 1
    assert "base: refs/remotes/origin/main (GITHUB_BASE_REF), from " in capsys.readouterr().err
    monkeypatch.delenv("GITHUB_BASE_REF")
    suite.git("checkout", "-q", "main")
    other = suite.clone(tmp_path / "other")
    other.git("checkout", "-q", "pr")
    assert app.run(["gate", "--repo", str(other.root)]) == 1
    assert "(the default branch of origin)" in capsys.readouterr().err


def test_without_any_base_nothing_is_passed(suite, capsys):
    assert app.run(["gate", "--repo", str(suite.root)]) == 2
    assert "--base" in capsys.readouterr().err
    assert app.run(["gate", "--repo", str(suite.root), "--base", "--all"]) == 2
    assert app.run(["gate", "--repo", str(suite.root), "--base", "nosuch"]) == 2


def test_what_is_no_repository_is_a_usage_error(tmp_path, capsys):
    assert app.run(["gate", "--repo", str(tmp_path), "--base", "main"]) == 2
    assert "git repository" in capsys.readouterr().err


def test_the_working_tree_is_not_what_is_judged(suite, capsys):
    suite.commit(scored.run_only())
    suite.write(ROWS, b"edited, not committed\n")
    (suite.root / CARDS[0]).unlink()
    assert gate(suite, capsys)[0] == 0


def test_a_repository_that_converts_line_endings_is_judged_by_its_blobs(tmp_path, capsys):
    repo = repositories.new(tmp_path / "crlf", scored.without_run())
    repo.git("config", "core.autocrlf", "true")
    repo.branch("pr")
    repo.commit(scored.run_only() | {"README.md": scored.readme().replace("\n", "\r\n").encode()})
    repo.git("checkout", "-q", "-f", "main")
    repo.git("checkout", "-q", "-f", "pr")
    assert b"\r\n" in (repo.root / ROWS).read_bytes()
    assert gate(repo, capsys)[0] == 0


def test_a_difference_of_line_endings_alone_is_called_that(suite, capsys):
    crlf = scored.files()[ROWS].replace(b"\n", b"\r\n")
    suite.commit(scored.run_only() | {"README.md": scored.readme().encode(), ROWS: crlf})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "is not the rows that was used: only its line endings (CRLF) changed" in out
    assert "* -text" in out


def test_a_quoted_block_may_have_any_line_endings(suite, capsys):
    suite.commit(scored.run_only() | {"README.md": scored.readme().replace("\n", "\r\n").encode()})
    code, out = gate(suite, capsys)
    assert (code, "README.md:6: report block: holds" in out) == (0, True), out


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"


@pytest.mark.parametrize("path", [ROWS, "runs/careful/run.json", "README.md"])
def test_a_pointer_of_git_lfs_is_refused_with_the_command_that_fetches_it(suite, capsys, path):
    suite.commit(scored.run_only() | {path: POINTER})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "claim-lfs" in rules(out)
    assert "git lfs pull" in out


def test_an_image_in_git_lfs_is_no_score(suite, capsys):
    suite.commit({"plot.png": POINTER})
    assert gate(suite, capsys)[0] == 0


def test_a_symlink_named_rows_is_refused(suite, capsys):
    suite.write("elsewhere.txt", scored.files()[ROWS][:0] + b"x\n")
    (suite.root / "runs" / "x").mkdir(parents=True)
    (suite.root / "runs" / "x" / "rows.jsonl").symlink_to("../../elsewhere.txt")
    (suite.root / "link.md").symlink_to("/etc/passwd")
    suite.commit()
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-link"})


def test_a_submodule_that_is_not_there_is_said_and_not_entered(suite, capsys, tmp_path):
    inner = repositories.new(tmp_path / "inner", {ROWS: scored.files()[ROWS]})
    suite.git("submodule", "add", "-q", f"file://{inner.root}", "vendor")
    suite.commit()
    clone = suite.clone(tmp_path / "clone", "--branch", "pr", "--no-recurse-submodules")
    assert not list((clone.root / "vendor").iterdir())
    code, out = gate(clone, capsys, base="origin/main")
    assert code == 0
    assert "note: 1 changed submodules were not entered" in out


def test_names_that_are_not_utf8_are_shown_and_break_nothing(suite, capsys):
    suite.write(b"runs/\xff\xfe\n::error::x/rows.jsonl", scored.files()[ROWS])
    suite.commit()
    code, out = gate(suite, capsys, "--format", "github")
    assert code == 1
    assert "\n::error::x" not in out
    assert "xff" in out
    out.encode()


def test_binary_markdown_is_still_read(suite, capsys):
    block = scored.report()[0].replace("0.7500", "0.9500").encode()
    suite.commit({"README.md": b"\x00\x01\xff\n" + block, "wide.md": block.decode().encode("utf-16")})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "README.md:2: report block: refused" in out
    assert "wide.md:1: report block: refused" in out


def test_a_huge_file_is_read_in_bounded_memory_and_never_skipped(suite):
    filler = b"x" * 1023 + b"\n"
    with (suite.root / "big.bin").open("wb") as file:
        file.writelines(filler for _ in range(150 << 10))
    suite.git("config", "core.compression", "1")
    suite.commit()
    script = (
        "import sys\nfrom pathlib import Path\nfrom scoresheet.cli.app import run\ncode = run(sys.argv[1:])\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\nsys.exit(code)"
    )  # not ru_maxrss: that begins with the size of the process that forked this one
    command = [sys.executable, "-c", script, "gate", "--repo", str(suite.root), "--base", "main"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 200 << 10  # KiB
    with (suite.root / "big.bin").open("ab") as file:
        file.write(scored.report()[0].encode())
    suite.commit()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "[claim-size]" in done.stdout


def test_a_draft_is_no_score_while_it_keeps_its_banner(suite, capsys):
    draft = "DRAFT: not admissible, not a score\ndraft: true\n" + scored.report()[0]
    suite.commit({"README.md": f"```text\n{draft}```\n"})
    code, out = gate(suite, capsys)
    assert (code, "report block: a draft, no score" in out) == (0, True)
    suite.commit({"README.md": f"```text\n{draft.partition(chr(10))[2]}```\n"})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "claim-draft" in rules(out)
    suite.commit({"README.md": f"<!--\n{draft[:46]}\n-->\n{scored.report()[0]}"})
    assert gate(suite, capsys)[0] == 1


def test_a_cut_block_and_a_figure_without_a_block_are_refused(suite, capsys):
    lines = scored.report()[0].splitlines()
    cut = "\n".join(line for line in lines if not line.startswith(("success_ci95", "excluded")))
    suite.commit(scored.run_only() | {"README.md": cut.encode()})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-block"})
    assert "success_ci95, excluded" in out
    suite.commit({"README.md": f"We got success_mean: 0.9900 on {lines[3]}.\n"})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-block"})


OTHER = "runs/idle/rows.jsonl"


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[dict[str, bytes], dict[str, str]]:
    """Two runs that are alike in all but the agent, and what `compare` prints of them."""
    files = scored.run_only()
    for path, data in scored.run_only().items():
        if path.endswith("rows.jsonl"):
            data = data.replace(b'"success":1', b'"success":0')
        if path.endswith("run.json"):
            data = data.replace(b"careful.py", b"idle.py").replace(b"a" * 64, b"b" * 64)
        files[path.replace("careful", "idle")] = data
    root = lay(tmp_path_factory.mktemp("both"), files)
    said = {}
    for form in ("text", "md", "json"):
        more = ["--metric", "timeout"] if form == "text" else []
        said[form] = call("compare", "runs/careful", "runs/idle", "--format", form, *more, ok=0, folder=root).stdout
    assert "A is better" in said["text"]
    return files, said


def priced(files: dict[str, bytes]) -> dict[str, bytes]:
    """The runs, with a model that read tokens at a price: those of `idle` read twice as many."""
    table = b"currency: USD\ndate: 2026-11-30\nmodels: {m: {input: 2.5, output: 10}}\n"
    found = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        if name == "run.json":
            found[f"{folder}/prices.yaml"] = table
            plan = json.loads(data) | {"prices_sha256": hashlib.sha256(table).hexdigest()}
            data = json.dumps(plan, indent=2).encode() + b"\n"
        if name == "rows.jsonl":
            lines = []
            for number, line in enumerate(data.splitlines()):
                tokens = (1000 + 10 * number) * (2 if folder.endswith("idle") else 1)
                used = {"model": "m", "calls": 1, "input": tokens, "output": 0}
                told = {"model_calls": 1, "model_untold": 0, "tokens_in": tokens, "tokens_out": 0}
                cost = bill.text(tokens * 2_500_000)
                row = Row.from_value(json.loads(line) | told | {"model_usage": [used], "cost": cost}, "rows")
                lines.append(runs.line(row))
            data = b"".join(lines)
        found[path] = data
    return found


def test_a_comparison_that_says_what_the_runs_cost_rests_on_their_bills(suite, both, capsys, tmp_path):
    files = priced(both[0])
    done = call("compare", "runs/careful", "runs/idle", ok=0, folder=lay(tmp_path, files))
    line = "cost A / B: 0.5000 [0.4999, 0.5001] A costs less, paired geometric mean"
    assert line in done.stdout.splitlines(), done.stdout
    suite.commit(files | quoting("text", done.stdout))
    code, out = gate(suite, capsys)
    assert code == 0, out
    assert ": comparison: holds\n" in out
    suite.commit(quoting("text", done.stdout.replace(line, line.replace(" 0.5000", " 0.2500"))))
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-comparison"})
    cheaper = files["runs/careful/prices.yaml"].replace(b"2.5", b"0.5")
    suite.commit(quoting("text", done.stdout) | {"runs/careful/prices.yaml": cheaper})
    code, out = gate(suite, capsys)
    assert code == 1
    assert "claim-comparison" in rules(out), out
    assert "no such line comes from the runs: cost A: " in out


def quoting(form: str, said: str) -> dict[str, bytes]:
    """The file that publishes a comparison."""
    text = f"# Result\n\n```text\n{said}```\n" if form == "text" else said
    return {"comparison.json" if form == "json" else "RESULT.md": text.encode()}


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_a_comparison_holds_with_its_runs_and_is_refused_without_them(suite, both, capsys, form):
    files, said = both
    suite.commit(quoting(form, said[form]))
    code, out = gate(suite, capsys)
    assert code == 1
    assert rules(out) == {"claim-rows"}
    suite.commit(files)
    code, out = gate(suite, capsys)
    assert code == 0, out
    assert ": comparison: holds\n" in out


@pytest.mark.parametrize(
    ("form", "before", "after"),
    [
        ("text", "A is better", "tie: unresolved"),
        ("text", "ranks: A 1; B 2", "ranks: A 1-2; B 1-2"),
        ("text", "(fewer is better", "(more is better"),
        ("text", ", 0 retries, ", ", 1 retries, "),
        ("md", "| A is better |", "| tie: unresolved |"),
        ("md", "| A | python3 careful.py", "| A | python3 other.py"),
        ("json", '"verdict": "better"', '"verdict": "equivalent"'),
        ("json", '"best_rank": 2', '"best_rank": 1'),
    ],
)
def test_a_comparison_that_its_runs_do_not_give_is_refused(suite, both, capsys, form, before, after):
    files, said = both
    assert before in said[form]
    suite.commit(files | quoting(form, said[form].replace(before, after, 1)))
    code, out = gate(suite, capsys)
    assert code == 1
    assert rules(out) == {"claim-comparison"}, out


def test_a_comparison_cut_to_its_verdict_is_refused(suite, both, capsys):
    files, said = both
    line = next(line for line in said["text"].splitlines() if line.startswith("A - B: "))
    pack = next(line for line in said["text"].splitlines() if line.startswith("manifest_sha256: "))
    suite.commit(files | {"RESULT.md": f"On {pack}:\n\n{line}\n".encode()})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-block"})
    whole = said["text"].replace(line + "\n", "")
    suite.commit({"RESULT.md": f"```\n{whole}```\n".encode()})
    code, out = gate(suite, capsys)
    assert (code, rules(out)) == (1, {"claim-comparison"})
    assert f"it lacks the line {line}" in out


def test_a_comparison_rests_on_its_rows_also_when_only_these_change(suite, both, capsys):
    files, said = both
    suite.commit(files | quoting("text", said["text"]))
    suite.git("checkout", "-q", "-b", "next")
    suite.commit({OTHER: files[OTHER].replace(b'"elapsed_s":0.25', b'"elapsed_s":0.5', 1)})
    code, out = gate(suite, capsys, base="pr")
    assert code == 1
    assert "claim-rows" in rules(out)


def test_old_scores_are_accepted_by_digest_and_never_by_path(suite, capsys):
    suite.commit({"docs/example.md": scored.readme()})
    code, out = gate(suite, capsys, "--print-accept")
    assert code == 1
    assert re.fullmatch(r"[0-9a-f]{64}  docs/example.md:6\n", out)
    suite.git("checkout", "-q", "main")
    suite.commit({"accepted.txt": f"# what was there before the gate\n{out}"})
    suite.git("checkout", "-q", "pr")
    code, out = gate(suite, capsys, "--accept", "accepted.txt")
    assert (code, "docs/example.md:6: report block: on the accept list" in out) == (0, True)
    suite.git("mv", "docs/example.md", "docs/moved.md")
    suite.commit()
    assert gate(suite, capsys, "--accept", "accepted.txt")[0] == 0
    suite.commit({"docs/moved.md": scored.readme().replace("0.7500", "0.7600")})
    assert gate(suite, capsys, "--accept", "accepted.txt")[0] == 1


def test_a_change_cannot_accept_its_own_score(suite, capsys):
    suite.commit({"docs/example.md": scored.readme()})
    line = gate(suite, capsys, "--print-accept")[1]
    suite.commit({"accepted.txt": line})
    capsys.readouterr()
    assert app.run(["gate", "--repo", str(suite.root), "--base", "main", "--accept", "accepted.txt"]) == 1
    assert "is not at the base" in capsys.readouterr().err


def test_a_list_outside_the_repository_is_read_as_it_lies(suite, capsys, tmp_path):
    suite.commit({"docs/example.md": scored.readme()})
    (tmp_path / "accepted.txt").write_text(gate(suite, capsys, "--print-accept")[1])
    assert gate(suite, capsys, "--accept", str(tmp_path / "accepted.txt"))[0] == 0
    (tmp_path / "accepted.txt").write_text("docs/example.md\n")
    assert gate(suite, capsys, "--accept", str(tmp_path / "accepted.txt"))[0] == 1
    assert gate(suite, capsys, "--accept", str(tmp_path / "nosuch.txt"))[0] == 2


def test_every_form_says_the_same(suite, capsys, tmp_path):
    suite.commit(scored.run_only() | {"README.md": scored.readme().replace("0.7500", "0.9000").encode()})
    value = json.loads(gate(suite, capsys, "--json")[1])
    assert (value["ok"], value["changed_files"], [score["state"] for score in value["scores"]]) == (
        False,
        len(scored.run_only()) + 1,
        ["ok", "refused"],
    )
    assert "::error file=README.md,line=6,title=claim-figures::" in gate(suite, capsys, "--format", "github")[1]
    (result,) = json.loads(gate(suite, capsys, "--format", "sarif")[1])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 6}
    assert 'tests="2" failures="1"' in gate(suite, capsys, "--format", "junit")[1]
    assert gate(suite, capsys, "--summary", str(tmp_path / "summary.md"))[0] == 1
    assert "## scoresheet gate: scores refused: 1 finding\n" in (tmp_path / "summary.md").read_text()


def test_variables_of_a_hook_do_not_lead_elsewhere(suite, capsys, tmp_path, monkeypatch):
    other = repositories.new(tmp_path / "other")
    suite.commit({ROWS: scored.files()[ROWS]})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    assert gate(suite, capsys)[0] == 1


def test_replacing_objects_does_not_hide_a_score(suite, capsys):
    suite.commit({"README.md": scored.readme()})
    bad = suite.git("rev-parse", "HEAD:README.md").decode().strip()
    harmless = suite.git("hash-object", "-w", "--stdin", data=b"nothing\n").decode().strip()
    suite.git("replace", bad, harmless)
    assert suite.git("show", "HEAD:README.md") == b"nothing\n"
    assert gate(suite, capsys)[0] == 1


def test_a_bare_repository_can_be_judged(suite, capsys, tmp_path):
    suite.commit({ROWS: scored.files()[ROWS]})
    bare = suite.clone(tmp_path / "bare.git", "--bare", "--branch", "pr")
    assert os.listdir(bare.root)
    assert gate(bare, capsys)[0] == 1
