"""What `verify` can't know, line by line as it is printed, and the members of files that each line stands for. Pure.

Every other member is noticed when it alone is edited, though each digest, chain and figure around it is made to fit.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Line(NamedTuple):
    """One line under `on the submitter's word`, or what one under `not checked` says."""

    text: str
    covers: tuple[str, ...]
    """`FILE MEMBER MEMBER…`; `*` stands for every member, `host.*` for those of host."""


TOOK_PLACE = Line(
    "that these episodes took place, where and when the rows say, and that no others were thrown away",
    (
        "rows.jsonl started_at",
        "run.json started_at ended_at host.system host.python host.cores host.os host.memory_bytes status",
    ),
)
JOURNALS = Line(
    "that journals and evidence were written by scoresheet, and by nobody after it",
    ("calls.jsonl *", "dns.jsonl *", "evidence.json *"),
)
AGENT = Line(
    "which agent ran, how it ended, what it answered, and the time, memory and tokens that it took",
    (
        "rows.jsonl answer exit_reason limit limit_at_s agent_exit detail elapsed_s cpu_s peak_memory_bytes",
        "run.json agent.* budget.spent_tokens budget.spent_cost budget.stopped",
    ),
)
CONFOUNDS = Line("that the confound log holds everything that happened", ("confounds.jsonl *",))
DECLARED = Line(
    "that card and plan were there before the first episode: options, names, versions, budget and reasons for a draft",
    (
        "run.json pack interval versions pack_verified lockfile_sha256 budget.max_tokens_total budget.max_cost draft",
        "receipts.jsonl tool_version",
    ),
)
HISTORY = Line(
    "when the pack was frozen, what was known of it before, and how much its leak scan read",
    (
        "pack.json commit_known barred scan.files scan.size_bytes scan.leaks scan.allowed scan.unknown scan.rules "
        "scan.ruleset_sha256",
    ),
)
BASELINE_ROWS = Line("that the baselines' rows are what those runs gave", ("baselines.json ended_at",))
BASELINE_VERDICT = Line(
    "what the baselines scored (their runs are not here)",
    ("baselines.json isolation null.* oracle.* ended_at",),
)
WORKSPACES = Line("what lay in workspaces and is in no patch", ("rows.jsonl patch_left_out",))
JUDGES = Line("what the judges decided, who they were, and when", ("judgments.jsonl verdict judge at",))
PRICES = Line("that models cost what prices.yaml says", ("prices.yaml *",))
ENDPOINTS = Line("that the models' endpoints were those that are named", ("run.json model_endpoints",))

NO_PACK = Line(
    "recordings, answers, tools, limits of tasks, the quoted manifest and leaks: the pack is not here",
    (
        "rows.jsonl success answer schema_unchecked tests_identical test_files_changed tests_changed tests_added "
        "grading_surface controls violations",
        "run.json manifest.* tasks.cluster_id tasks.split",
        "pack.json fixture_sha256 tools scan.leak_flag tasks.*",
    ),
)
GRADING = Line("only a rerun grades again", ("rows.jsonl success detail",))
PATCHES = Line(
    "only the digests are here, not their lines or which tests they touch",
    ("rows.jsonl patch_lines tests_identical test_files_changed tests_changed tests_added grading_surface",),
)
MODEL_LOGS = Line(
    "model.jsonl only the digests are here",
    (
        "rows.jsonl model_calls model_retries model_door_retries tokens_in tokens_out model_usage.* model_untold "
        "models model_unrecorded controls violations",
        "run.json model_kinds model_endpoints",
    ),
)
RECORDING = Line(
    "which seals its model calls: it stays with the submitter", ("run.json model_recording_sha256", "recording.json *")
)
REPLAYED = Line("that answered in the model's place: it is another run's", ("run.json model_replayed.*",))
SHOWN = Line("what judges were shown", ("judgments.jsonl shown_sha256",))

WORD = (TOOK_PLACE, JOURNALS, AGENT, CONFOUNDS, DECLARED, HISTORY)
"""Of every run."""
LINES = (
    *WORD, BASELINE_ROWS, BASELINE_VERDICT, WORKSPACES, JUDGES, PRICES, ENDPOINTS,
    NO_PACK, GRADING, PATCHES, MODEL_LOGS, RECORDING, REPLAYED, SHOWN,
)  # fmt: skip
"""All that stand for members of files."""


def stands_for(line: Line, file: str, member: str) -> bool:
    """Whether a line stands for a member of a file, such as `run.json`, `host.os`."""
    for each in line.covers:
        name, *members = each.split()
        if name == file and any(_is(member, pattern) for pattern in members):
            return True
    return False


def covering(printed: Iterable[str], file: str, member: str) -> tuple[str, ...]:
    """Those of the printed lines that stand for a member."""
    known = [line for line in LINES if stands_for(line, file, member)]
    return tuple(text for text in printed if any(line.text in text for line in known))


def _is(member: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return member.startswith(pattern[:-1])
    return member == pattern
