"""The pages that the installed command writes, in a browser: read, filtered, opened, printed, attacked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.command import call
from tests.e2e.browsers import MINUTE, SCHEMES, launched
from tests.publish import runs, scored
from tests.publish.page import pages
from tests.publish.page.pages import HOSTILE


def written(*words) -> None:
    done = call(*words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three runs and their pages."""
    folder = tmp_path_factory.mktemp("pages")
    pages.write(folder / "careful")
    pages.write(folder / "hasty", runs.B, agent=runs.plan().agent.model_copy(update={"spec": HOSTILE}))
    hostile = [runs.row(f"t{n:02}", 0, int(n > 2), answer={"said": HOSTILE}, detail=HOSTILE) for n in range(6)]
    runs.write(folder / "hostile", runs.plan(6, 1), hostile, confounds=json.dumps({"text": HOSTILE}).encode() + b"\n")
    for each in hostile:
        files = {"stdout": HOSTILE.encode() * 50, "stderr": b"\xff\x1b[2J", "patch.diff": b"+" + HOSTILE.encode()}
        calls = [pages.call(0, path=f"/{HOSTILE}", body=HOSTILE), pages.miss(1) | {"path": f"/{HOSTILE}"}]
        pages.episode(folder / "hostile", each, files, calls)
    for name in ("careful", "hostile"):
        written("report", folder / name, "--draft", "--html", folder / f"{name}.html")
    suite = scored.laid(folder / "suite")
    written("report", suite / "runs/careful", "--pack", suite / "packs/shop", "--html", folder / "scored.html")
    written("compare", folder / "careful", folder / "hasty", "--draft", "--html", folder / "compared.html")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture
def show(browser, folder):
    """A function that opens a page; whatever it complains of, or asks the network for, fails the test."""
    contexts, faults = [], []
    expect.set_options(timeout=MINUTE)

    def show(name: str, quiet: bool = True, **more) -> Page:
        context = browser.new_context(**more)
        context.set_default_timeout(MINUTE)
        contexts.append(context)
        page = context.new_page()
        if quiet:
            page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append("a dialog"))
        page.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        page.goto((folder / name).as_uri(), timeout=MINUTE)
        return page

    yield show
    for context in contexts:
        context.close()
    assert faults == []


def episode(page: Page, task: str, repeat: int):
    """The button of the first attempt at that repeat."""
    row = page.locator("#list > tr", has_text=task).nth(repeat)
    return row.get_by_role("button", name=task)


def test_a_run_that_is_not_admissible_gets_no_page(folder, tmp_path):
    done = call("report", folder / "careful", "--html", tmp_path / "page.html")
    assert done.returncode == 1
    assert done.stdout.startswith("not admissible:\n  - no protocol card")
    assert not (tmp_path / "page.html").exists()
    done = call("report", folder / "careful", "--format", "html")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("not admissible:")
    done = call("compare", folder / "careful", folder / "hasty", "--html", tmp_path / "page.html")
    assert done.returncode == 1
    assert not (tmp_path / "page.html").exists()


def test_an_incomplete_run_ends_as_4_with_and_without_its_page(tmp_path):
    run = runs.write(tmp_path / "cut", runs.plan(), runs.rows(runs.B)[:-3], confounds=b"")
    assert call("report", run, "--html", tmp_path / "page.html").returncode == 4
    assert not (tmp_path / "page.html").exists()
    assert call("report", run, "--draft", "--html", tmp_path / "page.html").returncode == 4
    assert "3 of 60 planned episodes have no row" in (tmp_path / "page.html").read_text()


def test_a_page_is_not_overwritten_unless_that_is_said_and_is_the_same_each_time(folder, tmp_path):
    page = tmp_path / "page.html"
    done = call("report", folder / "careful", "--draft", "--html", page)
    assert (done.returncode, done.stdout.split()[1]) == (0, str(page))
    done = call("report", folder / "careful", "--draft", "--html", page)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not overwritten" in done.stderr
    assert call("report", folder / "careful", "--draft", "--html", page, "--replace").returncode == 0
    printed = call("report", folder / "careful", "--draft", "--format", "html").stdout
    assert printed == page.read_text() == (folder / "careful.html").read_text()


