"""The installed command `scoresheet view`, as a process, asked by a browser, and attacked."""

import contextlib
import http.server
import json
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect

from tests.command import SCORESHEET
from tests.e2e.browsers import MINUTE, SCHEMES, launched
from tests.publish import runs, scored
from tests.publish.page import pages

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))
expect.set_options(timeout=MINUTE)
NAME = "<script>document.title='owned'<b>&\"' \u202e"
URL = re.compile(r"http://127\.0\.0\.1:([0-9]+)/[A-Za-z0-9_-]{32}/\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two admissible runs of one pack, a draft with a hostile name and agent, and a link out of the folder."""
    root = tmp_path_factory.mktemp("view")
    suite = scored.laid(root / "suite")
    careful, hasty = root / "runs" / "careful", root / "runs" / "hasty"
    shutil.copytree(suite / "runs" / "careful", careful)
    shutil.copytree(careful, hasty)
    rows = [json.loads(line) for line in (hasty / "rows.jsonl").read_bytes().splitlines()]
    for row in rows:
        row["success"] = int(row["task_id"] == "t00")
    (hasty / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    agent = runs.plan().agent.model_copy(update={"spec": pages.HOSTILE})
    pages.write(root / "runs" / NAME, agent=agent)
    (root / "runs" / "elsewhere").symlink_to(root / "suite")
    return root / "runs"


@contextlib.contextmanager
def viewing(*words) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command while it serves, and its address."""
    with subprocess.Popen(
        [SCORESHEET, "view", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert URL.fullmatch(line), line + process.communicate(timeout=300)[1]
            yield process, line.strip()
        finally:
            process.send_signal(signal.SIGINT)  # it clears up after itself
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(300)
            process.kill()


@pytest.fixture(scope="module")
def url(folder) -> Iterator[str]:
    """The address of all those runs."""
    with viewing(folder) as (_, found):
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One that takes evil.example for this machine, as after DNS rebinding."""
    with launched("--host-resolver-rules=MAP evil.example 127.0.0.1") as found:
        yield found


@pytest.fixture
def show(browser, url):
    """A function that opens an address; whatever it complains of, or asks of another site, fails the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def show(target: str = "", **more) -> Page:
        context = browser.new_context(**more)
        context.set_default_timeout(MINUTE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", dismissed)
        page.on("request", lambda request: None if request.url.startswith(url) else faults.append(request.url))
        page.goto(url + target, timeout=MINUTE)
        return page

    yield show
    for context in contexts:
        context.close()
    assert faults == []


def test_runs_are_listed_filtered_and_found_again_by_keyboard(show):
    page = show()
    table = page.get_by_role("table", name="Runs")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row", name="compare careful")).to_contain_text("success_mean 0.7500 [")
    page.get_by_label("Name, agent, pack, seat").focus()
    page.keyboard.type("hasty")
    page.keyboard.press("Enter")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(page.get_by_text("1 of 3 runs.")).to_be_visible()
    page.get_by_label("Name, agent, pack, seat").fill("")
    page.get_by_label("Standing").select_option("not admissible")
    page.get_by_role("button", name="Filter").press("Enter")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).not_to_contain_text("success_mean")
    page.get_by_text("reasons", exact=False).last.click()
    expect(table).to_contain_text("no protocol card")
    page.get_by_label("Name, agent, pack, seat").fill("nobody")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Show all of them").click()
    expect(table.get_by_role("row")).to_have_count(4)


def test_from_the_list_to_a_run_to_an_episode_and_back(show):
    page = show()
    page.get_by_role("link", name="careful").click()
    expect(page.get_by_role("heading", name="Score report")).to_be_visible()
    page.locator("#task-table").get_by_role("link", name="t04").click()
    expect(page.locator("#count")).to_have_text("2 of 16 attempts; 2 are shown")
    button = page.locator("#list").get_by_role("button", name="t04").first
    button.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("row", name="exit_reason completed", exact=True)).to_contain_text("completed")
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_runs_that_are_ticked_are_compared(show):
    page = show()
    for name in ("careful", "hasty"):
        page.get_by_label(f"compare {name}").check()
    page.get_by_role("button", name="Compare what is ticked").click()
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    expect(page.get_by_text("A careful against B hasty")).to_be_visible()
    page.get_by_role("link", name="hasty", exact=True).click()
    expect(page.get_by_role("heading", name="Score report")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="All runs").click()
    page.get_by_label("compare careful").check()
    page.get_by_role("button", name="Compare what is ticked").click()
    expect(page.get_by_role("heading", name="A comparison needs two runs")).to_be_visible()


def test_a_run_that_is_not_admissible_has_reasons_and_no_figures(show):
    page = show()
    page.get_by_role("link", name="document.title", exact=False).click()
    expect(page.get_by_role("heading", name="Not admissible")).to_be_visible()
    expect(page.locator("main")).to_contain_text("no protocol card")
    expect(page.locator("main")).not_to_contain_text("0.7333")
    assert "owned" not in page.title().partition(":")[0].replace("document.title='owned'", "")


def test_what_a_hostile_agent_wrote_does_nothing_in_a_draft(browser, folder):
    with viewing(folder / NAME, "--draft") as (_, found):
        context = browser.new_context()
        context.set_default_timeout(MINUTE)
        page = context.new_page()
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(found) else faults.append(request.url))
        for target in ("", "run/r1"):
            page.goto(found + target, timeout=MINUTE)
            expect(page.locator("body")).to_contain_text("<img src=x onerror=")
            assert page.title() != "owned"
        page.locator("#list").get_by_role("button").first.click()
        assert page.title() != "owned"
        assert "\u202e" not in page.locator("body").inner_text()
        assert faults == []
        context.close()


def test_on_a_phone_the_list_says_all_of_a_run_without_scrolling_sideways(show):
    page = show(viewport={"width": 390, "height": 844})
    row = page.get_by_role("table", name="Runs").get_by_role("row", name="compare careful")
    for text in ("careful", "admissible", "success_mean 0.7500 [", "confounds 0", "laptop-a"):
        box = row.get_by_text(text).first.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390, text
    holder = page.get_by_role("region", name="Runs")
    assert holder.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert Axe().run(page).response["violations"] == []


def test_a_long_command_does_not_push_the_figures_out_of_sight(show):
    page = show(viewport={"width": 1180, "height": 900})
    long = page.get_by_role("row", name="onerror").get_by_role("rowheader").bounding_box()
    figures = page.get_by_role("row", name="compare careful").get_by_text("success_mean 0.7500 [").bounding_box()
    assert long is not None
    assert figures is not None
    assert long["width"] < 420
    assert figures["x"] + figures["width"] < 1180


def test_what_is_ticked_can_be_compared_from_anywhere_in_the_list(show):
    page = show(viewport={"width": 1000, "height": 300})
    button = page.get_by_role("button", name="Compare what is ticked")
    expect(button).to_be_in_viewport()
    for name in ("careful", "hasty"):
        page.get_by_role("checkbox", name=f"compare {name}", exact=True).check()
    button.click()
    expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible(show, scheme):
    for target in ("", "run/r1", "run/r3", "compare?run=r2&run=r3", "compare?run=r2"):
        page = show(target, color_scheme=scheme)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_a_phone_shows_the_list_without_scrolling_the_page(show):
    page = show(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_name_that_was_rebound_to_this_machine_gets_nothing(browser, url):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(url.replace("127.0.0.1", "evil.example"), timeout=MINUTE)
    assert answer is not None
    assert answer.status == 403
    assert page.locator("body").inner_text().strip() == "this site answers to its own address only"
    context.close()


def test_a_page_of_another_site_can_neither_read_nor_frame_it(browser, url):
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<title>other</title><iframe src='{url}'></iframe>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://evil.example:{server.server_address[1]}/", timeout=MINUTE)
        got = page.evaluate(
            "url => Promise.all(['cors', 'no-cors'].map(mode => fetch(url, {mode})"
            ".then(answer => answer.text(), () => 'refused')))",
            url,
        )
        assert set(got) <= {"refused", ""}
        assert not any("careful" in frame.content() for frame in page.frames[1:])
    finally:
        context.close()
        server.shutdown()
        server.server_close()
        thread.join()


def get(address: str) -> tuple[int, str]:
    try:
        with LOCAL.open(address, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_what_it_passed_over_and_ends_when_it_is_told_to(folder, number):
    with viewing(folder, "--port", "0") as (process, found):
        assert get(found)[0] == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert out == ""
    assert err == "note: elsewhere in runs is a link, and was not followed\n3 runs; Ctrl-C ends it\n"


def test_a_pack_shows_what_was_expected(folder):
    with viewing(folder / "careful", "--pack", folder.parent / "suite" / "packs" / "shop") as (_, found):
        assert '"price"' in get(found + "run/r1")[1]
    with viewing(folder / "careful") as (_, found):
        assert "name the pack to show it" in get(found + "run/r1")[1]


def test_a_run_that_goes_on_is_shown_as_it_is_now(folder, tmp_path):
    shutil.copytree(folder / "careful", tmp_path / "careful")
    with viewing(tmp_path) as (_, found):
        assert "0.7500" in get(found)[1]
        (tmp_path / "careful" / "confounds.jsonl").unlink()
        status, text = get(found)
        assert (status, "0.7500" in text, "no confound log" in text) == (200, False, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "does not exist"),
        (["--port", "70000", "."], "70000"),
        (["README.md"], "no run lies here — README.md (this is no bundle: "),
        (["README.md", "."], "no run lies in 2 of the 2 paths — README.md (this is no bundle: "),
    ],
)
def test_a_wrong_call_is_told(tmp_path, words, told):
    (tmp_path / "README.md").write_text("# no bundle\n" * 100)
    done = subprocess.run([SCORESHEET, "view", *words], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "mend: " in done.stderr
