"""The pages as a site: each is in its menu, each link leads somewhere, and what would load from elsewhere is seen."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
SITE = runpy.run_path(str(HOUSE / "docs" / "make_site.py"))


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    """Every page as the site is built of it."""
    folder = tmp_path_factory.mktemp("site")
    SITE["lay"](folder)
    return folder / "pages"


def listed(nav):
    for entry in nav:
        for place in entry.values():
            yield from (place,) if isinstance(place, str) else listed(place)


def test_every_page_is_in_the_menu_once(laid):
    menu = list(listed(tomllib.loads((HOUSE / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(menu) == sorted(path.relative_to(laid).as_posix() for path in laid.rglob("*.md"))


def anchor(heading):
    """As the site names a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())).strip("-")


def test_every_link_leads_to_a_page_and_a_heading(laid):
    lost = []
    for page in laid.rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for address in re.findall(r"\]\(([^)\s]+)\)", text):
            place, _, wanted = address.partition("#")
            target = (page.parent / place).resolve() if place else page
            if ":" in place:
                continue
            if not target.is_file():
                lost.append(f"{page.name}: {address}")
            elif wanted and wanted not in {
                anchor(line.lstrip("#")) for line in target.read_text(encoding="utf-8").splitlines() if line[:1] == "#"
            }:
                lost.append(f"{page.name}: {address}: no such heading")
    assert lost == []


@pytest.mark.parametrize(
    ("name", "text", "seen"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>', True),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ("a.html", '<img src="http://pictures.example/x.png">', True),
        ("a.css", "@font-face { src: url(https://fonts.example/x.woff2) }", True),
        (
            "a.html",
            '<a href="https://example.com">elsewhere</a><link rel="canonical" href="https://example.com">',
            False,
        ),
        ("a.html", '<script src="assets/x.js"></script><img src="pictures/sheet.png">', False),
        ("a.css", "@font-face { src: url(../x.woff2) }", False),
    ],
)
def test_what_a_page_would_load_from_another_host_is_seen(tmp_path, name, text, seen):
    (tmp_path / name).write_text(text)
    assert bool(SITE["asked"](tmp_path)) is seen
