"""Receipts on disk: a file that only grows, held by one writer at a time, synced before anything rests on it."""

from collections.abc import Callable, Iterable
from pathlib import Path

from scoresheet import bounded_file, growing_file
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.errors import Refused, Usage
from scoresheet.gate import chain
from scoresheet.gate.chain import Chain, Head

_MOST_BYTES = 1 << 30
"""Of a pack's own file, which grows with every run."""
Make = Callable[[Chain], Iterable[ChainedReceipt]]


def read(path: str | Path, most_bytes: int = _MOST_BYTES) -> Chain | None:
    """The chain in the file at `path`; `None` when there is no such file.

    Raises `Usage` when it can't be read, or has more than `most_bytes`.
    """
    mend = (
        "move the file away, and triage anew" if most_bytes == _MOST_BYTES else "put back the file that the run wrote"
    )
    try:
        return chain.read(bounded_file.read(Path(path), most_bytes, mend), Path(path).name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Usage(f"the receipts can't be read: {error.strerror}", str(path)) from error


def append(path: str | Path, make: Make) -> Head:
    """Append what `make` gives for the chain that is there, under a lock, synced; where the chain ends then.

    A decision that is there already, to the second, is not written again. The torn last line that a killed writer
    leaves is cut off. Raises `Refused`, and appends nothing, when the chain that is there is broken; `Usage` when the
    file can't be written.
    """
    path = Path(path)
    with growing_file.held(path, "the receipts") as file:
        found = chain.read(file.lines(), path.name)
        if found.findings:
            mend = "restore the file; receipts can't be edited"
            raise Refused("the receipts are not as they were written", found.findings, str(path), mend)
        there = {chain.content(each.receipt) for each in found.placed}
        fresh = (receipt for receipt in make(found) if chain.content(receipt) not in there)
        lines, head = chain.chained(fresh, found.head)
        file.append(lines)
    return head
