"""A Hugging Face evaluation result (`.eval_results/NAME.yaml` in a model's repository). Pure.

The format holds one number, so the number never goes alone: without an interval nothing is written, and the notes hold
the interval, the whole vector and the digests.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from scoresheet.documents.report import metric_name
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.publish import block
from scoresheet.publish.exports.subject import Member, Subject, sheet

NOTED = (
    "confounds", "attended", "planned", "tasks", "repeats_run", "interval_method", "unauthorized_rate", "timeout_rate",
    "schema_ok_rate", "timeout_s", "retries", "seed", "live_network", "excluded", "primary", "agent", "model",
    "baselines", "protocol", "manifest_sha256", "card_sha256", "rows_sha256", "figures_sha256",
)  # fmt: skip
"""Lines of the protocol sheet that the notes quote, beside mean and interval."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def build(subject: Subject) -> Iterator[Member]:
    """The one file. Raises `Usage` without dataset and task, `Refused` without an interval."""
    text = yaml.safe_dump([entry(subject)], sort_keys=False, allow_unicode=True, width=100)
    yield Member("", iter([text.encode()]))


def entry(subject: Subject) -> dict[str, Any]:
    """The entry as a value."""
    names, report = subject.names, subject.report
    if names.dataset is None or names.task is None:
        mend = "name the suite's dataset on the Hub, and its task: --dataset OWNER/NAME --task ID"
        raise Usage("a Hugging Face result belongs to a task of a dataset", "--format huggingface", mend)
    for option, value, form in (("--dataset", names.dataset, _NAME), ("--task", names.task, _TASK)):
        if not form.fullmatch(value):
            raise Usage(f"{block.one_line(value)!r} is no name on the Hub", option)
    if isinstance(report.success_ci95, str):
        name = metric_name(report.retries, "ci95")
        what = f"{name} is {report.success_ci95}: one number without an interval says nothing"
        mend = "an interval needs 5 tasks; the other formats hold the rows"
        raise Refused("not exported", [Finding("export-interval", "report", what, mend)])
    found: dict[str, Any] = {
        "dataset": {"id": names.dataset, "task_id": names.task},
        "value": report.success_mean,
        "date": subject.ended_at,
    }
    if names.source is not None:
        found["source"] = {"url": names.source, "name": "scoresheet bundle"}
    return found | {"notes": notes(subject)}


def notes(subject: Subject) -> str:
    """The interval, the vector and the digests, `key: value` each."""
    lines: dict[str, list[str]] = {}
    for key, value in sheet(subject.report):
        lines.setdefault(key, []).append(value)
    retries = subject.report.retries
    keys = (metric_name(retries), metric_name(retries, "ci95"), *NOTED)
    said = [f"{key}: {value}" for key in keys for value in lines.get(key, ())]
    return "; ".join([*said, "not a headline figure: read it with its interval and its rates"])
