"""Who signed: real keys, real ssh-keygen, real git; every way in which a signature is not what it seems."""

import base64
import json
import subprocess
import tarfile
from typing import Any

import pytest

from scoresheet import canonical, digest
from scoresheet.cli import app
from scoresheet.errors import Malformed, Refused, Usage
from scoresheet.pack import archive
from scoresheet.publish import allowed_signers, bundle, run_folder, signature, signing, statements
from tests.publish import scored
from tests.publish.test_bundle import content, verified


def key(folder, name="key", kind="ed25519"):
    words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", str(folder / name)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return folder / name


def signers(folder, *lines):
    path = folder / "signers"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def line(key, principal="runner@host", options='namespaces="scoresheet-report@v1,git"'):
    kind, blob = key.with_name(key.name + ".pub").read_text().split()[:2]
    return " ".join(filter(None, (principal, options, kind, blob)))


def laid(folder):
    """A small run whose rows have no journals: enough for signatures."""
    return scored.laid_run(folder / "run")


def made(run, out, sign=None):
    folder = run_folder.read(run)
    return bundle.write(bundle.Ready(run, folder.plan, folder.report()), out, sign)


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """(folder, key, bundle): a bundle signed by an ed25519 key."""
    folder = tmp_path_factory.mktemp("signed")
    private = key(folder)
    made(laid(folder), folder / "signed.tar", signing.signer(private))
    return folder, private, folder / "signed.tar"


def judged(path, allowed=None, tag=None, repository=None):
    more = {} if repository is None else {"repository": repository}
    return signature.verify(verified(path), allowed, tag, **more)


def rules(found):
    return [finding.rule for finding in found.findings]


def test_a_good_signature_names_its_principal(signed):
    folder, private, path = signed
    found = judged(path, signers(folder, line(private)))
    assert (found.state, found.principals, found.findings) == ("good", ("runner@host",), ())
    assert "statements for other tools: 3 in-toto statements, the same key" in found.checked


def test_the_same_key_and_run_give_the_same_bytes(signed, tmp_path):
    folder, private, path = signed
    made(folder / "run", tmp_path / "again.tar", signing.signer(private))
    assert (tmp_path / "again.tar").read_bytes() == path.read_bytes()


def test_an_unsigned_bundle_is_refused_only_where_signers_were_named(signed, tmp_path):
    folder, private, _ = signed
    made(folder / "run", tmp_path / "b.tar")
    assert (judged(tmp_path / "b.tar").told, judged(tmp_path / "b.tar").findings) == ("none", ())
    assert rules(judged(tmp_path / "b.tar", signers(tmp_path, line(private)))) == ["signature-none"]


def test_a_signature_that_nobody_asks_about_is_believed_by_nobody(signed):
    found = judged(signed[2])
    assert found.state == "unchecked"
    assert found.principals == ()


def test_a_bundle_signed_by_another_key_is_named(signed, tmp_path):
    folder, private, _ = signed
    made(folder / "run", tmp_path / "b.tar", signing.signer(key(tmp_path, "other")))
    found = judged(tmp_path / "b.tar", signers(tmp_path, line(private)))
    assert found.state == "bad"
    assert found.findings[0].what == "signed by a key that no allowed signer has"


@pytest.mark.parametrize(
    "options",
    [
        'namespaces="file"',
        'valid-before="20200101"',
        'valid-after="20990101"',
        'namespaces="git",valid-before="20990101"',
    ],
)
def test_a_key_that_is_not_valid_for_this_is_refused(signed, options):
    folder, private, path = signed
    found = judged(path, signers(folder, line(private, options=options)))
    assert found.state == "bad"
    assert "not valid" in found.findings[0].what


@pytest.mark.parametrize("principal", ["*", "*@host", "runner@*,other", "r?nner", "!x,*"])
def test_principals_that_are_patterns_are_refused(signed, principal):
    folder, private, path = signed
    with pytest.raises(Refused) as refused:
        judged(path, signers(folder, line(private, principal)))
    assert {finding.rule for finding in refused.value.findings} == {"signers-wildcard"}


