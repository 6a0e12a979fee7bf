"""`scoresheet doctor`: what this machine can prove, shown and not claimed, and the command that mends the rest."""

import importlib
import json
import platform
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from scoresheet.documents.evidence import Evidence

_CAN_NOT_ISOLATE = 3
_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing that a machine can or can't do."""

    name: str
    can: bool
    what: str
    mend: str = ""
    optional: bool = False


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
def command(as_json: bool) -> int:
    """Say what this machine can prove, and the one command that mends each thing that is missing.

    Isolation is tried for real: a sandbox is made, probed from inside and from outside, and each check is shown.

    \b
    Exit code: 0 when episodes can be isolated here, 3 when they can't.
    Example: scoresheet doctor
    """
    isolation, evidence = isolate()
    abilities = (isolation, memory(evidence), *others())
    if as_json:
        facts: dict[str, Any] = {
            one.name: {"can": one.can, "what": one.what, "mend": one.mend, "optional": one.optional}
            for one in abilities
        }
        facts["evidence"] = None if evidence is None else evidence.model_dump(mode="json")
        click.echo(json.dumps(facts, indent=2))
    else:
        _print(abilities, evidence)
    return 0 if isolation.can else _CAN_NOT_ISOLATE


def isolate() -> tuple[Ability, "Evidence | None"]:
    """Whether a real sandbox is proved here, and its evidence."""
    from scoresheet.errors import NotIsolated
    from scoresheet.sandbox.bwrap import BwrapSandbox
    from scoresheet.sandbox.refusal import NotProved
    from scoresheet.sandbox.spec import Door, Launch, Limits, SandboxSpec

    spec = SandboxSpec((Door("door", 8080),), Limits(wall_clock_s=20, memory_bytes=_MEMORY_BYTES))
    try:
        with BwrapSandbox() as sandbox, sandbox.open(spec) as opened:
            ended = opened.start(Launch(("/bin/sh", "-c", "exit 0"), (), b""))
            evidence = opened.evidence
    except NotProved as error:
        return Ability("isolate", False, str(error), error.mend), error.evidence
    except NotIsolated as error:
        return Ability("isolate", False, str(error), error.mend), None
    if ended.exit_code != 0 or evidence.state != "proved":
        return Ability("isolate", False, f"an episode that should end well did not: {ended.stderr!r}"), evidence
    return Ability("isolate", True, f"{evidence.bwrap}, Linux {evidence.kernel}, uid {evidence.uid}"), evidence


def memory(evidence: "Evidence | None") -> Ability:
    """Whether an episode's memory has a real bound."""
    mend = "systemd-run --user --scope scoresheet run …   (in a container: let it write to its cgroup)"
    if evidence is None or "memory_bytes" not in evidence.limits:
        return Ability("memory", False, "not known without a sandbox", optional=True)
    bound = evidence.limits["memory_bytes"]
    assert isinstance(bound, dict)
    if bound["enforced_by"] == "cgroup":
        return Ability("memory", True, "bound by a cgroup of each episode", optional=True)
    return Ability("memory", False, "bound for each process only, not for an episode as a whole", mend, optional=True)


def others() -> tuple[Ability, ...]:
    """What does not need a sandbox."""
    found = [
        Ability(
            "python",
            sys.version_info >= (3, 11),
            f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}",
            _install("python3.11", "python3.11"),
        )
    ]
    keygen = shutil.which("ssh-keygen")
    found.append(
        Ability(
            "sign", keygen is not None, keygen or "no ssh-keygen", _install("openssh-client", "openssh"), optional=True
        )
    )
    for name, module, gain, extra in (
        ("record", "scoresheet.record.proxy", "calls of live services can be recorded", ""),
        ("https", "cryptography", "recorded hosts are answered under their real https:// names", "https"),
        ("http2", "h2", "and by HTTP/2", "https"),
        ("html", "scoresheet.publish.page.render", "reports and comparisons are written as pages", "html"),
        ("numpy", "numpy", "intervals are computed faster with it", "fast"),
        ("uvloop", "uvloop", "recordings are served faster with it", "fast"),
    ):
        try:
            importlib.import_module(module)
            found.append(Ability(name, True, gain, optional=True))
        except ImportError as error:
            mend = f"pip install 'scoresheet[{extra}]'" if extra else "pip install --force-reinstall scoresheet"
            found.append(Ability(name, False, f"{error}: {gain}", mend, optional=True))
    return tuple(found)


def _install(debian: str, fedora: str) -> str:
    """The command that installs a package on this distribution."""
    if shutil.which("dnf") and not shutil.which("apt"):
        return f"dnf install {fedora}"
    return f"apt install {debian}" if shutil.which("apt") else f"apt install {debian}   (Fedora: dnf install {fedora})"


def _print(abilities: tuple[Ability, ...], evidence: "Evidence | None") -> None:
    for one in abilities:
        click.echo(f"{one.name}: {'yes' if one.can else 'no'}, {one.what}{', optional' if one.optional else ''}")
        if not one.can and one.mend:
            click.echo(f"  mend: {one.mend}")
    if evidence is None:
        return
    rows = [("check", "inside", "outside", "verdict")]
    rows += [
        (check.name, check.inside, check.control or "", check.verdict.replace("_", " ")) for check in evidence.checks
    ]
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(4)]
    click.echo("")
    for row in rows:
        cells = (cell if len(cell) <= 40 else cell[:39] + "…" for cell in row)
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    hits = f"{evidence.canary_hits_inside} from inside, {evidence.canary_hits_control} from outside"
    click.echo(f"canaries heard: {hits}")
