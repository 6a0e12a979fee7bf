"""A suite with one scored run, as files of a repository: a frozen pack, its complete card, the run, a README."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from scoresheet import digest
from scoresheet.gate import chain, pack_triage, suite
from scoresheet.pack.folder import Pack
from scoresheet.publish import block, run_folder
from scoresheet.run import prepare
from tests import cards
from tests.pack.packs import lay
from tests.publish import runs
from tests.run import packs

TASKS = tuple(f"t{number:02}" for number in range(8))
PASSED = (2, 2, 1, 2, 0, 2, 2, 1)
REPEATS = 2
Files = dict[str, bytes]


@cache
def _files() -> tuple[tuple[str, bytes], ...]:
    with TemporaryDirectory() as scratch:
        root = Path(scratch)
        prompts = {task_id: f"answer {task_id}" for task_id in TASKS}
        pack = packs.shop(root / "packs" / "shop", prompts, repeats=REPEATS)
        card = _card(pack)
        (root / "packs" / "shop" / "card.yaml").write_bytes(card)
        run = root / "runs" / "careful"
        manifest_sha256 = pack.manifest_sha256
        triage = pack_triage.look(pack)
        issued_at = prepare.now()
        receipts, head = chain.chained(triage.receipts("laptop-a", issued_at))
        record = triage.record.text()
        plan = runs.plan(
            len(TASKS),
            REPEATS,
            manifest={"upstreams": {"SHOP": "shop.example"}, "excluded": []},
            manifest_sha256=manifest_sha256,
            pack_tasks=len(TASKS),
            card_sha256=digest.of(card),
            pack_record_sha256=digest.of(record),
            receipts_sha256=head.sha256,
            receipts_count=head.count,
            started_at=issued_at,
        )
        rows = [
            runs.row(
                task_id,
                repeat,
                int(repeat < passed),
                manifest_sha256=manifest_sha256,
            )
            for task_id, passed in zip(TASKS, PASSED, strict=True)
            for repeat in range(REPEATS)
        ]
        sound = runs.baselines(oracle=12).model_copy(update={"manifest_sha256": manifest_sha256})
        runs.write(run, plan, rows, confounds=b"", baselines=sound.text(), receipts=receipts)
        (run / "pack.json").write_bytes(record)
        (run / "card.yaml").write_bytes(card)
        (root / "README.md").write_text("# A suite\n")
        return tuple(
            sorted((str(path.relative_to(root)), path.read_bytes()) for path in root.rglob("*") if path.is_file())
        )


def files() -> Files:
    """Path → bytes of the whole suite."""
    return dict(_files())


def without_run() -> Files:
    """The suite before anything was scored."""
    return {path: data for path, data in files().items() if not path.startswith("runs/")}


def run_only() -> Files:
    """What a score adds to the suite."""
    return {path: data for path, data in files().items() if path.startswith("runs/")}


def laid(root: Path) -> Path:
    """A folder that holds the whole suite."""
    return lay(root, files())


def laid_run(folder: Path) -> Path:
    """A run directory, alone."""
    return lay(folder, {Path(path).name: data for path, data in run_only().items()})


@cache
def report() -> tuple[str, str]:
    """The report of the run, as its block and as JSON."""
    with TemporaryDirectory() as scratch:
        run = run_folder.read(laid_run(Path(scratch)))
        assert run.unmet == (), run.unmet
        return block.text(run.report()), run.report().text()


def readme() -> str:
    """A README that quotes the block."""
    return f"# A suite\n\nIt scored:\n\n```text\n{report()[0]}```\n\nWell done.\n"


def _card(pack: Pack) -> bytes:
    fixture_sha256 = suite.look(pack).fixture_sha256
    card = cards.card(TASKS, fixture_sha256, retries=0, repeats=REPEATS, stale_after_hours=87600)
    return yaml.safe_dump(card, sort_keys=False).encode()
