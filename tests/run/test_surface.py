"""What of a patch grades, and what of it could bend the grading: a table of both."""

import pytest

from scoresheet.run import surface
from scoresheet.run.patch import Change, File, Link
from scoresheet.run.surface import Frozen

START = (b"shop.py", b"src/pkg/a.py", b"tests/test_a.py", b"tests/conftest.py", b"pyproject.toml", b"setup.cfg")
FROZEN = Frozen(START, (b"tests",), (b"hidden/test_h.py",))
PYPROJECT = b'[project]\nname = "a"\n[tool.pytest.ini_options]\naddopts = "-q"\n'


def new(path, content=b"x\n"):
    return Change(path, None, File(content))


def edit(path, before=b"a\n", after=b"b\n"):
    return Change(path, File(before), File(after))


def gone(path):
    return Change(path, File(b"a\n"), None)


def link(path, target):
    return Change(path, None, Link(target))


def judged(*changes, frozen=FROZEN):
    return surface.judged(changes, frozen)


@pytest.mark.parametrize(
    "change",
    [
        new(b"conftest.py"),
        new(b"deep/down/conftest.py"),
        link(b"conftest.py", b"shop.py"),
        edit(b"tests/conftest.py"),
        gone(b"tests/conftest.py"),
        new(b"pytest.ini"),
        new(b"tests/pytest.ini"),
        new(b".pytest.ini"),
        new(b"pytest.toml"),
        new(b"tox.ini", b"[pytest]\naddopts = -k nothing\n"),
        edit(b"setup.cfg", b"[metadata]\nname = a\n", b"[metadata]\nname = a\n[tool:pytest]\naddopts = -x\n"),
        edit(b"setup.cfg", b"", b"[options.entry_points]\npytest11 = \n  a = b\n"),
        edit(b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b"-q", b"-p evil")),
        edit(b"pyproject.toml", PYPROJECT, b"not toml ["),
        Change(b"pyproject.toml", File(PYPROJECT), None),
        Change(b"pyproject.toml", File(PYPROJECT), Link(b"other.toml")),
        new(b"sitecustomize.py"),
        new(b"src/sitecustomize.py"),
        new(b"sitecustomize/__init__.py"),
        new(b"src/usercustomize/__init__.py"),
        new(b"sitecustomize.cpython-311-x86_64-linux-gnu.so"),
        new(b"usercustomize.py"),
        new(b"evil.pth"),
        new(b"lib/evil.egg-link"),
        new(b"evil-1.0.dist-info/entry_points.txt"),
        new(b"src/evil.egg-info/entry_points.txt"),
        new(b"shop.pyc"),
        new(b"__pycache__/gone.cpython-311.pyc"),
        new(b"pytest.py"),
        new(b"_pytest/__init__.py"),
        new(b"pluggy/__init__.py"),
        new(b"src/json.py"),
        new(b"random.cpython-311-x86_64-linux-gnu.so"),
        new(b"__init__.py"),
        link(b"data", b"/etc/passwd"),
        link(b"src/out", b"../../x"),
        link(b"tests", b"elsewhere"),
        link(b"hidden", b"elsewhere"),
        new(b"hidden"),
    ],
    ids=lambda change: surface.shown(change.path),
)
def test_the_grading_surface_is_reported_and_grades_nothing(change):
    found = judged(change)
    assert found.kept == ()
    assert len(found.touched) == 1
    assert found.touched[0].startswith(surface.shown(change.path) + ": ")


@pytest.mark.parametrize(
    "change",
    [
        edit(b"shop.py"),
        gone(b"shop.py"),
        new(b"pages.py"),
        new(b"src/pkg/json.py"),
        new(b"src/pkg/types.py"),
        new(b"test/data.txt"),
        new(b"conftest.txt"),
        new(b"docs/tox.md"),
        new(b"tox.ini", b"[tox]\nenvlist = py311\n"),
        edit(b"setup.cfg", b"[metadata]\nname = a\n", b"[metadata]\nname = b\n"),
        edit(b"pyproject.toml", PYPROJECT, PYPROJECT.replace(b'"a"', b'"b"')),
        link(b"src/alias.py", b"pkg/a.py"),
        link(b"src/up", b"../shop.py"),
        new(b"new\nline\xff"),
    ],
    ids=lambda change: surface.shown(change.path),
)
def test_ordinary_work_is_graded(change):
    found = judged(change)
    assert found.kept == (change,)
    assert found.touched == found.tests_changed == found.tests_added == ()


