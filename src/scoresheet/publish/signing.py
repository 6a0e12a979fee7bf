"""Signing with an OpenSSH key, by `ssh-keygen -Y`: offline, in one namespace, by keys that people have already."""

import base64
import hashlib
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scoresheet import digest
from scoresheet.documents.bundle import INDEX, BundleIndex
from scoresheet.errors import Malformed, ScoresheetError, Usage
from scoresheet.publish import statements
from scoresheet.publish.bundle import Ready, Signatures, Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAMESPACE = "scoresheet-report@v1"
SSH = f"{INDEX}.sig"
"""Below `signatures/`: the SSH signature of bundle.json."""
_PATIENCE_S = 120
_BEGIN, _END = b"-----BEGIN SSH SIGNATURE-----\n", b"\n-----END SSH SIGNATURE-----"
_ED25519 = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"


def signer(key: Path) -> Signer:
    """Signs with the private key in `key` (or, by an agent, with the key whose public half lies there).

    An ed25519 key that lies there without a passphrase signs the statements for other tools too, when the extra `sign`
    is installed; `SSH` alone is what `verify` relies on.
    """

    def sign(index: BundleIndex, text: bytes, ready: Ready) -> Signatures:
        made = {SSH: ssh(key, text)}
        private = _ed25519(key)
        if private is not None:
            blob = public_key(made[SSH])
            keyid = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
            for name, statement in statements.statements(digest.of(text), ready.plan, ready.report).items():
                made[name] = statements.sign(statement, private, keyid)
        return made

    return sign


def _ed25519(key: Path) -> "Ed25519PrivateKey | None":
    """The private key, where it can be read without asking and the extra is there."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    except ImportError:
        return None
    try:
        found = load_ssh_private_key(key.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):  # another format, a passphrase, only the public half
        return None
    return found if isinstance(found, Ed25519PrivateKey) else None


def public_key(signature: bytes) -> bytes:
    """The public key in an armoured SSH signature, as SSH writes keys (PROTOCOL.sshsig). Raises `Malformed`."""
    body = signature.replace(b"\r", b"").strip()
    if not body.startswith(_BEGIN) or not body.endswith(_END):
        raise Malformed("not an SSH signature", SSH)
    try:
        blob = base64.b64decode(body[len(_BEGIN) : -len(_END)].replace(b"\n", b""), validate=True)
    except ValueError as error:
        raise Malformed("its base64 can't be read", SSH) from error
    if blob[:6] != b"SSHSIG" or len(blob) < 14:
        raise Malformed("not an SSH signature", SSH)
    size = int.from_bytes(blob[10:14], "big")
    if size > len(blob) - 14:
        raise Malformed("not an SSH signature", SSH)
    return blob[14 : 14 + size]


def ed25519_of(blob: bytes) -> bytes | None:
    """The 32 bytes of an ed25519 key as SSH writes it; `None` for another kind."""
    return blob[-32:] if len(blob) == len(_ED25519) + 32 and blob.startswith(_ED25519) else None


def ssh(key: Path, data: bytes) -> bytes:
    """The armoured SSH signature of `data`. Raises `Usage` when ssh-keygen refuses the key."""
    with TemporaryDirectory(prefix="scoresheet-") as scratch:
        path = Path(scratch) / INDEX
        path.write_bytes(data)
        done = ssh_keygen("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(path))
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            what = f"ssh-keygen does not sign: {said[-1] if said else f'exit {done.returncode}'}"
            raise Usage(what, str(key), "name an OpenSSH private key: --sign KEY")
        return path.with_name(path.name + ".sig").read_bytes()


def ssh_keygen(*words: str, given: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
    """What ssh-keygen says. Raises `Usage` when it is not there."""
    try:
        return subprocess.run(
            ["ssh-keygen", *words], input=given, capture_output=True, check=False, timeout=_PATIENCE_S
        )
    except FileNotFoundError as error:
        raise Usage("ssh-keygen is not installed", "ssh-keygen", "apt-get install openssh-client") from error
    except subprocess.TimeoutExpired as error:
        raise ScoresheetError("ssh-keygen does not answer", words[1], "see that the key needs no passphrase") from error


def principals(allowed: Path, signature: bytes, data: bytes, namespace: str) -> tuple[str, ...]:
    """Who of the allowed signers signed `data` in that namespace, with a key that is valid now; nobody: empty."""
    with TemporaryDirectory(prefix="scoresheet-") as scratch:
        path = Path(scratch) / "signature"
        path.write_bytes(signature)
        found = ssh_keygen("-Y", "find-principals", "-s", str(path), "-f", str(allowed))
        if found.returncode:
            return ()
        named = [name for line in found.stdout.decode("utf-8", "replace").splitlines() for name in line.split(",")]
        return tuple(
            name
            for name in dict.fromkeys(named)
            if ssh_keygen(
                "-Y", "verify", "-f", str(allowed), "-I", name, "-n", namespace, "-s", str(path), given=data
            ).returncode
            == 0
        )
