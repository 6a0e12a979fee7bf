"""Runs a `py:` agent inside the sandbox: `agent_host.py FOLDER MODULE FUNCTION`. Standard library only.

FOLDER is where MODULE is looked for first, `-` for none; a MODULE that ends in `.py` is a file's path. The function is
called with the task view and `call`, an ordinary HTTP client of the doors. What it returns is the answer.
"""

import importlib
import importlib.util
import json
import os
import socket
import sys

_TIMEOUT_S = 600


class Door:
    """One recorded API (or the door of tools by name), over one connection that is kept."""

    def __init__(self, url):
        host, _, port = url.removeprefix("http://").strip("/").partition(":")
        self.host = f"{host}:{port}"
        self.address = (host, int(port))
        self.connection = self.reader = None

    def call(self, method, path, body=None):
        """(status, text of the body). Raises ConnectionError when the connection ends before the answer does."""
        headers = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", "Accept: */*"]
        if body is None:
            data = b""
        elif isinstance(body, (bytes, bytearray)):
            data = bytes(body)
            headers.append("Content-Type: application/octet-stream")
        else:
            data = json.dumps(body).encode()
            headers.append("Content-Type: application/json")
        if data or method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
            headers.append(f"Content-Length: {len(data)}")
        request = "\r\n".join(headers).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + data
        try:
            if self.connection is None:
                self.connection = socket.create_connection(self.address, _TIMEOUT_S)
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.reader = self.connection.makefile("rb")
            self.connection.sendall(request)
            return self.answer(method)
        except BaseException:
            self.close()
            raise

    def answer(self, method):
        while True:
            first = self.line().split(None, 2)
            if len(first) < 2 or not first[1].isdigit():
                raise ConnectionError("the answer is not HTTP")
            status = int(first[1])
            length, chunked, close = None, False, first[0] == b"HTTP/1.0"
            while line := self.line():
                name, _, value = line.partition(b":")
                name, value = name.strip().lower(), value.strip().lower()
                if name == b"content-length":
                    length = int(value)
                elif name == b"transfer-encoding":
                    chunked = value == b"chunked"
                elif name == b"connection":
                    close = value == b"close"
            if status >= 200:
                break
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif chunked:
            body = b"".join(self.chunks())
        elif length is not None:
            body = self.exactly(length)
        else:
            body, close = self.reader.read(), True
        if close:
            self.close()
        return status, body.decode("utf-8", "replace")

    def line(self):
        line = self.reader.readline(65537)
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection was closed before the answer was whole")
        return line.rstrip(b"\r\n")

    def exactly(self, size):
        data = self.reader.read(size)
        if len(data) != size:
            raise ConnectionError("the connection was closed before the answer was whole")
        return data

    def chunks(self):
        while size := int(self.line().partition(b";")[0], 16):
            yield self.exactly(size)
            self.exactly(2)
        while self.line():
            pass

    def close(self):
        if self.connection is not None:
            self.reader.close()
            self.connection.close()
            self.connection = self.reader = None


def make_call():
    """`call(method, path, body=None, upstream=None) -> (status, text)`; the method CALL calls a tool by its name."""
    doors: dict[str, Door] = {}

    def call(method, path, body=None, upstream=None):
        if method == "CALL":
            name, method, path = "SCORESHEET_CALL_URL", "POST", "/" + path.lstrip("/")
        elif upstream is not None:
            name = upstream
        elif "SCORESHEET_TOOLS_URL" in os.environ:
            name = "SCORESHEET_TOOLS_URL"
        else:
            raise ValueError("this task has several upstreams: name one, call(method, path, body, upstream=NAME)")
        if name not in os.environ:
            raise ValueError(f"there is no upstream {name!r}")
        door = doors.get(name)
        if door is None:
            door = doors[name] = Door(os.environ[name])
        return door.call(method, path, body)

    return call


def find(folder, module, function):
    """The agent's function."""
    if folder != "-":
        installed = [place for place, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages"))]
        sys.path.insert(installed[0] if installed else len(sys.path), folder)  # behind the standard library
    if module.endswith(".py"):
        name = os.path.basename(module)[:-3]
        name = f"agent_{name}" if name in sys.stdlib_module_names else name
        spec = importlib.util.spec_from_file_location(name, module)
        assert spec is not None  # a path that ends in .py has a loader
        assert spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        sys.modules[name] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    for part in function.split("."):
        found = getattr(found, part)
    return found


def main(folder, module, function):
    with open(os.environ["SCORESHEET_TASK"], encoding="utf-8") as file:
        task = json.load(file)
    agent = find(folder, module, function)
    answer = agent(task, make_call())
    if answer is None:
        return
    text = json.dumps(answer, allow_nan=False)
    with open(os.environ["SCORESHEET_ANSWER"], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.argv = sys.argv[:1] + sys.argv[1:4]
    main(*sys.argv[1:4])
