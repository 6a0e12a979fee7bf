"""What a line stands for, and that the docs tell the same table."""

from pathlib import Path

from scoresheet.publish import word
from scoresheet.publish.word import LINES, Line, covering, stands_for

DOCS = Path(__file__).parents[2] / "docs"
LINE = Line("nobody knows", ("run.json host.* pack", "rows.jsonl *"))


def test_a_line_stands_for_members_by_name_and_for_parts_by_their_star():
    assert stands_for(LINE, "run.json", "pack")
    assert stands_for(LINE, "run.json", "host.os")
    assert stands_for(LINE, "rows.jsonl", "answer")
    assert not stands_for(LINE, "run.json", "pack_tasks")
    assert not stands_for(LINE, "run.json", "seed")
    assert not stands_for(LINE, "pack.json", "pack")


def test_only_printed_lines_cover():
    printed = ("checked", f"3 of 4: {word.MODEL_LOGS.text}")
    assert covering(printed, "rows.jsonl", "tokens_in") == printed[1:]
    assert covering(printed, "rows.jsonl", "answer") == ()


def test_no_two_lines_are_read_for_each_other():
    texts = [line.text for line in LINES]
    assert not [(one, other) for one in texts for other in texts if one != other and one in other]


def row(line: Line) -> str:
    """A row of the table in docs/not-proved."""
    told = []
    for each in line.covers:
        file, *members = each.split()
        told.append(f"`{file}`: {'all' if members == ['*'] else ', '.join(members)}")
    return f"| {line.text} | {'; '.join(told)} |".replace("*", "\\*")


def test_the_docs_hold_the_same_table():
    text = (DOCS / "not-proved.md").read_text()
    assert [line.text for line in LINES if row(line) not in text] == []
    assert text.count("| `") + sum(text.count(f"| {line.text} |") for line in LINES) >= len(LINES)


def test_the_docs_of_bundles_tell_every_line_that_is_always_printed():
    text = " ".join((DOCS / "bundles.md").read_text().split())
    assert [line.text for line in word.WORD if f"- {line.text}" not in text] == []
