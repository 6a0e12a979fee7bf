"""The report of a run as JSON: the block's members in the block's order, then what a reader may want to recompute.

Figures are decimal numbers of 4 places, the ends of intervals rounded outward. With retries the success members are
named `success_after_N_retries_…`, never by the plain name. Pure.
"""

import json
import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_serializer
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from scoresheet.canonical import JsonValue
from scoresheet.documents.decisions import (
    Count,
    Decisions,
    Ends,
    HumanJudging,
    NamedFigure,
    NegativeResults,
    NoInterval,
    PassK,
    Share,
)
from scoresheet.documents.manifest import Exclusion, Protocol
from scoresheet.documents.model import Many, Sha256, TaskId, ToolDocument, indented
from scoresheet.errors import Finding, Refused

NOT_DECLARED: Literal["not declared"] = "not declared"
NotDeclared = Literal["not declared"]

_PLAIN = re.compile(r"success_(mean|ci95)")
_RETRIED = re.compile(r"success_after_[1-9][0-9]*_retries_(mean|ci95)")


def metric_name(retries: int, part: str = "mean") -> str:
    """`success_mean`, or with retries `success_after_N_retries_mean`: the only names that a report uses."""
    return f"success_{part}" if retries == 0 else f"success_after_{retries}_retries_{part}"


class TaskResult(ToolDocument):
    """One task: k of n planned, never of what survived."""

    rule = "report"
    task_id: TaskId
    successes: Count
    planned: Annotated[int, Field(ge=1)]
    schema_ok: Count
    unauthorized: Count
    timeouts: Count
    exit_reasons: Many[str]
    """One a repeat, in order of repeat; `missing` where there is no row."""
    success: Many[int | None] = ()
    """One a repeat: the whole vector; `null` where an episode is not scored."""
    tool_calls: Many[int] = ()
    tokens: Many[int | None] = ()
    """One a repeat; empty when no episode counts them. So are the three below, without a workspace."""
    patch_lines: Many[int | None] = ()
    tests_identical: Many[int | None] = ()
    test_files_changed: Many[int | None] = ()


class Statistics(ToolDocument):
    """What the interval was computed from, so that anybody can compute it again."""

    rule = "report"
    algorithm: str
    seed: Count
    resamples: Count
    clusters: Count
    """What was resampled: tasks, unless the pack says cluster_id."""
    order_statistic: int | None
    """k of the percentile; `null` when another method was taken."""
    index_sha256: Sha256 | None
    """Digest of all resampled indexes, one byte each (two or four, little-endian, above 256 clusters)."""
    icc: float | None
    n_eff: float | None
    deff: float | None
    one_sided95: dict[str, float]
    """Metric that never happened (or always) → bound of its true rate, by tasks."""


class Money(ToolDocument):
    """What the tokens cost by the run's price table. Amounts are decimal text, totals exact to the last digit."""

    rule = "report"
    currency: str
    date: str
    """Of which day the prices are."""
    prices_sha256: Sha256
    """Digest of the price table."""
    total: str | None
    """Of every attempt that the agent is answerable for, failures included; `null`: see `why_not`."""
    successes: Count
    per_success: str | None
    """The whole bill over the successes that it bought, to 6 places; `null` when nothing passed."""
    low: str | None
    """Ends of its 95 % interval, rounded outward; tasks are resampled."""
    high: str | None
    """`null` is unbounded, or no interval when `low` is `null` too."""
    text: str
    why_not: str | None
    """Why the bill is not known: a model without a price, or tokens that nobody told. It is never taken for 0."""
    unpriced: Many[str]
    """Models that answered and that the price table does not name."""


class CostAxis(ToolDocument):
    """What it cost. Nothing here is part of success."""

    rule = "report"
    recorded_latency_ms_mean: float | None
    """Sum of the recorded latencies of an episode's calls, mean over episodes: how long the real services took."""
    recorded_latency_ms_ci95: Ends | None
    elapsed_s_mean: float | None
    """Of this host, each episode at most the time limit; in no digest."""
    tokens_per_success: str | None
    """`null` when tokens were not counted."""
    tool_calls: Count
    repeated_calls: Count
    money: Money | None = None
    """`null`: no price table was given."""
    model_calls: Count | None = None
    """Of the attempts that count; `null`: there was no model. So are the two below."""
    model_retries: Count | None = None
    model_door_retries: Count | None = None
    """Retries that the door made, after the provider had asked it to wait."""
    budget: str | None = None
    """What the model calls might spend and did, lost and interrupted episodes included; `null`: no limit."""


class Calibration(ToolDocument):
    """The train_like tasks, which enter no figure."""

    rule = "report"
    tasks: Count
    planned: Count
    successes: Count
    per_task: Many[TaskResult]