def test_careless_lines_of_allowed_signers_are_told_with_their_number():
    text = (
        b'# who\n\nrunner@host ssh-ed25519\nca cert-authority ssh-ed25519 AAAA\nok namespaces="a b" ssh-ed25519 AAAA\n'
    )
    with pytest.raises(Refused) as refused:
        allowed_signers.parse(text, "signers")
    places = [(finding.rule, finding.where) for finding in refused.value.findings]
    assert places == [("signers-line", "signers:3"), ("signers-authority", "signers:4")]
    (one,) = allowed_signers.parse(b'"a@b",c@d namespaces="x",valid-before="2030" ssh-ed25519 AAAA note\n', "signers")
    assert (one.principals[-1], one.key) == ("c@d", "ssh-ed25519 AAAA")


def resigned(path, out, change):
    """The bundle with its signatures as `change` (name → bytes) leaves them, and their list made to fit."""
    seen = verified(path)
    named = {name.removeprefix("signatures/"): data for name, data in seen.signatures.items()}
    change(named)
    data = path.read_bytes()
    with tarfile.open(path) as tar:
        first = tar.getmember("signatures/SHA256SUMS").offset
        last = next(each.offset for each in tar if each.offset > first and not each.name.startswith("signatures/"))
    whole = data[:first] + b"".join(bundle._signed(named)) + data[last:]
    end = len(whole.rstrip(b"\0"))
    end += -end % 512
    out.write_bytes(whole[:end] + archive.end(end))
    return out


def test_a_statement_of_something_else_is_told(signed, tmp_path):
    folder, private, path = signed
    secret = signing._ed25519(private)
    assert secret is not None

    def better(named):
        text = json.loads(base64.b64decode(json.loads(named["receipt.dsse.json"])["payload"]))
        text["predicate"]["figures"]["success_mean"] = "1.0000"
        named["receipt.dsse.json"] = statements.sign(canonical.jcs(text), secret, "x")

    found = judged(resigned(path, tmp_path / "b.tar", better), signers(folder, line(private)))
    assert (found.state, rules(found)) == ("bad", ["signature-statement"])
    assert "signatures/receipt.dsse.json" in found.findings[0].where


def test_a_statement_by_another_key_is_told(signed, tmp_path):
    folder, private, path = signed
    other = signing._ed25519(key(tmp_path, "other"))
    assert other is not None

    def by_other(named):
        payload = base64.b64decode(json.loads(named["svr.dsse.json"])["payload"])
        named["svr.dsse.json"] = statements.sign(payload, other, "x")

    found = judged(resigned(path, tmp_path / "b.tar", by_other), signers(folder, line(private)))
    assert rules(found) == ["signature-statement"]


def test_a_flipped_byte_of_a_signature_is_found_without_any_key(signed, tmp_path):
    path = tmp_path / "b.tar"
    data = signed[2].read_bytes()
    at = data.index(b"-----BEGIN SSH") + 60
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    places = [finding.where for finding in verified(path).findings]
    assert "signatures/bundle.json.sig" in places


def test_keys_of_other_kinds_sign_without_statements(signed, tmp_path):
    folder, _, _ = signed
    private = key(tmp_path, "rsa", "rsa")
    made(folder / "run", tmp_path / "b.tar", signing.signer(private))
    found = judged(tmp_path / "b.tar", signers(tmp_path, line(private)))
    assert (found.state, found.findings) == ("good", ())
    assert found.unchecked == ("statements for other tools (DSSE): none were made",)


def test_what_is_no_key_signs_nothing(signed, tmp_path, capsys):
    folder, _, _ = signed
    (tmp_path / "nokey").write_text("hello")
    (tmp_path / "nokey").chmod(0o600)
    with pytest.raises(Exception, match="does not sign"):
        made(folder / "run", tmp_path / "b.tar", signing.signer(tmp_path / "nokey"))
    assert not (tmp_path / "b.tar").exists()


