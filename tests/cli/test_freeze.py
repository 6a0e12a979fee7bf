"""The installed command: freeze, check, explain and schema."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scoresheet import digest
from tests.command import SCORESHEET
from tests.pack.packs import deep, flat, lay, v1_task


def run(*arguments, code=0, **options):
    done = subprocess.run([SCORESHEET, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_the_last_line_is_the_digest_and_the_manifest(tmp_path):
    root = flat(tmp_path / "pack")
    done = run("freeze", root, "--tar", tmp_path / "pack.tar", "--timeout-s", "60")
    sha256, path = done.stdout.splitlines()[-1].split(" ", 1)
    assert path == str(root / "manifest.json")
    assert sha256 == digest.of_file(path).sha256
    assert done.stdout.splitlines()[0] == f"{digest.of_file(tmp_path / 'pack.tar').sha256} {tmp_path / 'pack.tar'}"
    assert json.loads(Path(path).read_bytes())["timeout_s"] == 60


def test_nothing_is_frozen_where_the_tarball_can_not_be_written(tmp_path):
    root = flat(tmp_path / "pack")
    done = run("freeze", root, "--tar", tmp_path / "no" / "pack.tar", code=2)
    assert done.stderr.splitlines() == [
        f"error: the tarball can't be written: there is no such folder — {tmp_path / 'no'}",
        f"  mend: make it: mkdir -p {tmp_path / 'no'}",
    ]
    assert not (root / "manifest.json").exists()


@pytest.mark.parametrize("make", [flat, deep])
def test_a_copy_under_another_umask_and_locale_has_the_same_digest(tmp_path, make):
    make(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "copy" / "b")
    one = run("freeze", tmp_path / "a", "--json")
    other = run(
        "freeze",
        "b",
        "--json",
        cwd=tmp_path / "copy",
        umask=0o077,
        env={**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo"},
    )
    again = run("freeze", tmp_path / "a", "--json", env={**os.environ, "PYTHONUTF8": "0", "LC_ALL": "POSIX"})
    digests = {json.loads(done.stdout)["manifest_sha256"] for done in (one, other, again)}
    assert len(digests) == 1


def test_one_flipped_response_byte_is_another_digest_and_check_names_file_and_kind(tmp_path):
    root = deep(tmp_path / "pack")
    before = run("freeze", root).stdout.split()[0]
    assert run("check", root).stdout.splitlines()[-1] == "6 files, 2 tasks checked: ok"
    place = root / "tasks/one.json"
    place.write_bytes(place.read_bytes().replace(b'"response_bytes": "{}"', b'"response_bytes": "{]"'))
    done = run("check", root, code=1)
    assert "the bytes of this task differ: frozen as " in done.stdout
    assert f"{place} [pack-differs]" in done.stdout
    facts = json.loads(run("check", root, "--json", code=1).stdout)
    assert [finding["rule"] for finding in facts["targets"][0]["findings"]] == ["pack-differs"]
    assert run("freeze", root).stdout.split()[0] != before


def test_a_refused_pack_prints_every_finding_and_writes_nothing(tmp_path):
    lay(flat(tmp_path), {"bad.json": b"{", ".DS_Store": b""})
    done = run("freeze", tmp_path, code=1)
    assert done.stdout == ""
    assert "[task-json]" in done.stderr
    assert f"mend: rm -r -- {tmp_path}/.DS_Store" in done.stderr
    assert not (tmp_path / "manifest.json").exists()


def test_exclusions_and_hosts_are_frozen(tmp_path):
    options = ["--exclude", "mail=it sends", "--exclude-task", "d=drill", "--upstream", "API=api.example"]
    run("freeze", deep(tmp_path), *options, "--repeats", "2")
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    assert manifest["excluded"] == [{"reason": "it sends", "tool": "mail"}, {"reason": "drill", "task": "d"}]
    assert manifest["upstreams"] == {"API": "api.example"}
    run("freeze", tmp_path, "--exclude", "mail", code=2)
    assert "v1-setting" in run("freeze", flat(tmp_path / "v1"), "--repeats", "2", code=1).stderr


def test_checking_nothing_fails(tmp_path):
    assert run("check", tmp_path, code=1).stdout.splitlines()[-1] == "0 files, 0 tasks checked: refused"
    run("check", tmp_path / "absent", code=2)
    run("check", code=2)


def test_a_request_is_explained_with_its_recording(tmp_path):
    run("freeze", deep(tmp_path), "--upstream", "API=api.example")
    done = run("explain", tmp_path, "GET /v1/payments/1")
    assert 'canonical: {"body":["none"],"method":"GET","path":"/v1/payments/1"' in done.stdout
    assert "recorded: task one, call 0, status 200" in done.stdout
    facts = json.loads(run("explain", tmp_path, 'POST /v1/refunds {"b": 1.0, "a": 2}', "--json").stdout)
    assert '["json",{"a":2,"b":1}]' in facts["canonical"]
    assert facts["recorded"] == []
    near = run("explain", tmp_path, "GET /v1/payments/1?x=1").stdout
    assert "recorded: no" in near
    assert "nearest: task one, GET /v1/payments/1" in near
    (tmp_path.parent / "request").write_bytes(b"GET /v1/payments/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert "call 0" in run("explain", tmp_path, f"@{tmp_path.parent / 'request'}").stdout
    run("explain", tmp_path, "GET", code=2)


def test_a_v1_request_is_explained(tmp_path):
    run("freeze", lay(tmp_path, {"t.json": v1_task("t")}))
    done = run("explain", tmp_path, "GET /v1/payments/t")
    assert 'canonical: {"body":null,"method":"GET","path":"/v1/payments/t"}' in done.stdout
    assert done.stdout.count("fingerprint: sha256:") == 2
    assert "recorded: task t, call 0, status 200" in done.stdout


def test_schemas_are_listed_and_unknown_names_answered_with_the_nearest():
    names = run("schema").stdout.split()
    assert {"task", "tool", "manifest", "row"} <= set(names)
    schema = json.loads(run("schema", "task").stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "task_id" in schema["required"]
    assert "did you mean manifest?" in run("schema", "manifst", code=2).stderr


@pytest.mark.parametrize("verb", ["freeze", "check"])
def test_what_is_wrong_with_the_whole_folder_names_it(verb, tmp_path):
    (tmp_path / "empty").mkdir()
    done = run(verb, tmp_path / "empty", code=1)
    assert f"at its top level or in tasks/ — {tmp_path / 'empty'} [pack-empty]\n" in done.stdout + done.stderr
