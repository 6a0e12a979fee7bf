"""What a signer states of a bundle, for other tools: in-toto Statements v1 in DSSE envelopes. Pure but for the curve.

Three statements of one subject, the bundle's index: our own receipt, a test result, a summary of what was verified.
They hold no time but the run's, so that the same key and run give the same bytes.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.bundle import INDEX
from scoresheet.documents.report import Report, metric_name
from scoresheet.documents.run_plan import RunPlan
from scoresheet.errors import Malformed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HOME = "https://github.com/scoresheet/scoresheet"
STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD = "application/vnd.in-toto+json"
RECEIPT = f"{HOME}/agent-eval-receipt/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SVR = "https://in-toto.io/attestation/svr/v0.2"


def statements(bundle_sha256: str, plan: RunPlan, report: Report) -> dict[str, bytes]:
    """Name of the envelope → the statement in it, in canonical JSON."""
    subject: JsonValue = [{"name": INDEX, "digest": {"sha256": bundle_sha256}}]
    predicates = {
        "receipt.dsse.json": (RECEIPT, _receipt(plan, report)),
        "svr.dsse.json": (SVR, _svr(plan, report)),
        "test-result.dsse.json": (TEST_RESULT, _test_result(report)),
    }
    return {
        name: canonical.jcs({"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate})
        for name, (kind, predicate) in predicates.items()
    }


def pae(payload_type: str, payload: bytes) -> bytes:
    """What a DSSE signature signs (DSSE 1.0.2, PAE)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(statement: bytes, key: "Ed25519PrivateKey", keyid: str) -> bytes:
    """The envelope of a statement."""
    signature = key.sign(pae(PAYLOAD, statement))
    envelope: JsonValue = {
        "payload": base64.b64encode(statement).decode(),
        "payloadType": PAYLOAD,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
    }
    return canonical.line(envelope)


def opened(envelope: bytes, public: bytes, where: str) -> bytes:
    """The statement that an envelope holds, signed by the ed25519 key of those 32 bytes.

    Raises `Malformed` when it is no envelope or another key's; `ImportError` without the extra `sign`.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        value = canonical.loads(envelope)
    except canonical.JsonError as error:
        raise Malformed(f"no DSSE envelope: {error.what}", where) from error
    members = canonical.as_object(value)
    payload, signatures = _decoded(members.get("payload"), where), members.get("signatures")
    if members.get("payloadType") != PAYLOAD or not isinstance(signatures, list):
        raise Malformed("no DSSE envelope of an in-toto statement", where)
    key = Ed25519PublicKey.from_public_bytes(public)
    for each in signatures:  # a key id decides nothing
        signature = each.get("sig") if isinstance(each, dict) else None
        try:
            key.verify(_decoded(signature, where), pae(PAYLOAD, payload))
        except InvalidSignature:
            continue
        return payload
    raise Malformed("not signed by the key that signed bundle.json", where)


def _decoded(text: JsonValue, where: str) -> bytes:
    """Standard or URL-safe base64, as DSSE lets both be."""
    if not isinstance(text, str):
        raise Malformed("no DSSE envelope", where)
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed("its base64 can't be read", where) from error


def _receipt(plan: RunPlan, report: Report) -> JsonValue:
    """The figures and the digests that they rest on. Decimal numbers are text: no reader rounds them."""
    ends = report.success_ci95
    figures: Mapping[str, JsonValue] = {
        metric_name(report.retries): f"{report.success_mean:.4f}",
        metric_name(report.retries, "ci95"): ends if isinstance(ends, str) else [f"{end:.4f}" for end in ends],
        "unauthorized_rate": f"{report.unauthorized_rate:.4f}",
        "timeout_rate": f"{report.timeout_rate:.4f}",
        "schema_ok_rate": f"{report.schema_ok_rate:.4f}",
    }
    return {
        "admissible": not report.draft,
        "manifest_sha256": report.manifest_sha256,
        "card_sha256": report.card_sha256,
        "rows_sha256": report.rows_sha256,
        "figures_sha256": report.figures_sha256,
        "receipts_head": report.receipts_head,
        "agent_sha256": plan.agent.sha256,
        "runner_seat": plan.seat,
        "planned": report.planned,
        "tasks": report.tasks,
        "live_network": report.live_network,
        "figures": dict(figures),
    }


def _test_result(report: Report) -> JsonValue:
    """PASSED: every repeat of every task succeeded. WARNED: some did not. FAILED: the report is no score."""
    always = [task.task_id for task in report.per_task if task.successes == task.planned]
    never = [task.task_id for task in report.per_task if task.successes == 0]
    sometimes = [task.task_id for task in report.per_task if 0 < task.successes < task.planned]
    result = "FAILED" if report.draft else "WARNED" if never or sometimes else "PASSED"
    configuration: list[JsonValue] = [{"name": "manifest.json", "digest": {"sha256": report.manifest_sha256}}]
    if report.card_sha256 is not None:
        configuration.append({"name": "card.yaml", "digest": {"sha256": report.card_sha256}})
    return {
        "result": result,
        "configuration": configuration,
        "passedTests": [*always],
        "warnedTests": [*sometimes],
        "failedTests": [*never],
    }


def _svr(plan: RunPlan, report: Report) -> JsonValue:
    holds = {
        "SCORESHEET_ADMISSIBLE": not report.draft,
        "SCORESHEET_COMPLETE": report.complete,
        "SCORESHEET_ISOLATION_PROVED": report.live_network != "not_isolated",
    }
    return {
        "verifier": {"id": HOME, "policies": []},
        "timeCreated": plan.ended_at or plan.started_at,
        "properties": [name for name, is_so in holds.items() if is_so],
    }
