"""JUnit XML: a case for each planned episode, the protocol sheet as properties of the suite. Pure.

What agents wrote is data: marks are escaped, and a character that XML or a terminal can't hold is shown by its escape.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

from scoresheet.gate.output import plain
from scoresheet.publish.exports.subject import Attempt, Member, Subject, json_text, sheet

_MOST = 4000
"""Characters of an answer that are shown."""


def build(subject: Subject) -> Iterator[Member]:
    """The one file."""
    yield Member("", _lines(subject))


def _lines(subject: Subject) -> Iterator[bytes]:
    report = subject.report
    failures = report.planned - sum(task.successes for task in report.per_task)
    counts = {"tests": str(report.planned), "failures": str(failures), "errors": "0", "skipped": "0"}
    name = plain(subject.card.suite.name)
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n'
    yield _opened(ElementTree.Element("testsuites", {"name": "scoresheet", **counts}))
    suite = {
        "name": name,
        **counts,
        "timestamp": plain(subject.ended_at.rstrip("Z")),
        "hostname": plain(subject.plan.host.label),
    }
    yield _opened(ElementTree.Element("testsuite", suite))
    properties = ElementTree.Element("properties")
    for key, value in sheet(report):
        ElementTree.SubElement(properties, "property", name=key, value=value)
    yield _text(properties)
    for attempt in subject.counted:
        yield _text(case(attempt, name))
    yield b"</testsuite>\n</testsuites>\n"


def case(attempt: Attempt, suite: str) -> ElementTree.Element:
    """One episode."""
    row = attempt.row
    found = ElementTree.Element(
        "testcase", classname=f"{suite}.{row.task_id}", name=f"repeat {row.repeat}", time=f"{row.elapsed_s:.6f}"
    )
    if row.success != 1:
        failure = ElementTree.SubElement(found, "failure", type=row.exit_reason, message=plain(_why(attempt)))
        failure.text = "\n".join(map(plain, _told(attempt)))
    return found


def _why(attempt: Attempt) -> str:
    row = attempt.row
    if row.exit_reason == "completed":
        return (
            f"not what the oracle asks ({attempt.oracle_kind})" if attempt.oracle_kind else "not what the oracle asks"
        )
    return row.detail or f"ended by {row.exit_reason}"


def _told(attempt: Attempt) -> Iterator[str]:
    row = attempt.row
    for miss in row.mismatches:
        yield f"not recorded: {miss.method} {miss.path} ({miss.kind})"
        for difference in miss.nearest.difference if miss.nearest is not None else ():
            yield f"  nearest: {difference}"
    yield from row.schema_errors
    answer = json_text(row.answer, ascii_only=True)
    yield f"answer: {answer[:_MOST]}{'…' if len(answer) > _MOST else ''}"


def _opened(element: ElementTree.Element) -> bytes:
    return _text(element).removesuffix(b" />\n") + b">\n"


def _text(element: ElementTree.Element) -> bytes:
    ElementTree.indent(element)
    return ElementTree.tostring(element, encoding="unicode").encode() + b"\n"
