"""A door on a socket of this machine, a server behind it that says what a test wants, and raw clients."""

import contextlib
import gzip
import socket
import threading
import zlib
from pathlib import Path

import zstandard

from scoresheet.model.door import ModelDoor
from scoresheet.model.log import MODEL_LOG, ModelLog, read_back
from scoresheet.model.upstream import ModelUpstream
from scoresheet.model.view import no_server_tools
from tests.record.scripted import read_message

KEY = "sk-real-0123456789abcdef"


class Opened:
    """A door while it is open. What it heard and kept is read after its end, for it hears later than the client."""

    def __init__(self, port: int, folder: Path, episode: contextlib.ExitStack) -> None:
        self.port, self.folder = port, folder
        self._episode, self._heard = episode, []

    def hear(self, exchange) -> None:
        self._heard.append(exchange)

    @property
    def heard(self):
        self._episode.close()
        return self._heard

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def entries(self):
        self._episode.close()
        return list(read_back((self.folder / MODEL_LOG).read_bytes()))

    def raw(self, data: bytes, timeout: float = 5.0) -> bytes:
        """What comes back for these bytes, until the door closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as client:
            with contextlib.suppress(OSError):
                client.sendall(data)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(65536):
                    found += piece
        return found

    def status(self, data: bytes) -> int:
        return int(self.raw(data).split(b" ", 2)[1])


@contextlib.contextmanager
def opened(folder, address, kind="openai", key=KEY, screen=no_server_tools, tls=None, at_once=None, hear=None, **hooks):
    """A door to `address`."""
    door = ModelDoor(ModelUpstream.parse(f"{kind}={address}"), key, tls, at_once)
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        log = ModelLog(folder / MODEL_LOG)
        stack.callback(log.close)
        stack.callback(door.close)
        episode = stack.enter_context(contextlib.ExitStack())
        found = Opened(listening.getsockname()[1], folder, episode)
        episode.enter_context(door.episode(listening, log, screen, hear or found.hear, **hooks))
        yield found


class Service:
    """A server that answers each connection by a function of the socket; it keeps what it was sent."""

    def __init__(self, answer, tls=None) -> None:
        self._answer, self._tls = answer, tls
        self.requests: list[bytes] = []
        self.ended = 0  # connections of which nothing is left
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)

    @property
    def address(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self._listening.getsockname()[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            with client:
                while True:
                    request = read_message(client)
                    if not request:
                        break
                    self.requests.append(request)
                    if self._answer(client) is not True:
                        break
        self.ended += 1


def says(data: bytes):
    """An answer that is always the same, on a connection that stays."""

    def answer(client: socket.socket) -> bool:
        client.sendall(data)
        return True

    return answer


def packed(name: str, data: bytes) -> bytes:
    """The body under a content coding."""
    if name == "zstd":
        return zstandard.ZstdCompressor().compress(data)
    return zlib.compress(data) if name == "deflate" else gzip.compress(data)
