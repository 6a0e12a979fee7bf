import json
import os
import subprocess
import sys

import pytest

from scoresheet.sandbox.inside import ready_host
from tests.run.agents.givens import DOOR, TOOL, given


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('There is one.\n\n{"a": 1}\n', '{"a": 1}'),
        ('```json\n{\n  "a": {"b": 1}\n}\n```\n', '{\n  "a": {"b": 1}\n}'),
        ('{"first": 1}\n{"last": 2}', '{"last": 2}'),
        ('  {"a": 1}', '{"a": 1}'),
        ('{"a": 1} is it', None),
        ('It is {"a": 1}', None),
        ('{"a": 1}\n```\nAnything else?', None),
        ("[1]", None),
        ("", None),
        ("{" * 100_000, None),
    ],
)
def test_the_answer_is_the_object_that_a_message_ends_in(text, found):
    assert ready_host.answer_in(text) == found


def test_a_task_that_wants_an_answer_says_how_to_give_it(monkeypatch, tmp_path):
    assert given(monkeypatch, tmp_path).prompt.endswith("on a line of its own: one JSON object")
    assert given(monkeypatch, tmp_path, schema={"type": "object"}).prompt.endswith('schema: {"type": "object"}')
    assert given(monkeypatch, tmp_path, tools=()).prompt == "What is it?\n"


def test_an_option_names_another_model_than_the_card(monkeypatch, tmp_path):
    assert given(monkeypatch, tmp_path).model == "the-model"
    assert given(monkeypatch, tmp_path, model="mine").model == "mine"


AGENT = """
import json
def start(given):
    return [*given.program, "-c", given.options["code"]], given.environment
def final(given, printed):
    return given.options["said"].replace("PRINTED", printed.decode().strip()), given.options.get("fault")
"""


def ran(folder, code, said="", **more):
    """(process, answer) of an agent that runs this code, by an interpreter without any package."""
    (folder / "agent.py").write_text(AGENT)
    (folder / "task.json").write_text(json.dumps({"prompt": "p", "tools": [TOOL], "answer_schema": None}))
    answer = folder / "answer.json"
    environment = {**DOOR, "HOME": str(folder), "PATH": "/usr/bin:/bin", "SCORESHEET_ANSWER": str(answer)}
    environment["SCORESHEET_TASK"] = str(folder / "task.json")
    options = json.dumps({"code": code, "said": said, **more})
    words = [sys.executable, "-I", "-S", "-B", ready_host.__file__, str(folder / "agent.py"), options, sys.executable]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return done, answer.read_text() if answer.exists() else None


def test_what_it_said_last_is_the_answer_and_what_it_printed_is_passed_on(tmp_path):
    done, answer = ran(tmp_path, "print('{\"a\": 1}')", "So:\nPRINTED")
    assert (done.returncode, answer) == (0, '{"a": 1}')
    assert done.stdout == '{"a": 1}\n\nscoresheet: the agent ended with 0\n'  # whose last line is no answer


def test_an_answer_that_the_agent_left_itself_stays(tmp_path):
    code = "import os; open(os.environ['SCORESHEET_ANSWER'], 'w').write('{}')"
    assert ran(tmp_path, code, '{"a": 1}')[1] == "{}"


@pytest.mark.parametrize(
    ("code", "more", "status"),
    [
        ("raise SystemExit(3)", {}, 3),
        ("import os; os.kill(os.getpid(), 15)", {}, 143),
        ("pass", {"fault": "the tools were not connected"}, 1),
    ],
)
def test_what_went_wrong_is_an_exit_that_is_not_0(tmp_path, code, more, status):
    done, _ = ran(tmp_path, code, **more)
    assert done.returncode == status
    assert done.stdout.splitlines()[-1].startswith("scoresheet: the agent ended with ")


def test_its_program_waits_for_no_input(tmp_path):
    done, answer = ran(tmp_path, "import sys; print(len(sys.stdin.read()))", '{"read": PRINTED}')
    assert (done.returncode, answer) == (0, '{"read": 0}')


def test_what_it_leaves_in_the_background_is_not_waited_for(tmp_path):
    held = tmp_path / "held"
    os.mkfifo(held)
    code = f"import subprocess; subprocess.Popen(['cat', {str(held)!r}], stderr=subprocess.DEVNULL); print(1)"
    done, answer = ran(tmp_path, code, '{"said": PRINTED}')
    held.write_text("")  # now it may end
    assert (done.returncode, answer) == (0, '{"said": 1}')


def test_of_very_much_output_the_beginning_is_passed_on_and_the_end_is_read(tmp_path):
    code = "print('first'); [print('x' * 9999) for _ in range(999)]; print('last')"
    done, answer = ran(tmp_path, code, "PRINTED")
    lines = done.stdout.splitlines()
    assert (done.returncode, answer, lines[0]) == (0, None, "first")
    assert len(done.stdout) < ready_host.MOST + (1 << 17) < 9_990_000
    assert lines[-3].endswith("more bytes were printed")
