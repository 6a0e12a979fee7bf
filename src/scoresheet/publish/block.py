"""The report as people read it: text, and Markdown that holds the same block. Pure.

Confounds and attendance stand first, then the block, one `key: value` a line: its first twelve keys always, in this
order (docs/formats, Report).
"""

from collections.abc import Iterable, Iterator

from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.report import Report, metric_name
from scoresheet.publish import decisions

BANNER = "DRAFT: not admissible, not a score"
CONFOUND_LOG = "confounds.jsonl"
_MOST_CONFOUNDS = 20


def text(report: Report) -> str:
    """The whole report as plain text, with a final newline."""
    return "".join(f"{line}\n" for line in (*_lines(report), *_unmet(report)))


def not_admissible(unmet: Iterable[str]) -> str:
    """`not admissible:` and every reason, one a line, with a final newline."""
    return "".join(f"{line}\n" for line in ("not admissible:", *(f"  - {one_line(reason)}" for reason in unmet)))


def markdown(report: Report) -> str:
    """The block as a Markdown section, then the tasks as a table, then what was not met."""
    parts = [f"## Score report: {'DRAFT, not admissible' if report.draft else 'admissible'}", ""]
    parts += ["```text", *_lines(report), "```", ""]
    parts += ["| task | successes | schema_ok | unauthorized | timeouts | exit reasons |", "|---|---|---|---|---|---|"]
    for task in report.per_task:
        shares = (task.successes, task.schema_ok, task.unauthorized, task.timeouts)
        cells = [task.task_id, *(f"{count}/{task.planned}" for count in shares), _tally(task.exit_reasons)]
        parts.append(f"| {' | '.join(cells)} |")
    parts += ["", "### Negative results", ""]
    parts += [f"- {key.replace('_', ' ')} — {in_markdown(value)}" for key, value in negative(report)]
    if report.reasons:
        parts += ["", "Not admissible:", "", *(f"- {in_markdown(reason)}" for reason in report.reasons)]
    return "\n".join(parts) + "\n"


def entries(report: Report) -> Iterator[tuple[str, str]]:
    """The block: (key, value) in its order."""
    yield "protocol", report.protocol
    yield "manifest_sha256", report.manifest_sha256
    yield "timeout_s", f"{report.timeout_s:g}"
    yield "retries", str(report.retries)
    yield "seed", str(report.seed)
    yield "repeats_per_task", str(report.repeats_per_task)
    yield metric_name(report.retries), _four(report.success_mean)
    yield metric_name(report.retries, "ci95"), _ends(report.success_ci95)
    yield "unauthorized_rate", _four(report.unauthorized_rate)
    yield "timeout_rate", _four(report.timeout_rate)
    yield "live_network", report.live_network
    yield "excluded", _excluded(report.excluded)

    yield "schema_ok_rate", _four(report.schema_ok_rate)
    if report.schema_unchecked:
        yield "schema_ok", f"unchecked for {len(report.schema_unchecked)} tools"
    yield "planned", str(report.planned)
    yield "tasks", str(report.tasks)
    yield "episodes", str(report.episodes)
    yield "interval_method", report.interval_method
    yield "mde", "none" if report.mde is None else _four(report.mde)
    yield "tie_margin", str(report.tie_margin)
    yield "exit_reasons", ", ".join(f"{name} {count}" for name, count in report.exit_reasons.items())
    yield "controls", ", ".join(f"{name} {_plain(value)}" for name, value in report.controls.items())
    yield "model", report.model
    yield "agent", report.agent
    yield "baselines", report.baselines
    yield "not_called", _not_called(report)
    yield "receipts_head", report.receipts_head or "none"
    yield "card_sha256", report.card_sha256 or "none"
    yield "rows_sha256", report.rows_sha256
    yield "figures_sha256", report.figures_sha256

    yield from _decided(report)
    yield from negative(report)

    if report.calibration is not None:
        apart = report.calibration
        share = f"{apart.successes} of {apart.planned} episodes of {apart.tasks} train_like tasks succeeded"
        yield "calibration", f"{share}; in no figure"
    yield "repeats_run", str(report.repeats_run)
    if report.model_answers != "none":
        yield "model_answers", report.model_answers
    latency = report.cost.recorded_latency_ms_mean
    yield "recorded_latency_ms_mean", "none" if latency is None else _four(latency)
    if report.cost.recorded_latency_ms_ci95 is not None:
        yield "recorded_latency_ms_ci95", _ends(report.cost.recorded_latency_ms_ci95)
    yield "elapsed_s_mean", "none" if report.cost.elapsed_s_mean is None else _four(report.cost.elapsed_s_mean)
    if report.cost.tokens_per_success is not None:
        yield "tokens_per_success", report.cost.tokens_per_success
    cost = report.cost
    if cost.model_calls is not None:
        again = f"{cost.model_retries} of them retries ({cost.model_door_retries} by the door)"
        yield "model_calls", f"{cost.model_calls}, {again}"
    if cost.budget is not None:
        yield "budget", cost.budget
    bill = report.cost.money
    if bill is not None:
        total = f"{bill.total} {bill.currency}" if bill.total is not None else bill.text
        yield "cost_total", f"{total}, prices of {bill.date} (sha256:{bill.prices_sha256})"
        yield "cost_per_success", f"{bill.currency} {bill.text}" if bill.per_success is not None else bill.text
    yield "tool_calls", f"{report.cost.tool_calls}, {report.cost.repeated_calls} of them beyond the recording"
    statistics = report.statistics
    if statistics.n_eff is not None:
        noise = f"{statistics.n_eff:.1f} of {report.planned} episodes"
        if statistics.deff is not None:
            noise += f", deff {statistics.deff:.3f}"
        if statistics.icc is not None:
            noise += f", icc {statistics.icc:.4f}"
        yield "n_eff", noise
    for note in report.notes:
        yield "note", note


