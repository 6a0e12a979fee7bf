"""A whole file, read at once, and never more of it than is stated: who reads what others wrote does not wait or swell.

A pipe is not waited for, a device not read.
"""

import errno
import os
import stat
from pathlib import Path

from scoresheet.errors import Usage

_STEP = 1 << 16
MOST_BYTES = 64 << 20
"""Of a document: more than a run of 100,000 tasks writes into one."""


def read(path: Path, most_bytes: int = MOST_BYTES, mend: str = "put back the file that scoresheet wrote") -> bytes:
    """What the file holds. Raises `OSError` when it can't be read or is no regular file, `Usage` when it is larger."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(status.st_size + 1) if status.st_size <= most_bytes else b""  # room is made for all of it
        while 0 < len(data) <= most_bytes and (more := file.read(_STEP)):  # it grows, or does not know its size
            data += more
        if status.st_size > most_bytes or len(data) > most_bytes:
            size = max(status.st_size, len(data))
            what = (
                f"the file has {size} bytes, and {most_bytes} ({most_bytes >> 20} MiB) are the most that is read here"
            )
            raise Usage(what, str(path), mend)
        return data
