"""Triage of one task card and the folder of its fixtures."""

from dataclasses import dataclass
from pathlib import Path

from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Refused
from scoresheet.gate import chain, inputs, leaks, receipts
from scoresheet.gate.task_card import read_task_card
from scoresheet.pack import bundle_digest, tree


@dataclass(frozen=True, slots=True)
class BundleTriage:
    """A task card with what was found of its fixtures."""

    card: TaskCard
    scan: leaks.Scan | None
    """`None`: no bundle was given."""
    notes: tuple[str, ...]

    def receipt(self, seat: str | None, issued_at: str) -> ChainedReceipt:
        """The receipt, not yet chained."""
        now = inputs.moment(issued_at)
        assert now is not None
        card = self.card
        if card.age_hours is None and card.frozen_at is not None:
            card = card.model_copy(update={"age_hours": inputs.age_hours(card.frozen_at, now)})
        return next(chain.issue((card,), None, seat, issued_at))


def look(
    path: str | Path, bundle: str | Path | None, log: str | Path, progress: tree.Progress = tree.quiet
) -> BundleTriage:
    """The task card at `path`, held against its bundle and against what the receipts file `log` remembers.

    A digest that the bundle contradicts counts as missing, and so does one that nothing is there to check. Raises
    `Refused`, `Malformed`, `Usage`.
    """
    card = read_task_card(path)
    notes: list[str] = []
    scan = None
    if bundle is not None:
        scan = leaks.scan(bundle, progress=progress)
        card = _held_against(card, bundle, notes)
        card = card.model_copy(update={"leak_flag": _worst(leaks.leak_flag(scan), card.leak_flag)})
    elif card.fixture_sha256:
        notes.append(
            "no bundle was given, so the digest and the leak flag are the card's word: --bundle DIR checks both"
        )
    known = receipts.read(log)
    if known is not None:
        if broken := [finding for finding in known.findings if finding.rule != "receipt-torn"]:
            raise Refused("the receipts are not as they were written", broken, str(log), "restore the file")
        card = _remembered(card, chain.history(known), notes)
    return BundleTriage(card, scan, tuple(notes))


def _held_against(card: TaskCard, bundle: str | Path, notes: list[str]) -> TaskCard:
    found = bundle_digest.v2_of(bundle)
    stated = (card.fixture_sha256 or "").removeprefix("sha256:")
    if stated == found or (stated and stated == bundle_digest.v1_of(bundle)):
        return card
    if stated:
        notes.append(f"the bundle is {found}, not what the card says: its digest counts as missing")
    else:
        notes.append(f"the card names no digest; the bundle's is fixture_sha256: {found}")
    return card.model_copy(update={"fixture_sha256": None})


def _remembered(card: TaskCard, history: chain.History, notes: list[str]) -> TaskCard:
    fixture = card.fixture_sha256
    if fixture is None:
        return card
    changes: dict[str, object] = {}
    first = history.frozen_at.get(fixture)
    if card.frozen_at is not None and first is not None and inputs.earlier(card.frozen_at, first) != card.frozen_at:
        changes |= {"frozen_at": first, "age_hours": None}
        notes.append(f"an earlier receipt knows these bytes as frozen at {first}")
    why = history.bar(fixture, card.task_id or "") or history.bar(fixture, "")
    if why is not None:
        changes |= {"leak_flag": True} if why == "leak" else {"mutation_scope": "secrets"}
        notes.append(f"an earlier receipt keeps these bytes from score ({why}); an edit makes a new digest")
    return card.model_copy(update=changes)


def _worst(scanned: bool | str, stated: bool | str | None) -> bool | str:
    if scanned is True or stated is True:
        return True
    return "unknown" if "unknown" in (scanned, stated) else False
