"""What a module surely lacks; where it can't be known, nothing is said."""

import pytest

from scoresheet.run.agents.defined import lack


@pytest.mark.parametrize(
    "source",
    [
        "def solve(task, call): ...",
        "async def solve(task, call): ...",
        "class solve: ...",
        "solve = print",
        "solve: object = print",
        "a, (*solve, b) = 1, [2, 3]",
        "import solve",
        "import solve.inner",
        "import helper as solve",
        "from helper import solve",
        "from helper import other as solve",
        "try:\n    import fast\nexcept ImportError:\n    def solve(task, call): ...",
        "if True:\n    def solve(task, call): ...",
        "for solve in (1, 2): ...",
        "with open('x') as solve: ...",
        "match 1:\n    case solve: ...",
        "match {}:\n    case {'a': 1, **solve}: ...",
        "match []:\n    case [*solve]: ...",
        "print(solve := 1)",
        "def make():\n    global solve\n    solve = 1\nmake()",
    ],
)
def test_a_name_that_the_module_binds_is_there(source):
    assert lack(source.encode(), "solve") is None
    found = lack(source.encode(), "missing")
    assert found is not None
    assert found.what == "no function 'missing' is defined here"


@pytest.mark.parametrize(
    "source",
    [
        "from helper import *",
        "globals()['solve'] = print",
        "def __getattr__(name): return print",
        "import sys\nsetattr(sys.modules[__name__], 'solve', print)",
        "import sys\nsys.modules[__name__] = object()",
        "exec('solve = print')",
    ],
)
def test_what_can_not_be_known_is_let_run(source):
    assert lack(source.encode(), "solve") is None


@pytest.mark.parametrize(
    "source",
    [
        "def other(task, call):\n    def solve(): ...",
        "class Agent:\n    def solve(self): ...",
        "def other():\n    solve = 1",
        "x = lambda solve: solve",
        "# def solve(task, call): ...",
        "",
    ],
)
def test_a_name_of_an_inner_scope_is_not_the_modules(source):
    found = lack(source.encode(), "solve")
    assert found is not None
    assert found.what == "no function 'solve' is defined here"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"def solve(:\n", 1),
        (b"x = 1\nreturn x\n", 2),
        (b"# coding: no-such\n", None),
        (b"x = '\xff'\n", None),
        (b"\x00", None),
        (b"x = 1\n\x7fELF\x02", None),
    ],
)
def test_what_is_no_python_is_told_with_its_line(source, line):
    found = lack(source, "solve")
    assert found is not None
    assert found.what.startswith("this is no Python: ")
    assert line is None or found.line == line
    assert found.mend


def test_an_outdated_style_is_no_reason():
    assert lack(b"def solve(task, call):\n    return '\\d' is 1\n", "solve") is None


def test_the_mend_names_what_there_is():
    source = b"def solve(task, call): ...\nasync def other(task, call): ...\n"
    found = lack(source, "slove")
    assert found is not None
    assert found.mend == "did you mean solve? it defines other, solve"
    many = "".join(f"def f{number}(): ...\n" for number in range(9))
    found = lack(many.encode(), "x")
    assert found is not None
    assert found.mend == "it defines f0, f1, f2, f3, f4, …"
    none = lack(b"x = 1", "solve")
    assert none is not None
    assert none.mend == "it defines none at its top level: def solve(task, call): …"
