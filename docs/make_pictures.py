"""Takes the pictures of the pages in docs: runs the examples, writes or serves their pages, looks at them in Chromium.

    docs/make_pictures.py [FOLDER]

With a FOLDER the runs stay there, and those that are there already are not made again. With pngquant on PATH the files
are a third as large.
"""

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HOUSE = Path(__file__).parent.parent
PICTURES = HOUSE / "docs" / "pictures"
SCORESHEET = str(Path(sys.executable).parent / "scoresheet")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BILLING, PAGINATION = "examples/packs/billing-v3", "examples/packs/pagination-v1"
CATALOG = "examples/packs/catalog-v1"
WRONG = 'sh -c \'curl -s "$CATALOG_URL/catalog/airports.json?state__exact=TX&_size=0"; echo "{\\"count\\": 95}"\''
"""An agent that forgets the second condition, and so asks for what was not recorded."""
RUNS = {
    "billing": ("baseline", BILLING),
    "pagination": ("baseline", PAGINATION),
    "random-walk": ("run", BILLING, "--agent", "python3 examples/agents/random_walk.py"),
    "forgets": ("run", CATALOG, "--agent", WRONG, "--tasks", "catalog.count.2", "--draft"),
    "coder": ("run", PAGINATION, "--agent", "python3 examples/agents/coder.py"),
    "edits-tests": ("run", PAGINATION, "--agent", "python3 examples/agents/edits_tests.py"),
    "idle": ("run", PAGINATION, "--agent", "sh examples/agents/idle.sh"),
}
PAGES = {
    "coder": ("report", "runs/coder", "--pack", PAGINATION),
    "random-walk": ("report", "runs/random-walk", "--pack", BILLING),
    "forgets": ("report", "runs/forgets", "--pack", CATALOG, "--draft"),
    "comparison": ("compare", "runs/coder", "runs/edits-tests", "runs/idle"),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """What is taken of which page."""

    page: str
    """Of `PAGES`; with a slash, in `view`: of one run, of those to compare, or of none: the list."""
    top: str = "body"
    """What stands at its upper end."""
    scheme: str = "light"
    width: int = 1000
    height: int = 760
    opened: str | None = None
    """The task whose first episode is opened."""
    text: str = ""
    """What is typed into the filter of the list."""
    standing: str = ""
    """What is chosen in it."""
    ticked: tuple[str, ...] = ()
    """The runs that are ticked in the list."""


TAKEN = {
    "sheet": Picture("random-walk", height=980),
    "figures": Picture("random-walk", "#figures", height=900),
    "tasks-dark": Picture("random-walk", "#tasks", "dark", height=760),
    "patch": Picture("coder", "tr.detail", height=900, opened="catalog.band-edges"),
    "miss-dark": Picture("forgets", "tr.detail", "dark", height=700, opened="catalog.count.2"),
    "phone": Picture("random-walk", "#figures", width=390, height=800),
    "comparison": Picture("comparison", "#verdicts", height=760),
    "comparison-tasks-dark": Picture("comparison", "#cost", "dark", height=760),
    "list": Picture("/", width=1180, height=900, ticked=("coder", "edits-tests")),
    "list-dark": Picture("/", scheme="dark", width=1180, height=900),
    "list-phone": Picture("/", width=390, height=844),
    "filter": Picture("/", width=1180, height=560, text="pagination", standing="admissible"),
    "view-comparison": Picture("/coder/edits-tests/idle", width=1180, height=980),
    "view-comparison-phone": Picture("/coder/edits-tests/idle", "#verdicts", width=390, height=844),
    "not-comparable": Picture("/coder/random-walk", width=1000, height=620),
    "not-admissible": Picture("/forgets", width=1000, height=520),
    "episode-phone": Picture("/coder", "tr.detail", width=390, height=844, opened="catalog.band-edges"),
}


def made(folder: Path) -> None:
    """Runs and pages in `folder`."""
    folder.chmod(0o755)  # the sandbox's own uid reads the agents from here
    if not (folder / "examples").exists():
        ignored = shutil.ignore_patterns("__pycache__", "receipts.jsonl")
        shutil.copytree(HOUSE / "examples", folder / "examples", ignore=ignored)
    for name, words in RUNS.items():
        if not (folder / "runs" / name).exists():
            seat = ("--seat", "laptop-a", "--quiet") if words[0] == "run" else ()
            call(folder, *words, *seat, "--out", f"runs/{name}")
    for name, words in PAGES.items():
        call(folder, *words, "--html", f"{name}.html", "--replace")


def call(folder: Path, *words: str) -> None:
    """Runs the command; raises when it says no."""
    print("scoresheet", *words, flush=True)
    subprocess.run([SCORESHEET, *words], cwd=folder, stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def viewing(folder: Path) -> Iterator[str]:
    """The address of all runs, served."""
    words = [SCORESHEET, "view", "runs", "--pack", PAGINATION, "--pack", BILLING]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def opened(page: Page, folder: Path, address: str, picture: Picture) -> None:
    """Goes to the page of a picture, the way a person would."""
    if "/" not in picture.page:
        page.goto((folder / f"{picture.page}.html").as_uri())
        return
    names = [name for name in picture.page.split("/") if name]
    page.goto(address, timeout=600_000)
    for name in names if len(names) > 1 else picture.ticked:
        page.get_by_role("checkbox", name=f"compare {name}", exact=True).check()
    if len(names) > 1:
        page.get_by_role("button", name="Compare what is ticked").first.click()
    elif names:
        page.get_by_role("link", name=names[0], exact=True).click()
    if picture.text or picture.standing:
        page.get_by_role("searchbox").fill(picture.text)
        page.get_by_label("Standing").select_option(picture.standing)
        page.get_by_role("button", name="Filter").click()
        page.get_by_text(re.compile("^[0-9]+ of [0-9]+ runs")).wait_for()


def taken(browser: Browser, folder: Path, address: str, name: str, picture: Picture) -> None:
    """One picture, written to docs/pictures."""
    context = browser.new_context(
        color_scheme="dark" if picture.scheme == "dark" else "light",
        viewport={"width": picture.width, "height": picture.height},
    )
    page: Page = context.new_page()
    opened(page, folder, address, picture)
    if picture.opened is not None:
        page.locator("#by-task").fill(picture.opened)
        page.locator("#list button").first.click()
    page.locator(picture.top).first.evaluate("node => node.scrollIntoView()")
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", path, "128", path], check=True)
    print(path, path.stat().st_size)
    context.close()


def main() -> None:
    """Takes all of them."""
    browser_path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory(prefix="scoresheet-pictures-") as scratch, sync_playwright() as playwright:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch).resolve()
        folder.mkdir(exist_ok=True)
        made(folder)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        with viewing(folder) as address:
            for name, picture in TAKEN.items():
                taken(browser, folder, address, name, picture)
        browser.close()


if __name__ == "__main__":
    main()
