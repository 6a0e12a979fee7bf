"""What was seen at the door and measured outside the sandbox → one `Row`. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scoresheet.canonical import JsonValue
from scoresheet.documents.call_record import CallRecord
from scoresheet.documents.evidence import Evidence
from scoresheet.documents.manifest import Protocol
from scoresheet.documents.prices import PriceTable
from scoresheet.documents.row import ExitReason, Mismatch, ModelUsage, Row
from scoresheet.documents.task import Task
from scoresheet.model.observed import Observation
from scoresheet.run import oracle
from scoresheet.run.plan import Episode
from scoresheet.run.verdict import Crash, Verdict
from scoresheet.sandbox.spec import Ended
from scoresheet.stats import bill

SUSPENDED_S = 1.0
"""A machine that slept longer than this during an episode has a clock that proves nothing."""
_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Left:
    """What was found in a workspace, measured when the agent was dead."""

    patch_lines: int
    patch_sha256: str
    tests: bool
    """Whether the agent saw frozen tests."""
    tests_changed: tuple[str, ...]
    tests_added: tuple[str, ...]
    touched: tuple[str, ...]
    left_out: tuple[str, ...]
    crossed: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a row is made of."""

    manifest_sha256: str
    protocol: Protocol
    on_mismatch: str
    episode: Episode
    task: Task
    schema_unchecked: tuple[str, ...]
    calls: Sequence[CallRecord]
    calls_sha256: str
    submitted: bytes | None
    ended: Ended
    evidence: Evidence
    started_at: str
    host: str
    left: Left | None = None
    """What the agent left in its workspace; `None` for a task without one."""
    graded: Verdict | Crash | None = None
    """What the tests (or the schema of an output file) said; `None` where the answer is judged, or nothing ran."""
    models: Observation | None = None
    """What passed the doors of models; `None` where there were none."""
    prices: PriceTable | None = None
    """What a model's tokens cost, where somebody said it."""
    model_sha256: str | None = None


def completed(seen: Seen) -> bool:
    """Whether the episode ended so that its work counts: by itself, within its limits, no call unrecorded."""
    return _ending(seen)[0] == "completed" and not any(call.outcome == "miss" for call in seen.calls)


