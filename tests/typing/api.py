"""The calls that users of the library write, checked by mypy --strict: a change here is a change of the interface."""

from fractions import Fraction
from pathlib import Path
from typing import assert_never, assert_type

from scoresheet import canonical, digest
from scoresheet.digest import Digest
from scoresheet.documents.manifest import Manifest
from scoresheet.documents.row import Row, episode_seed
from scoresheet.documents.task import Task
from scoresheet.documents.tool import Request, Response
from scoresheet.errors import Finding, NotIsolated, Refused, ScoresheetError
from scoresheet.pack import checker, fingerprint, freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import Settings
from scoresheet.replay.session import Capped, Hit, Miss, Session, Tape
from scoresheet.stats import resample
from scoresheet.stats.interval import Estimate, Interval, estimate
from scoresheet.stats.sample import sample


def fingerprints(body: bytes) -> tuple[str, str]:
    """A request under both protocols."""
    request = Request("API", "POST", "/v1/refunds?a=1", (("Content-Type", "application/json"),), body)
    assert_type(fingerprint.canonical(request).text, bytes)
    return fingerprint.v1("POST", "/v1/refunds", canonical.loads(body)), fingerprint.v2(request)


def freeze(folder: Path) -> Digest:
    """Freeze a folder, or print what forbids it."""
    try:
        return freezer.write(folder, Settings(timeout_s=60, seed=7)).sha256
    except Refused as refused:
        for finding in refused.findings:
            assert_type(finding, Finding)
            print(finding, finding.mend)
        raise


def replay(folder: Path, request: Request) -> Response | None:
    """The recorded answer to a request, for the first task that has one."""
    pack = Pack.open(folder)
    assert_type(pack.manifest, Manifest)
    for task in pack.tasks():
        assert_type(task, Task)
        session = Session(Tape.of(task, pack.tools, pack.manifest.protocol), max_tool_calls=100)
        answer = session.ask(request)
        match answer:
            case Hit():
                return answer.recorded.response()
            case Miss():
                print(answer.kind, answer.fingerprint, answer.nearest())
            case Capped():
                print("one call too many")
            case _:
                assert_never(answer)
    return None


def is_sound(folder: Path) -> bool:
    """Whether a folder is what was frozen."""
    return checker.check(folder).ok


def rate(outcomes: dict[str, list[int]], seed: int, pack: Digest) -> tuple[Fraction, Interval | None]:
    """The mean of task outcomes, and its interval."""
    found = estimate(sample(outcomes), resample.prefix(seed, pack))
    assert_type(found, Estimate)
    return found.mean, found.interval


def rows(path: Path) -> list[Row]:
    """The rows of a run."""
    lines = path.read_bytes().splitlines()
    found = [Row.from_bytes(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    assert all(row.episode_seed == episode_seed(7, row.task_id, row.repeat) for row in found)
    return found


def why(error: ScoresheetError) -> str:
    """An error in words, with the code of a refused isolation."""
    code = error.code if isinstance(error, NotIsolated) else digest.of(error.what.encode())
    return f"{code}: {error.what} — {error.where}; {error.mend}"
