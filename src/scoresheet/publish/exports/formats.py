"""The formats that a run can be exported to: one line each. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from scoresheet.publish.exports import csv_rows, every_eval_ever, hugging_face, inspect_log, junit
from scoresheet.publish.exports.subject import Member, Subject


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and what its files are like."""

    build: Callable[[Subject], Iterator[Member]]
    kind: Literal["file", "archive", "folder"]
    suffix: str
    """Of the name that an export gets by itself."""
    calls: bool = False
    """True when it shows the calls of each episode."""


FORMATS: Mapping[str, Format] = {
    "csv": Format(csv_rows.build, "file", ".csv"),
    "every-eval-ever": Format(every_eval_ever.build, "folder", ".every-eval-ever", calls=True),
    "huggingface": Format(hugging_face.build, "file", ".eval-results.yaml"),
    "inspect": Format(inspect_log.build, "archive", ".eval", calls=True),
    "junit": Format(junit.build, "file", ".junit.xml"),
}
