"""One file's bytes, without a file."""

from scoresheet.gate import leak_content
from tests.gate.leak_corpus import Maker

SECRET = "ghp_" + Maker(3).text(36)


def test_text_for_people_holds_no_leak_and_no_control_signs():
    assert leak_content.shown(f"a/{SECRET}/\x1b[31m\udcff") == "a/******/\\x1b[31m\\udcff".replace("\\udcff", "\\xff")


def test_one_secret_twice_on_a_line_is_one_finding():
    assert len(leak_content.search(f"{SECRET} {SECRET}".encode(), "a").findings) == 1
    assert len(leak_content.search(f"{SECRET}\n{SECRET}".encode(), "a").findings) == 2


def test_addresses_in_lists_of_authors_are_meant_to_be_read():
    line = b"Jo Roe <jo.roe@posteo.de>\n"
    assert leak_content.search(line, "AUTHORS.md").findings == ()
    assert leak_content.search(line, "vendor/x/LICENSE").findings == ()
    assert len(leak_content.search(line, "authors.csv").findings) == 1
    assert len(leak_content.search(line + SECRET.encode(), "AUTHORS").findings) == 1
