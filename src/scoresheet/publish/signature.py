"""Who signed a bundle: its signatures, and a signed tag that names it. No key is believed that nobody named."""

import base64
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scoresheet.documents.bundle import INDEX
from scoresheet.errors import Finding, Malformed, Usage
from scoresheet.publish import allowed_signers, signing, statements
from scoresheet.publish.allowed_signers import Allowed
from scoresheet.publish.audit import Audit
from scoresheet.publish.bundle_file import SIGNATURES

State = Literal["none", "unchecked", "good", "bad"]
_TAG_NAMESPACE = "git"
_TAGS = "refs/tags/"
_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class Signature:
    """What is known of who signed."""

    state: State
    told: str
    """For people, behind `signature:`."""
    principals: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def verify(audit: Audit, allowed: Path | None, tag: str | None = None, repository: Path = Path()) -> Signature:
    """What the signatures of a bundle, and a tag that names it, are worth.

    Raises `Refused` when the allowed signers can't be relied on, `Usage` for a tag without them.
    """
    if tag is not None and allowed is None:
        raise Usage("a tag is worth what its signer is", tag, "name who may sign: --allowed-signers FILE")
    named = allowed_signers.parse(allowed.read_bytes(), allowed.name) if allowed is not None else ()
    found = _of_bundle(audit, allowed, named)
    if tag is None or allowed is None:
        return found
    by, fault = _of_tag(audit, allowed, tag, repository)
    if fault is not None:
        return Signature(
            found.state, found.told, found.principals, (*found.findings, fault), found.checked, found.unchecked
        )
    checked = (*found.checked, f"tag: {tag} names this {audit.kind}, signed by {', '.join(by)}")
    if found.state == "none":  # the tag's signer signed for it
        return Signature("none", f"none of its own; the tag {tag} is signed by {', '.join(by)}", by, (), checked)
    return Signature(found.state, found.told, found.principals, found.findings, checked, found.unchecked)


def _of_bundle(audit: Audit, allowed: Path | None, named: tuple[Allowed, ...]) -> Signature:
    signature = audit.signatures.get(SIGNATURES + signing.SSH)
    if signature is None:
        findings: tuple[Finding, ...] = ()
        if allowed is not None:
            findings = (Finding("signature-none", audit.name, "signers were named, and nobody of them signed"),)
        return Signature("none", "none", findings=findings)
    where = SIGNATURES + signing.SSH
    try:
        blob = signing.public_key(signature)
    except Malformed as error:
        return Signature(
            "bad", f"can't be read: {error.what}", findings=(Finding("signature-form", where, error.what),)
        )
    if allowed is None:
        told = "there, by a key that nobody named: say who may sign with --allowed-signers"
        return Signature("unchecked", told, unchecked=("signature: no allowed signers were given",))
    by = signing.principals(allowed, signature, audit.index_bytes, signing.NAMESPACE)
    if not by:
        why = _why_not(blob, named)
        return Signature("bad", f"not good: {why}", findings=(Finding("signature-bad", where, why),))
    statements_found, checked, unchecked = _statements(audit, blob)
    return Signature(
        state="bad" if statements_found else "good",
        told=f"good, by {', '.join(by)}",
        principals=by,
        findings=statements_found,
        checked=(f"signature: {INDEX}, in the namespace {signing.NAMESPACE}, by {', '.join(by)}", *checked),
        unchecked=unchecked,
    )


def _why_not(blob: bytes, named: tuple[Allowed, ...]) -> str:
    key = base64.b64encode(blob).decode()
    lines = [str(each.line) for each in named if each.key.split()[1] == key]
    if not lines:
        return "signed by a key that no allowed signer has"
    return (
        f"signed by the key of line {', '.join(lines)} of the allowed signers, but over other bytes, in another "
        "namespace, or when the key is not valid (namespaces, valid-after, valid-before)"
    )


def _statements(audit: Audit, blob: bytes) -> tuple[tuple[Finding, ...], tuple[str, ...], tuple[str, ...]]:
    """(findings, checked, unchecked) of the statements for other tools: the same key, and what the rows give."""
    there = {name.removeprefix(SIGNATURES): data for name, data in audit.signatures.items() if name.endswith(".json")}
    if not there:
        return (), (), ("statements for other tools (DSSE): none were made",)
    if audit.report is None or audit.run is None or audit.sha256 is None:
        return (), (), ("statements for other tools (DSSE): there is no run to compare them with",)
    public = signing.ed25519_of(blob)
    expected = statements.statements(audit.sha256, audit.run.plan, audit.report)
    findings = []
    for name, data in there.items():
        where = SIGNATURES + name
        try:
            if public is None:
                raise Malformed("signed by another kind of key than bundle.json", where)
            if statements.opened(data, public, where) != expected.get(name):
                raise Malformed("states what this bundle does not give", where)
        except Malformed as error:
            findings.append(Finding("signature-statement", where, error.what))
        except ImportError:
            return (), (), ("statements for other tools (DSSE): install scoresheet[sign] to check them",)
    return tuple(findings), (f"statements for other tools: {len(there)} in-toto statements, the same key",), ()


def _of_tag(audit: Audit, allowed: Path, tag: str, repository: Path) -> tuple[tuple[str, ...], Finding | None]:
    """Who signed the tag, when it is what it is called and names what was audited; else why not."""
    name = tag.removeprefix(_TAGS)
    where = _TAGS + name
    oid = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", where).strip()
    if not oid:
        return (), Finding("tag-missing", where, "the repository here has no such tag")
    if _git(repository, "cat-file", "-t", oid.decode()).strip() != b"tag":
        return (), Finding("tag-signature", where, "a lightweight tag: nobody can have signed it", "git tag -s")
    data = _git(repository, "cat-file", "tag", oid.decode())
    body, begin, rest = data.partition(_BEGIN)
    if not begin:
        return (), Finding("tag-signature", where, "not signed with an SSH key", "git -c gpg.format=ssh tag -s")
    headers, _, message = body.partition(b"\n\n")
    called = next((line[4:] for line in headers.splitlines() if line.startswith(b"tag ")), b"")
    if called != name.encode():
        what = f"the signed tag is called {called.decode('utf-8', 'replace')}: it was put under another name"
        return (), Finding("tag-name", where, what)
    by = signing.principals(allowed, begin + rest, body, _TAG_NAMESPACE)
    if not by:
        return (), Finding("tag-signature", where, "not signed by an allowed signer, in the namespace git")
    digest = audit.sha256 or (audit.report.rows_sha256 if audit.report is not None else "")
    if not digest or digest.encode() not in message:
        noun = "bundle" if audit.sha256 else "rows_sha256"
        return (), Finding("tag-digest", where, f"its message does not hold the digest of this {noun} ({digest[:12]}…)")
    return by, None


def _git(repository: Path, *words: str) -> bytes:
    """What git's plumbing prints; nothing when it refuses. Raises `Usage` without git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = kept | {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-C", str(repository), *words]
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=env, timeout=_PATIENCE_S)
    except FileNotFoundError as error:
        raise Usage("git is not installed", "git", "install git") from error
    return done.stdout if done.returncode == 0 else b""
