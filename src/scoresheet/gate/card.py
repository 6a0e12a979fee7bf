"""Protocol cards on disk: read, judged by every rule, and held against the pack, the tarball and the repository."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from scoresheet import digest
from scoresheet.canonical import JsonValue
from scoresheet.digest import Digest
from scoresheet.documents.protocol_card import ProtocolCard
from scoresheet.errors import Finding, Malformed, Refused, Usage
from scoresheet.gate import reading, repository, suite
from scoresheet.gate.facts import CardFacts
from scoresheet.gate.reading import CardFile
from scoresheet.gate.rules import judge
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import CARD, MANIFEST

UNREADABLE = "card-yaml"


@dataclass(frozen=True, slots=True)
class CheckedCard:
    """The verdict on one protocol card."""

    path: str
    sha256: Digest | None
    """Of the card's bytes; `None` when it could not be read."""
    value: JsonValue
    """What it says, complete or not; `None` when it could not be read."""
    rules: int
    findings: tuple[Finding, ...]
    not_judged: tuple[str, ...]
    """What could not be looked at, and why."""

    @property
    def ok(self) -> bool:
        """No error, and rules ran: a check of nothing passes nothing."""
        return self.rules > 0 and all(finding.severity != "error" for finding in self.findings)

    @property
    def card(self) -> ProtocolCard | None:
        """The card as a document; `None` unless it is complete."""
        return ProtocolCard.from_value(self.value, self.path) if self.ok else None


def read_card(path: str | Path) -> ProtocolCard:
    """The card at `path`, for callers that need a complete one.

    It is judged alone: not held against its pack, tarball or repository. Raises `Refused` with every finding, `Usage`.
    """
    checked = check(path, alone=True)
    if checked.card is None:
        raise Refused("the protocol card is not complete", checked.findings, str(path), "scoresheet check says more")
    return checked.card


def check(
    path: str | Path, *, pack: str | Path | None = None, fixture: str | Path | None = None, alone: bool = False
) -> CheckedCard:
    """Every finding of the protocol card at `path`.

    It is held against the frozen pack in `pack` (default: the folder that it stands in, when that holds a manifest),
    the tarball `fixture` as it lies (default: the one that `freeze --tar` would write of the pack), and the git
    repository around it; with `alone` against none of them. Raises `Usage` when a path can't be read.
    """
    try:
        file = reading.read(path)
    except Malformed as error:
        return unreadable(path, error)
    return check_file(file, pack=pack, fixture=fixture, alone=alone)


def unreadable(path: str | Path, error: Malformed) -> CheckedCard:
    """The verdict on a card that can't be read: an invalid card, not a usage error."""
    mend = error.mend or "correct the text there; `scoresheet init` shows a card that can be read"
    return CheckedCard(str(path), None, None, 1, (Finding(UNREADABLE, error.where or str(path), error.what, mend),), ())


def check_file(
    file: CardFile, *, pack: str | Path | None = None, fixture: str | Path | None = None, alone: bool = False
) -> CheckedCard:
    """`check` of a card that was read."""
    if alone:
        judged = judge(CardFacts(file.path, file.located))
        return CheckedCard(file.path, file.sha256, file.located.value, judged.rules, judged.findings, ())
    folder = Path(file.path).parent
    root = Path(pack) if pack is not None else folder
    findings: list[Finding] = []
    not_judged: list[str] = []
    beside = None
    try:
        if pack is not None or os.path.lexists(root / MANIFEST):
            beside = suite.look(Pack.open(root))
            findings.extend(_below(root, finding) for finding in beside.findings)
    except Refused as refused:
        if any(finding.rule == "pack-not-frozen" for finding in refused.findings):
            not_judged.append(f"the pack in {root} is not frozen")
        findings.extend(_below(root, found) for found in refused.findings if found.rule != "pack-not-frozen")
    if beside is None and not findings:
        not_judged.append("task ids, tools, clock, seed and retries: no frozen pack stands beside the card")
    fixture_sha256 = beside.fixture_sha256 if beside is not None else None
    if fixture is not None:
        fixture_sha256 = _tarball(fixture)
    elif fixture_sha256 is None:
        not_judged.append("suite.fixture_hash: no frozen pack and no --fixture to compare it with")
    known, why_not = _commit(file, folder)
    if why_not:
        not_judged.append(f"whether the repository holds suite.git_sha: {why_not}")
    facts = CardFacts(
        file.path, file.located, fixture_sha256, beside.pack if beside is not None else None, git_sha_known=known
    )
    judged = judge(facts)
    return CheckedCard(
        file.path,
        file.sha256,
        file.located.value,
        judged.rules,
        (*judged.findings, *findings),
        tuple(not_judged),
    )


def card_of(pack: str | Path) -> Path | None:
    """The card beside the pack in a folder; `None` when there is none."""
    path = Path(pack, CARD)
    return path if os.path.lexists(path) else None


def _commit(file: CardFile, folder: Path) -> tuple[bool | None, str]:
    sha = CardFacts(file.path, file.located).get("suite.git_sha")
    if not isinstance(sha, str) or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", sha):
        return None, ""  # the rules name it
    found = repository.commit(folder, sha)
    return found.known, found.why_not


def _tarball(path: str | Path) -> Digest:
    try:
        return digest.of_file(path).sha256
    except OSError as error:
        raise Usage(f"the tarball can't be read: {error.strerror}", str(path)) from error
    except Refused as refused:
        raise Usage(refused.what, str(path), "give the tarball's path") from refused


def _below(root: Path, finding: Finding) -> Finding:
    where = finding.where if finding.where.startswith(str(root)) else str(root / finding.where)
    return Finding(finding.rule, where, finding.what, finding.mend, finding.severity)
