"""Reads a bundle front to back: its top files and its pack are laid out, its episodes examined as they pass."""

import errno
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import ScoresheetError
from scoresheet.pack.folder import Pack
from scoresheet.publish import bundle_file
from scoresheet.publish.bundle import OUTPUTS
from scoresheet.publish.bundle_file import BundleFile, Member
from scoresheet.publish.examination import Examination, Found, told
from scoresheet.publish.run_folder import RUN
from scoresheet.run import judgments
from scoresheet.run.baselines import FOLDER

_ROW_BYTES = 32 << 20
_JOURNAL_LINE_BYTES = 4 << 20
_EVIDENCE_BYTES = 4 << 20
_SMALL_BYTES = 64 << 20
_FOLDER = re.compile(r"episodes/([^/]+)/([0-9]+)\.([0-9]+)/[^/]+")


def unpack(bundle: BundleFile, work: Examination, into: Path, keep_agent: bool) -> None:
    """Every file of the bundle: laid out, or held against its row as it passes."""
    plan: RunPlan | None = None
    ready = False
    members = bundle.members()
    member = next(members, None)
    while member is not None:
        top = member.path.partition("/")[0]
        if top == member.path:
            _lay(member, into / "run" / member.path, False)
        elif top == "pack" or (top == "agent" and keep_agent):
            _lay(member, into / member.path, member.path in bundle.index.executable)
        elif top == FOLDER:
            _lay(member, into / "run" / member.path, False)
        elif top == "agent":
            (into / "agent").mkdir(exist_ok=True)
            member.pass_over()
        else:
            if not ready:
                plan, ready = _ready(work, into), True
            member = _episode(bundle, work, plan, member, members)
            continue
        member = next(members, None)
    if not ready:
        _ready(work, into)


def _ready(work: Examination, into: Path) -> RunPlan | None:
    """What must be known before the first episode: the plan, the pack, the rows."""
    plan = work.plan()
    if plan is None:
        if not (work.folder / RUN).exists():
            work.find("audit-run", RUN, "not in the bundle")
        return None
    if work.pack is None and (into / "pack").exists():
        try:
            work.pack = Pack.open(into / "pack")
        except ScoresheetError as error:
            work.take(told(error, "audit-pack", "pack"))
    work.rows(plan)
    return plan


def _episode(
    bundle: BundleFile, work: Examination, plan: RunPlan | None, first: Member, members: Iterator[Member]
) -> Member | None:
    """Hold the row of one folder against its files; the first file of the next folder."""
    after: list[Member | None] = []
    folder = first.path.rpartition("/")[0]

    def found() -> Found:
        member: Member | None = first
        while member is not None and member.path.rpartition("/")[0] == folder:
            name = member.path.rpartition("/")[2]
            if name in ("evidence.json", judgments.TASK_VIEW):
                yield name, [member.read(_EVIDENCE_BYTES)]
            else:
                yield name, member.lines(_JOURNAL_LINE_BYTES)
            member = next(members, None)
        after.append(member)

    at = work.places.find(folder) if plan is not None and _FOLDER.fullmatch(first.path) else None
    if plan is not None and at is not None:
        work.refold(plan, at, work.row(at), found())
    else:
        if plan is not None:
            work.find("audit-episode", folder, "no row names this episode: a row was dropped, or a folder was added")
        for _, pieces in found():
            for _ in pieces:
                pass
    return after[0]


def _lay(member: Member, path: Path, executable: bool) -> None:
    journal = path.name.endswith(".jsonl")
    ours = member.path.partition("/")[0] in (member.path, FOLDER)
    if ours and not journal and member.size > _SMALL_BYTES and path.name != OUTPUTS:
        raise bundle_file.fault(member.path, f"{member.size} bytes are too many for such a file", "bundle-size")
    with _made(member, path) as file:
        file.writelines(member.lines(_ROW_BYTES) if journal else member.chunks())
    if executable:
        path.chmod(0o755)


def _made(member: Member, path: Path) -> BinaryIO:
    """The new file for a member. Raises `Refused` for a name that no file can have here."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        what = f"it can't lie beside the other files: {error.strerror}"
        raise bundle_file.fault(member.path[:200], what, "bundle-path") from error
