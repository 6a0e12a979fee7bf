"""A complete protocol card as a value, for tests that say only what they are about."""

from collections.abc import Iterable
from typing import Any


def controls(**more: Any) -> dict[str, Any]:
    """What a card holds fixed, and what a test says otherwise."""
    return {
        "runtime": "linux",
        "lockfile": "none",
        "tool_allowlist": ["get_item"],
        "test_command": "none",
        "wall_clock_s": 30,
        "max_tool_calls": 40,
        "temperature": 0.0,
        "seed": 20260922,
        "human_intervention": "none",
        "parallel_jobs": 2,
        "network": "denied",
        **more,
    }


def card(task_ids: Iterable[str], fixture_sha256: str, **more: Any) -> dict[str, Any]:
    """A card whose tasks are all held out; `more` are controls."""
    ids = list(task_ids)
    return {
        "schema": "agent-eval-protocol/v1",
        "suite": {
            "name": "shop",
            "git_sha": "59d430a9506458e4b8a45fa6426d376dcf3eec17",
            "fixture_hash": f"sha256:{fixture_sha256}",
            "license": "Apache-2.0",
            "source": "invented",
            "contamination_note": "written for a test",
            "task_count": len(ids),
            "taxonomy": {"price": len(ids)},
            "origins": {"synthetic": list(ids)},
        },
        "dataset_split": {"train_like": [], "holdout": ids},
        "metrics": {
            "decision": "does it finish under the budget?",
            "primary": "share of runs that exit before wall_clock_s",
            "secondary": ["timeout vs tool-cap vs model error", "success_mean"],
            "headline_scalar_allowed": False,
            "tie_margin": 0.05,
        },
        "controls": controls(**more),
        "environment": {"os": "linux", "notes": "none is needed"},
        "publishing": {"negative_results": "required", "confound_log": "required"},
    }
