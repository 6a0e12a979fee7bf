"""What became of each test, from the test cases of a JUnit report; its totals are never read. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal
from xml.parsers import expat

from scoresheet.errors import Malformed

Outcome = Literal["passed", "failed", "skipped"]
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Case:
    """One test case."""

    classname: str
    name: str
    outcome: Outcome
    """An error in preparing or clearing up is `failed`; an expected failure is `skipped`."""


def cases(data: bytes) -> tuple[Case, ...]:
    """Every `<testcase>` of a report. Raises `Malformed`, also for a document type or an entity of its own."""
    found: list[Case] = []
    path: list[str] = []
    current: list[Any] = []

    def refuse(*_: object) -> None:
        raise Malformed("the test report declares a document type or an entity")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(path) >= _DEEPEST:
            raise Malformed("the test report is nested too deeply")
        if name == "testcase" and "testcase" not in path:
            current[:] = [attributes.get("classname", ""), attributes.get("name", ""), "passed"]
        elif path and path[-1] == "testcase":
            if name in ("failure", "error"):
                current[2] = "failed"
            elif name == "skipped" and current[2] == "passed":
                current[2] = "skipped"
        path.append(name)

    def end(name: str) -> None:
        path.pop()
        if name == "testcase" and "testcase" not in path:
            found.append(Case(current[0], current[1], current[2]))

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Malformed(f"the test report is no XML: {error}") from error
    return tuple(found)


def missing(expected: Iterable[str], found: Iterable[Case]) -> tuple[str, ...]:
    """Those of the node ids that did not pass, every time they were run."""
    outcomes: dict[tuple[str, str], set[Outcome]] = {}
    for case in found:
        outcomes.setdefault((case.classname, case.name), set()).add(case.outcome)
    return tuple(node for node in expected if outcomes.get(key(node)) != {"passed"})


def key(node: str) -> tuple[str, str]:
    """(classname, name) that pytest reports a node id under: `tests/test_a.py::TestB::test_c[1]`."""
    base, bracket, parameters = node.partition("[")
    file, *parts = base.split("::")
    name = (parts.pop() if parts else "") + bracket + parameters
    return ".".join((*file.removesuffix(".py").split("/"), *parts)), name
