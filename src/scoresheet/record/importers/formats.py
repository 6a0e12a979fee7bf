"""The formats that can be imported; each is one module, loaded when it is asked for. Pure."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from scoresheet.record.importers.intake import Intake, Source

Reader = Callable[[Source, Intake], None]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recordings."""

    name: str
    line: str
    module: str
    suffixes: tuple[str, ...]
    """Of the files that are taken from a folder."""
    beside: str = ""
    """Folder beside the files that holds bodies which they name."""
    merged: bool = False
    """Whether a folder is one recording rather than many files of one."""

    def reader(self) -> Reader:
        """The function that takes in one file."""
        read: Reader = importlib.import_module(f"scoresheet.record.importers.{self.module}").read
        return read


FORMATS = {
    each.name: each
    for each in (
        Format("har", "HAR 1.2, of browsers, proxies and Polly.JS", "har", (".har",)),
        Format("vcr", "VCR.py cassettes, YAML and JSON (pytest-recording)", "vcr", (".yaml", ".yml", ".json")),
    )
}