def _decided(report: Report) -> Iterator[tuple[str, str]]:
    """The card's own figures first, then every row of the decision table, then k of the repeats."""
    if report.primary is None:
        yield "primary", "none: no complete protocol card declares one"
    else:
        yield "primary", f"{report.primary.name} = {report.primary.text}"
    for each in report.secondary:
        yield "secondary", f"{each.name} = {each.text}"
    for name, value in decisions.texts(report.decisions).items():
        yield "decision", f"{name} = {value}"
    of_k = report.pass_k
    if of_k.why_not is not None:
        yield "pass_at_k", f"{decisions.NOT_COMPUTED}{of_k.why_not}"
        yield "pass_hat_k", f"{decisions.NOT_COMPUTED}{of_k.why_not}"
    else:
        yield "pass_at_k", ", ".join(f"k={each.k} {_four(each.pass_at_k)}" for each in of_k.of)
        yield "pass_hat_k", ", ".join(f"k={each.k} {_four(each.pass_hat_k)}" for each in of_k.of)


def negative(report: Report) -> Iterator[tuple[str, str]]:
    """The negative results: no option leaves them out."""
    found = report.negative_results
    yield "never_solved", ", ".join(found.never_solved) or "none"
    yield "sometimes_solved", ", ".join(found.sometimes_solved) or "none"
    yield "exits", ", ".join(f"{name} {count}" for name, count in found.exit_reasons.items())
    for each in found.tampering:
        yield "tampering", f"{each.task_id}: {each.kind}: {each.what} (in {', '.join(each.attempts)})"
    if not found.tampering:
        yield "tampering", "none seen"
    for task in found.not_run:
        yield "not_run", f"{task.task_id}: leaf {task.leaf or 'unknown'}: {task.why}"
    if not found.not_run:
        yield "not_run", "none"
    for gap in found.gaps:
        size = {True: "smaller than", False: "larger than", None: "without"}[gap.smaller_than_interval]
        yield "gap", f"to the {gap.to} {_four(gap.gap)}, {size} the interval"
    if not found.gaps:
        yield "gap", "to the baselines: not known, they were not run"
    unseen = "of any size" if found.unseen_below is None else f"under {_four(found.unseen_below)}"
    yield "gap", f"to another agent: one {unseen} is smaller than what this run can show"
    if report.judging is not None:
        by = report.judging
        who = f" by {', '.join(by.judges)}" if by.judges else ""
        yield "judged", f"{by.judged} episodes{who}, blind; {by.pending} pending"
        yield "judgments_head", f"{by.judgments_head} ({by.judgments_lines} lines)"


def one_line(value: str) -> str:
    """`value` without anything that could begin another line or steer a terminal."""
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in value)


def _lines(report: Report) -> Iterator[str]:
    if report.draft:
        yield BANNER
        yield "draft: true"
    yield f"confounds: {'no log' if report.confounds is None else report.confounds}"
    if report.attended:
        yield "attended: true"
    if report.confounds is not None:
        yield f"confound_log: {CONFOUND_LOG}"
    for entry in report.confound_entries[:_MOST_CONFOUNDS]:
        yield f"confound: {one_line(entry)}"
    if len(report.confound_entries) > _MOST_CONFOUNDS:
        yield f"confound: and {len(report.confound_entries) - _MOST_CONFOUNDS} more in {CONFOUND_LOG}"
    for key, value in entries(report):
        yield f"{key}: {one_line(value)}"


def _unmet(report: Report) -> tuple[str, ...]:
    return ("", *(not_admissible(report.reasons).splitlines() if report.reasons else ("admissible",)))


def _four(value: float) -> str:
    return f"{value:.4f}"


def _ends(value: tuple[float, float] | str) -> str:
    return value if isinstance(value, str) else f"[{_four(value[0])}, {_four(value[1])}]"


def _excluded(value: tuple[Exclusion, ...] | str) -> str:
    return value if isinstance(value, str) else "; ".join(map(str, value)) or "none"


def _not_called(report: Report) -> str:
    if isinstance(report.not_called, str):
        return report.not_called
    if report.live_network == "not_isolated":
        return "not proved"
    return ", ".join(f"{name}={host}" for name, host in report.not_called.items()) or "none"


def _plain(value: float | int | str | None) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _tally(reasons: tuple[str, ...]) -> str:
    return ", ".join(f"{reason} {reasons.count(reason)}" for reason in dict.fromkeys(reasons))


def in_markdown(value: str) -> str:
    """Text in a line or a cell of Markdown, that stays text."""
    return one_line(value).replace("|", "\\|").replace("<", "&lt;")
