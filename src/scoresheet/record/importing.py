"""Recordings that people already have, into a pack: files are read here, and the pack is written, all or nothing."""

import dataclasses
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scoresheet import canonical
from scoresheet.canonical import JsonValue
from scoresheet.documents.tool import CALL, Tool
from scoresheet.errors import Finding, Refused, Usage
from scoresheet.pack import mcp_calls
from scoresheet.record import commit, recorded, states
from scoresheet.record import tools as inference
from scoresheet.record.exchange import Exchange
from scoresheet.record.importers import volatile
from scoresheet.record.importers.formats import Format
from scoresheet.record.importers.hosts import Host, Hosts
from scoresheet.record.importers.intake import Gathered, Intake, Source
from scoresheet.record.importers.shape import MAX_BYTES
from scoresheet.record.importers.volatile import Suggestion
from scoresheet.record.plan import named
from scoresheet.record.redact import Redaction, Replacement, redact

_SHOWN = 10
_MAX_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Where an import goes, and what is taken."""

    pack: Path
    task_id: str
    prompt: str = ""
    """Empty takes it from the files, when they say what was asked."""
    expected: Mapping[str, JsonValue] = field(default_factory=dict)
    hosts: tuple[Host, ...] = ()
    """The only hosts that are taken; none takes every host."""
    ignore: tuple[str, ...] = ()
    """Members that stop counting in every request that has them: `/json/nonce`."""
    not_secret: tuple[str, ...] = ()
    replace: bool = False
    strict: bool = False
    """Refuse the import when an entry can't be carried over."""
    states: bool = False
    """Write down the states that the calls went through, where the files tell of none."""


@dataclass(frozen=True, slots=True)
class Import:
    """What was imported as one task, and what was not."""

    task_id: str
    calls: int
    tools: tuple[str, ...]
    upstreams: Mapping[str, str]
    left_out: tuple[Finding, ...]
    changed: tuple[tuple[str, int], ...]
    redactions: tuple[Replacement, ...]
    ignored: tuple[str, ...]
    dropped_headers: tuple[tuple[str, int], ...]
    suggestions: tuple[Suggestion, ...]
    warnings: tuple[Finding, ...]
    files: tuple[str, ...]
    """Files of the pack that changed."""
    scenarios: Mapping[str, JsonValue]
    """Scenario → its states, of the task."""

    def as_json(self) -> dict[str, JsonValue]:
        """The facts for `--json`."""
        return {
            "task_id": self.task_id,
            "calls": self.calls,
            "tools": list(self.tools),
            "upstreams": dict(self.upstreams),
            "left_out": [
                {"rule": each.rule, "where": each.where, "what": each.what, "mend": each.mend} for each in self.left_out
            ],
            "changed": dict(self.changed),
            "redactions": [each.as_json() for each in self.redactions],
            "ignored": list(self.ignored),
            "dropped_headers": dict(self.dropped_headers),
            "suggestions": [
                {
                    "rule": each.rule,
                    "request": each.request,
                    "differing": each.differing,
                    "compared": each.compared,
                    "look": each.look,
                }
                for each in self.suggestions
            ],
            "warnings": [str(warning) for warning in self.warnings],
            "files": list(self.files),
            **({"scenarios": dict(self.scenarios)} if self.scenarios else {}),
        }


def bring_in(kind: Format, sources: Sequence[Source], settings: Settings, compared: Sequence[Source] = ()) -> Import:
    """Put the recordings in `sources`, in their order, into the pack as one task.

    `compared` are other recordings of the same work: they only tell which members are volatile. Raises
    `ScoresheetError` when nothing is left to import or it may not be written; the pack is then as it was.
    """
    named(settings.task_id)
    if settings.pack.exists() and not settings.pack.is_dir():
        raise Usage("the pack is not a directory", str(settings.pack), "give --out PACK, a folder or a new name")
    gathered = _gathered(kind, sources, settings)
    others = [_gathered(kind, [source], settings) for source in compared]
    prompt = settings.prompt or gathered.prompt
    if not prompt:
        raise Usage("the files do not say what the agent was asked", "import", "give it by --prompt")
    places, sent, redaction, left_out = _redacted(gathered, settings)
    _nothing_secret(prompt, settings.expected, gathered.tools, redaction, settings.task_id)
    if not sent:
        raise _nothing(left_out)
    wanted = [finding for finding in left_out if finding.rule != "import-other-host"]  # those were not asked for
    if settings.strict and wanted:
        raise Refused("entries were left out, and --strict was asked for", _few(wanted), settings.task_id)
    redaction = _with_ignored(redaction, settings.ignore)
    with commit.locked(settings.pack):
        files = commit.read(settings.pack)
        offered = _offered(gathered, files, sent)
        draft = recorded.Draft(
            settings.task_id,
            prompt,
            settings.expected,
            sent,
            redaction,
            gathered.hosts,
            offered,
            with_states=settings.states,
            told=_told(gathered, places),
        )
        changes = recorded.add(draft, files, settings.replace)
        commit.write(settings.pack, changes.files)
    suggestions = volatile.suggest(sent, [other.exchanges for other in others])
    return Import(
        settings.task_id,
        len(sent),
        changes.tools,
        gathered.hosts,
        left_out,
        gathered.changed,
        redaction.replaced,
        tuple(dict.fromkeys(rule for _, rule in redaction.ignored)),
        redaction.dropped_headers,
        tuple(each for each in suggestions if each.rule not in settings.ignore),
        (*changes.findings, *_warnings(settings, gathered, sent, others, compared)),
        tuple(sorted(changes.files)),
        changes.scenarios,
    )


