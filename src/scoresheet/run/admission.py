"""What a run was admitted on: the pack as triage saw it, its card, and a receipt for every task, written first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scoresheet import atomic_file, digest
from scoresheet.canonical import JsonValue
from scoresheet.documents.confound import Confound
from scoresheet.documents.receipt import ChainedReceipt
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Usage
from scoresheet.gate import chain, receipts
from scoresheet.gate.chain import Head
from scoresheet.gate.pack_triage import PackTriage
from scoresheet.run import journal
from scoresheet.run.deviations import deviations


@dataclass(frozen=True, slots=True)
class Admission:
    """Triage of a pack for one run."""

    triage: PackTriage
    receipts: tuple[ChainedReceipt, ...]
    """One a task, the refused ones too; not yet chained."""
    issued_at: str
    card: bytes | None
    """The protocol card, byte for byte."""
    uncommitted: tuple[str, ...] = ()
    """Manifest or card that the git repository around the pack does not hold as they are."""

    @property
    def startable(self) -> frozenset[str]:
        """Tasks that may be started: leaf score, with a seat."""
        return frozenset(each.task_id for each in self.receipts if each.leaf == "score" and each.runner_seat)

    @property
    def leaves(self) -> Mapping[str, ChainedReceipt]:
        """Task id → its receipt."""
        return {each.task_id: each for each in self.receipts}

    @property
    def card_value(self) -> JsonValue:
        """What the card says; `None` when there is none that can be read."""
        return self.triage.card.value if self.triage.card is not None else None

    def control(self, name: str) -> JsonValue:
        """A member of the card's `controls`."""
        controls = self.card_value.get("controls") if isinstance(self.card_value, dict) else None
        return controls.get(name) if isinstance(controls, dict) else None

    def split_of(self, task_id: str) -> str | None:
        """`holdout` or `train_like`, as the card says."""
        split = self.card_value.get("dataset_split") if isinstance(self.card_value, dict) else None
        for name in ("holdout", "train_like"):
            ids = split.get(name) if isinstance(split, dict) else None
            if isinstance(ids, list) and task_id in ids:
                return name
        return None

    def write(self, out: Path, plan: RunPlan) -> RunPlan:
        """Everything that the report rests on, put into the run directory and synced; the plan that names it."""
        record = self.triage.record.text()
        atomic_file.replace(out / journal.PACK, record)
        if self.card is not None:
            atomic_file.replace(out / journal.CARD, self.card)
        head = receipts.append(out / journal.RECEIPTS, lambda _: self.receipts)
        plan = plan.model_copy(
            update={
                "pack_record_sha256": digest.of(record),
                "receipts_sha256": head.sha256,
                "receipts_count": head.count,
                "not_started": tuple(t.task_id for t in plan.tasks if t.task_id not in self.startable),
            }
        )
        journal.add_confounds(out, self._confounds(plan, journal.read_confounds(out)))
        return plan

    def _confounds(self, plan: RunPlan, known: Iterable[Confound]) -> Iterable[Confound]:
        """The tool's own entries that the log does not hold yet."""
        told = {each.text for each in known}
        for name in self.uncommitted:
            text = f"{name} is not committed as it is to the git repository around the pack"
            if text not in told:
                yield Confound(at=self.issued_at, by="scoresheet", kind="uncommitted", text=text)
        for each in deviations(self.card_value, plan, self.triage.record):
            if str(each) not in told:
                yield Confound(
                    at=self.issued_at,
                    by="scoresheet",
                    kind="deviation",
                    text=str(each),
                    control=each.control,
                    pinned=each.pinned,
                    seen=each.seen,
                )


def keep_all(pack: Path, found: tuple[ChainedReceipt, ...]) -> Head:
    """Append every receipt to the pack's own file: nothing will run, so no other file holds them."""
    return receipts.append(pack / chain.RECEIPTS, lambda _: found)


def keep_news(pack: Path, found: tuple[ChainedReceipt, ...]) -> str:
    """Append what is new to the pack's own file, which remembers refusals; why that could not be done, or `""`.

    The run directory holds every receipt of its run: the pack's file grows only when a decision changes.
    """
    try:
        receipts.append(pack / chain.RECEIPTS, lambda known: chain.news(found, known))
    except Usage as error:
        return error.what
    return ""
