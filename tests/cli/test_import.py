"""`scoresheet import` as users run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scoresheet.cli.app import run
from scoresheet.cli.import_ import command
from scoresheet.documents.task import Task
from scoresheet.record.importers.formats import FORMATS

CORPUS = Path(__file__).parents[1] / "corpus"
HAR = CORPUS / "mitmproxy" / "library.har"
PASTRIES = CORPUS / "har" / "chrome-local-api-patch.har"


def bring(capsys, *arguments):
    """Run the verb; exit code, stdout, stderr."""
    code = run(["import", *map(str, arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def common(pack, **more):
    options = {"out": pack, "task": "t", "prompt": "What is on sale?", "expected": '{"a": 1}'} | more
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def entry(number, more=None, path="/pay", answer="{}", **member):
    body = json.dumps({"amount": 5} | member)
    return {
        "startedDateTime": f"2026-01-01T00:00:{number:02}Z",
        "request": {
            "method": "POST", "url": f"https://pay.test{path}", "bodySize": len(body),
            "headers": [{"name": "Content-Type", "value": "application/json"}, *(more or [])],
            "postData": {"mimeType": "application/json", "text": body},
        },
        "response": {
            "status": 200, "headers": [], "bodySize": -1,
            "content": {"size": len(answer), "text": answer, "mimeType": "application/json"},
        },
    }  # fmt: skip


def write(path, *entries):
    path.write_text(json.dumps({"log": {"entries": list(entries)}}))
    return path


def task_of(pack):
    return Task.from_bytes((pack / "tasks" / "t.json").read_bytes(), "t")


def test_the_installed_command_imports_and_the_pack_freezes(tmp_path):
    scoresheet = Path(sys.executable).with_name("scoresheet")
    done = subprocess.run(
        [scoresheet, "import", "har", HAR, *common(tmp_path / "pack"), "--upstream", "LIB=library.test"],
        capture_output=True, text=True, check=False, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("t: 210 calls of 210; tools: ")
    assert "upstream LIB: library.test" in done.stderr
    assert "changed in 63: Content-Encoding of the answer left out" in done.stderr
    assert "request headers left out: " in done.stderr
    assert subprocess.run([scoresheet, "freeze", tmp_path / "pack"], capture_output=True, check=False).returncode == 0


def test_help_names_every_format():
    for name in FORMATS:
        assert f"      {name} " in (command.help or ""), name


def test_facts_are_printed_as_json(tmp_path, capsys):
    code, out, _ = bring(capsys, "har", CORPUS / "har" / "firefox.har", *common(tmp_path / "pack"), "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["calls"] == 3
    assert len(facts["left_out"]) == 5
    assert facts["upstreams"]["MITMPROXY_ORG"] == "mitmproxy.org"
    assert facts["files"]


def test_only_the_hosts_that_were_named_are_taken_and_the_others_are_named(tmp_path, capsys):
    folder = CORPUS / "har"
    code, out, err = bring(capsys, "har", folder, *common(tmp_path / "pack"), "--upstream", "SHOP=localhost:8080")
    assert code == 0
    assert out.startswith("t: 6 calls of ")
    assert "mitmproxy.org is not one of the hosts given by --upstream" in err
    strictly = ["--upstream", "SHOP=localhost:8080", "--strict", "--replace"]
    assert bring(capsys, "har", folder, *common(tmp_path / "pack"), *strictly)[0] == 0
    base = ["--upstream", "SHOP=http://localhost:8080/rest/API+Pastries/0.0.1", "--replace"]
    assert bring(capsys, "har", PASTRIES, *common(tmp_path / "pack"), *base)[0] == 0
    assert task_of(tmp_path / "pack").calls[0].request.path == "/pastries"


def test_credentials_never_reach_the_pack(tmp_path, capsys):
    secret = "q8Zt4LmX2vB7nK9p"
    more = [{"name": "X-Api-Key", "value": secret}]
    path = write(tmp_path / "f.har", entry(1, more, api_key=secret), entry(2, answer=f'"{secret}"'))
    code, _, err = bring(capsys, "har", path, *common(tmp_path / "pack"))
    assert code == 0
    assert secret not in err
    assert "f.har#/log/entries/0, request body /api_key: REDACTED-1" in err
    assert "ignored in matching from now on: /json/api_key" in err
    assert not any(secret in file.read_text() for file in (tmp_path / "pack").rglob("*.json"))


def test_an_entry_whose_credential_cant_be_taken_out_is_left_out(tmp_path, capsys):
    secret = "q8Zt4LmX2vB7nK9p"
    more = [{"name": "Authorization", "value": f"Bearer {secret}"}]
    path = write(tmp_path / "f.har", entry(1, more), entry(2, path=f"/keys/{secret}"))
    code, out, err = bring(capsys, "har", path, *common(tmp_path / "pack"))
    assert code == 0
    assert out.startswith("t: 1 call of 2")
    assert "a credential stands in the path — f.har#/log/entries/1, request path [record-secret-in-path]" in err
    assert secret not in err + "".join(file.read_text() for file in (tmp_path / "pack").rglob("*.json"))


def test_a_credential_of_an_entry_that_is_left_out_is_one_in_the_others(tmp_path, capsys):
    secret = "q8Zt4LmX2vB7nK9p"
    more = [{"name": "Authorization", "value": f"Bearer {secret}"}]
    path = write(tmp_path / "f.har", entry(1, answer=f'"{secret}"'), entry(2, more, path=f"/keys/{secret}"))
    code, out, _ = bring(capsys, "har", path, *common(tmp_path / "pack"))
    assert code == 0
    assert out.startswith("t: 1 call of 2")
    assert secret not in "".join(file.read_text() for file in (tmp_path / "pack").rglob("*.json"))


def test_a_credential_in_what_people_wrote_is_refused(tmp_path, capsys):
    path = write(tmp_path / "f.har", entry(1, [{"name": "X-Api-Key", "value": "q8Zt4LmX2vB7nK9p"}]))
    code, _, err = bring(capsys, "har", path, *common(tmp_path / "pack", prompt="use q8Zt4LmX2vB7nK9p"))
    assert code == 1
    assert "stands in the task's prompt" in err
    assert not (tmp_path / "pack").exists()


UUIDS = ("0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7")


def test_what_differs_between_repeats_is_suggested_and_ignored_only_when_asked(tmp_path, capsys):
    first = write(tmp_path / "1.har", entry(1, nonce=UUIDS[0]), entry(2, nonce=UUIDS[1]))
    code, _, err = bring(capsys, "har", first, *common(tmp_path / "pack"))
    assert code == 0
    assert "/json/nonce of POST /pay: differs in 1 of 1 repeats, looks like a UUID" in err
    assert "--ignore '/json/nonce'" in err
    assert len({call.request_fingerprint for call in task_of(tmp_path / "pack").calls}) == 2
    code, _, err = bring(capsys, "har", first, *common(tmp_path / "pack"), "--replace", "--ignore", "/json/nonce")
    assert code == 0
    assert "volatile" not in err
    assert len({call.request_fingerprint for call in task_of(tmp_path / "pack").calls}) == 1
    assert run(["freeze", str(tmp_path / "pack")]) == 0


def test_a_second_recording_tells_what_is_volatile_and_is_not_imported(tmp_path, capsys):
    first = write(tmp_path / "1.har", entry(1, attempt="one", amount=7))
    second = write(tmp_path / "2.har", entry(1, attempt="two", amount=7), entry(2, path="/other", x=1))
    code, out, err = bring(capsys, "har", first, "--compare", second, *common(tmp_path / "pack"))
    assert code == 0
    assert out.startswith("t: 1 call of 1")
    assert "/json/attempt of POST /pay: differs in 1 of 1 repeats;" in err
    assert "amount" not in err
    assert "1 requests of this recording have no counterpart" in err


def test_two_real_recordings_of_the_same_work_show_what_their_clients_made_up(tmp_path, capsys):
    browser = CORPUS / "browser" / "library.har"
    arguments = [
        "har",
        HAR,
        "--compare",
        browser,
        "--upstream",
        "LIB=library.test",
        *common(tmp_path / "pack"),
        "--json",
    ]
    code, out, _ = bring(capsys, *arguments)
    assert code == 0
    found = {each["rule"]: each for each in json.loads(out)["suggestions"]}
    assert found["/json/request_id"]["request"] == "POST /loans"
    assert found["/json/request_id"]["look"] == "a UUID"
    assert found.keys() == {"/json/request_id", "/query/sort"} & found.keys()


def test_what_an_earlier_answer_gave_is_not_called_volatile(tmp_path, capsys):
    path = write(
        tmp_path / "f.har",
        entry(1, path="/new", answer=json.dumps(UUIDS)), entry(2, id=UUIDS[0]), entry(3, id=UUIDS[1]),
    )  # fmt: skip
    assert "volatile" not in bring(capsys, "har", path, *common(tmp_path / "pack"))[2]


WRONG = {
    "an unknown format": (["hra", HAR], 2, "no format that can be imported"),
    "no file": (["har"], 2, "no file to import"),
    "a file that is not there": (["har", "nowhere.har"], 2, "No such file"),
    "a folder without such files": (["har", CORPUS / "vcr"], 2, "no file that ends in .har"),
    "a device": (["har", "/dev/zero"], 2, "not a regular file"),
    "another format": (["har", CORPUS / "vcr" / "library.yaml"], 1, "not JSON"),
    "a bad task id": (["har", HAR, "--task", "a/b"], 2, "can't name a task"),
    "no prompt": (["har", HAR, "--prompt", ""], 2, "do not say what the agent was asked"),
    "a bad host": (["har", HAR, "--upstream", "A=a b"], 2, "is no host"),
    "a bad upstream name": (["har", HAR, "--upstream", "a-b=c"], 2, "can't name an environment variable"),
    "two hosts of one name": (["har", HAR, "--upstream", "A=a", "--upstream", "A=b"], 2, "two hosts have one name"),
    "an ignore that nothing has": (["har", HAR, "--ignore", "/json/nope"], 2, "no request has /json/nope"),
    "no JSON expected": (["har", HAR, "--expected", "[1]"], 2, "must be a JSON object"),
    "nothing left": (["har", CORPUS / "har" / "mitmproxy-websocket.har"], 1, "a WebSocket can't be replayed"),
    "an entry left out, strictly": (["har", CORPUS / "har" / "firefox.har", "--strict"], 1, "import-body-missing"),
}


@pytest.mark.parametrize(("arguments", "code", "what"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_with_its_exit_code_and_leaves_no_pack(arguments, code, what, tmp_path, capsys):
    pack = tmp_path / "pack"
    got, out, err = bring(capsys, arguments[0], *common(pack), *arguments[1:])
    assert (got, out) == (code, "")
    assert what in err
    assert not pack.exists()


def test_a_file_without_entries_is_a_failure(tmp_path, capsys):
    code, _, err = bring(capsys, "har", write(tmp_path / "f.har"), *common(tmp_path / "pack"))
    assert code == 1
    assert "hold no calls" in err


def test_a_task_is_replaced_only_when_asked(tmp_path, capsys):
    assert bring(capsys, "har", PASTRIES, *common(tmp_path / "pack"))[0] == 0
    before = (tmp_path / "pack" / "tasks" / "t.json").read_bytes()
    code, _, err = bring(capsys, "har", HAR, *common(tmp_path / "pack"))
    assert code == 1
    assert "--replace" in err
    assert (tmp_path / "pack" / "tasks" / "t.json").read_bytes() == before


def test_many_tasks_share_the_tools_of_one_pack(tmp_path, capsys):
    pack = tmp_path / "pack"
    assert bring(capsys, "har", HAR, *common(pack), "--upstream", "LIB=library.test")[0] == 0
    more = ["--upstream", "LIB=library.test"]
    assert bring(capsys, "vcr", CORPUS / "vcr" / "library.yaml", *common(pack, task="u"), *more)[0] == 0
    assert run(["freeze", str(pack)]) == 0
    first, second = (json.loads((pack / "tasks" / f"{name}.json").read_text()) for name in "tu")
    assert first["tools"] == second["tools"]


def test_a_task_without_an_answer_is_imported_and_said_to_have_none(tmp_path, capsys):
    arguments = ["--out", tmp_path / "pack", "--task", "t", "--prompt", "q"]
    code, _, err = bring(capsys, "har", PASTRIES, *arguments)
    assert code == 0
    assert "the task has no expected answer" in err


def test_states_are_written_down_when_they_are_wanted(tmp_path, capsys):
    def read(number, answer):
        one = entry(number, path="/order", answer=answer)
        one["request"] = {"method": "GET", "url": "https://pay.test/order", "bodySize": 0, "headers": []}
        return one

    har = write(tmp_path / "a.har", read(1, '{"paid": false}'), entry(2), read(3, '{"paid": true}'))
    code, _, err = bring(capsys, "har", har, *common(tmp_path / "pack"), "--states")
    assert code == 0
    assert "  states of PAY_TEST: start, write-1\n" in err
    assert [call.state and call.state.requires for call in task_of(tmp_path / "pack").calls] == [
        "start", "start", "write-1",
    ]  # fmt: skip
    bring(capsys, "har", har, *common(tmp_path / "plain"))
    assert task_of(tmp_path / "plain").scenarios == {}