class Report(ToolDocument):
    """The report of one run."""

    rule = "report"
    format: Literal["scoresheet-report/1"] = "scoresheet-report/1"
    draft: bool
    """True: these figures are no score. Every report that is not admissible is a draft."""
    confounds: Count | None
    """Entries of the confound log; `null`: there is no log."""
    attended: bool | None
    """True when people may have intervened, and the log says how; `null`: no card says."""
    confound_entries: Many[str] = ()
    """The entries, one a line, the tool's own and people's."""
    protocol: Protocol
    manifest_sha256: Sha256
    timeout_s: float | int
    retries: Count
    seed: Count
    repeats_per_task: int | NotDeclared
    success_mean: Share
    success_ci95: Ends | NoInterval
    unauthorized_rate: Share
    timeout_rate: Share
    live_network: str
    """`denied`, `model_endpoint_only(host:port)` or `not_isolated`, from the evidence of every planned episode."""
    excluded: Many[Exclusion] | NotDeclared
    schema_ok_rate: Share
    planned: Count
    tasks: Count
    episodes: Count
    """Planned episodes that are scored."""
    interval_method: str
    mde: float | None
    """Smallest gap to another agent that such a run would show (power 80 %, level 5 %, tasks uncorrelated)."""
    tie_margin: float | NotDeclared
    exit_reasons: dict[str, int]
    controls: dict[str, float | int | str | None]
    model: str
    agent: str
    baselines: str
    not_called: dict[str, str] | NotDeclared
    """Upstream → host that was recorded and that no episode could reach; empty unless that was proved."""
    receipts_head: str | None
    card_sha256: Sha256 | None
    rows_sha256: Sha256
    figures_sha256: Sha256
    """On it two honest hosts agree: figures and per-task outcomes, without clocks, host, paths or agent."""
    primary: NamedFigure | None
    """The figure that the card declares; `null`: no card says it."""
    secondary: Many[NamedFigure]
    decisions: Decisions
    pass_k: PassK
    negative_results: NegativeResults
    judging: HumanJudging | None
    """`null`: no episode is for a human to judge."""
    pending: Count
    """Episodes that wait for a human."""
    schema_unchecked: Many[str]
    """Tools whose arguments could not be checked."""
    repeats_run: Count
    cost: CostAxis
    statistics: Statistics
    notes: Many[str]
    complete: bool
    reasons: Many[str]
    """Every unmet condition of admissibility; empty when the report is admissible."""
    per_task: Many[TaskResult]
    calibration: Calibration | None = None
    """`null`: no train_like task ran."""
    model_answers: str = "none"
    """Where the model's answers came from: live from an endpoint, or replayed from a recording, by its digest."""

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=lambda schema: _retried(schema))

    @classmethod
    def from_value(cls, value: JsonValue, where: str) -> Self:
        """The report in a JSON value, whose success members have their told names. Raises `Refused`."""
        if not isinstance(value, dict):
            return super().from_value(value, where)
        retries, plain = value.get("retries"), {}
        for key, member in value.items():
            match = _RETRIED.fullmatch(key) or _PLAIN.fullmatch(key)
            if match and isinstance(retries, int) and key != metric_name(retries, match[1]):
                what = f"{key} stands beside {retries} retries: its name is {metric_name(retries, match[1])}"
                raise Refused("not a valid report", [Finding("report-field", f"{where}#/{key}", what)], where)
            plain[f"success_{match[1]}" if match else key] = member
        return super().from_value(plain, where)

    @model_serializer(mode="wrap")
    def _told_names(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = handler(self)
        return {
            metric_name(self.retries, match[1]) if (match := _PLAIN.fullmatch(key)) else key: member
            for key, member in plain.items()
        }

    def text(self) -> str:
        """The JSON document, members in their order, with a final newline.

        It is made task by task: of 50,000 episodes the values of all at once would take more room than all else.
        """
        whole = indented(self.model_copy(update={"per_task": ()}))
        before, mark, after = whole.partition(_NO_TASK)  # once: a line that begins so can stand in no string
        tasks = ",".join(f"\n    {_indented(task)}" for task in self.per_task)
        return f"{before}{mark[:-1]}{tasks}\n  {mark[-1:]}{after}" if tasks else whole


class NotAdmissible(ToolDocument):
    """What `report --format json` prints instead of figures."""

    rule = "report"
    format: Literal["scoresheet-report/1"] = "scoresheet-report/1"
    admissible: Literal[False] = False
    complete: bool
    manifest_sha256: Sha256
    reasons: Many[str]

    def text(self) -> str:
        """The JSON document, members in their order, with a final newline."""
        return indented(self)


_NO_TASK = '\n  "per_task": []'


def _indented(task: TaskResult) -> str:
    return json.dumps(task.model_dump(mode="json"), indent=2, ensure_ascii=False).replace("\n", "\n    ")


def _retried(schema: dict[str, Any]) -> None:
    """The JSON Schema of both spellings of the success members."""
    properties = schema["properties"]
    for part in ("mean", "ci95"):
        name = f"success_{part}"
        schema.setdefault("patternProperties", {})[rf"^success_after_[1-9][0-9]*_retries_{part}$"] = properties[name]
        schema["required"] = [required for required in schema["required"] if required != name]
    schema["if"] = {"properties": {"retries": {"const": 0}}}
    schema["then"] = {"required": ["success_mean", "success_ci95"]}
    schema["else"] = {"properties": {"success_mean": False, "success_ci95": False}}
