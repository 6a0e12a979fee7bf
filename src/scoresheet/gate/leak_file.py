"""The leak scan of one file as it lies on disk. Light to import: every process of a scan pays for it."""

import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scoresheet.errors import Usage
from scoresheet.gate import leak_content
from scoresheet.gate.leak_content import Content, Unknown, shown
from scoresheet.pack import tree

MOST_FILE_BYTES = 256 << 20
"""A file over this is not read: it is unknown."""


def search_file(root: Path, path: str) -> Content:
    """The leaks of one file below `root`; a file that can't be read is unknown."""
    try:
        with tree.opened_root(root) as root_fd:
            fd = tree.opened(root_fd, path)
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return Content((), (Unknown(shown(path), "no file any more: it was not read"),))
            if status.st_size > MOST_FILE_BYTES:
                return Content((), (Unknown(shown(path), f"over {MOST_FILE_BYTES >> 20} MiB: not read"),))
            data = file.read(MOST_FILE_BYTES + 1)
    except (OSError, Usage) as error:
        reason = error.strerror if isinstance(error, OSError) else error.what
        return Content((), (Unknown(shown(path), f"can't be read: {reason}"),))
    try:
        return leak_content.search(data, path)
    except MemoryError:
        return Content((), (Unknown(shown(path), "too little memory to search it"),))


def as_value(content: Content) -> dict[str, Any]:
    """A file's content as JSON, for the way between processes."""
    return {
        "findings": [asdict(placed) for placed in content.findings],
        "unknown": [asdict(each) for each in content.unknown],
    }
