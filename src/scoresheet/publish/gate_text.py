"""The gate's verdict as people and machines read it. Pure: a judgment in, text out."""

import json

from scoresheet.documents.check_result import CheckFinding, CheckResult, CheckTarget
from scoresheet.errors import Finding, counted
from scoresheet.gate import output
from scoresheet.publish.judgment import STATES, Judged, Judgment

_WORDS = {
    "ok": "holds",
    "baseline": "a baseline, no score",
    "draft": "a draft, no score",
    "accepted": "on the accept list",
    "refused": "refused",
}


def text(judgment: Judgment) -> str:
    """Every score and what is wrong with it, then what was looked at."""
    lines: list[str] = []
    for finding in judgment.loose:
        lines += _finding(finding)
    for score in judgment.scores:
        lines.append(f"{score.place}: {_noun(score)}: {_WORDS[score.state]}")
        for finding in score.findings:
            lines += [f"  {line}" for line in _finding(finding)]
    lines += [f"note: {note}" for note in judgment.notes]
    lines += count(judgment)
    return "".join(f"{line}\n" for line in lines)


def count(judgment: Judgment) -> tuple[str, ...]:
    """How much was looked at, and the verdict: nothing to judge is said, never silent."""
    files, scores = len(judgment.change.files), len(judgment.scores)
    if not files:
        looked = "changed files: 0: nothing changed between base and head, so nothing was judged"
    else:
        looked = f"changed files: {files}"
    states = ", ".join(
        f"{judgment.count(state)} {state}" for state in STATES if judgment.count(state) or state in ("ok", "refused")
    )
    verdict = "scores ok" if judgment.ok else f"scores refused: {counted(len(judgment.findings), 'finding')}"
    if judgment.ok and not scores:
        verdict = "no score changed"
    return looked, f"scores judged: {scores} ({states})" if scores else "scores judged: 0", verdict


def markdown(judgment: Judgment) -> str:
    """The verdict for a step summary."""
    looked, judged, verdict = count(judgment)
    lines = [f"## scoresheet gate: {verdict}", "", f"{looked}; {judged}", ""]
    lines += [
        f"- `{finding.where.replace('`', '')}`: {_plain(finding.what)} `{finding.rule}`"
        for finding in judgment.findings
    ]
    return "\n".join(lines) + "\n"


def as_json(judgment: Judgment) -> str:
    """The verdict as one JSON document."""
    value = {
        "format": "scoresheet-gate/1",
        "ok": judgment.ok,
        "base": judgment.change.base,
        "merge_base": judgment.change.merge_base,
        "head": judgment.change.head,
        "changed_files": len(judgment.change.files),
        "scores": [
            {
                "place": score.place,
                "line": score.line,
                "kind": score.kind,
                "digest": score.digest or None,
                "state": score.state,
                "findings": [_as_value(finding) for finding in score.findings],
            }
            for score in judgment.scores
        ],
        "findings": [_as_value(finding) for finding in judgment.loose],
        "notes": list(judgment.notes),
    }
    return json.dumps(value, indent=2) + "\n"


def checked(judgment: Judgment) -> CheckResult:
    """The verdict in the shape of `check`, whose forms for machines it shares: one target a score."""
    targets = [_target(score.place, score.findings) for score in judgment.scores]
    if judgment.loose:
        targets.append(_target("files that no score could be read from", judgment.loose))
    if not targets:
        targets.append(_target(f"{len(judgment.change.files)} changed files, none of them a score", ()))
    return output.result(targets)


def _target(name: str, findings: tuple[Finding, ...]) -> CheckTarget:
    return CheckTarget(target=name, kind="score", ok=not findings, findings=tuple(map(_placed, findings)))


def _placed(finding: Finding) -> CheckFinding:
    path, _, line = finding.where.rpartition(":")
    where, number = (path, int(line)) if path and line.isdigit() else (finding.where, None)
    return output.finding(finding).model_copy(update={"path": where, "line": number})


def _as_value(finding: Finding) -> dict[str, str]:
    return {"rule": finding.rule, "where": finding.where, "what": finding.what, "mend": finding.mend}


def _noun(score: Judged) -> str:
    return {"rows": "rows", "report": "report", "block": "report block", "comparison": "comparison"}[score.kind]


def _finding(finding: Finding) -> list[str]:
    lines = [f"{finding.severity}: {finding.what} — {finding.where} [{finding.rule}]"]
    return [*lines, f"  mend: {finding.mend}"] if finding.mend else lines


def _plain(said: str) -> str:
    return said.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "'")
