"""(v) The pages that `view` serves: the list of 100 runs under 1 s when warm, a run of 10,000 episodes at once again.

    python bench/view.py [--runs 100] [--tasks 30] [--episodes 10000]

Asked over HTTP of the installed command, as a browser would. First: right after the address was printed, so what has to
be read is read; again: the least of five. At last a file of an episode is changed, and the page must hold the change.
"""

import argparse
import http.client
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

HOUSE = Path(__file__).parent.parent
SCORESHEET = Path(sys.executable).with_name("scoresheet")
GOAL_S = 1.0
REPEATS = 5
SETTLED_S = 2.5
"""What changed a moment ago is read again: no page is kept of it."""


def get(url: str) -> tuple[float, bytes]:
    """Seconds until the whole page is there, and the page."""
    parts = urlsplit(url)
    started = time.perf_counter()
    connection = http.client.HTTPConnection(parts.netloc, timeout=600)
    connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
    page = connection.getresponse().read()
    connection.close()
    return time.perf_counter() - started, page


def first_and_again(url: str) -> tuple[float, float]:
    """Seconds of the first request, and of a later one."""
    first, _ = get(url)
    time.sleep(SETTLED_S)
    get(url)
    return first, min(get(url)[0] for _ in range(5))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=10_000)
    options = parser.parse_args()
    sys.path.insert(0, str(HOUSE))
    from tests.publish.page import pages

    print(f"Python {platform.python_version()}, {platform.machine()}")
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="scoresheet-bench-") as scratch:
        for number in range(options.runs):
            folder = Path(scratch) / "many" / f"run-{number:03}"
            pages.write(folder, [chance.randint(0, REPEATS) for _ in range(options.tasks)], seat=f"seat-{number}")
        large = Path(scratch) / "large"
        pages.write(large, [chance.randint(0, REPEATS) for _ in range(options.episodes // REPEATS)])
        for name, places in (("many", ("", "?text=run-05", "run/r1", "compare?run=r1&run=r2")), ("large", ("run/r1",))):
            words = [str(SCORESHEET), "view", str(Path(scratch) / name), "--draft"]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as viewing:
                assert viewing.stdout is not None
                address = viewing.stdout.readline().strip()
                for place in places:
                    first, again = first_and_again(address + place)
                    print(f"{name}: {place or 'the list'}: first {first:.2f} s, again {again:.3f} s")
                    if not place:
                        missed = again >= GOAL_S
                        print(f"  {again / GOAL_S:.2f} of the {GOAL_S:g} s allowed: {'missed' if missed else 'met'}")
                if name == "large":
                    (large / "episodes" / "t00" / "0.0" / "stderr").write_text("changed since\n")
                    assert b"changed since" in get(address + "run/r1")[1]
                    print("large: a changed file of an episode is on the page at once")
                viewing.send_signal(signal.SIGINT)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
