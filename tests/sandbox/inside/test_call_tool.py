import contextlib
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scoresheet.sandbox.inside import call_tool


@pytest.fixture
def door():
    heard = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            body = b'{"error": "no such item"}' if b"0" in heard[-1][1] else b'{"price": 12}'
            self.send_response(404 if b"0" in heard[-1][1] else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            yield f"http://127.0.0.1:{server.server_address[1]}", heard


def called(url, *words):
    command = [sys.executable, "-I", "-S", call_tool.__file__, *words]
    return subprocess.run(command, env={"SCORESHEET_CALL_URL": url}, capture_output=True, text=True, timeout=300)


def test_a_tool_is_called_by_its_name_with_arguments_as_they_are(door):
    url, heard = door
    done = called(url, "get item/1", '{"n": 1}')
    assert (done.returncode, done.stdout) == (0, '{"price": 12}\n')
    assert called(url, "list").returncode == 0
    assert heard == [("/get%20item%2F1", b'{"n": 1}'), ("/list", b"{}")]


def test_a_tool_that_says_no_is_an_exit_of_1_and_its_status(door):
    done = called(door[0], "get_item", '{"n": 0}')
    assert (done.returncode, done.stdout, done.stderr) == (1, '{"error": "no such item"}\n', "status 404\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("get_item", "{n: 1}"), "are no JSON"),
        (("get_item", "[1]"), "are no JSON object"),
        ((), "usage: scoresheet-call TOOL [ARGUMENTS]"),
        (("a", "{}", "b"), "usage: scoresheet-call TOOL [ARGUMENTS]"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_calls_nothing(door, words, said):
    url, heard = door
    done = called(url, *words)
    assert (done.returncode, said in done.stderr, heard) == (1, True, [])


def test_without_a_door_it_says_so():
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        assert "the door is gone" in called(f"http://127.0.0.1:{bound.getsockname()[1]}", "get_item").stderr
    assert "holds no address" in called("", "get_item").stderr
