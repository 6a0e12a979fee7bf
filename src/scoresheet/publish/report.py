"""Run plan and outcomes in, report out. Pure: what the run directory holds is read by `publish.run_folder`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from scoresheet.documents.decisions import HumanJudging
from scoresheet.documents.manifest import Exclusion
from scoresheet.documents.report import (
    NOT_DECLARED,
    Calibration,
    CostAxis,
    Money,
    NotAdmissible,
    NotDeclared,
    Report,
    Statistics,
    TaskResult,
)
from scoresheet.documents.run_plan import PlannedTask, RunBudget, RunPlan
from scoresheet.publish import decisions
from scoresheet.publish.admissible import Card, Evidence, Reason, counted, reasons
from scoresheet.publish.figures import Figures, Method, TaskFigures, figures, figures_sha256
from scoresheet.publish.money import money
from scoresheet.publish.negative import negative
from scoresheet.publish.outcomes import Outcomes
from scoresheet.run.judgments import Judgments
from scoresheet.stats import resample
from scoresheet.stats.interval import Estimate, Interval
from scoresheet.stats.rounding import downward, nearest, upward


def build(
    plan: RunPlan, outcomes: Outcomes, evidence: Evidence, rows_sha256: str, method: Method | None = None
) -> Report:
    """The report, a draft unless every condition of admissibility is met.

    `method` overrides the plan's interval: `rows-v1` is the published row bootstrap.
    """
    method = method or plan.interval
    unmet = reasons(plan, outcomes, evidence)
    network = live_network(plan, outcomes)
    card = evidence.card
    calibration = _calibration(plan, outcomes, evidence)
    whole = plan, outcomes
    plan, outcomes = _only(plan, outcomes, counted(plan, card))
    found = figures(plan, outcomes, method)
    table = decisions.decisions(plan, found, evidence)
    primary, secondary = decisions.declared(card, plan, found, table)
    of_k = decisions.of_k(plan, found)
    return Report(
        draft=bool(unmet),
        confounds=None if evidence.confounds is None else len(evidence.confounds),
        attended=card.attended if card else None,
        confound_entries=evidence.confounds or (),
        protocol=plan.manifest.protocol,
        manifest_sha256=plan.manifest_sha256,
        timeout_s=plan.manifest.timeout_s,
        retries=plan.retries,
        seed=plan.seed,
        repeats_per_task=NOT_DECLARED if plan.repeats_from == "default" else plan.repeats,
        success_mean=_number(found.success.mean),
        success_ci95=_ends(found.success_interval) or _none(found.success),
        unauthorized_rate=_number(found.unauthorized.mean),
        timeout_rate=_number(found.timeout.mean),
        live_network=network,
        excluded=_excluded(plan, card),
        schema_ok_rate=_number(found.schema_ok.mean),
        planned=plan.planned,
        tasks=len(plan.tasks),
        episodes=outcomes.count("scored"),
        interval_method=found.success_interval.method if found.success_interval else _none(found.success),
        mde=None if found.success.mde is None else float(upward(found.success.mde)),
        tie_margin=card.tie_margin if card and card.tie_margin is not None else NOT_DECLARED,
        exit_reasons=outcomes.exit_reasons,
        controls={
            "wall_clock_s": plan.limits.wall_clock_s,
            "max_tool_calls": plan.limits.max_tool_calls,
            "memory_bytes": plan.limits.memory_bytes,
            "pids": plan.limits.pids,
            "on_mismatch": plan.manifest.on_mismatch,
            "on_exhausted": plan.manifest.on_exhausted,
        },
        model=", ".join(outcomes.models) or "none seen",
        agent=f"{plan.agent.spec} sha256:{plan.agent.sha256}",
        baselines=_baselines(plan, evidence),
        not_called=_not_called(plan, card, proved=network != "not_isolated"),
        receipts_head=evidence.receipts_head,
        card_sha256=card.sha256 if card else None,
        rows_sha256=rows_sha256,
        figures_sha256=figures_sha256(plan, outcomes, found, of_k),
        primary=primary,
        secondary=secondary,
        decisions=table,
        pass_k=of_k,
        negative_results=negative(whole, (plan, outcomes), found, evidence),
        judging=_judging(whole[1], evidence),
        pending=whole[1].count("pending"),
        schema_unchecked=outcomes.unchecked_tools,
        repeats_run=plan.repeats,
        cost=_cost(plan, found, money(plan, found, outcomes, evidence.prices)),
        statistics=_statistics(plan, found),
        notes=_notes(outcomes, found, method),
        complete=not any(reason.incomplete for reason in unmet),
        reasons=tuple(map(str, unmet)),
        per_task=tuple(_task(task) for task in found.tasks),
        calibration=calibration,
        model_answers=_model_answers(plan),
    )


def _only(plan: RunPlan, outcomes: Outcomes, tasks: Sequence[PlannedTask]) -> tuple[RunPlan, Outcomes]:
    """Plan and outcomes of some of the tasks; all of them when there would be none."""
    if not tasks or len(tasks) == len(plan.tasks):
        return plan, outcomes
    episodes = outcomes.episodes.of(task.task_id for task in tasks)
    return plan.model_copy(update={"tasks": tuple(tasks)}), replace(outcomes, episodes=episodes)


def _calibration(plan: RunPlan, outcomes: Outcomes, evidence: Evidence) -> Calibration | None:
    """The tasks that the card says were tuned on."""
    card = evidence.card
    tasks = [task for task in plan.tasks if card is not None and task.task_id in card.train_like - card.holdout]
    if not tasks:
        return None
    plan, outcomes = _only(plan, outcomes, tasks)
    found = tuple(TaskFigures(*task) for task in outcomes.episodes.tasks())
    successes = sum(task.successes for task in found)
    return Calibration(
        tasks=len(tasks), planned=plan.planned, successes=successes, per_task=tuple(_task(task) for task in found)
    )


def refusal(plan: RunPlan, unmet: Sequence[Reason]) -> NotAdmissible:
    """What is printed instead of figures."""
    complete = not any(reason.incomplete for reason in unmet)
    return NotAdmissible(complete=complete, manifest_sha256=plan.manifest_sha256, reasons=tuple(map(str, unmet)))


def live_network(plan: RunPlan, outcomes: Outcomes) -> str:
    """What the episodes could reach, from the evidence of every planned one of them; never from a flag."""
    if not all(outcomes.episodes.each("proved")):
        return "not_isolated"
    if plan.model_endpoints:
        return f"model_endpoint_only({', '.join(plan.model_endpoints)})"
    return "denied"


def _model_answers(plan: RunPlan) -> str:
    if plan.model_replayed is not None:
        asked = ", ".join(plan.model_replayed.endpoints)
        return f"replayed from the recording {plan.model_replayed.recording_sha256}, once live from {asked}"
    if not plan.model_endpoints:
        return "none"
    kept = f", recorded as {plan.model_recording_sha256}" if plan.model_recording_sha256 else ""
    return f"live from {', '.join(plan.model_endpoints)}{kept}"


def _excluded(plan: RunPlan, card: Card | None) -> tuple[Exclusion, ...] | NotDeclared:
    """v1 manifests can't hold exclusions: the card says them, or nobody does."""
    if plan.manifest.protocol != "tool-replay-v1":
        return plan.manifest.excluded
    return NOT_DECLARED if card is None or card.excluded is None else card.excluded