def test_the_statements_are_what_in_toto_says(signed):
    with tarfile.open(signed[2]) as tar:
        index = content(tar, "bundle.json")
        envelopes = {
            name: json.loads(content(tar, f"signatures/{name}.dsse.json")) for name in ("receipt", "svr", "test-result")
        }
    for envelope in envelopes.values():
        assert envelope["payloadType"] == "application/vnd.in-toto+json"
        statement = json.loads(base64.b64decode(envelope["payload"]))
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["subject"] == [{"name": "bundle.json", "digest": {"sha256": digest.of(index)}}]
    result = json.loads(base64.b64decode(envelopes["test-result"]["payload"]))
    assert result["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert result["predicate"]["result"] == "WARNED"
    assert result["predicate"]["failedTests"] == ["t04"]
    summary = json.loads(base64.b64decode(envelopes["svr"]["payload"]))["predicate"]
    assert summary["verifier"]["policies"] == []
    assert "SCORESHEET_ADMISSIBLE" in summary["properties"]


def test_the_pre_authentication_encoding_is_that_of_the_dsse_specification():
    told = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert statements.pae("http://example.com/HelloWorld", b"hello world") == told


def test_envelopes_are_read_in_either_base64_and_without_key_id(signed):
    secret = signing._ed25519(signed[1])
    assert secret is not None
    public = secret.public_key().public_bytes_raw()
    envelope = json.loads(statements.sign(b'{"a":"\xc3\xbf\xc3\xbf>>??"}', secret, "k"))
    envelope["payload"] = envelope["payload"].replace("+", "-").replace("/", "_")
    del envelope["signatures"][0]["keyid"]
    assert statements.opened(json.dumps(envelope).encode(), public, "x").startswith(b'{"a"')
    spoils: list[dict[str, Any]] = [
        {"payloadType": "text/plain"},
        {"signatures": []},
        {"payload": 5},
        {"payload": "%%"},
    ]
    for spoiled in spoils:
        with pytest.raises(Malformed):
            statements.opened(json.dumps(envelope | spoiled).encode(), public, "x")


# tags


@pytest.fixture
def tagged(signed, tmp_path):
    """A repository with the signed tag v1 that names the bundle."""
    _, private, path = signed
    repository = tmp_path / "repository"

    def git(*words):
        settings = [
            "-c",
            "user.name=r",
            "-c",
            "user.email=r@h",
            "-c",
            "gpg.format=ssh",
            "-c",
            f"user.signingkey={private}",
        ]
        done = subprocess.run(["git", "-C", str(repository), *settings, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("tag", "-s", "v1", "-m", f"bundle {verified(path).sha256}")
    return repository, git


def test_a_signed_tag_that_names_the_bundle_is_good(signed, tagged):
    folder, private, path = signed
    found = judged(path, signers(folder, line(private)), "v1", tagged[0])
    assert found.findings == ()
    assert "tag: v1 names this bundle, signed by runner@host" in found.checked


def test_a_signed_tag_stands_for_an_unsigned_bundle(signed, tagged, tmp_path):
    folder, private, _ = signed
    made(folder / "run", tmp_path / "b.tar")
    found = judged(tmp_path / "b.tar", signers(folder, line(private)), "refs/tags/v1", tagged[0])
    assert found.findings == ()
    assert found.told == "none of its own; the tag refs/tags/v1 is signed by runner@host"


def test_a_tag_put_under_another_name_is_named(signed, tagged):
    folder, private, path = signed
    repository, git = tagged
    git("update-ref", "refs/tags/v2", git("rev-parse", "refs/tags/v1"))
    assert rules(judged(path, signers(folder, line(private)), "v2", repository)) == ["tag-name"]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (("tag", "x"), "tag-signature"),
        (("tag", "-a", "x", "-m", "unsigned"), "tag-signature"),
        (("tag", "-s", "x", "-m", "names nothing"), "tag-digest"),
        (("tag", "other"), "tag-missing"),
    ],
)
def test_a_tag_that_is_not_signed_or_names_something_else_is_told(signed, tagged, make, rule):
    folder, private, path = signed
    tagged[1](*make)
    assert rules(judged(path, signers(folder, line(private)), "x", tagged[0])) == [rule]


def test_a_tag_by_another_key_is_told(signed, tagged, tmp_path):
    folder, private, path = signed
    other = key(tmp_path, "other")
    tagged[1]("-c", f"user.signingkey={other}", "tag", "-s", "x", "-m", f"bundle {verified(path).sha256}")
    assert rules(judged(path, signers(folder, line(private)), "x", tagged[0])) == ["tag-signature"]


def test_a_tag_without_allowed_signers_is_asked_for_them(signed, tagged):
    with pytest.raises(Usage, match="what its signer is"):
        judged(signed[2], None, "v1", tagged[0])


def test_the_command_says_who_signed(signed, capsys):
    folder, private, path = signed
    app.run(["verify", str(path), "--allowed-signers", str(signers(folder, line(private)))])
    assert "signature: good, by runner@host\n" in capsys.readouterr().out
