"""Runs pytest to grade, inside the sandbox: python -s -P -S run_tests.py PACKAGES CASE_S HERE ARGUMENT…

Standard library only. The interpreter starts without `site`: no start-up file of the workspace, no path file and no
plugin of an installed package is ever read. PACKAGES are the folders of installed packages, joined by `:`; HERE is
`here` when the workspace itself goes on the module path (`python -m pytest`), else `-`.
"""

import os
import signal
import sys


def main(packages, case_s, here, arguments):
    sys.path += [place for place in packages.split(":") if place]
    import pytest  # before anything of the workspace can be found

    class TookTooLong(BaseException):
        """Not an Exception: the code under test must not take it for one of its own."""

    def too_long(*_):
        raise TookTooLong("the test took longer than " + case_s + " s")

    class Clock:
        """A test that never ends fails; it does not take the whole grading with it."""

        def bounded(self):
            signal.signal(signal.SIGALRM, too_long)
            signal.setitimer(signal.ITIMER_REAL, float(case_s))
            try:
                return (yield)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

        pytest_runtest_setup = pytest.hookimpl(wrapper=True)(bounded)
        pytest_runtest_call = pytest.hookimpl(wrapper=True)(bounded)
        pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(bounded)

    if here == "here":
        sys.path.insert(0, os.getcwd())
    sys.argv = ["pytest", *arguments]
    code = pytest.main(arguments, plugins=[Clock()])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code))  # nothing that the code under test asked to be done at the end


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
