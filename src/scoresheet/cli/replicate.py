"""`scoresheet replicate`: did another host get what the first one got?"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from scoresheet.publish.replication import Replication, Side


@click.command()
@click.argument("first", metavar="A", type=click.Path(exists=True, path_type=Path))
@click.argument("second", metavar="B", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def command(first: Path, second: Path, as_json: bool) -> int:
    """Compare run B with run A as its replication; each is a run directory or a bundle.

    The pack's digest comes first: where it differs nothing else is looked at. Both are verified, and must be admissible
    and of different seats. Exit 0: replicated. 1: not replicated, or not comparable; every reason is printed.

    \b
    Example: scoresheet replicate careful.bundle.tar runs/second-host
    """
    return show(first, second, as_json)


def show(first: Path, second: Path, as_json: bool) -> int:
    """Print the verdict; its exit status."""
    import json

    from scoresheet.publish.block import one_line
    from scoresheet.publish.replication import replicate

    a, b = _side(first, "A"), _side(second, "B")
    found = replicate(a, b)
    if as_json:
        click.echo(json.dumps(_facts(found), indent=2))
    else:
        for key, value in found.figures:
            click.echo(f"{key}: {one_line(value)}")
        for task_id, left, right in found.tasks:
            if left != right:
                click.echo(f"task {task_id}: {left} and {right}")
        for note in found.notes:
            click.echo(f"note: {one_line(note)}")
        for reason in found.reasons:
            click.echo(f"  - {one_line(reason)}")
        click.echo(found.verdict)
    return 0 if found.verdict == "replicated" else 1


def _side(path: Path, name: str) -> "Side":
    import tempfile

    from scoresheet.errors import Refused
    from scoresheet.publish import audit
    from scoresheet.publish.replication import Side

    with tempfile.TemporaryDirectory(prefix="scoresheet-") as scratch:
        seen = audit.read(path, Path(scratch))
    seen.refuse_no_bundle(path)
    if seen.run is None or seen.report is None:
        mend = f"scoresheet verify {path} says all that does not hold"
        raise Refused("there is no run to compare", seen.findings, str(path), mend)
    return Side(name, seen.run.plan, seen.report, seen.run.outcomes, tuple(map(str, seen.findings)))


def _facts(found: "Replication") -> dict[str, object]:
    return {
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "figures": dict(found.figures),
        "tasks": [{"task_id": task_id, "a": left, "b": right} for task_id, left, right in found.tasks],
        "notes": list(found.notes),
    }
