"""Receipts in a chain: each line holds the digest of the line before, and the facts that its leaf follows from. Pure.

Whoever edits a line breaks the chain after it; whoever chains it anew changes the head; whoever writes a better leaf
contradicts the facts beside it, and whoever edits those too contradicts the pack.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from scoresheet import __version__, canonical
from scoresheet.documents.receipt import GENESIS, ChainedReceipt
from scoresheet.documents.task_card import TaskCard
from scoresheet.errors import Finding, Refused, counted
from scoresheet.gate import inputs, triage

RECEIPTS = "receipts.jsonl"
_NOT_HELD = ("goal", "attachments")
"""Members of a task card that no receipt holds."""
Facts = Callable[[str, datetime], TaskCard | None]
"""Task id and time → what triage must have decided from then; `None`: there is no such task."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends."""

    sha256: str = GENESIS
    """Digest of the last line, without its newline."""
    count: int = 0

    def __str__(self) -> str:
        return f"{self.sha256} ({counted(self.count, 'receipt')})"


@dataclass(frozen=True, slots=True)
class Placed:
    """A receipt and where it stands."""

    receipt: ChainedReceipt
    where: str


@dataclass(frozen=True, slots=True)
class Chain:
    """The receipts of a file, and everything that is wrong with it."""

    placed: tuple[Placed, ...] = ()
    head: Head = Head()
    findings: tuple[Finding, ...] = ()

    @property
    def latest(self) -> Mapping[str, ChainedReceipt]:
        """Task id → its last receipt."""
        return {each.receipt.task_id: each.receipt for each in self.placed}


@dataclass(frozen=True, slots=True)
class History:
    """What a receipts file knows of fixtures that were triaged before."""

    frozen_at: dict[str, str] = field(default_factory=dict)
    """Fixture digest → the earliest time of freezing that any of its receipts names."""
    barred: dict[tuple[str, str], str] = field(default_factory=dict)
    """(fixture digest, task id) → `leak` or `secrets`; a standalone card bars its fixture under every id (`""`)."""

    def bar(self, fixture: str | None, task_id: str) -> str | None:
        """Why this fixture can't get score any more under this id."""
        if fixture is None:
            return None
        return self.barred.get((fixture, task_id)) or self.barred.get((fixture, ""))


def issue(
    cards: Iterable[TaskCard], manifest_sha256: str | None, seat: str | None, issued_at: str
) -> Iterator[ChainedReceipt]:
    """A receipt for every card, not yet chained."""
    for card in cards:
        decision = triage.decide(card)
        yield ChainedReceipt(
            **triage.receipt(card, seat).model_dump(),
            task_id=card.task_id or "",
            manifest_sha256=manifest_sha256,
            reason=decision.reason,
            next_action=decision.next_action,
            issued_at=issued_at,
            tool_version=__version__,
            card=card.model_dump(mode="json", exclude_defaults=True, exclude=set(_NOT_HELD)),
            previous=GENESIS,
        )


def chained(receipts: Iterable[ChainedReceipt], head: Head = Head()) -> tuple[bytes, Head]:
    """The lines of further receipts of a chain that ends in `head`, and where it ends then."""
    lines = []
    for receipt in receipts:
        data = canonical.line(receipt.model_copy(update={"previous": head.sha256}).model_dump(mode="json"))
        head = Head(hashlib.sha256(data[:-1]).hexdigest(), head.count + 1)
        lines.append(data)
    return b"".join(lines), head


def read(data: bytes, where: str = RECEIPTS) -> Chain:
    """The chain in the bytes of a receipts file; every line that breaks it, or whose leaf does not follow, is named."""
    placed: list[Placed] = []
    findings: list[Finding] = []
    seen: dict[str, str] = {}
    head = Head()
    *lines, torn = data.split(b"\n")
    for number, body in enumerate(lines, 1):
        place = f"{where}:{number}"
        try:
            receipt = ChainedReceipt.from_bytes(body, place)
        except Refused as error:
            findings += error.findings
        else:
            if receipt.previous != head.sha256:
                what = "the receipt does not follow the line before it: a line was edited, removed or inserted"
                findings.append(Finding("receipt-chain", place, what))
            same = content(receipt)
            if same in seen:
                findings.append(Finding("receipt-twice", place, f"the same receipt as {seen[same]}"))
            seen[same] = place
            findings += own_findings(receipt, place)
            placed.append(Placed(receipt, place))
        head = Head(hashlib.sha256(body).hexdigest(), head.count + 1)
    if torn:
        findings.append(Finding("receipt-torn", f"{where}:{len(lines) + 1}", f"a torn last line of {len(torn)} bytes"))
    return Chain(tuple(placed), head, tuple(findings))