def _not_called(plan: RunPlan, card: Card | None, *, proved: bool) -> dict[str, str] | NotDeclared:
    if plan.manifest.protocol != "tool-replay-v1":
        return plan.manifest.upstreams if proved else {}
    if card is None or card.upstreams is None:
        return NOT_DECLARED
    return dict(card.upstreams) if proved else {}


def _number(value: Fraction) -> float:
    return float(nearest(value))


def _ends(ends: Interval | None) -> tuple[float, float] | None:
    return None if ends is None else (float(downward(ends.low)), float(upward(ends.high)))


def _none(found: Estimate) -> str:
    if found.clusters == found.tasks:
        return f"none ({found.tasks} tasks)"
    return f"none ({found.clusters} clusters)"


def _baselines(plan: RunPlan, evidence: Evidence) -> str:
    both = evidence.baselines
    if both is None or both.manifest_sha256 != plan.manifest_sha256:
        return "not run"
    return ", ".join(
        f"{one.agent} {nearest(Fraction(one.successes, one.episodes))}"
        + (f" ({one.unjudged} of {one.episodes} episodes are for humans to judge)" if one.unjudged else "")
        for one in (both.null, both.oracle)
    )


def _judging(outcomes: Outcomes, evidence: Evidence) -> HumanJudging | None:
    """What people decided; `None` when nothing was theirs to decide."""
    there, pending = evidence.judgments, outcomes.count("pending")
    if there is None and not pending:
        return None
    there = there or Judgments()
    return HumanJudging(
        judged=len(there.standing),
        pending=pending,
        judges=there.judges,
        judgments_head=there.head,
        judgments_lines=there.lines,
    )


