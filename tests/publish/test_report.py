import json
from fractions import Fraction
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoresheet.documents.report import Report
from scoresheet.documents.row import Row
from scoresheet.documents.run_plan import PlannedTask, RunPlan
from scoresheet.errors import Refused
from scoresheet.publish.admissible import Evidence
from scoresheet.publish.outcomes import fold
from scoresheet.publish.report import build
from scoresheet.stats import rows_v1
from tests.publish.runs import A, B, baselines, plan, refused, row, rows

ROWS_SHA256 = "f" * 64


def report(the_plan: RunPlan, the_rows: list[Row], method=None, evidence: Evidence | None = None) -> Report:
    outcomes = fold(the_plan, the_rows)
    return build(the_plan, outcomes, evidence or Evidence(confounds=()), ROWS_SHA256, method)


def test_the_worked_example_prints_its_published_intervals():
    a, b = report(plan(), rows(A)), report(plan(), rows(B))
    assert (a.success_mean, a.success_ci95) == (0.7333, (0.4552, 0.8948))
    assert "boundary" in a.interval_method
    # the published ends are for the pack "demo-pack", whose digest the plan has
    assert (b.success_mean, b.success_ci95) == (0.5333, (0.3, 0.75))
    assert b.interval_method == "expanded percentile, xof-cluster-boot/1, B=9999, k=107"
    assert b.statistics.index_sha256 == "a83955b80977defaae4721964adbaf57470411790415f311f16be6d2acfeae11"
    assert (b.statistics.order_statistic, a.statistics.order_statistic) == (107, None)


def test_ends_are_rounded_outward():
    found = report(plan(tasks=9, repeats=3), rows((1, 2, 3, 0, 1, 2, 3, 0, 1), repeats=3))
    assert not isinstance(found.success_ci95, str)
    low, high = found.success_ci95
    exact = [Fraction(count, 3) for count in (1, 2, 3, 0, 1, 2, 3, 0, 1)]
    assert low <= sum(exact) / 9 <= high


def test_the_denominator_is_the_planned_episodes():
    found = report(plan(), rows((5,) * 12)[:-30])
    assert (found.success_mean, found.planned, found.episodes) == (0.5, 60, 30)
    assert not found.complete
    assert "incomplete: 30 of 60 planned episodes are not scored and count as not successful" in found.notes
    assert found.exit_reasons == {"completed": 30, "missing": 30}


def test_pending_and_lost_episodes_are_no_success_and_leave_the_report_incomplete():
    spoiled = [row("t11", 3, None), row("t11", 4, 0, exit_reason="harness_error")]
    found = report(plan(), [*rows((5,) * 12)[:-2], *spoiled])
    assert found.success_mean == 0.9667
    assert not found.complete


def test_the_vector_is_folded_from_the_rows():
    late = row("t11", 3, 0, timeout=1, exit_reason="timeout")
    found = report(plan(), [*rows((5,) * 12)[:-2], late, refused("t11", 4)])
    rates = (found.success_mean, found.schema_ok_rate, found.unauthorized_rate, found.timeout_rate)
    assert rates == (0.9667, 0.9833, 0.0167, 0.0167)
    assert any("unauthorized calls in 1 of 60" in note for note in found.notes)
    assert any("timeouts cut the clock" in note for note in found.notes)


def test_recorded_latency_has_an_axis_of_its_own():
    slow = [one.model_copy(update={"recorded_latency_ms": 1000.0 + one.repeat}) for one in rows(A)]
    found, usual = report(plan(), slow), report(plan(), rows(A))
    assert found.cost.recorded_latency_ms_mean == 1002.0
    assert found.cost.recorded_latency_ms_ci95 == (1002.0, 1002.0)
    assert (found.success_mean, found.success_ci95) == (usual.success_mean, usual.success_ci95)


@pytest.mark.parametrize(
    ("rows_", "endpoints", "network"),
    [
        (rows(A), (), "denied"),
        (rows(A), ("127.0.0.1:8000",), "model_endpoint_only(127.0.0.1:8000)"),
        (rows(A)[:-1], (), "not_isolated"),
        ([*rows(A)[:-1], row("t11", 4, isolation="not_proved")], (), "not_isolated"),
    ],
)
def test_the_network_is_denied_only_when_every_planned_episode_proved_it(rows_, endpoints, network):
    found = report(plan(model_endpoints=endpoints), rows_)
    assert found.live_network == network
    assert found.not_called == ({} if network == "not_isolated" else {"SHOP": "shop.example"})


def test_a_flag_proves_nothing():
    unproved = [one.model_copy(update={"isolation": "not_isolated"}) for one in rows(A)]
    assert report(plan(isolation="bwrap"), unproved).live_network == "not_isolated"


def test_what_a_v1_manifest_can_not_hold_is_not_declared():
    v1: dict[str, Any] = {"protocol": "tool-replay-v1", "excluded": (), "upstreams": {}, "repeats": None}
    found = report(plan(manifest=v1, repeats_from="default"), rows(A))
    declared = (found.repeats_per_task, found.excluded, found.not_called, found.tie_margin)
    assert declared == ("not declared",) * 4
    assert found.repeats_run == 5


