import hashlib
import os

import pytest

from scoresheet.errors import Usage
from scoresheet.publish.page import file


def test_a_page_is_written_whole_and_named_by_its_digest(tmp_path):
    path = tmp_path / "page.html"
    digest = file.write(path, iter(["<p>", "é", "</p>"]))
    assert path.read_text(encoding="utf-8") == "<p>é</p>"
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_nothing_is_overwritten_unless_that_was_said(tmp_path, kind):
    path = tmp_path / "page.html"
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(Usage, match="not overwritten"):
        file.write(path, ["new"])
    assert not (tmp_path / "nowhere").exists()
    file.write(path, ["new"], replace=True)
    assert path.read_text() == "new"
    assert not path.is_symlink()


def test_a_place_that_can_not_be_written_says_so(tmp_path):
    with pytest.raises(Usage, match="the page can't be written: there is no such folder"):
        file.write(tmp_path / "absent" / "page.html", ["x"])
