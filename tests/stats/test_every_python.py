"""The same digits on every Python that the machine has, with and without numpy."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.stats import resample
from tests.stats import digits

SRC = Path(resample.__file__).parents[2]
ROOT = Path(__file__).parents[2]


def interpreters() -> list[str]:
    """Every python3.11 or later on PATH or installed by pyenv, one path a version."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [sys.executable, *map(str, pyenv.glob("versions/*/bin/python3"))]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found += [str(path) for path in Path(folder).glob("python3.*") if re.fullmatch(r"python3\.\d+", path.name)]
    ask = "import sys; print(sys.implementation.name, *sys.version_info[:3])"
    versions: dict[str, str] = {}
    for path in dict.fromkeys(found):
        if shutil.which(path):
            answer = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=300)
            name, *numbers = answer.stdout.split() or [""]
            if answer.returncode == 0 and tuple(map(int, numbers)) >= (3, 11):
                versions.setdefault(f"{name} {'.'.join(numbers)}", path)
    return list(versions.values())


@pytest.fixture(scope="module")
def here() -> dict[str, object]:
    return digits.figures()


@pytest.mark.parametrize("path", interpreters())
def test_an_interpreter_with_only_its_standard_library_prints_the_same_digits(path, here):
    program = "import sys; sys.path[:0] = sys.argv[1:3]; from tests.stats import digits; import json; "
    program += "print(json.dumps(digits.figures())); assert not {'numpy', 'pydantic'} & set(sys.modules)"
    command = [path, "-I", "-S", "-c", program, str(SRC), str(ROOT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == here


def test_numpy_prints_the_same_digits(monkeypatch, here):
    monkeypatch.setattr(resample, "_WORTH_NUMPY", 0)
    assert digits.figures() == here


def test_no_numpy_prints_the_same_digits(monkeypatch, here):
    monkeypatch.setattr(resample, "import_numpy", lambda: False)
    assert digits.figures() == here
