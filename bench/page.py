"""(p) The page of a run: 10,000 episodes open in Chromium in under 2 s.

    python bench/page.py [--episodes 1000 10000 50000] [--rounds 5]

Every episode has calls, a patch, output and, where it failed, a call that was not recorded, as in the tests. What is
counted: the command's time and peak memory, the size of the page, and in Debian's Chromium, headless, from a new
context: first paint, the end of loading (the list of episodes stands), and opening an episode. The least of the rounds.
"""

import argparse
import multiprocessing
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOUSE = Path(__file__).parent.parent
SCORESHEET = Path(sys.executable).with_name("scoresheet")
GOAL_S, AT = 2.0, 10_000
REPEATS = 5


def make(folder: Path, episodes: int) -> None:
    """A run of so many episodes. In a process of its own, for a command's peak memory begins at its parent's."""
    sys.path.insert(0, str(HOUSE))
    from tests.publish.page import pages

    chance = random.Random(1)
    pages.write(folder / str(episodes), [chance.randint(0, REPEATS) for _ in range(episodes // REPEATS)])


def write(run: Path, page: Path) -> tuple[float, float]:
    """Seconds of the command, and MiB of its peak memory."""
    started = time.perf_counter()
    words = [str(SCORESHEET), "report", str(run), "--draft", "--html", str(page)]
    command = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(command.pid, 0)
    command.returncode = os.waitstatus_to_exitcode(status)
    assert command.returncode == 0
    return time.perf_counter() - started, used.ru_maxrss / 1024


def look(page: Path, rounds: int) -> tuple[float, float, float]:
    """Seconds to the first paint, to the end of loading, and to open an episode."""
    from playwright.sync_api import sync_playwright

    browsers = ("chromium", "chromium-browser", "google-chrome")
    place = next(found for name in browsers if (found := shutil.which(name)))
    seen = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"])
        for _ in range(rounds):
            tab = browser.new_context().new_page()
            tab.goto(page.as_uri(), timeout=120_000)
            tab.wait_for_function(
                "performance.getEntriesByName('first-contentful-paint').length"
                " && performance.getEntriesByType('navigation')[0].loadEventEnd"
            )
            paint, loaded = tab.evaluate(
                "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
                " performance.getEntriesByType('navigation')[0].loadEventEnd]"
            )
            opened = tab.evaluate(
                "(() => { const from = performance.now(); document.querySelector('#list button').click();"
                " document.body.offsetHeight; return performance.now() - from; })()"
            )
            seen.append((paint / 1000, loaded / 1000, opened / 1000))
            tab.context.close()
        browser.close()
    first, last, opening = zip(*seen, strict=True)
    return min(first), min(last), min(opening)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 10_000, 50_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}")
    missed = False
    with tempfile.TemporaryDirectory(prefix="scoresheet-bench-") as scratch:
        for episodes in sorted(options.episodes):
            run, page = Path(scratch) / str(episodes), Path(scratch) / f"{episodes}.html"
            maker = multiprocessing.get_context("spawn").Process(target=make, args=(Path(scratch), episodes))
            maker.start()
            maker.join()
            took_s, memory = write(run, page)
            paint_s, loaded_s, opened_s = look(page, options.rounds)
            size_mb = page.stat().st_size / 1e6
            print(
                f"{episodes} episodes: written in {took_s:.1f} s, {memory:.0f} MiB, {size_mb:.1f} MB; "
                f"first paint {paint_s:.2f} s, loaded {loaded_s:.2f} s, an episode opens in {opened_s:.3f} s"
            )
            if episodes == AT:
                missed = loaded_s >= GOAL_S
                print(f"  {loaded_s / GOAL_S:.2f} of the {GOAL_S:g} s allowed: {'missed' if missed else 'met'}")
            shutil.rmtree(run)
            page.unlink()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