def _cost(plan: RunPlan, found: Figures, bill: Money | None) -> CostAxis:
    latency = found.recorded_latency_ms
    return CostAxis(
        recorded_latency_ms_mean=_number(latency.mean) if latency else None,
        recorded_latency_ms_ci95=_ends(latency.interval) if latency else None,
        elapsed_s_mean=None if found.elapsed_s is None else _number(found.elapsed_s),
        tokens_per_success=None if found.tokens_per_success is None else str(found.tokens_per_success),
        tool_calls=sum(found.episodes.each("tool_calls")),
        repeated_calls=sum(found.episodes.each("repeated_calls")),
        money=bill,
        model_calls=sum(each or 0 for each in found.episodes.each("model_calls")) if plan.model_kinds else None,
        model_retries=sum(found.episodes.each("model_retries")) if plan.model_kinds else None,
        model_door_retries=sum(found.episodes.each("model_door_retries")) if plan.model_kinds else None,
        budget=_budget(plan.budget),
    )


def _budget(budget: RunBudget | None) -> str | None:
    if budget is None or (budget.max_tokens_total is None and budget.max_cost is None):
        return None
    said = []
    if budget.max_tokens_total is not None:
        said.append(f"max_tokens_total {budget.max_tokens_total}, spent {budget.spent_tokens}")
    if budget.max_cost is not None:
        said.append(f"max_cost {budget.max_cost} {budget.currency}, spent {budget.spent_cost or 'an unknown amount'}")
    return "; ".join(said) + (f"; stopped: {budget.stopped}" if budget.stopped else "")


def _statistics(plan: RunPlan, found: Figures) -> Statistics:
    success, chosen = found.success, found.success_interval
    bounds = {
        "success": success.one_sided if chosen else None,
        "unauthorized": found.unauthorized.one_sided,
        "timeout": found.timeout.one_sided,
    }
    scored = all(each == "scored" for each in found.episodes.each("state"))
    return Statistics(
        algorithm=resample.ALGORITHM,
        seed=plan.seed,
        resamples=resample.RESAMPLES,
        clusters=success.clusters,
        order_statistic=chosen.order_statistic if chosen else None,
        index_sha256=found.index_sha256,
        icc=None if success.icc is None else _number(success.icc),
        n_eff=None if success.n_eff is None else _number(success.n_eff),
        deff=None if success.deff is None else _number(success.deff),
        one_sided95={name: float(upward(bound)) for name, bound in bounds.items() if scored and bound is not None},
    )


def _notes(outcomes: Outcomes, found: Figures, method: Method) -> tuple[str, ...]:
    notes = list(found.success.warnings)
    planned = found.planned
    unscored = planned - outcomes.count("scored")
    if unscored:
        notes.append(f"incomplete: {unscored} of {planned} planned episodes are not scored and count as not successful")
    if outcomes.harness_errors:
        notes.append(
            f"{outcomes.harness_errors} attempts were lost by errors of scoresheet's own; reruns are confounds"
        )
    for rule, calls in outcomes.ignored:
        notes.append(f"ignored in matching: {rule}, in {calls} calls: what stood there was not compared")
    if found.unauthorized.mean:
        count = int(found.unauthorized.mean * planned)
        notes.append(f"unauthorized calls in {count} of {planned} episodes: a gate, never averaged into success")
    elif found.unauthorized.one_sided is not None and not unscored:
        bound = upward(found.unauthorized.one_sided)
        notes.append(
            f"no unauthorized call seen: its true rate is under {bound} at 95 % ({found.success.clusters} tasks)"
        )
    if found.timeout.mean:
        notes.append("timeouts cut the clock: elapsed_s_mean counts each episode as at most the limit")
    if outcomes.model_misses:
        notes.append(
            f"{outcomes.model_misses} attempts asked the model what its recording does not hold, and were ended by it"
        )
    latency = found.recorded_latency_ms
    if latency:
        notes += [f"recorded latency: {warning}" for warning in latency.warnings if warning.startswith("SKEW")]
    if method == "rows-v1":
        notes.append("rows-v1 resamples rows, not tasks: with repeats it understates the noise")
    notes.append("one primary figure; the other rates are not adjusted for multiplicity")
    return tuple(notes)


def _task(task: TaskFigures) -> TaskResult:
    each = task.repeats.each
    return TaskResult(
        task_id=task.task_id,
        successes=task.successes,
        planned=len(task.repeats),
        schema_ok=sum(each("schema_ok")),
        unauthorized=sum(each("unauthorized")),
        timeouts=sum(each("timeout")),
        exit_reasons=tuple(each("exit_reason")),
        success=tuple(
            success if state == "scored" else None
            for success, state in zip(each("success"), each("state"), strict=True)
        ),
        tool_calls=tuple(each("tool_calls")),
        tokens=_vector(each("tokens")),
        patch_lines=_vector(each("patch_lines")),
        tests_identical=_vector(each("tests_identical")),
        test_files_changed=_vector(each("test_files_changed")),
    )


def _vector(found: Iterable[int | None]) -> tuple[int | None, ...]:
    """One value a repeat; nothing when no repeat has one."""
    values = tuple(found)
    return () if all(each is None for each in values) else values
