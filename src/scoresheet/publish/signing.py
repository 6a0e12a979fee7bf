"""Signing with an OpenSSH key, by `ssh-keygen -Y`: offline, in one namespace, by keys that people have already."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from scoresheet.documents.bundle import INDEX, BundleIndex
from scoresheet.errors import ScoresheetError, Usage
from scoresheet.publish.bundle import Ready, Signatures, Signer

NAMESPACE = "scoresheet-report@v1"
SSH = f"{INDEX}.sig"
"""Below `signatures/`: the SSH signature of bundle.json."""
_PATIENCE_S = 120


def signer(key: Path) -> Signer:
    """Signs with the private key in `key` (or, by an agent, with the key whose public half lies there)."""

    def sign(index: BundleIndex, text: bytes, ready: Ready) -> Signatures:
        return {SSH: ssh(key, text)}

    return sign


def ssh(key: Path, data: bytes) -> bytes:
    """The armoured SSH signature of `data`. Raises `ScoresheetError` when ssh-keygen refuses."""
    with TemporaryDirectory(prefix="scoresheet-") as scratch:
        path = Path(scratch) / INDEX
        path.write_bytes(data)
        done = ssh_keygen("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(path))
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            what = f"ssh-keygen does not sign: {said[-1] if said else f'exit {done.returncode}'}"
            raise ScoresheetError(what, str(key), "name an OpenSSH private key")
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
        raise ScoresheetError("ssh-keygen does not answer", words[1]) from error
