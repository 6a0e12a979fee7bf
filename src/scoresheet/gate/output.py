"""The verdicts of `check` in the forms that people and machines read. Pure: verdicts in, text out.

What a card says is data: control characters are shown by their escapes, and nothing in it can end a line, open an
annotation or close a tag.
"""

import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from typing import Any, assert_never

from scoresheet.documents.check_result import CheckFinding, CheckResult, CheckTarget, Kind
from scoresheet.errors import Finding, counted

DOCS = "https://github.com/scoresheet/scoresheet/blob/main/docs"
MOST_RESULTS = 25_000
"""Results of one SARIF run that GitHub accepts (it keeps the first 5,000)."""

Relative = Callable[[str], str]
"""A path as the command reached it → the same from the repository's root, with `/`."""

_GATES = ("card-", "claim-", "metrics-", "split-", "task-card-", "task-blank")
_REPORT = ("report-", "rows-")
_BESIDE = frozenset({"pack-tools", "pack-test-command", "pack-clock", "pack-seed", "pack-retries"})
_PACK_OWN = frozenset({"task-card-derived"})


def finding(found: Finding) -> CheckFinding:
    """A finding with its place taken apart."""
    line = column = None
    if placed := re.fullmatch(r"(.*):(\d+):(\d+)", found.where, re.DOTALL):
        path, line, column = placed[1], int(placed[2]), int(placed[3])
    else:
        path = found.where.partition("#/")[0]
    return CheckFinding(
        rule_=found.rule,
        severity=found.severity,
        where=found.where,
        path=path,
        line=line,
        column=column,
        what=found.what,
        mend=found.mend,
    )


def result(targets: Sequence[CheckTarget]) -> CheckResult:
    """All verdicts of one command; no target at all passes nothing."""
    cards = [target for target in targets if target.kind != "pack"]
    return CheckResult(
        ok=bool(targets) and all(target.ok for target in targets),
        cards=len(cards),
        rules=sum(target.rules for target in cards),
        targets=tuple(targets),
    )


def count(checked: CheckResult) -> str:
    """How much was looked at: `29 rules on 1 card`."""
    return f"{_many(checked.rules, 'rule')} on {_many(checked.cards, 'card')}"


def text(checked: CheckResult) -> str:
    """What people read: the published lines of a card exactly, each finding's mend indented under it."""
    return "".join(f"{line}\n" for target in checked.targets for line in _lines(target))


def as_json(checked: CheckResult) -> str:
    """The one stable shape (`scoresheet schema check`)."""
    return json.dumps(checked.model_dump(mode="json", by_alias=True), indent=2) + "\n"


def github(checked: CheckResult, relative: Relative) -> str:
    """Workflow commands: one annotation for each finding, what a card says escaped."""
    lines = []
    for _, found in _all(checked):
        place = [("file", relative(found.path)), ("title", f"{found.rule_}")]
        if found.line is not None:
            place[1:1] = [("line", str(found.line))]
            place[2:2] = [] if found.column is None else [("col", str(found.column))]
        properties = ",".join(f"{name}={_property(value)}" for name, value in place)
        message = plain(found.what) + (f"\n{plain(found.mend)}" if found.mend else "")
        lines.append(f"::{found.severity} {properties}::{_data(message)}\n")
    return "".join(lines)


