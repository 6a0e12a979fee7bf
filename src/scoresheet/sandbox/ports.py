"""The host's way to open ports below 1024 in a sandbox's network: see `inside/ports.py`, which does it."""

import array
import contextlib
import importlib.resources
import marshal
import os
import socket
import subprocess
import threading
from collections.abc import Sequence

from scoresheet.errors import ScoresheetError
from scoresheet.sandbox.launcher import Launcher
from scoresheet.sandbox.spec import Door

_WITHIN_S = 30.0


class Ports:
    """A process that opens ports for all episodes of a run; started when it is first needed."""

    def __init__(self, interpreter: str, launcher: Launcher) -> None:
        self._interpreter, self._launcher = interpreter, launcher
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def open(self, pid: int, account: int | None, doors: Sequence[Door]) -> tuple[int, ...]:
        """A descriptor for each door, in the network of that process. Raises `ScoresheetError`.

        `account` made the sandbox; `None` is our own.
        """
        order = marshal.dumps((pid, account, [(door.kind == "udp", door.port) for door in doors]), 2)
        with self._lock:
            if self._control is None:
                self._control = self._start()
            try:
                self._control.send(order)
                size = socket.CMSG_SPACE(64 * 4)
                said, ancillary, _, _ = self._control.recvmsg(4096, size, socket.MSG_CMSG_CLOEXEC)
            except OSError as error:
                raise ScoresheetError(f"no port could be opened in the sandbox: {error.strerror or error}") from error
        found = array.array("i")
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found.frombytes(content[: len(content) // 4 * 4])
        if said == b"+" and len(found) == len(doors):
            return tuple(found)
        for descriptor in found:
            os.close(descriptor)
        what = said[1:].decode("utf-8", "replace") or "its process has died"
        raise ScoresheetError(f"ports 53, 80 and 443 could not be opened in the sandbox: {what}")

    def close(self) -> None:
        """End the process."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()

    def _start(self) -> socket.socket:
        program = (importlib.resources.files("scoresheet.sandbox.inside") / "ports.py").read_text(encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.ExitStack() as mine:
            mine.callback(os.close, nothing)
            mine.callback(theirs.close)
            ours.settimeout(_WITHIN_S)
            self._process = self._launcher.spawn(
                [self._interpreter, "-I", "-S", "-c", program, str(theirs.fileno())],
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                pass_fds=(theirs.fileno(),),
            )
        return ours