def test_episodes_are_filtered_by_task_by_fate_by_reason_and_by_miss(show):
    page = show("careful.html")
    count = page.locator("#count")
    expect(count).to_have_text("60 of 60 attempts; 60 are shown")
    page.locator("#by-task").fill("T11")
    expect(count).to_have_text("5 of 60 attempts; 5 are shown")
    page.locator("#by-fate").select_option("a call that was not recorded")
    expect(count).to_have_text("1 of 60 attempts; 1 are shown")
    page.locator("#by-task").fill("")
    page.locator("#by-fate").select_option("all")
    page.locator("#by-reason").select_option("timeout")
    expect(count).to_have_text("3 of 60 attempts; 3 are shown")
    page.locator("#by-reason").select_option("all")
    page.get_by_label("with a call that was not recorded").check()
    expect(count).to_have_text("1 of 60 attempts; 1 are shown")
    expect(page.locator("#list tr")).to_have_count(1)


def test_an_episode_opens_with_its_calls_its_miss_its_answer_and_its_patch_and_closes(show):
    page = show("careful.html")
    button = episode(page, "t11", 4)
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    detail = page.locator("tr.detail")
    expect(detail.locator(".miss")).to_contain_text("nearest recording: POST /v1/refunds")
    expect(detail.locator(".miss li")).to_have_text("body /amount: recorded 1200, asked 1300")
    expect(detail.locator(".calls tbody tr")).to_have_count(3)
    expect(detail.locator(".added")).to_have_text("+    return -(-total // size)")
    expect(detail.locator(".removed")).to_have_text("-    return total // size")
    expect(detail).to_contain_text("name the pack to show it: --pack PACK")
    button.click()
    expect(page.locator("tr.detail")).to_have_count(0)


def test_with_the_pack_the_answer_stands_against_the_expected_one(show):
    page = show("scored.html")
    episode(page, "t00", 0).click()
    expect(page.locator("tr.detail .answers")).to_contain_text("differs")
    assert "DRAFT" not in page.inner_text("body")


def test_a_task_of_the_table_leads_to_its_episodes(show):
    page = show("careful.html")
    page.locator("#task-table").get_by_role("link", name="t07").click()
    expect(page.locator("#count")).to_have_text("5 of 60 attempts; 5 are shown")
    expect(page.locator("#list button").first).to_be_focused()


def test_all_of_it_is_used_by_keyboard(show):
    page = show("careful.html")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.locator("#by-task").focus()
    page.keyboard.type("t11")
    for _ in range(4):  # fate, reason, miss, the table, which scrolls
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    first = page.locator("#list button").first
    expect(first).to_be_focused()
    assert first.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Space")
    expect(first).to_have_attribute("aria-expanded", "false")


def test_dark_is_dark_and_light_is_light(show):
    ground = {}
    for scheme in SCHEMES:
        page = show("careful.html", color_scheme=scheme)
        ground[scheme] = page.evaluate(
            "[[document.body, 'backgroundColor'], [document.querySelector('.picture .name'), 'fill']]"
            ".map(([node, name]) => getComputedStyle(node)[name])"
        )
    assert ground == {
        "light": ["rgb(253, 253, 251)", "rgb(28, 29, 31)"],
        "dark": ["rgb(22, 24, 27)", "rgb(232, 232, 228)"],
    }