def sources(kind: Format, paths: Sequence[Path]) -> tuple[Source, ...]:
    """The files, and those of a kind in folders, by name. Raises `Usage`."""
    found: list[Source] = []
    for path in paths:
        if os.path.isdir(path):
            inside = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in kind.suffixes]
            own = [each for each in inside if each.is_file() and (kind.beside not in each.parts or not kind.beside)]
            if not own:
                suffixes = " or ".join(kind.suffixes)
                mend = "name the file itself, or see that FORMAT is the right one"
                raise Usage(f"the folder holds no file that ends in {suffixes}", str(path), mend)
            if len(own) > _MAX_FILES:
                raise Usage(f"the folder holds more than {_MAX_FILES} files", str(path), "import it part by part")
            roots = {each: _root(each, kind) for each in own}
            beside = {root: _beside(root, kind) for root in set(roots.values())}
            found += [
                Source(each.relative_to(path).as_posix(), _bytes(each), beside[root]) for each, root in roots.items()
            ]
        else:
            found.append(Source(path.name, _bytes(path), _beside(_root(path, kind), kind)))
    return tuple(found)


def _root(path: Path, kind: Format) -> Path:
    """The folder that holds what a file refers to: that of the file, or one of the two above (`mappings/`)."""
    if kind.beside:
        for folder in list(path.absolute().parents)[:3]:
            if (folder / kind.beside).is_dir():
                return folder
    return path.parent


def _beside(folder: Path, kind: Format) -> dict[str, bytes]:
    if not kind.beside or not (folder / kind.beside).is_dir():
        return {}
    root = folder / kind.beside
    return {
        each.relative_to(root).as_posix(): _bytes(each)
        for each in sorted(root.rglob("*"))[:_MAX_FILES]
        if each.is_file() and not each.is_symlink()
    }


def _bytes(path: Path) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Usage("not a regular file", str(path), "save the recording to a file")
        if found.st_size > MAX_BYTES:
            mend = "split the recording: one task needs only its own calls"
            raise Usage(f"the file has more than {MAX_BYTES >> 20} MiB", str(path), mend)
        return path.read_bytes()
    except OSError as error:
        raise Usage(f"the file can't be read: {error.strerror}", str(path)) from error


def _gathered(kind: Format, files: Sequence[Source], settings: Settings) -> Gathered:
    intake = Intake(Hosts(settings.hosts))
    kind.take(files, intake)
    return intake.gathered()


def _told(gathered: Gathered, places: Sequence[str]) -> states.States | None:
    """The states that the files tell of the exchanges that stood at `places`; `None` when they tell of none."""
    if not gathered.states:
        return None
    return states.told([gathered.states.get(place) for place in places], gathered.first_state)


def _redacted(
    gathered: Gathered, settings: Settings
) -> tuple[tuple[str, ...], tuple[Exchange, ...], Redaction, tuple[Finding, ...]]:
    """Places and exchanges without credentials; those from which one can't be taken out are left out, and said so."""
    left_out = list(gathered.left_out)
    kept = list(zip(gathered.places, gathered.exchanges, strict=True))
    known = gathered.secrets
    while True:
        redaction = redact([exchange for _, exchange in kept], settings.not_secret, known)
        if not redaction.findings:
            break
        bad: set[int] = set()
        for finding in redaction.findings:
            number, _, part = finding.where.removeprefix("call ").partition(", ")
            bad.add(int(number) - 1)
            mend = "change the credential in the file to a word of your own; if it is none, say --not-secret NAME"
            left_out.append(Finding(finding.rule, f"{kept[int(number) - 1][0]}, {part}", finding.what, mend))
        known = tuple(dict.fromkeys((*known, *redaction.credentials.watched)))
        kept = [pair for place, pair in enumerate(kept) if place not in bad]
    placed = tuple(
        Replacement(_placed(each.where, [where for where, _ in kept]), each.rule, each.placeholder)
        for each in redaction.replaced
    )
    redaction = dataclasses.replace(redaction, replaced=placed)
    return tuple(where for where, _ in kept), tuple(exchange for _, exchange in kept), redaction, tuple(left_out)


