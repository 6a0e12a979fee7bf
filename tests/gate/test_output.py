"""What `check` prints, form by form: stable, escaped, and within what its readers take."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from scoresheet.documents.check_result import CheckResult, CheckTarget
from scoresheet.errors import Finding
from scoresheet.gate import output
from scoresheet.gate.rules import RULES, TASK_CARD_RULES

HOUSE = Path(__file__).parents[2]
EVIL = "x%0A::error::pwned\r\n::set-output name=a::b\n  - protocol card ok\x1b[2J<!--]]>\u202e"


def card(*findings: Finding, **facts):
    given: dict[str, Any] = {"target": "a/card.yaml", "kind": "protocol card", "ok": not findings, "rules": 31} | facts
    return CheckTarget(findings=tuple(map(output.finding, findings)), **given)


def found(what="suite.name is empty", where="a/card.yaml:3:9", severity="error"):
    return Finding("card-empty", where, what, "fill it in", severity)


def same(path):
    return path


def test_a_card_that_holds_prints_the_published_lines_and_how_many_rules_ran():
    said = output.text(output.result([card(primary="pass@1", holdout=2)]))
    assert said == "protocol card ok\nprimary metric: pass@1\nholdout tasks: 2\nrules checked: 31\n"


def test_a_finding_is_its_exact_line_with_its_mend_indented_on_the_next():
    said = output.text(output.result([card(found())]))
    assert said.splitlines() == [
        "protocol card invalid:",
        "  - suite.name is empty",
        "    fill it in — a/card.yaml:3:9 [card-empty]",
    ]


def test_nothing_checked_is_no_pass():
    assert not output.result([]).ok
    assert output.count(output.result([])) == "0 rules on 0 cards"


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("a/card.yaml:3:9", ("a/card.yaml", 3, 9)),
        ("odd:1:2/card.yaml:3:9", ("odd:1:2/card.yaml", 3, 9)),
        ("tasks/a.json#/calls/0", ("tasks/a.json", None, None)),
        ("p", ("p", None, None)),
    ],
)
def test_a_place_is_taken_apart(where, place):
    taken = output.finding(found(where=where))
    assert (taken.path, taken.line, taken.column) == place


def test_nothing_in_a_card_can_end_a_line_of_text():
    said = output.text(output.result([card(found(EVIL))]))
    assert len(said.splitlines()) == 3
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_nothing_in_a_card_can_open_an_annotation():
    checked = output.result([card(found(EVIL, where="a,b:c%/card.yaml:3:9"))])
    (line,) = output.github(checked, same).splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac%25/card.yaml,line=3,col=9,title=card-empty::x%250A::error")
    assert line.endswith("%0Afill it in")


def test_json_is_what_its_schema_says_and_reads_back():
    checked = output.result([card(found(), sha256="0" * 64), card(not_judged=("no git",))])
    told = output.as_json(checked)
    jsonschema_rs.validate(CheckResult.model_json_schema(by_alias=True), json.loads(told))
    assert CheckResult.from_bytes(told, "check.json") == checked
    assert json.loads(told)["targets"][0]["findings"][0]["rule"] == "card-empty"


def test_sarif_places_each_finding_in_the_repository_and_links_its_rule():
    (run,) = json.loads(output.sarif(output.result([card(found(where="a b/ü.yaml:3:9"))]), "1.0", same))["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["helpUri"].endswith("docs/gates.md#card-empty")
    (result,) = run["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical == {
        "artifactLocation": {"uri": "a%20b/%C3%BC.yaml"},
        "region": {"startLine": 3, "startColumn": 9},
    }
    assert result["ruleIndex"] == 0


def test_a_file_whose_name_is_not_utf8_is_named_in_every_form():
    checked = output.result([card(found(where="\udcff.yaml:3:9"))])
    (run,) = json.loads(output.sarif(checked, "1.0", same))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%FF.yaml"
    for told in (output.text(checked), output.as_json(checked), output.junit(checked)):
        assert "\\udcff.yaml" in told


def test_a_sarif_fingerprint_outlives_a_moved_line():
    def prints(where):
        log = json.loads(output.sarif(output.result([card(found(where=where))]), "1.0", same))
        return log["runs"][0]["results"][0]["partialFingerprints"]

    assert prints("a.yaml:3:9") == prints("a.yaml:4:1")
    assert prints("a.yaml:3:9") != prints("b.yaml:3:9")


def test_sarif_lists_no_more_than_its_reader_takes_and_says_so():
    many = [found(f"task {n} is empty") for n in range(output.MOST_RESULTS + 1)]
    (run,) = json.loads(output.sarif(output.result([card(*many)]), "1.0", same))["runs"]
    assert len(run["results"]) == output.MOST_RESULTS
    assert "25001 findings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_junit_counts_its_cases_and_stays_xml_whatever_a_card_says():
    read = ElementTree.fromstring(output.junit(output.result([card(found(EVIL)), card()])))
    assert read.attrib["tests"] == "2"
    assert read.attrib["failures"] == "1"
    (failure,) = read.iter("failure")
    assert failure.text is not None
    assert "x%0A::error::pwned" in failure.text


def test_a_pack_of_nothing_fails_in_junit_too():
    empty = CheckTarget(target="p", kind="pack", ok=False, files=0, tasks=0)
    (failure,) = ElementTree.fromstring(output.junit(output.result([empty]))).iter("failure")
    assert failure.attrib["message"] == "nothing was checked"


@pytest.mark.parametrize("rule", ["card-empty", "pack-tools", "task-card-scope", "task-card-derived", "pack-symlink"])
def test_the_help_of_a_rule_is_a_section_that_exists(rule):
    page = (HOUSE / "docs" / output.page_of(rule)).read_text(encoding="utf-8")
    assert f"\n### {rule}\n" in page


def test_every_rule_says_what_it_wants():
    assert all(rule.__doc__ for rule in (*RULES, *TASK_CARD_RULES))
