"""The price table of a run: read where the user keeps it, kept with the run byte for byte."""

from dataclasses import dataclass
from pathlib import Path

from scoresheet import bounded_file, json_pointer
from scoresheet.digest import Digest
from scoresheet.documents.prices import PriceTable
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.gate import reading

PRICES = "prices.yaml"
"""What it is called in a run directory, JSON or YAML: every JSON of this kind is YAML too."""


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table, and the bytes of which it was read."""

    table: PriceTable
    data: bytes
    sha256: Digest


def parse(data: bytes, path: str) -> Prices:
    """The table in these bytes. Raises `Malformed` and `Refused`, every fault with `path:line:column`."""
    file = reading.parse(data, path)
    try:
        table = PriceTable.from_value(file.located.value, path)
    except Refused as refused:
        found = []
        for finding in refused.findings:
            pointer = finding.where.partition("#")[2]
            where = f"{path}:{file.located.place(pointer)}"
            name = json_pointer.name(pointer).strip("/").replace("/", ".")
            found.append(Finding(finding.rule, where, f"{name}: {finding.what}" if name else finding.what))
        mend = "models: {NAME: {input: 0.25, output: 2}}, with a currency and a date; docs/model says more"
        raise Refused("not a price table", found, path, mend) from refused
    return Prices(table, data, file.sha256)


def read(path: Path) -> Prices:
    """The table in a file. Raises as `parse` does, and `Usage` when the file can't be read."""
    return parse(reading.content(str(path)), str(path))


def kept(run: Path) -> Prices | None:
    """The table that lies in a run directory. Raises as `parse` does."""
    path = run / PRICES
    try:
        data = bounded_file.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Usage(f"the price table can't be read: {error.strerror}", str(path)) from error
    return parse(data, PRICES)