@pytest.mark.parametrize("name", ["careful", "compared", "hostile"])
def test_on_a_phone_nothing_is_wider_than_the_screen(show, name):
    page = show(f"{name}.html", viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    if name != "compared":
        page.locator("#list button").first.tap()
        assert page.locator(".detail .inner").bounding_box()["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_in_print_every_row_is_there_a_draft_is_marked_and_what_is_for_a_screen_is_not(show):
    page = show("careful.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator(".ribbon")).to_be_visible()
    assert page.locator("body").evaluate("node => getComputedStyle(node).page") == "draft"  # each sheet says so
    for hidden in ("#filter", "nav", "#count", "#list"):
        expect(page.locator(hidden).first).to_be_hidden()
    table = page.locator("#task-table").locator("..")
    assert table.evaluate("node => node.scrollHeight <= node.clientHeight")
    assert page.pdf().startswith(b"%PDF")


def test_without_scripts_all_that_matters_is_readable(show):
    page = show("careful.html", java_script_enabled=False)
    for text in ("manifest_sha256", "0.7333 [0.4552, 0.8948]", "The fan was loud.", "never solved", "t11"):
        expect(page.locator("main")).to_contain_text(text)
    expect(page.locator("#explorer")).to_be_hidden()
    expect(page.locator("#without")).to_contain_text("episodes/TASK/REPEAT.ATTEMPT/")
    assert page.locator(".picture").count() >= 4


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["careful", "scored", "compared"])
def test_axe_finds_nothing(show, name, scheme):
    page = show(f"{name}.html", color_scheme=scheme)
    if name != "compared":
        page.locator("#by-task").fill("t07")
        expect(page.locator("#count")).to_contain_text(" shown")
        for button in page.locator("#list button").all()[-2:]:
            button.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert len(found.response["passes"]) > 25


def test_what_an_agent_wrote_is_shown_and_does_nothing(show):
    page = show("hostile.html")
    for button in page.locator("#list button").all():
        button.click()
    expect(page.locator("tr.detail")).to_have_count(6)
    assert page.title().startswith("DRAFT: score report")
    assert page.locator("img, iframe, object, embed, link").count() == 0
    assert page.locator("script").count() == 8  # six tasks, the index, the page's own
    text = page.locator("tr.detail").first.inner_text()
    assert "</script><script>document.title='owned'</script>" in text
    assert "\\u202egnp.exe" in text
    assert "\\u001b]0;owned" in text
    assert "../../../../etc/passwd" in text
    whole = page.content()
    assert not {"\x1b", "\x07", "\u202e", "\u2066", "\x00"} & {*whole}
    assert page.evaluate("[...document.querySelectorAll('a')].every(each => each.getAttribute('href')[0] === '#')")


def test_nothing_but_the_page_s_own_script_could_run(show):
    page = show("scored.html", quiet=False)  # the browser tells of each refusal
    ran = page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "file:///nowhere.png";
            document.body.append(image);
            const button = document.createElement("button");
            button.setAttribute("onclick", "window.ran = true");
            document.body.append(button);
            button.click();
            await fetch("https://example.org/").catch(() => undefined);
            const until = performance.now() + 30000;
            while (refused.length < 4 && performance.now() < until) await new Promise((go) => setTimeout(go, 20));
            return [window.ran ?? false, refused.map((each) => each.split("-")[0]).sort()];
        }"""
    )
    assert ran == [False, ["connect", "img", "script", "script"]]


def test_ten_thousand_episodes_open_soon(show, folder):
    rows = (runs.row(f"t{task:02}", repeat, repeat % 2) for task in range(2000) for repeat in range(5))
    run = runs.write(folder / "many", runs.plan(2000, 5), rows, confounds=b"")
    written("report", run, "--draft", "--html", folder / "many.html")
    page = show("many.html")
    took_ms = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    expect(page.locator("#count")).to_have_text("10000 of 10000 attempts; 100 are shown")
    assert took_ms < 20_000  # under 2 s where nothing else runs: bench/page.py
    page.locator("#by-task").fill("t1999")
    expect(page.locator("#count")).to_have_text("5 of 10000 attempts; 5 are shown")
    page.locator("#list button").first.click()
    expect(page.locator("tr.detail")).to_contain_text("exit_reason")
