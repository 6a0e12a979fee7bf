"""The host's end of the control socket: frames of 8 bytes of length, then data; descriptors come with the first."""

import array
import contextlib
import os
import select
import socket
import struct
import time
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("3i")
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Reported:
    """A frame, the descriptors that came along, and who sent it as the kernel says, in the host's numbers."""

    data: bytes
    descriptors: tuple[int, ...]
    pid: int
    uid: int


def send(control: socket.socket, data: bytes) -> None:
    """One frame. Raises `OSError` when the other end is gone."""
    control.sendall(len(data).to_bytes(8, "big") + data)


def receive_report(control: socket.socket, within_s: float) -> Reported | None:
    """The first frame, with descriptors and credentials; `None` when the other end went away or kept silent."""
    deadline = time.monotonic() + within_s
    data, descriptors, pid, uid = b"", array.array("i"), 0, 0
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "big"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([control], [], [], left)[0]:
            break
        space = socket.CMSG_SPACE(64 * 4) + socket.CMSG_SPACE(_CREDENTIALS.size)
        try:
            part, ancillary, _, _ = control.recvmsg(1 << 18, space, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            break
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(content[: len(content) // 4 * 4])
            elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                pid, uid, _ = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])
        if not part:
            break
        data += part
    else:
        return Reported(data[8:], tuple(descriptors), pid, uid)
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return None


class Frames:
    """Frames that arrive in pieces, on a socket that does not block."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def take(self) -> bytes | None:
        """The next whole frame, or `None`."""
        size = int.from_bytes(self._data[:8], "big")
        if len(self._data) < 8 or size > _MOST_BYTES or len(self._data) < 8 + size:
            return None
        frame = bytes(self._data[8 : 8 + size])
        del self._data[: 8 + size]
        return frame