def sarif(checked: CheckResult, version: str, relative: Relative) -> str:
    """SARIF 2.1.0, for code scanning: at most `MOST_RESULTS` results, and a notification when there are more."""
    found = [found for _, found in _all(checked)]
    rules = sorted({each.rule_ for each in found})
    results = [_sarif_result(each, rules.index(each.rule_), relative) for each in found[:MOST_RESULTS]]
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if len(found) > MOST_RESULTS:
        said = f"{len(found)} findings, of which the first {MOST_RESULTS} are listed"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": said}}]
    driver = {
        "name": "scoresheet",
        "version": version,
        "informationUri": DOCS,
        "rules": [
            {"id": rule, "shortDescription": {"text": rule.replace("-", " ")}, "helpUri": help_uri(rule)}
            for rule in rules
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def junit(checked: CheckResult, name: str = "scoresheet check") -> str:
    """JUnit XML: one case for each target, failed by its findings."""
    top = ElementTree.Element("testsuites", name=name)
    suite = ElementTree.SubElement(top, "testsuite", name=name)
    failed = [target for target in checked.targets if not target.ok]
    for element in (top, suite):
        element.set("tests", str(len(checked.targets)))
        element.set("failures", str(len(failed)))
        element.set("errors", "0")
    for target in checked.targets:
        case = ElementTree.SubElement(suite, "testcase", classname=target.kind, name=plain(target.target))
        if not target.ok:
            errors = [each for each in target.findings if each.severity == "error"]
            said = f"{_many(len(errors), 'finding')}" if errors else "nothing was checked"
            failure = ElementTree.SubElement(case, "failure", message=said, type=errors[0].rule_ if errors else "empty")
            failure.text = "\n".join(
                f"{plain(e.where)}: {plain(e.what)} [{e.rule_}]\n  {plain(e.mend)}" for e in errors
            )
        if target.not_judged:
            out = ElementTree.SubElement(case, "system-out")
            out.text = "\n".join(f"not judged: {plain(each)}" for each in target.not_judged)
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top, encoding="unicode") + "\n"


def help_uri(rule: str) -> str:
    """The section of a rule in the docs."""
    return f"{DOCS}/{page_of(rule)}#{rule}"


def page_of(rule: str) -> str:
    """The page of the docs that holds a rule's section."""
    if rule.startswith(_REPORT):
        return "reports.md"
    ours = rule in _BESIDE or (rule.startswith(_GATES) and rule not in _PACK_OWN)
    return "gates.md" if ours else "packs.md"


def plain(said: str) -> str:
    """Text in which nothing can end a line, move a cursor or hide: what is not printable is shown by its escape."""
    return said if said.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in said)


def _escape(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")


def _lines(target: CheckTarget) -> Iterator[str]:
    match target.kind:
        case "pack":
            yield from _pack_lines(target)
        case "score":
            for found in target.findings:
                yield f"{found.severity}: {plain(found.what)} — {plain(found.where)} [{found.rule_}]"
        case "protocol card" | "task card":
            yield f"{target.kind} {'ok' if target.ok else 'invalid:'}"
            for found in target.findings:
                yield f"  - {plain(found.what)}"
                yield f"    {plain(found.mend)} — {plain(found.where)} [{found.rule_}]"
            if target.ok:
                if target.primary is not None:
                    yield f"primary metric: {plain(target.primary)}"
                if target.holdout is not None:
                    yield f"holdout tasks: {target.holdout}"
                yield f"rules checked: {target.rules}"
        case _:
            assert_never(target.kind)


def _pack_lines(target: CheckTarget) -> Iterator[str]:
    for found in target.findings:
        yield f"{found.severity}: {plain(found.what)} — {plain(found.where)} [{found.rule_}]"
        if found.mend:
            yield f"  mend: {plain(found.mend)}"
    seen = f"{counted(target.files or 0, 'file')}, {counted(target.tasks or 0, 'task')} checked"
    yield f"{seen}: {'ok' if target.ok else 'refused'}"


def _all(checked: CheckResult) -> Iterator[tuple[Kind, CheckFinding]]:
    for target in checked.targets:
        for found in target.findings:
            yield target.kind, found


def _sarif_result(found: CheckFinding, place: int, relative: Relative) -> dict[str, Any]:
    uri = relative(found.path)
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(uri)}}
    if found.line is not None:
        physical["region"] = {"startLine": found.line}
        if found.column is not None:
            physical["region"]["startColumn"] = found.column
    said = f"{found.what}\n{found.mend}" if found.mend else found.what
    print_of = hashlib.sha256("\0".join((found.rule_, uri, found.what)).encode(errors="surrogateescape")).hexdigest()
    return {
        "ruleId": found.rule_,
        "ruleIndex": place,
        "level": found.severity,
        "message": {"text": "\n".join(plain(line) for line in said.split("\n"))},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"scoresheetFinding/v1": print_of},
    }


def _uri(path: str) -> str:
    safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
    return "".join(
        each if each in safe else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "surrogateescape"))
        for each in path
    )


def _data(said: str) -> str:
    return said.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(said: str) -> str:
    return _data(said).replace(":", "%3A").replace(",", "%2C")


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
