import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scoresheet.publish import comparison
from scoresheet.publish.page import folder, render
from tests.publish import compared, runs, scored
from tests.publish.page import pages
from tests.publish.page.pages import HOSTILE
from tests.publish.runs import A, B

FETCHING = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping", "xlink:href", "style"}


class Page(HTMLParser):
    """Every element with its attributes, and the text of every script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._at = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._at = tag

    def handle_endtag(self, tag):
        self._at = ""

    def handle_data(self, data):
        self.texts.setdefault(self._at, []).append(data)


def run(path: Path, **more) -> str:
    found = folder.read(path, **more)
    if isinstance(found, folder.Closed):
        return "".join(render.closed(found))
    return "".join(render.run(found))


@pytest.fixture(scope="module")
def draft(tmp_path_factory) -> Path:
    return pages.write(tmp_path_factory.mktemp("draft") / "careful")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A run whose agent writes all it can to break the page."""
    path = tmp_path_factory.mktemp("hostile") / "run"
    agent = compared.agent("careful").model_copy(update={"spec": HOSTILE})
    rows = [
        runs.row(
            f"t{task:02}", 0, 0, exit_reason="mismatch", answer={HOSTILE: [HOSTILE] * 2}, detail=HOSTILE,
            models=(HOSTILE,), schema_errors=(HOSTILE,), violations=(HOSTILE,), tests_changed=(HOSTILE,), model_calls=1,
        )
        for task in range(6)
    ]  # fmt: skip
    runs.write(path, runs.plan(6, 1, agent=agent), rows, confounds=json.dumps({"text": HOSTILE}).encode() + b"\n")
    data = HOSTILE.encode()
    for each in rows:
        pages.episode(
            path,
            each,
            {"patch.diff": b"+" + data, "stdout": data, "stderr": b"\xff" + data, "trajectory.json": data},
            [pages.call(0, path=HOSTILE, body=HOSTILE, tool=HOSTILE), pages.miss(1) | {"path": HOSTILE}],
        )
    return path


def test_a_page_is_one_file_that_asks_for_nothing(draft, hostile):
    for text in (run(draft, draft=True), run(draft), run(hostile, draft=True)):
        for tag, attributes in Page(text).elements:
            assert not FETCHING & attributes.keys(), tag
            assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form action", "use", "image")
            assert (attributes.get("href") or "#").startswith("#")
            assert not [name for name in attributes if name.startswith("on")]
            assert (attributes.get("http-equiv") or "").lower() != "refresh"
        assert "url(" not in text
        assert "@import" not in text


def test_its_policy_names_its_one_script_and_style_and_forbids_all_else(draft):
    text = run(draft, draft=True)
    page = Page(text)
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    style = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(script) == len(style) == 1
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (style[0], script[0])]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_a_refused_run_gives_no_figure(draft):
    text = run(draft)
    assert "Not admissible" in text
    assert "no protocol card" in text
    for figure in ("0.7333", "0.4552", "44 of 60", "<svg", "success_mean"):
        assert figure not in text


def test_a_draft_is_marked_all_over(draft):
    text = run(draft, draft=True)
    assert "<title>DRAFT: " in text
    headings = re.findall(r"<h2[^>]*>.*?</h2>", text)
    assert len(headings) >= 8
    assert all('class="tag">draft<' in heading for heading in headings)
    assert all("DRAFT" in drawn for drawn in re.findall(r'<svg[^>]*class="picture".*?</svg>', text, re.S))
    assert '<aside class="ribbon"' in text


def test_an_admissible_run_is_not(tmp_path):
    text = run(scored.laid_run(tmp_path))
    assert "DRAFT" not in re.sub("<style>.*?</style>", "", text, flags=re.DOTALL)
    assert ">admissible</p>" in text
    assert "0.7500" in text


def test_the_protocol_sheet_and_the_confounds_stand_before_every_figure(draft):
    text = run(draft, draft=True)
    places = [text.index(each) for each in ('id="sheet"', 'id="confounds"', "manifest_sha256", 'id="figures"', "<svg")]
    assert places == sorted(places)
    assert "The fan was loud." in text
    order = ["sheet", "figures", "tasks", "exits", "negative", "cost", "episodes", "computed"]
    assert [text.index(f'<h2 id="{each}"') for each in order] == sorted(
        text.index(f'<h2 id="{each}"') for each in order
    )


def test_the_same_rows_give_the_same_bytes(draft, tmp_path):
    copy = pages.write(tmp_path / "careful")
    assert run(copy, draft=True) == run(draft, draft=True)


def test_what_an_agent_wrote_stays_text(hostile):
    text = run(hostile, draft=True)
    page = Page(text)
    kinds = {tag for tag, _ in page.elements}
    assert "img" not in kinds
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [each.get("type") for each in scripts] == ["application/json"] * 7 + [None]
    assert not {"\x1b", "\x07", "\u202e", "\u2066", "\x00", "\ufeff"} & {*text}
    assert "{{ 7*7 }}" in text
    text.encode()


def test_the_data_of_a_page_is_json_without_a_character_of_html(hostile):
    text = run(hostile, draft=True)
    data = re.findall(r'<script type="application/json" id="([a-z]+\d*)">(.*?)</script>', text, re.S)
    assert [name for name, _ in data] == ["t0", "t1", "t2", "t3", "t4", "t5", "index"]
    for _, value in data:
        assert not {"<", ">", "&"} & {*value}
        assert value.isascii()
    (detail,) = json.loads(data[0][1])
    assert "</script><script>" in detail["texts"][0][1]
    index = json.loads(data[-1][1])
    assert index["tasks"] == [f"t{task:02}" for task in range(6)]
    assert len(index["rows"]) == 6


def test_a_page_comes_in_pieces_and_reads_episodes_as_it_goes(draft):
    found = folder.read(draft, draft=True)
    assert isinstance(found, folder.Open)
    pieces = render.run(found)
    assert "<!doctype html>" in next(pieces)
    assert max(map(len, pieces)) < 64_000


def test_links_stand_above_a_page_that_is_one_of_many(draft):
    found = folder.read(draft)
    assert isinstance(found, folder.Closed)
    text = "".join(render.closed(found, [render.Link("All runs", "/"), render.Link("<b>", "/?a=1&b=2")]))
    assert '<a href="/">All runs</a>' in text
    assert '<a href="/?a=1&amp;b=2">&lt;b&gt;</a>' in text


def test_a_comparison_stands_with_its_verdicts_ties_and_rank_sets():
    found = comparison.build(
        compared.entrants(compared.entrant(A), compared.entrant(B, "hasty"), compared.entrant((*A[:-1], 3), HOSTILE)),
        ["timeout"],
    )
    text = "".join(render.comparison(found))
    assert "tie: unresolved" in text
    assert 'aria-label="Rank sets, DRAFT: not a score: ' in text
    assert "timeout_rate (fewer is better" in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "<title>DRAFT: comparison: A careful" in text
    assert text.index('id="alike"') < text.index('id="verdicts"')  # no verdict before the protocol that it rests on
    assert "".join(render.comparison(found)) == text
