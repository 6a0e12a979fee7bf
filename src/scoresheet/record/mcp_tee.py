"""`scoresheet-mcp` while a server that speaks over stdio is recorded: the server itself, every line kept on its way.

Run as a program: mcp_tee.py FOLDER SERVER [ARGUMENT…]. What is heard is appended to a file of its own in FOLDER, one
line a message: `>` (client) or `<` (server), milliseconds, the message.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time


def main(folder: str, command: list[str]) -> int:
    """The server's exit status."""
    descriptor, _ = tempfile.mkstemp(".mcp", f"{time.monotonic_ns():020}-", folder)
    lock = threading.Lock()

    def keep(mark: bytes, line: bytes) -> None:
        with lock:
            os.write(descriptor, b"%b %.3f %b\n" % (mark, time.monotonic() * 1000, line.strip()))

    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    stdin = server.stdin

    def forward() -> None:
        try:
            for line in sys.stdin.buffer:
                keep(b">", line)
                stdin.write(line)
                stdin.flush()
        except BrokenPipeError:
            pass  # the server is gone: its status is ours
        finally:
            with contextlib.suppress(BrokenPipeError):
                stdin.close()

    threading.Thread(target=forward, daemon=True).start()
    try:
        for line in server.stdout:
            keep(b"<", line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        server.terminate()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
