"""Trees that are looked through before an agent sees them."""

import os
import socket

import pytest

from scoresheet.errors import Usage
from scoresheet.sandbox.binds import look_through


@pytest.fixture
def tree(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "deep").mkdir(mode=0o755)
    (tmp_path / "deep" / "file").write_text("x")
    (tmp_path / "deep" / "file").chmod(0o644)
    return tmp_path


def test_a_public_tree_has_nothing_to_tell(tree):
    (tree / "link").symlink_to("/nonexistent")
    found = look_through(tree)
    assert (found.sockets, found.private) == ((), False)


def test_a_private_file_or_folder_anywhere_is_told(tree):
    (tree / "deep" / "file").chmod(0o640)
    assert look_through(tree).private
    (tree / "deep" / "file").chmod(0o644)
    (tree / "deep").chmod(0o750)
    assert look_through(tree).private
    (tree / "deep").chmod(0o755)
    tree.chmod(0o700)
    assert look_through(tree).private
    assert not look_through(tree / "deep" / "file").private


def test_sockets_are_found_and_links_are_not_followed(tree, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(str(tree / "deep" / "s"))
        other.bind(str(elsewhere / "s"))
        (tree / "link").symlink_to(elsewhere)
        assert look_through(tree).sockets == (os.path.join(tree, "deep", "s"),)


def test_nothing_to_bind_is_an_error(tree):
    with pytest.raises(Usage, match="nothing to bind"):
        look_through(tree / "absent")