def _placed(where: str, places: Sequence[str]) -> str:
    number, comma, part = where.removeprefix("call ").partition(", ")
    return f"{places[int(number) - 1]}{comma}{part}"


def _with_ignored(redaction: Redaction, rules: Sequence[str]) -> Redaction:
    """The redaction, with the members that a person wants ignored. Raises `Usage` for a rule that nothing has."""
    ignored = list(redaction.ignored)
    for rule in rules:
        places = [
            place for place, exchange in enumerate(redaction.exchanges) if volatile.applies(rule, exchange.request)
        ]
        if not places:
            mend = "write /json/<pointer>, /query/<name> or /form/<name>, of a member and not of an array's item"
            raise Usage(f"no request has {rule}", "--ignore", mend)
        ignored += [(place, rule) for place in places]
    return dataclasses.replace(redaction, ignored=tuple(dict.fromkeys(ignored)))


def _offered(gathered: Gathered, files: Mapping[str, bytes], sent: Sequence[Exchange]) -> tuple[Tool, ...]:
    """The tools that the task offers beside those inferred from HTTP: described, in the pack, or known from calls."""
    in_pack = [Tool.from_bytes(data, place) for place, data in files.items() if place.startswith("tools/")]
    tools = {tool.name: tool for tool in gathered.tools}
    called: dict[str, list[JsonValue]] = {}
    for exchange in sent:
        if exchange.request.method == CALL and not exchange.request.target.startswith(mcp_calls.PREFIX):
            called.setdefault(exchange.request.target, []).append(canonical.loads(exchange.request.body))
    own = {tool.name: tool for tool in in_pack if tool.http is None}
    for name, arguments in called.items():
        if name not in tools:
            tools[name] = own.get(name) or inference.of_calls(name, arguments)
    if not gathered.tools and any(exchange.request.method != CALL for exchange in sent):
        tools |= {tool.name: tool for tool in in_pack if tool.http is not None and not tool.inferred}
    clash = [tool.name for tool in in_pack if tool.http is not None and tool.name in called]
    if clash:
        mend = "choose another --out: one pack can't hold both"
        raise Refused(
            "a tool of that name is there, over HTTP", [Finding("import-tool", clash[0], "called by name here", mend)]
        )
    return tuple(tools.values())


def _nothing_secret(
    prompt: str, expected: Mapping[str, JsonValue], tools: Sequence[Tool], redaction: Redaction, task_id: str
) -> None:
    """Raises `Refused` when a credential stands in what is written beside the calls."""
    texts = [("prompt", prompt), ("expected", canonical.jcs(dict(expected)).decode())]
    texts += [(f"description of the tool {tool.name}", canonical.pretty(tool.as_json()).decode()) for tool in tools]
    for where, text in texts:
        if found := redaction.credentials.found(text):
            what = f"a credential ({found[0][2]}) stands in the task's {where}"
            raise Refused(what, [Finding("record-secret-in-task", task_id, what, "take it out")], task_id)


def _nothing(left_out: Sequence[Finding]) -> Refused:
    if not left_out:
        what = "the files hold no calls: nothing was imported"
        return Refused(what, [Finding("import-empty", "import", what, "give a file that holds a recording")])
    return Refused("nothing was imported", _few(left_out))


def _few(findings: Sequence[Finding]) -> list[Finding]:
    shown = list(findings[:_SHOWN])
    if len(findings) > _SHOWN:
        rest = findings[_SHOWN:]
        shown.append(Finding(rest[0].rule, rest[0].where, f"{rest[0].what}; and {len(rest) - 1} more"))
    return shown


def _warnings(
    settings: Settings,
    gathered: Gathered,
    sent: Sequence[Exchange],
    others: Sequence[Gathered],
    compared: Sequence[Source],
) -> list[Finding]:
    found = []
    if not settings.expected:
        what = "the task has no expected answer: no run can be scored by it"
        found.append(Finding("import-expected", settings.task_id, what, "give --expected", "warning"))
    for host in settings.hosts:
        if host.name not in gathered.hosts:
            what = f"the files hold no call to {host.authority}"
            found.append(Finding("import-host", host.name, what, "", "warning"))
    for other, source in zip(others, compared, strict=True):
        lonely = volatile.unpaired(sent, other.exchanges)
        if lonely:
            what = f"{lonely} requests of this recording have no counterpart: the two did not do the same work"
            found.append(Finding("import-compared", source.name, what, "", "warning"))
    return found
