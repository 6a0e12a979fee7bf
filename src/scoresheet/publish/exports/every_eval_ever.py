"""Every Eval Ever 0.3: the aggregate record, and a line per episode beside it, under their path in a datastore. Pure.

Of episodes the answers and the calls go out; prompts only when the pack may travel, expected answers never.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.decisions import ShareOfRuns
from scoresheet.documents.report import metric_name
from scoresheet.errors import Usage
from scoresheet.publish.exports.subject import Attempt, Member, Subject, json_text, sheet_members

SCHEMA_VERSION = "0.3.0"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_ASKED = "asked of the agent, which is what is measured; the model it called, if any, stands in the sheet"


def build(subject: Subject) -> Iterator[Member]:
    """The samples, then the record that quotes their digest. Raises `Usage` without organization and model."""
    names = subject.names
    if names.organization is None or names.model is None:
        mend = "say who publishes it and what was measured: --organization NAME --model DEVELOPER/NAME"
        raise Usage("Every Eval Ever files a record by its publisher and its model", "--format every-eval-ever", mend)
    if not _MODEL.fullmatch(names.model) or names.model.partition("/")[0] in ("unknown", "data"):
        raise Usage("the model's name is not DEVELOPER/NAME", "--model")
    hashed = hashlib.sha256()
    path = folder(subject) + uuid(subject)
    yield Member(f"{path}_samples.jsonl", _hashing(samples(subject), hashed))
    text = json.dumps(record(subject, hashed.hexdigest()), indent=2, ensure_ascii=False, allow_nan=False)
    yield Member(f"{path}.json", iter([text.encode() + b"\n"]))


def folder(subject: Subject) -> str:
    """Where a datastore keeps it: `data/<suite>/<developer>/<model>/`."""
    suite = re.sub(r"[^A-Za-z0-9_-]+", "-", subject.card.suite.name).strip("-") or "suite"
    return f"data/{'suite-data' if suite == 'data' else suite}/{subject.names.model}/"


def uuid(subject: Subject) -> str:
    """A name in the form of a random UUID, taken from the rows: the same run has the same one anywhere."""
    digits = hashlib.sha256(f"{subject.report.rows_sha256}\0{subject.names.model}".encode()).hexdigest()
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{'89ab'[int(digits[16], 16) & 3]}{digits[17:20]}-{digits[20:32]}"
    )


def evaluation_id(subject: Subject) -> str:
    """`suite/developer/model/time`."""
    return f"{subject.card.suite.name}/{subject.names.model}/{_epoch(subject.ended_at)}"


def record(subject: Subject, samples_sha256: str) -> dict[str, Any]:
    """The aggregate record."""
    plan, report, names = subject.plan, subject.report, subject.names
    assert names.model is not None
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id(subject),
        "evaluation_timestamp": _epoch(plan.started_at),
        "retrieved_timestamp": _epoch(subject.ended_at),
        "source_metadata": {
            "source_name": "scoresheet",
            "source_type": "evaluation_run",
            "source_organization_name": names.organization,
            "evaluator_relationship": names.relationship,
            **({"additional_details": {"bundle": names.source}} if names.source is not None else {}),
        },
        "eval_library": {
            "name": "scoresheet",
            "version": plan.versions.get("scoresheet", "unknown"),
            "additional_details": sheet_members(report),
        },
        "model_info": {
            "name": names.model.partition("/")[2],
            "id": names.model,
            "developer": names.model.partition("/")[0],
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "agent": report.agent,
                "models_seen": report.model,
                "named_by": _ASKED,
            },
        },
        "evaluation_results": results(subject),
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{folder(subject)}{uuid(subject)}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": samples_sha256,
            "total_rows": report.planned,
            "additional_details": {"rows_sha256": report.rows_sha256},
        },
    }


def results(subject: Subject) -> list[dict[str, Any]]:
    """The vector: success with its interval first, then every rate, then what the decision table could compute."""
    report = subject.report
    table = report.decisions
    found = [
        _result(subject, metric_name(report.retries), report.success_mean, report.success_ci95, report.interval_method),
        _result(subject, "schema_ok_rate", report.schema_ok_rate),
        _result(subject, "unauthorized_rate", report.unauthorized_rate, lower_is_better=True),
        _result(subject, "timeout_rate", report.timeout_rate, lower_is_better=True),
    ]
    for name, of_runs in (
        ("pass_at_1_frozen_tests", table.land_a_fix.pass_at_1),
        ("tests_byte_identical_rate", table.leaves_tests_alone.byte_identical),
        ("finished_before_limits_rate", table.under_budget.finished),
    ):
        if isinstance(of_runs, ShareOfRuns):
            found.append(_result(subject, name, of_runs.share, of_runs.ci95, of_runs.interval_method))
    return found


def _result(
    subject: Subject,
    name: str,
    score: float,
    ends: tuple[float, float] | str = "",
    method: str = "",
    lower_is_better: bool = False,
) -> dict[str, Any]:
    report, plan = subject.report, subject.plan
    details: dict[str, Any] = {"score": score, "details": {"planned_episodes": str(report.planned)}}
    if not isinstance(ends, str):
        resampled = report.statistics.order_statistic is not None and name == metric_name(report.retries)
        details["uncertainty"] = {
            "confidence_interval": {"lower": ends[0], "upper": ends[1], "confidence_level": 0.95, "method": method},
            "num_samples": report.statistics.clusters,
            **({"num_bootstrap_samples": report.statistics.resamples} if resampled else {}),
        }
    elif ends:
        details["details"]["interval"] = ends
    tools = [{"name": tool} for tool in subject.card.controls.tool_allowlist]
    sandbox = {"sandbox": {"type": plan.isolation, "config": f"live_network: {report.live_network}"}}
    return {
        "evaluation_result_id": name,
        "evaluation_name": subject.card.suite.name,
        "source_data": _source(subject),
        "evaluation_timestamp": _epoch(plan.started_at),
        "metric_config": {
            "metric_id": name,
            "metric_name": name,
            "metric_kind": "pass_rate" if name == metric_name(report.retries) else "rate",
            "metric_unit": "proportion",
            "lower_is_better": lower_is_better,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
            "metric_parameters": {"repeats": plan.repeats, "retries": plan.retries, "seed": plan.seed},
        },
        "score_details": details,
        "generation_config": {
            "generation_args": {
                "temperature": subject.card.controls.temperature,
                "agentic_eval_config": {"available_tools": tools},
                "eval_limits": {"time_limit": -int(-plan.limits.wall_clock_s // 1)},
                **sandbox,
                "max_attempts": plan.retries + 1,
            },
        },
    }


def _source(subject: Subject) -> dict[str, Any]:
    suite, report = subject.card.suite, subject.report
    details = {
        "manifest_sha256": report.manifest_sha256,
        "fixture_hash": suite.fixture_hash,
        "git_sha": suite.git_sha,
        "licence": suite.license,
        "source": suite.source,
        "contamination_note": suite.contamination_note,
    }
    if subject.names.dataset is not None:
        return {
            "dataset_name": suite.name,
            "source_type": "hf_dataset",
            "hf_repo": subject.names.dataset,
            "samples_number": report.tasks,
            "sample_ids": [task.task_id for task in report.per_task],
            "additional_details": details,
        }
    return {"dataset_name": suite.name, "source_type": "other", "additional_details": details}


def samples(subject: Subject) -> Iterator[bytes]:
    """A line for each planned episode, in ASCII: some readers end a line where Unicode does."""
    for attempt in subject.counted:
        yield json.dumps(sample(subject, attempt), ensure_ascii=True, allow_nan=False).encode() + b"\n"


def sample(subject: Subject, attempt: Attempt) -> dict[str, Any]:
    """One episode, as a conversation of task, calls and answer."""
    row = attempt.row
    asked = attempt.prompt
    messages = _messages(attempt, asked)
    success = row.success or 0
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id(subject),
        "model_id": subject.names.model,
        "evaluation_name": subject.card.suite.name,
        "evaluation_result_id": metric_name(subject.report.retries),
        "sample_id": row.task_id,
        "interaction_type": "agentic",
        "input": {"raw": asked if asked is not None else _withheld(row.task_id, row.manifest_sha256), "reference": []},
        "output": None,
        "messages": messages,
        "answer_attribution": [],
        "evaluation": {
            "score": success,
            "is_correct": bool(success),
            "num_turns": len(messages),
            "tool_calls_count": row.tool_calls,
        },
        "performance": {"latency_ms": round(row.elapsed_s * 1000, 3)},
        "error": None if row.exit_reason == "completed" else f"{row.exit_reason}: {row.detail or 'no detail'}",
        "metadata": {
            "repeat": str(row.repeat),
            "attempt": str(row.attempt),
            "episode_seed": str(row.episode_seed),
            "exit_reason": row.exit_reason,
            "schema_ok": str(row.schema_ok),
            "unauthorized": str(row.unauthorized),
            "timeout": str(row.timeout),
            "isolation": row.isolation,
            "calls_sha256": row.calls_sha256 or "none",
        },
    }
    if row.answer is not None:
        found["answer_attribution"] = [
            {
                "turn_idx": len(messages) - 1,
                "source": f"messages[{len(messages) - 1}].content",
                "extracted_value": json_text(row.answer),
                "extraction_method": attempt.oracle_kind or "unknown",
                "is_terminal": True,
            }
        ]
    if row.tokens_in is not None or row.tokens_out is not None:
        inward, outward = row.tokens_in or 0, row.tokens_out or 0
        found["token_usage"] = {"input_tokens": inward, "output_tokens": outward, "total_tokens": inward + outward}
    return found


def _messages(attempt: Attempt, asked: str | None) -> list[dict[str, Any]]:
    row = attempt.row
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": asked if asked is not None else _withheld(row.task_id, row.manifest_sha256)}
    ]
    for call in attempt.calls:
        if call.outcome == "answer":
            continue
        ref = f"call-{call.seq}"
        turns.append({"role": "assistant", "content": None, "tool_calls": [_tool_call(ref, call)]})
        turns.append({"role": "tool", "content": told(call), "tool_call_id": [ref]})
    turns.append({"role": "assistant", "content": None if row.answer is None else json_text(row.answer)})
    return [{"turn_idx": index, **turn} for index, turn in enumerate(turns)]


def _tool_call(ref: str, call: CallRecord) -> dict[str, Any]:
    arguments = {"request": f"{call.method} {call.path}"}
    if call.body is not None:
        arguments["body"] = call.body if isinstance(call.body, str) else json_text(call.body)
    return {"id": ref, "name": call.tool or call.method, "arguments": arguments}


def told(call: CallRecord) -> str:
    """What a call was answered, as the door saw it."""
    if call.outcome == "hit":
        return f"recorded response, status {call.status}, {call.fingerprint}"
    return f"not answered from the recording ({call.kind or call.outcome}), status {call.status}"


def _withheld(task_id: str, manifest_sha256: str) -> str:
    return f"task {task_id} of the pack with manifest sha256 {manifest_sha256} (its text is not in this export)"


def _hashing(lines: Iterator[bytes], hashed: "hashlib._Hash") -> Iterator[bytes]:
    for each in lines:
        hashed.update(each)
        yield each


def _epoch(stamp: str) -> str:
    """Seconds since 1970 of an RFC 3339 time."""
    return str(int(datetime.fromisoformat(stamp).astimezone(UTC).timestamp()))
