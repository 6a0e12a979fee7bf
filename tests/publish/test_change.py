import hashlib
import io
from pathlib import Path

import pytest

from scoresheet.errors import Usage
from scoresheet.publish.change import Repository, shown
from tests import repositories
from tests.repositories import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = repositories.new(tmp_path / "repo", {"a.txt": "a\n" * 50, "b.txt": "b\n", "d/e.txt": "e\n"})
    made.branch("pr")
    return made


def changes(repo: Repo, base: str = "main") -> dict[tuple[str | None, str | None], str]:
    """(old path, new path) → content now."""
    with Repository(repo.root) as repository:
        return {
            (each.old_path, each.new_path): repository.read(each.new, 1 << 20).data.decode() if each.new else ""
            for each in repository.change(base).files
        }


def test_adds_edits_renames_and_deletes_are_seen(repo):
    repo.git("mv", "a.txt", "moved.txt")
    repo.git("rm", "-q", "d/e.txt")
    repo.commit({"b.txt": "B\n", "c.txt": "c\n"})
    assert changes(repo) == {
        ("a.txt", "moved.txt"): "a\n" * 50,
        ("b.txt", "b.txt"): "B\n",
        (None, "c.txt"): "c\n",
        ("d/e.txt", None): "",
    }


def test_no_configuration_of_the_users_changes_what_is_seen(repo):
    for name, value in (
        ("diff.renames", "copies"), ("core.quotePath", "true"), ("diff.noprefix", "true"), ("diff.external", "false"),
        ("color.ui", "always"), ("core.autocrlf", "true"), ("diff.orderFile", "/nonexistent"),
    ):  # fmt: skip
        repo.git("config", name, value)
    repo.git("config", "--unset", "diff.orderFile")
    repo.commit({"ä b.txt": "ä\r\n"})
    assert list(changes(repo)) == [(None, "ä b.txt")]


def test_a_subfolder_gives_paths_from_the_top(repo):
    repo.commit({"d/f.txt": "f\n"})
    with Repository(repo.root / "d") as repository:
        change = repository.change("main")
        assert [each.new_path for each in change.files] == ["d/f.txt"]
        assert set(repository.files(change.head)) == {"a.txt", "b.txt", "d/e.txt", "d/f.txt"}
        assert repository.mentioning(change.head, "f") == ("d/f.txt",)
        assert repository.mentioning(change.head, "nowhere") == ()


def test_names_hold_any_bytes_and_are_shown_harmlessly(repo):
    repo.write(b"n\xff\n\x1b[31m.txt", b"x")
    repo.commit()
    ((_, path),) = changes(repo)
    assert path is not None
    assert path.encode("utf-8", "surrogateescape") == b"n\xff\n\x1b[31m.txt"
    assert shown(path) == "n\\xff\\u000a\\u001b[31m.txt"


@pytest.mark.parametrize("size", [0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 3, 1 << 20])
def test_files_are_read_whole_and_bounded_and_the_next_one_is_not_disturbed(repo, size):
    data = bytes(range(256)) * (size // 256 + 1)
    repo.commit({"big.bin": data[:size]})
    with Repository(repo.root) as repository:
        files = repository.files("HEAD")
        part = repository.read(files["big.bin"], 10)
        assert (part.sha256, part.size) == (hashlib.sha256(data[:size]).hexdigest(), size)
        assert (part.data, part.whole) == (data[:size][:10], size <= 10)
        out = io.BytesIO()
        repository.copy(files["big.bin"], out)
        assert out.getvalue() == data[:size]
        assert repository.read(files["b.txt"], 10).data == b"b\n"


@pytest.mark.parametrize("at", [0, (1 << 18) - 4, (1 << 18) - 1, 1 << 18])
def test_a_mark_is_found_wherever_it_stands(repo, at):
    repo.commit({"big.bin": b"x" * at + b"needle" + b"y" * 9})
    with Repository(repo.root) as repository:
        found = repository.read(repository.files("HEAD")["big.bin"], 0, (b"needle", b"absent"))
        assert found.marks == {b"needle"}


def test_an_object_that_is_missing_is_an_error_and_no_empty_file(repo):
    repo.commit({"c.txt": "c\n"})
    oid = repo.git("rev-parse", "HEAD:c.txt").decode().strip()
    (repo.root / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    with Repository(repo.root) as repository:
        entry = repository.files("HEAD")["c.txt"]
        with pytest.raises(Usage, match="missing"):
            repository.read(entry, 10)


def test_histories_without_a_common_commit_are_refused(repo):
    repo.git("checkout", "-q", "--orphan", "alone")
    repo.commit({"x.txt": "x\n"})
    with Repository(repo.root) as repository, pytest.raises(Usage, match="no common commit"):
        repository.change("main")


def test_a_folder_that_is_no_repository_is_refused(tmp_path):
    with pytest.raises(Usage, match="git refuses"), Repository(tmp_path):
        pass
