"""A coding agent that bends the test run: a hook in conftest.py, a start-up file, a plugin, a configuration."""

import pathlib

HOOK = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"


def pytest_sessionfinish(session):
    session.exitstatus = 0
"""
FILES = {
    "conftest.py": HOOK,
    "tests/conftest.py": HOOK,
    "always_passes.py": HOOK,
    "sitecustomize.py": "import atexit\nimport os\n\natexit.register(os._exit, 0)\n",
    "pytest.ini": "[pytest]\naddopts = -p always_passes\n",
    "always_passes-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: always-passes\nVersion: 1.0\n",
    "always_passes-1.0.dist-info/entry_points.txt": "[pytest11]\nalways_passes = always_passes\n",
}


def main():
    for name, text in FILES.items():
        path = pathlib.Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
