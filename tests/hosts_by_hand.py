"""Several hosts replicate one run to the digit; `./full hosts`. Needs root, PyPI and Debian's or pyenv's other Pythons.

Each host is a network namespace, a user, a Python and a numpy of its own. The first runs a pack and bundles it; every
other one runs the bundle again at its own seat and must end with `replicated`, with the same digests and the same
digits. The last has one altered fixture: it is stopped at the digest, before any episode.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).parents[1]
sys.path.insert(0, str(HOUSE))

from tests.run.packs import shop  # noqa: E402

PROMPTS = {f"t{number:02}": "wrong" if number % 2 else "careful" for number in range(19)} | {"t19": "crash"}
"""Enough of both kinds for the interval of the resampled tasks."""
SAME = ("manifest_sha256", "card_sha256", "figures_sha256", "success_mean", "success_ci95", "interval_method", "mde")
NEEDS = ("click", "httptools", "jsonschema-rs", "orjson", "pydantic", "pyyaml", "rich")
NOBODY = 65534


@dataclass(frozen=True)
class Host:
    """Somewhere to run."""

    name: str
    python: str
    numpy: str | None
    user: int
    folder: Path
    network: int
    """The process that keeps its network namespace, which holds a loopback of its own and nothing else."""

    @property
    def program(self) -> str:
        return str(self.folder / "venv" / "bin" / "python")

    def make(self) -> None:
        """Its virtual environment, in a folder that its user owns."""
        self.folder.mkdir()
        subprocess.run([self.python, "-m", "venv", "--without-pip", str(self.folder / "venv")], check=True)
        wanted = [*NEEDS, *([f"numpy=={self.numpy}"] if self.numpy else [])]
        pip = [sys.executable, "-m", "pip", "--python", self.program, "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted], check=True)
        shutil.copytree(HOUSE / "src" / "scoresheet", self.folder / "lib" / "scoresheet")
        for path in (self.folder, *self.folder.glob("*")):
            os.chown(path, self.user, self.user)

    def call(self, *words: object) -> "subprocess.CompletedProcess[str]":
        """Runs the command there."""
        return self._python("-m", "scoresheet", *map(str, words))

    def told(self) -> str:
        """What it is, as it says itself."""
        code = (
            "import os, platform, sys; print(platform.python_version(), os.getuid(), os.readlink('/proc/self/ns/net'))"
        )
        version, uid, namespace = self._python("-c", code).stdout.split()
        return f"{self.name}: Python {version}, numpy {self.numpy or 'none'}, uid {uid}, {namespace}"

    def _python(self, *words: str) -> "subprocess.CompletedProcess[str]":
        there = ["nsenter", f"--net=/proc/{self.network}/ns/net"]
        who = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(self.folder / "lib")}
        return subprocess.run(
            [*there, *who, self.program, *words],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
            timeout=600,
        )


@contextlib.contextmanager
def network() -> Iterator[int]:
    """A network namespace, by the process that keeps it."""
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as keeper:
        try:
            assert keeper.stdout is not None
            assert keeper.stdout.readline() == "ready\n"
            yield keeper.pid
        finally:
            keeper.kill()


def interpreters() -> list[str]:
    """Debian's Python, and those of pyenv from 3.11 on."""
    places = [Path("/usr/bin/python3"), *sorted(Path("~/.pyenv/versions").expanduser().glob("3.1[1-9].*/bin/python3"))]
    found = [str(place) for place in places if place.exists()]
    if len(found) < 3:
        sys.exit(f"three Pythons are needed, there are {len(found)}: {', '.join(found)}")
    return found


def report(run: Path) -> dict[str, object]:
    value = json.loads((run / "report.json").read_text())
    return {name: value[name] for name in SAME}


def main() -> int:
    if os.geteuid() != 0:
        sys.exit("only root makes network namespaces and becomes somebody else")
    debian, *others = interpreters()
    with tempfile.TemporaryDirectory(prefix="scoresheet-hosts-") as name, contextlib.ExitStack() as networks:
        root = Path(name)
        root.chmod(0o755)
        versions = ["2.2.6", None, "2.3.5"]
        wanted: list[tuple[str, str, str | None, int]] = [
            ("first", debian, "2.1.3", NOBODY),
            ("stranger", debian, "2.3.5", NOBODY - 1),
        ]
        wanted += [(f"host-{number}", python, versions[number % 3], 0) for number, python in enumerate(others)]
        hosts = [Host(*each, root / each[0], networks.enter_context(network())) for each in wanted]
        for host in hosts:
            host.make()
        places = [host.told() for host in hosts]
        print(*places, sep="\n")
        assert len({each.split()[-1] for each in places}) == len(hosts), "they share a network namespace"
        first, *rest = hosts
        pack = shop(root / "pack", PROMPTS, repeats=3)
        (root / "agent").mkdir()
        shutil.copy(HOUSE / "tests" / "agents" / "obey.sh", root / "agent" / "obey.sh")
        agent = f"sh {root / 'agent' / 'obey.sh'}"
        out = first.folder / "run"
        baselines = shutil.copytree(root / "pack", first.folder / "pack")
        for path in (baselines, *baselines.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        done = first.call("run", baselines, "--agent", agent, "--seat", "first", "--out", out, "--quiet")
        assert done.returncode == 0, done.stderr + done.stdout
        bundle = first.folder / "b.tar"
        done = first.call("bundle", out, "--pack", baselines, "--with-agent", root / "agent", "-o", bundle)
        assert done.returncode == 0, done.stderr
        expected = report(out)
        print(f"first: {json.dumps(expected)}")
        names = set()
        for host in rest:
            again = host.folder / "run"
            done = host.call("rerun", bundle, "--agent", "bundled", "--seat", host.name, "--out", again, "--quiet")
            assert done.returncode == 0, done.stderr + done.stdout
            assert done.stdout.endswith("\nreplicated\n"), done.stdout
            assert report(again) == expected, report(again)
            identical = next(line for line in done.stdout.splitlines() if line.startswith("episodes_identical"))
            verified = host.call("verify", bundle)
            assert verified.returncode == 0, verified.stdout
            told = host.call(
                "bundle", out, "--pack", baselines, "--with-agent", root / "agent", "-o", host.folder / "b"
            )
            names.add(told.stdout.split()[-2])
            print(f"{host.name}: {identical}; replicated, every digest and digit the same")
        assert names == {json.loads(first.call("verify", bundle, "--json").stdout)["bundle_sha256"]}, names
        print(f"every host makes the same bundle of the first run: {names.pop()}")
        other = shop(root / "altered", PROMPTS | {"t05": "careful, now"}, repeats=3)
        third = rest[-1]
        words = ("--agent", agent, "--seat", "third", "--out", third.folder / "altered", "--quiet")
        done = third.call("run", other.root, *words, "--expect", pack.manifest_sha256)
        assert done.returncode == 1, done.stdout
        assert not (third.folder / "altered").exists()
        print(f"altered fixture, run --expect: {done.stderr.splitlines()[0]}")
        done = third.call("run", other.root, *words)
        assert done.returncode == 0, done.stderr
        done = third.call("replicate", bundle, third.folder / "altered")
        assert done.returncode == 1
        assert done.stdout.startswith("  - another pack: A is of "), done.stdout
        assert "success" not in done.stdout
        print(f"altered fixture, replicate: {done.stdout.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
