"""Takes the pictures of this folder's pages: runs the examples, writes their pages, and looks at them in Chromium.

    docs/make_pictures.py [FOLDER]

With a FOLDER the runs stay there, and those that are there already are not made again.
"""

import shutil
import subprocess
import sys
import tempfile
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
    top: str = "body"
    """What stands at its upper end."""
    scheme: str = "light"
    width: int = 1000
    height: int = 760
    opened: str | None = None
    """The task whose first episode is opened."""


TAKEN = {
    "sheet": Picture("random-walk", height=980),
    "figures": Picture("random-walk", "#figures", height=900),
    "tasks-dark": Picture("random-walk", "#tasks", "dark", height=760),
    "patch": Picture("coder", "tr.detail", height=900, opened="catalog.band-edges"),
    "miss-dark": Picture("forgets", "tr.detail", "dark", height=700, opened="catalog.count.2"),
    "phone": Picture("random-walk", "#figures", width=390, height=800),
    "comparison": Picture("comparison", "#verdicts", height=760),
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


def taken(browser: Browser, folder: Path, name: str, picture: Picture) -> None:
    """One picture, written to docs/pictures."""
    context = browser.new_context(
        color_scheme="dark" if picture.scheme == "dark" else "light",
        viewport={"width": picture.width, "height": picture.height},
    )
    page: Page = context.new_page()
    page.goto((folder / f"{picture.page}.html").as_uri())
    if picture.opened is not None:
        page.locator("#by-task").fill(picture.opened)
        page.locator("#list button").first.click()
    page.locator(picture.top).first.evaluate("node => node.scrollIntoView()")
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")
    print(PICTURES / f"{name}.png", (PICTURES / f"{name}.png").stat().st_size)
    context.close()


def main() -> None:
    """Takes all of them."""
    browser_path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory(prefix="scoresheet-pictures-") as scratch, sync_playwright() as playwright:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch).resolve()
        folder.mkdir(exist_ok=True)
        made(folder)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, picture in TAKEN.items():
            taken(browser, folder, name, picture)
        browser.close()


if __name__ == "__main__":
    main()
