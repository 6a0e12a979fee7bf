"""Builds docs/ as a site into build/site: `python docs/make_site.py`, with the pins of requirements/docs.txt.

Strict: a link to nothing ends it. Nothing in the site is asked of another host: no fonts, no scripts, no pictures.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

HOUSE = Path(__file__).parents[1]
CONFIG = "zensical.toml"
SOURCES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "examples/README.md": "examples.md"}
"""Pages that lie elsewhere in the repository."""
BESIDE = ("examples/packs/billing-v3/card.yaml",)
"""Files that they link to."""
_LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}
_HINTS = {"canonical", "edit", "prev", "next"}
_CSS = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"](?:https?:)?//")


class _Asked(HTMLParser):
    """What a page loads from other hosts, as soon as it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of an element that loads."""
        values = dict(attrs)
        address = values.get(_LOADING.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")) and values.get("rel") not in _HINTS:
            self.found.append(f"<{tag}> {address}")


def lay(folder: Path) -> None:
    """Every page in one folder, with links that lead from there."""
    pages = folder / "pages"
    shutil.copytree(HOUSE / "docs", pages, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for source, page in SOURCES.items():
        (pages / page).write_text(moved((HOUSE / source).read_text(encoding="utf-8"), source), encoding="utf-8")
    for name in BESIDE:
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HOUSE / name, pages / name)
    shutil.copyfile(HOUSE / CONFIG, folder / CONFIG)


def moved(text: str, source: str) -> str:
    """The text of a page from elsewhere, its links turned to where the pages lie in the site."""
    folder = Path(source).parent

    def link(match: re.Match[str]) -> str:
        address, hash_, anchor = match[1].partition("#")
        if not address or ":" in address:
            return match[0]
        target = (HOUSE / folder / address).resolve().relative_to(HOUSE).as_posix()
        page = SOURCES.get(target, target.removeprefix("docs/"))
        return f"]({page}{hash_}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def asked(site: Path) -> list[str]:
    """What the built site would ask of other hosts."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            reader = _Asked()
            reader.feed(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(site)}: {each}" for each in reader.found]
        elif path.suffix == ".css" and (match := _CSS.search(path.read_text(encoding="utf-8"))):
            found.append(f"{path.relative_to(site)}: {match[0]}")
    return found


def main() -> int:
    out = HOUSE / "build" / "site"
    with tempfile.TemporaryDirectory(prefix="scoresheet-site-") as scratch:
        folder = Path(scratch)
        lay(folder)
        command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--clean"]
        done = subprocess.run(command, cwd=folder)
        if done.returncode:
            return done.returncode
        site = folder / "site"
        lacking = [page.stem for page in (folder / "pages").rglob("*.md") if not [*site.rglob(f"{page.stem}.html")]]
        foreign = asked(site)
        for line in (*(f"no page of {name}" for name in lacking), *foreign):
            print(f"error: {line}", file=sys.stderr)
        if lacking or foreign:
            return 1
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(site, out)
    print(f"site: {out / 'index.html'}, {len([*out.rglob('*.html')])} pages, nothing asked of other hosts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