def test_retries_rename_the_metric_everywhere():
    retried = plan(retries=2)
    found = report(retried, rows(A))
    document = json.loads(found.text())
    assert document["success_after_2_retries_mean"] == 0.7333
    assert document["success_after_2_retries_ci95"] == [0.4552, 0.8948]
    assert not {"success_mean", "success_ci95"} & set(document)
    assert Report.from_bytes(found.text(), "report.json") == found


@pytest.mark.parametrize("name", ["success_mean", "success_after_3_retries_mean"])
def test_a_report_that_hides_its_retries_is_refused(name):
    document = json.loads(report(plan(retries=2), rows(A)).text())
    document[name] = document.pop("success_after_2_retries_mean")
    with pytest.raises(Refused) as refusal:
        Report.from_value(document, "report.json")
    assert "its name is success_after_2_retries_mean" in refusal.value.findings[0].what


@pytest.mark.parametrize("retries", [0, 2])
def test_the_json_report_obeys_its_published_schema(retries):
    schema = jsonschema_rs.validator_for(Report.model_json_schema())
    found = report(plan(retries=retries), rows(A), evidence=Evidence(baselines=baselines(), confounds=("{}",)))
    document = json.loads(found.text())
    schema.validate(document)
    assert Report.from_bytes(found.text(), "report.json") == found
    wrong = "success_after_2_retries_mean" if retries == 0 else "success_mean"
    right = "success_mean" if retries == 0 else "success_after_2_retries_mean"
    assert not schema.is_valid({**{k: v for k, v in document.items() if k != right}, wrong: 0.5})


def test_under_five_tasks_there_is_no_interval():
    found = report(plan(tasks=4), rows((5, 5, 5, 0)))
    assert (found.success_ci95, found.mde) == ("none (4 tasks)", None)


def test_clusters_are_what_is_resampled():
    tasks = tuple(PlannedTask(task_id=f"t{i:02}", cluster_id=f"repo-{i // 4}") for i in range(12))
    found = report(plan().model_copy(update={"tasks": tasks}), rows(A))
    assert (found.success_ci95, found.statistics.clusters) == ("none (3 clusters)", 3)


def test_the_published_row_bootstrap_can_be_asked_for_and_is_labelled():
    found = report(plan(), rows(A), "rows-v1")
    flat = [int(repeat < count) for count in A for repeat in range(5)]
    _, low, high = rows_v1.bootstrap_mean(flat, 20260922)
    assert found.success_ci95 == pytest.approx((low, high), abs=1e-4)
    assert found.interval_method == rows_v1.LABEL
    assert any("understates the noise" in note for note in found.notes)
    assert report(plan(interval="rows-v1"), rows(A)) == found


def test_no_unauthorized_call_still_bounds_the_rate():
    found = report(plan(), rows(A))
    assert found.statistics.one_sided95 == {"unauthorized": 0.221, "timeout": 0.221}
    assert "no unauthorized call seen: its true rate is under 0.2210 at 95 % (12 tasks)" in found.notes


def test_tasks_never_and_sometimes_solved_are_listed():
    found = report(plan(), rows(A))
    assert found.negative_results.never_solved == ("t04",)
    assert found.negative_results.sometimes_solved == ("t02", "t03", "t07", "t09", "t11")


def test_tokens_per_success_is_the_whole_bill_over_the_successes():
    counted = [one.model_copy(update={"tokens_in": 100, "tokens_out": 20}) for one in rows(B)]
    assert str(report(plan(), counted).cost.tokens_per_success).startswith("[")
    assert report(plan(), rows(B)).cost.tokens_per_success is None
    none = [one.model_copy(update={"success": 0}) for one in counted]
    assert report(plan(), none).cost.tokens_per_success == "undefined (0 passing)"


def test_unchecked_tools_are_named():
    assert report(plan(), [*rows(A)[1:], row(schema_unchecked=("lookup",))]).schema_unchecked == ("lookup",)


def test_two_hosts_agree_on_the_figures():
    one = report(plan(), rows(A))
    elsewhere = [
        other.model_copy(update={"elapsed_s": 9.5, "cpu_s": 3.25, "host": "h2", "started_at": "2027-01-01T00:00:00Z"})
        for other in rows(A)
    ]
    Random(3).shuffle(elsewhere)
    moved = plan(started_at="2027-01-01T00:00:00Z", jobs=64, seat="rack-b")
    assert report(moved, elsewhere).figures_sha256 == one.figures_sha256


@pytest.mark.parametrize(
    "change",
    [{"success": 0}, {"schema_ok": 0}, {"exit_reason": "agent_error", "success": 0}, {"recorded_latency_ms": 41.5}],
)
def test_another_outcome_of_one_episode_is_another_digest(change):
    changed = [rows(A)[0].model_copy(update=change), *rows(A)[1:]]
    assert report(plan(), changed).figures_sha256 != report(plan(), rows(A)).figures_sha256


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_any_run_makes_a_report_that_reads_back(passed):
    found = report(plan(tasks=len(passed), repeats=3), rows(passed, repeats=3))
    assert found.draft
    assert Report.from_bytes(found.text(), "report.json") == found
    if not isinstance(found.success_ci95, str):
        assert found.success_ci95[0] <= found.success_mean <= found.success_ci95[1]
