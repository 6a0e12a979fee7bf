"""Git repositories that tests build: real ones, made by git itself."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


@dataclass(frozen=True)
class Repo:
    """A repository with a working tree."""

    root: Path

    def git(self, *arguments: str, data: bytes | None = None) -> bytes:
        """What a git command prints."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | _ENVIRONMENT
        command = ["git", "-C", str(self.root), "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(command, input=data, env=environment, check=True, capture_output=True).stdout

    def write(self, path: str | bytes, content: bytes | str) -> None:
        """Put a file into the working tree."""
        place = os.path.join(os.fsencode(self.root), os.fsencode(path))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def commit(self, files: Mapping[str, bytes | str] = {}, message: str = "change") -> str:
        """Commit the working tree, with these files written before; the commit's id."""
        for path, content in files.items():
            self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").decode().strip()

    def branch(self, name: str) -> None:
        """Go on in a new branch."""
        self.git("checkout", "-q", "-b", name)

    def clone(self, to: Path, *options: str) -> "Repo":
        """A clone, by the protocol of a real remote (so that --depth counts)."""
        self.git("clone", "-q", *options, f"file://{self.root}", str(to))
        return Repo(to)


def new(root: Path, files: Mapping[str, bytes | str] = {"README.md": "a suite\n"}) -> Repo:
    """A repository whose branch `main` holds `files` in one commit."""
    root.mkdir(parents=True, exist_ok=True)
    repo = Repo(root)
    repo.git("init", "-q", "-b", "main")
    repo.commit(files, "first")
    return repo
