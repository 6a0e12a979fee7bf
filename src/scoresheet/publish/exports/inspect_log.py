"""An Inspect AI log (`.eval`, log format 2): a sample for each planned episode.

Pure: the members of the archive. A sample is made from the row and the door's journal, so its messages say what was
asked and answered, and not what a model thought. Figures are the report's, to its 4 places.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.report import metric_name
from scoresheet.publish.exports.every_eval_ever import told
from scoresheet.publish.exports.subject import Attempt, Member, Subject, json_text, sheet_members

VERSION = 2
SCORER = "success"
_ENDED_BY = {"timeout": "time", "tool_cap": "custom"}
_MOST_TEXT = 2000
"""Characters of an answer in the list of samples; the sample itself holds all of it."""


def build(subject: Subject) -> Iterator[Member]:
    """The members of the archive, in the order in which Inspect writes them."""
    spec = _spec(subject)
    yield _member("_journal/start.json", {"version": VERSION, "eval": spec, "plan": _plan(subject)})
    summaries: list[bytes] = []  # of many samples: bytes take less room than values
    for attempt in subject.counted:
        one = sample(subject, attempt)
        summaries.append(canonical.line(_summary(one, attempt)))
        yield _member(f"samples/{attempt.row.task_id}_epoch_{attempt.row.repeat + 1}.json", one)
    yield Member("summaries.json", iter([b"[", b",".join(summaries), b"]\n"]))
    yield _member("header.json", header(subject, spec))


def header(subject: Subject, spec: dict[str, Any]) -> dict[str, Any]:
    """header.json: the log without its samples."""
    plan, report = subject.plan, subject.report
    return {
        "version": VERSION,
        "status": "success",
        "invalidated": False,
        "eval": spec,
        "plan": _plan(subject),
        "results": results(subject),
        "stats": {
            "started_at": _time(plan.started_at),
            "completed_at": _time(subject.ended_at),
            "model_usage": {},
            "role_usage": {},
            "connection_limit_history": [],
        },
        "tags": ["scoresheet", report.protocol],
        "metadata": sheet_members(report),
    }


def results(subject: Subject) -> dict[str, Any]:
    """The vector of rates as metrics of one scorer; the ends of the interval stand beside the mean."""
    report = subject.report
    ends = report.success_ci95
    figures: dict[str, Any] = {metric_name(report.retries): report.success_mean}
    if not isinstance(ends, str):
        figures |= {f"{metric_name(report.retries, 'ci95')}_{end}": ends[i] for i, end in enumerate(("low", "high"))}
    figures |= {
        "schema_ok_rate": report.schema_ok_rate,
        "unauthorized_rate": report.unauthorized_rate,
        "timeout_rate": report.timeout_rate,
    }
    about = {"interval_method": report.interval_method, "figures_sha256": report.figures_sha256}
    return {
        "total_samples": report.planned,
        "completed_samples": report.episodes,
        "scores": [
            {
                "name": SCORER,
                "scorer": SCORER,
                "scored_samples": report.episodes,
                "unscored_samples": report.planned - report.episodes,
                "params": {},
                "metrics": {
                    name: {"name": name, "value": value, "params": {}, "metadata": about}
                    for name, value in figures.items()
                },
            }
        ],
    }


def sample(subject: Subject, attempt: Attempt) -> dict[str, Any]:
    """One episode."""
    row = attempt.row
    started = datetime.fromisoformat(row.started_at)
    asked = attempt.prompt
    if asked is None:
        asked = (
            f"task {row.task_id} of the pack with manifest sha256 {row.manifest_sha256} (its text is not in this log)"
        )
    model, answer = _model(subject), _json(row.answer)
    calls = [call for call in attempt.calls if call.outcome != "answer"]
    final = {"role": "assistant", "content": answer, "source": "generate", "model": model}
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked, "source": "input"}]
    for call in calls:
        messages.append({"role": "assistant", "content": "", "source": "generate", "tool_calls": [_tool_call(call)]})
        messages.append(
            {"role": "tool", "content": told(call), "tool_call_id": _ref(call), "function": _function(call)}
            | ({"error": _refused(call)} if call.outcome != "hit" else {})
        )
    messages.append(final)
    found: dict[str, Any] = {
        "id": row.task_id,
        "epoch": row.repeat + 1,
        "input": asked,
        "target": "",
        "messages": [
            {"id": f"{_uuid(row.task_id, row.repeat)}-{index}", **each} for index, each in enumerate(messages)
        ],
        "output": {"model": model, "choices": [{"message": final, "stop_reason": "stop"}], "completion": answer},
        "scores": {SCORER: score(attempt)},
        "metadata": _about(attempt),
        "store": {},
        "events": [_event(call, started, row.task_id, row.repeat) for call in calls],
        "model_usage": _usage(attempt, model),
        "role_usage": {},
        "attachments": {},
        "started_at": started.astimezone(UTC).isoformat(),
        "completed_at": (started + timedelta(seconds=row.elapsed_s)).astimezone(UTC).isoformat(),
        "total_time": row.elapsed_s,
        "working_time": row.elapsed_s,
        "uuid": _uuid(row.task_id, row.repeat),
    }
    if row.exit_reason in _ENDED_BY:
        limit = subject.plan.limits.wall_clock_s if row.exit_reason == "timeout" else subject.plan.limits.max_tool_calls
        found["limit"] = {"type": _ENDED_BY[row.exit_reason], "limit": float(limit or 0)}
    return found


def score(attempt: Attempt) -> dict[str, Any]:
    """What came of it: 1 or 0, and the rest of the vector."""
    row = attempt.row
    return {
        "value": row.success or 0,
        "answer": _json(row.answer),
        "explanation": row.exit_reason if row.detail is None else f"{row.exit_reason}: {row.detail}",
        "metadata": {"schema_ok": row.schema_ok, "unauthorized": row.unauthorized, "timeout": row.timeout},
        "history": [],
    }


def _spec(subject: Subject) -> dict[str, Any]:
    plan, report, suite = subject.plan, subject.report, subject.card.suite
    identity = report.rows_sha256[:22]
    return {
        "eval_id": identity,
        "run_id": identity,
        "created": _time(plan.started_at),
        "task": suite.name,
        "task_id": report.manifest_sha256[:22],
        "task_version": report.manifest_sha256,
        "task_attribs": {},
        "task_args": {},
        "task_args_passed": {},
        "dataset": {
            "name": suite.name,
            "location": f"sha256:{report.manifest_sha256}",
            "samples": report.tasks,
            "sample_ids": [task.task_id for task in report.per_task],
            "shuffled": False,
        },
        "sandbox": {"type": plan.isolation, "config": None},
        "model": _model(subject),
        "model_generate_config": {},
        "model_args": {},
        "config": {
            "epochs": plan.repeats,
            "epochs_reducer": ["mean"],
            "time_limit": -int(-plan.limits.wall_clock_s // 1),
        },
        "packages": {"scoresheet": plan.versions.get("scoresheet", "unknown")},
        "metadata": {"agent": report.agent, "live_network": report.live_network, "card_sha256": report.card_sha256},
        "scorers": [{"name": SCORER, "options": {}, "metrics": [], "metadata": {}}],
    }


def _plan(subject: Subject) -> dict[str, Any]:
    return {
        "name": "agent",
        "steps": [{"solver": subject.report.agent, "params": {}, "params_passed": {}}],
        "config": {},
    }


def _model(subject: Subject) -> str:
    """As the submitter names it, else as it was seen at the door."""
    if subject.names.model is not None:
        return subject.names.model
    return "none" if subject.report.model == "none seen" else subject.report.model


def _summary(one: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    """What the list of samples shows."""
    scored = one["scores"][SCORER]
    return {
        **{
            name: one[name]
            for name in ("id", "epoch", "target", "metadata", "model_usage", "started_at", "completed_at")
        },
        "input": one["input"][:_MOST_TEXT],
        "scores": {SCORER: scored | {"answer": scored["answer"][:_MOST_TEXT]}},
        "total_time": one["total_time"],
        "working_time": one["working_time"],
        "uuid": one["uuid"],
        "limit": _ENDED_BY.get(attempt.row.exit_reason),
        "retries": attempt.row.attempt,
        "completed": True,
        "message_count": len(one["messages"]),
    }


def _about(attempt: Attempt) -> dict[str, JsonValue]:
    row = attempt.row
    return {
        "exit_reason": row.exit_reason,
        "attempt": row.attempt,
        "episode_seed": str(row.episode_seed),  # 63 bits: no number of a browser's
        "isolation": row.isolation,
        "oracle": attempt.oracle_kind,
        "tool_calls": row.tool_calls,
        "repeated_calls": row.repeated_calls,
        "recorded_latency_ms": row.recorded_latency_ms,
        "patch_sha256": row.patch_sha256,
        "calls_sha256": row.calls_sha256,
    }


def _usage(attempt: Attempt, model: str) -> dict[str, Any]:
    row = attempt.row
    if row.tokens_in is None and row.tokens_out is None:
        return {}
    inward, outward = row.tokens_in or 0, row.tokens_out or 0
    return {model: {"input_tokens": inward, "output_tokens": outward, "total_tokens": inward + outward}}


def _event(call: CallRecord, started: datetime, task_id: str, repeat: int) -> dict[str, Any]:
    at = (started + timedelta(seconds=call.at_s)).astimezone(UTC).isoformat()
    found = {
        "uuid": f"{_uuid(task_id, repeat)}-{_ref(call)}",
        "timestamp": at,
        "working_start": call.at_s,
        "event": "tool",
        "type": "function",
        "id": _ref(call),
        "function": _function(call),
        "arguments": _arguments(call),
        "result": told(call),
        "events": [],
        "completed": at,
    }
    return found | ({"error": _refused(call), "failed": True} if call.outcome != "hit" else {})


def _tool_call(call: CallRecord) -> dict[str, Any]:
    return {"id": _ref(call), "function": _function(call), "arguments": _arguments(call), "type": "function"}


def _arguments(call: CallRecord) -> dict[str, JsonValue]:
    return {"request": f"{call.method} {call.path}", **({} if call.body is None else {"body": call.body})}


def _refused(call: CallRecord) -> dict[str, str]:
    return {"type": "permission", "message": told(call)}


def _ref(call: CallRecord) -> str:
    return f"call-{call.seq}"


def _function(call: CallRecord) -> str:
    return call.tool or call.method


def _uuid(task_id: str, repeat: int) -> str:
    return f"{task_id}-{repeat}"


def _time(stamp: str) -> str:
    return datetime.fromisoformat(stamp).astimezone(UTC).isoformat()


def _json(value: JsonValue) -> str:
    return "" if value is None else json_text(value)


def _member(path: str, value: Any) -> Member:
    return Member(path, iter([canonical.line(value)]))
