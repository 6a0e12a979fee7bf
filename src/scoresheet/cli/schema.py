"""`scoresheet schema`: the JSON Schema of a file format, made from the model that reads it."""

import difflib
import importlib
import json

import click

FORMATS: dict[str, tuple[str, str]] = {
    "task": ("task", "Task"),
    "tool": ("tool", "Tool"),
    "manifest": ("manifest", "Manifest"),
    "protocol-card": ("protocol_card", "ProtocolCard"),
    "task-card": ("task_card", "TaskCard"),
    "receipt": ("receipt", "Receipt"),
    "chained-receipt": ("receipt", "ChainedReceipt"),
    "row": ("row", "Row"),
    "confound": ("confound", "Confound"),
    "judgment": ("judgment", "Judgment"),
    "pack-record": ("pack_record", "PackRecord"),
    "call-record": ("call_record", "CallRecord"),
    "dns-record": ("dns_record", "DnsRecord"),
    "evidence": ("evidence", "Evidence"),
    "run-plan": ("run_plan", "RunPlan"),
    "model-recording": ("model_recording", "ModelRecording"),
    "prices": ("prices", "PriceTable"),
    "report": ("report", "Report"),
    "comparison": ("comparison", "Comparison"),
    "baselines": ("baselines", "Baselines"),
    "bundle": ("bundle", "BundleIndex"),
    "check": ("check_result", "CheckResult"),
}
"""Name → module and class in `scoresheet.documents`."""


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the JSON Schema (2020-12) of the file format NAME; without NAME, list the formats.

    \b
    Example: scoresheet schema task > task.schema.json
    """
    if name is None:
        click.echo("\n".join(FORMATS))
        return
    if name not in FORMATS:
        from scoresheet.errors import Usage

        near = difflib.get_close_matches(name, FORMATS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Usage(f"no format is called {name!r}", "NAME", f"{hint}the formats are {', '.join(FORMATS)}")
    module, model = FORMATS[name]
    document = getattr(importlib.import_module(f"scoresheet.documents.{module}"), model)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | document.model_json_schema(by_alias=True)
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