def test_frozen_tests_that_changed_are_told_apart_from_tests_that_were_added():
    found = judged(
        edit(b"tests/test_a.py"), new(b"tests/test_mine.py"), new(b"test_other.py"), new(b"tests/data.json", b"{}")
    )
    assert found.tests_changed == ("tests/test_a.py",)
    assert found.tests_added == ("test_other.py", "tests/data.json", "tests/test_mine.py")
    assert [change.path for change in found.kept] == [b"test_other.py"]
    assert found.touched == ()


def test_code_that_names_the_test_runner_is_graded_and_reported():
    change = edit(b"shop.py", b"x = 1\n", b"import _pytest.runner\n")
    assert judged(change).kept == (change,)
    assert judged(change).touched == (f"shop.py: {surface.SPEAKS}",)
    assert judged(new(b"test_b.py", b"import pytest\n"), edit(b"shop.py", b"pytest", b"pytest!")).touched == ()


def test_what_lies_where_a_hidden_test_will_lie_is_not_graded():
    found = judged(new(b"hidden/test_h.py"))
    assert (found.kept, found.tests_changed, found.tests_added) == ((), (), ("hidden/test_h.py",))


def test_a_folder_of_tests_that_became_a_file_is_named():
    found = judged(gone(b"tests/test_a.py"), gone(b"tests/conftest.py"), new(b"tests"))
    assert found.tests_changed == ("tests/conftest.py", "tests/test_a.py")
    assert "tests: in the place of a folder of tests" in found.touched
    assert found.kept == ()


def test_no_file_is_laid_where_a_restored_one_lies():
    """A folder in the place of a restored file, and a file in the place of a restored file's folder."""
    frozen = Frozen((b"pytest.ini", b"a/conftest.py", b"shop.py"), (b"tests",))
    found = judged(
        gone(b"pytest.ini"), new(b"pytest.ini/x"), gone(b"a/conftest.py"), new(b"a"), edit(b"shop.py"), frozen=frozen
    )
    assert [change.path for change in found.kept] == [b"shop.py"]
    assert "a: in the place of what is laid back" in found.touched
    assert "pytest.ini/x: in the place of what is laid back" in found.touched


def test_a_file_may_take_the_place_of_an_ordinary_folder():
    changes = (gone(b"src/pkg/a.py"), new(b"src/pkg"))
    assert judged(*changes).kept == changes


PYC = b"\xa7\x0d\r\n" + bytes(12)
UNCHECKED = b"\xa7\x0d\r\n\x01\0\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("path", "content", "cache"),
    [
        (b"__pycache__/shop.cpython-311.pyc", PYC, True),
        (b"tests/__pycache__/test_a.cpython-311-pytest-9.2.0.pyc", PYC, True),
        (b".pytest_cache/v/cache/lastfailed", b"{}", True),
        (b"__pycache__/other.cpython-311.pyc", PYC, False),
        (b"__pycache__/shop.cpython-311.pyc", UNCHECKED, False),
        (b"shop.pyc", PYC, False),
        (b"shop.py", b"", False),
        (b".pytest_cache/shop.pyc", PYC, False),
    ],
)
def test_what_an_honest_test_run_leaves_is_no_work(path, content, cache):
    assert surface.is_cache(path, set(START), content) is cache


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({b"pyproject.toml": b"[project]\n"}, None),
        ({b"pyproject.toml": PYPROJECT, b"setup.cfg": b"[tool:pytest]\n"}, b"pyproject.toml"),
        ({b"pytest.ini": b"", b"pyproject.toml": PYPROJECT}, b"pytest.ini"),
        ({b"tox.ini": b"[tox]\n", b"setup.cfg": b"[tool:pytest]\na = 1\n"}, b"setup.cfg"),
    ],
)
def test_the_configuration_is_the_one_that_pytest_takes(files, expected):
    assert surface.configuration(files) == expected


def test_the_graded_tree_is_the_start_with_the_patch_and_what_is_laid_over():
    made = surface.tree(dict.fromkeys(START), (gone(b"shop.py"), new(b"pages.py")), {b"hidden/test_h.py": File(b"h")})
    assert b"shop.py" not in made
    assert made[b"pages.py"] == File(b"x\n")
    assert made[b"hidden/test_h.py"] == File(b"h")
    assert made[b"tests/test_a.py"] is None


def test_any_path_is_shown_as_one_printable_line():
    assert surface.shown(b"a\nb\xff\x1b") == "a\\nb\\xff\\x1b"