def fold(seen: Seen) -> Row:
    """The row of an episode that ran.

    Nothing in it is the agent's word: calls are the door's, times and exits the sandbox's. An unrecorded call is never
    a success; under v1 it is never schema-valid either (the published rule). Where a human judges, whoever left neither
    an answer nor a patch has failed, and everything else waits.
    """
    made = [call for call in seen.calls if call.outcome in ("hit", "miss")]
    missed = [call for call in made if call.outcome == "miss"]
    errors = [error for call in made for error in call.schema_errors]
    outcome = _outcome(seen, missed=bool(missed))
    v1 = seen.protocol == "tool-replay-v1"
    left = seen.left
    return Row(
        manifest_sha256=seen.manifest_sha256,
        task_id=seen.episode.task_id,
        repeat=seen.episode.repeat,
        attempt=seen.episode.attempt,
        episode_seed=seen.episode.seed,
        success=None if outcome.success is None else int(outcome.success),
        schema_ok=int(not errors and not (v1 and missed)),
        unauthorized=int(bool(missed)),
        timeout=int(outcome.reason == "timeout"),
        exit_reason=outcome.reason,
        limit=outcome.limit,
        limit_at_s=None if outcome.limit is None else _seconds(seen.ended.limit_at_s),
        answer=outcome.answer,
        elapsed_s=round(seen.ended.elapsed_s, 6),
        cpu_s=round(seen.ended.cpu_s, 6),
        recorded_latency_ms=round(sum(call.latency_ms_recorded for call in made), 6),
        tool_calls=len(made),
        repeated_calls=sum(call.repeat for call in made),
        mismatches=tuple(
            Mismatch(
                method=call.method,
                path=call.path,
                fingerprint=call.fingerprint,
                kind=call.kind or "no_match",
                nearest=call.nearest,
            )
            for call in missed
        ),
        schema_errors=tuple(errors),
        ignored=dict(Counter(f"{call.tool or '?'} {rule}" for call in made for rule in call.ignored)),
        schema_unchecked=seen.schema_unchecked,
        patch_lines=None if left is None else left.patch_lines,
        patch_sha256=None if left is None else left.patch_sha256,
        tests_identical=None if left is None or not left.tests else int(not left.tests_changed),
        test_files_changed=None if left is None or not left.tests else len(left.tests_changed),
        tests_changed=() if left is None else left.tests_changed,
        tests_added=() if left is None else left.tests_added,
        grading_surface=() if left is None else left.touched,
        patch_left_out=() if left is None else left.left_out,
        peak_memory_bytes=seen.ended.peak_memory_bytes,
        agent_exit=seen.ended.exit_code,
        model_calls=None if seen.models is None else seen.models.calls,
        model_retries=None if seen.models is None else seen.models.retries,
        model_door_retries=None if seen.models is None else seen.models.door_retries,
        tokens_in=None if seen.models is None else seen.models.tokens_in,
        tokens_out=None if seen.models is None else seen.models.tokens_out,
        models=() if seen.models is None else seen.models.models,
        model_usage=() if seen.models is None else usages(seen.models),
        model_untold=None if seen.models is None else seen.models.untold,
        cost=None if seen.models is None or seen.prices is None else cost(seen.models, seen.prices),
        model_unrecorded=() if seen.models is None else seen.models.unrecorded,
        controls={} if seen.models is None else {each.control: each.status for each in seen.models.controls},
        violations=() if seen.models is None else tuple(map(str, seen.models.violated)),
        detail=outcome.detail,
        isolation=seen.evidence.state,
        calls_sha256=seen.calls_sha256,
        model_sha256=seen.model_sha256,
        started_at=seen.started_at,
        host=seen.host,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    reason: ExitReason
    limit: str | None
    success: bool | None
    """`None`: a human judges it."""
    answer: JsonValue
    detail: str | None


def _outcome(seen: Seen, *, missed: bool) -> _Outcome:
    """How the episode ended, and what its work is worth: nothing, unless it ended by itself."""
    reason, limit, detail = _ending(seen)
    if reason != "completed":
        return _Outcome(reason, limit, False, None, detail)
    given = oracle.answer_of(seen.ended.answer, seen.ended.answer_fault, seen.submitted, seen.ended.stdout)
    if oracle.by_work(seen.task):
        match seen.graded:
            case Verdict(success, said):
                return _Outcome(reason, limit, success and not missed, given.value, said)
            case Crash(said):
                return _Outcome("harness_error", limit, False, given.value, said)
            case None:
                return _Outcome(reason, limit, False, given.value, "not graded: calls were not recorded")
    right, given = oracle.judged(seen.task, given)
    pending = False
    if oracle.by_human(seen.task):
        right = right or (seen.left is not None and seen.left.patch_lines > 0)
        pending = right and not missed
    return _Outcome(reason, limit, None if pending else right and not missed, given.value, detail or given.fault)


def usages(models: Observation) -> tuple[ModelUsage, ...]:
    """The tokens of an episode, model by model."""
    return tuple(
        ModelUsage(
            model=spent.model,
            calls=spent.calls,
            input=spent.usage.input,
            cached=spent.usage.cached,
            cache_write=spent.usage.cache_write,
            output=spent.usage.output,
            reasoning=spent.usage.reasoning,
        )
        for spent in models.spent
    )


def cost(models: Observation, prices: PriceTable) -> str | None:
    """What they cost, exact; `None` when not all of it is known."""
    amount = bill.bill(usages(models), prices).whole
    return None if amount is None or models.untold else bill.text(amount)


def harness_error(
    manifest_sha256: str, episode: Episode, detail: str, started_at: str, host: str, elapsed_s: float
) -> Row:
    """The row of an episode that we failed to run: never scored, and rerun by `--resume`."""
    return Row(
        manifest_sha256=manifest_sha256,
        task_id=episode.task_id,
        repeat=episode.repeat,
        attempt=episode.attempt,
        episode_seed=episode.seed,
        success=0,
        schema_ok=0,
        unauthorized=0,
        timeout=0,
        exit_reason="harness_error",
        elapsed_s=round(elapsed_s, 6),
        cpu_s=0.0,
        recorded_latency_ms=0.0,
        tool_calls=0,
        repeated_calls=0,
        detail=detail[:_DETAIL],
        isolation="not_proved",
        started_at=started_at,
        host=host,
    )


def _ending(seen: Seen) -> tuple[ExitReason, str | None, str | None]:
    """Exit reason, the limit that was crossed, one sentence. What came first decides; ties go to the door."""
    ended = seen.ended
    if seen.evidence.suspended_s > SUSPENDED_S:
        return "harness_error", None, f"the machine slept for {seen.evidence.suspended_s:.0f} s during the episode"
    refusal = next((call for call in seen.calls if _ends(call, seen.on_mismatch)), None)
    if refusal is not None and (ended.limit_at_s is None or refusal.at_s <= ended.limit_at_s):
        if refusal.outcome == "capped":
            return "tool_cap", "tool_calls", None
        return "mismatch", None, None
    models = seen.models
    if models is not None and models.ending is not None and ended.limit is None:
        return models.ending, "tool_calls" if models.ending == "tool_cap" else None, _why(models)
    if ended.limit == "wall_clock":
        return "timeout", "wall_clock", None
    if ended.limit is not None:
        return "agent_error", ended.limit, f"the agent crossed the limit of {ended.limit}"
    if ended.exit_code != 0:
        if models is not None and models.gave_up is not None:
            return "model_error", None, f"its last model call failed: {models.gave_up}"[:_DETAIL]
        return "agent_error", None, _death(ended)
    if seen.left is not None and seen.left.crossed is not None:
        return "agent_error", seen.left.crossed, f"what the agent left crosses the limit of {seen.left.crossed}"
    return "completed", None, None


def _why(models: Observation) -> str:
    return "; ".join((*models.unrecorded[:1], *map(str, models.violated)))[:_DETAIL]


def _ends(call: CallRecord, on_mismatch: str) -> bool:
    return call.outcome == "capped" or (call.outcome == "miss" and on_mismatch == "stop")


def _death(ended: Ended) -> str:
    if ended.exit_code is None:
        how = f"the agent was stopped: {ended.stopped}"
    elif ended.exit_code < 0:
        how = f"the agent died of signal {-ended.exit_code}"
    else:
        how = f"the agent ended with exit {ended.exit_code}"
    last = ended.stderr[-4096:].decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
    return f"{how}: {last}"[:_DETAIL] if last else how


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