def own_findings(receipt: ChainedReceipt, where: str) -> Iterator[Finding]:
    """What of a receipt does not follow from the facts that it holds itself."""
    try:
        card = TaskCard.from_value(receipt.card, f"{where}#/card")
    except Refused as error:
        yield from error.findings
        return
    issued = inputs.moment(receipt.issued_at)
    if issued is None:
        yield Finding("receipt-field", f"{where}#/issued_at", "not an RFC 3339 time")
        return
    decision = triage.decide(card)
    if decision.leaf != receipt.leaf:
        what = f"says {receipt.leaf}, but its own facts give {decision.leaf}: {decision.reason}"
        yield Finding("receipt-leaf", where, what)
        return
    expected = triage.receipt(card, receipt.runner_seat)
    wrong = [name for name, value in expected.model_dump().items() if getattr(receipt, name) != value]
    if (receipt.reason, receipt.next_action) != (decision.reason, decision.next_action):
        wrong.append("reason")
    wrong += [name for name in _NOT_HELD if getattr(card, name) is not None]
    if card.frozen_at is not None and card.age_hours is not None:
        age = inputs.age_hours(card.frozen_at, issued)
        if age is None or card.age_hours < age - 1e-5:
            wrong.append("age_hours")
    if wrong:
        yield Finding("receipt-facts", where, f"its own facts contradict {', '.join(wrong)}")


def judge(
    chain: Chain, manifest_sha256: str, facts: Facts | None = None, head: Head | None = None
) -> Iterator[Finding]:
    """What is wrong with a chain as the receipts of one pack.

    `head` is where it ended when it was written; `facts` derives each task's facts again.
    """
    if head is not None and head != chain.head:
        if chain.head.count < head.count:
            what = f"{head.count - chain.head.count} of {head.count} receipts are missing: the file was cut"
        elif chain.head.count > head.count:
            what = f"{chain.head.count} receipts, but the run wrote {head.count}: lines were added"
        else:
            what = "the receipts are not those that the run wrote: a line was edited and the rest chained anew"
        yield Finding("receipt-head", RECEIPTS, what)
    latest = chain.latest
    for each in chain.placed:
        receipt = each.receipt
        if receipt.manifest_sha256 != manifest_sha256:
            named = receipt.manifest_sha256 or "no pack"
            yield Finding("receipt-pack", each.where, f"a receipt of another pack ({named[:12]})")
            continue
        issued = inputs.moment(receipt.issued_at)
        if facts is None or issued is None or latest[receipt.task_id] is not receipt:
            continue
        card = facts(receipt.task_id, issued)
        if card is None:
            yield Finding("receipt-task", each.where, f"{receipt.task_id!r} is no task of the pack")
            continue
        decision = triage.decide(card)
        if decision.leaf != receipt.leaf:
            what = f"says {receipt.leaf}, but {receipt.task_id} is {decision.leaf}: {decision.reason}"
            yield Finding("receipt-leaf", each.where, what)
        elif wrong := _differing(card, receipt):
            yield Finding("receipt-facts", each.where, f"the pack and its card contradict {', '.join(wrong)}")


def history(chain: Chain) -> History:
    """What a chain remembers of fixtures."""
    found = History()
    for each in chain.placed:
        receipt = each.receipt
        fixture = receipt.card.get("fixture_sha256") or receipt.manifest_sha256
        if not isinstance(fixture, str):
            continue
        frozen_at = inputs.earlier(found.frozen_at.get(fixture), receipt.card.get("frozen_at"))
        if frozen_at is not None:
            found.frozen_at[fixture] = frozen_at
        why = "leak" if receipt.card.get("leak_flag") is True else None
        if receipt.mutation_scope == "secrets":
            why = why or "secrets"
        if why is not None:
            found.barred.setdefault((fixture, receipt.task_id if receipt.manifest_sha256 else ""), why)
    return found


def news(receipts: Iterable[ChainedReceipt], chain: Chain) -> Iterator[ChainedReceipt]:
    """The receipts that say what the chain's latest of the same task does not: another leaf, or other facts."""
    latest = chain.latest
    for receipt in receipts:
        known = latest.get(receipt.task_id)
        if known is None or _lasting(known) != _lasting(receipt):
            yield receipt


def _lasting(receipt: ChainedReceipt) -> tuple[object, ...]:
    facts = {name: value for name, value in receipt.card.items() if name != "age_hours"}
    return receipt.leaf, receipt.manifest_sha256, canonical.jcs(facts)


def content(receipt: ChainedReceipt) -> str:
    """Digest of everything but the place in the chain: equal for one decision that stands there twice."""
    value = receipt.model_dump(mode="json", exclude={"previous"})
    return hashlib.sha256(canonical.line(value)).hexdigest()


def _differing(card: TaskCard, receipt: ChainedReceipt) -> list[str]:
    held = TaskCard.from_value(receipt.card, "card")
    names = (name for name in TaskCard.model_fields if name not in _NOT_HELD)
    return [name for name in names if getattr(held, name) != getattr(card, name)]
