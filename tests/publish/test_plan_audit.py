"""What run.json and the rows say against each other, the card and the receipts: contradictions are named, no others."""

from typing import Any

import pytest

from scoresheet.documents.run_plan import Host, ReplayedModel, RunBudget, RunLimits
from scoresheet.publish import plan_audit
from scoresheet.publish.outcomes import fold
from tests.publish.runs import PACK, plan, row, rows
from tests.run.test_deviations import RECORD

HOST = Host(label="laptop-a", system="Linux", python="3.11.7", cores=2)
GOOD: dict[str, Any] = {"host": HOST, "ended_at": "2026-09-22T11:00:00Z"}
CARD: dict[str, Any] = {"controls": {"max_tool_calls": 40}, "dataset_split": {"holdout": ["t00"]}}


def told(card: Any = None, record: Any = None, **more: Any) -> list[str]:
    found = plan_audit.findings(plan(2, **GOOD | more), card, record, None, None)
    return [f"{finding.where.partition('#/')[2]}: {finding.what}" for finding in found]


def test_a_plan_that_contradicts_nothing_has_no_finding():
    assert told() == []
    assert told(seat=None, host=Host(label="somewhere", system="Linux", python="3.11.7", cores=2)) == []
    assert told(status="running", ended_at=None) == []
    assert told(status="running", resumed_at=("2026-09-22T11:30:00Z",)) == []
    models: dict[str, Any] = {"model_kinds": ("openai",), "model_endpoints": ("m.example:443",)}
    assert told(**models, budget=RunBudget()) == []
    replayed = ReplayedModel(recording_sha256=PACK, run="first", endpoints=("m.example:443",))
    assert told(model_kinds=("openai",), model_replayed=replayed) == []
    assert told(record=RECORD, pack_tasks=2, seed=1, manifest={"seed": 1}) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"retries": 1, "manifest": {"retries": 0}}, "retries: 1, but the manifest says 0"),
        ({"seed": 7}, "seed: 7, but the manifest says 20260922"),
        ({"limits": RunLimits(wall_clock_s=60)}, "limits/wall_clock_s: 60, but the manifest says 30"),
        ({"limits": RunLimits(wall_clock_s=30, max_tool_calls=9)}, "limits/max_tool_calls: 9, but the card says none"),
        ({"repeats": 6, "manifest": {"repeats": 5}}, "repeats: 6 from the manifest, which says 5"),
        ({"repeats_from": "card"}, "repeats: 5 from the card, which says nothing"),
        ({"repeats_from": "option"}, "repeats_from: option, though 5 is what is declared"),
        ({"seat": "elsewhere"}, "host/label: 'laptop-a', but the seat is 'elsewhere'"),
        ({"started_at": "yesterday"}, "started_at: not every time is an RFC 3339 time"),
        ({"ended_at": None}, "ended_at: not there, but the status is finished"),
        ({"model_kinds": ("openai",)}, "model_kinds: models without a place that answers"),
        ({"budget": RunBudget()}, "budget: a budget without a model's endpoint"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else None,
)
def test_each_contradiction_is_named(more, said):
    (found,) = told(**more)
    assert found.startswith(said)


def test_the_card_and_the_record_of_the_pack_are_compared():
    assert told(CARD) == [
        "limits/max_tool_calls: none, but the card says 40",
        "tasks: t00 is in no split, but the card says holdout",
    ]
    assert told(record=RECORD, pack_tasks=3) == [
        "manifest/seed: not what pack.json recorded of the pack",
        "pack_tasks: 3, but pack.json recorded 2",
    ]


def test_a_finished_run_has_every_row_and_another_need_not():
    some = rows()[1:]
    (found,) = plan_audit.of_outcomes(plan(), fold(plan(), some))
    assert found.what == "1 planned episodes have no row, though the run finished: rows were dropped"
    assert list(plan_audit.of_outcomes(plan(status="interrupted"), fold(plan(), some))) == []
    barred = plan(not_started=("t00",))
    assert list(plan_audit.of_outcomes(barred, fold(barred, rows()[5:]))) == []


def of_row(wall_clock_s=None, **more):
    return [*plan_audit.Clock.of(plan(**GOOD)).faults(row(**{"host": "laptop-a"} | more), wall_clock_s)]


def test_host_and_clock_of_a_row_are_the_runs():
    assert of_row() == []
    assert of_row(host="h9") == ["host 'h9' is not the run's, 'laptop-a'"]
    assert of_row(started_at="noon") == ["started_at is no RFC 3339 time"]
    assert of_row(elapsed_s=1000.0) == ["elapsed_s 1000.0 is far beyond the limit of the run"]
    late = {"exit_reason": "timeout", "timeout": 1, "limit": "wall_clock", "elapsed_s": 30.0}
    assert of_row(30.0, **late, limit_at_s=30.0) == []
    assert of_row(30.0, **late, limit_at_s=3.0) == ["limit_at_s 3.0 is before any limit"]
    assert of_row(2.0, **late, limit_at_s=3.0) == []
    assert of_row(None, **late, limit_at_s=3.0) == []  # a task may lower it, and the pack is not here


def test_a_clock_that_was_set_while_the_run_went_on_is_no_contradiction():
    clock = plan_audit.Clock.of(plan(**GOOD))
    assert clock.in_order
    assert not clock.outside(row(started_at="2026-09-22T09:59:30Z"))
    for started_at in ("2026-09-22T09:58:00Z", "2026-09-22T11:02:00Z"):
        assert clock.outside(row(started_at=started_at))
        assert of_row(started_at=started_at) == []
    back: dict[str, Any] = {"started_at": "2026-09-22T12:00:00Z"}
    assert not plan_audit.Clock.of(plan(**GOOD | back)).in_order
    assert told(**back) == []
    resumed: dict[str, Any] = {"resumed_at": ("2026-09-22T09:00:00Z",)}
    assert not plan_audit.Clock.of(plan(**GOOD | resumed)).in_order
    assert told(**resumed) == []


def test_limits_that_no_task_lowers_are_the_evidences():
    assert plan_audit.limits(plan()) == {
        "memory_bytes": None, "pids": 256, "output_bytes": 8 << 20, "work_bytes": 1 << 30,
    }  # fmt: skip


def test_receipts_are_compared_where_the_run_names_them():
    assert list(plan_audit.of_receipts(plan(receipts_sha256=None), {})) == []
    (found,) = plan_audit.of_receipts(plan(1, receipts_sha256=PACK), {})
    assert (found.where, found.what) == ("run.json#/not_started", "the receipts bar t00")
