"""A pack that is not frozen yet, read as if it were: what `serve --accept-new` replays and adds to."""

from pathlib import Path

from scoresheet import digest
from scoresheet.documents.manifest import Manifest
from scoresheet.errors import Finding, Refused
from scoresheet.pack import freezer
from scoresheet.pack.folder import Pack
from scoresheet.pack.freeze import MANIFEST


def opened(path: str | Path) -> Pack:
    """The pack in the folder `path`, with the manifest that freezing would write now; nothing is written.

    Raises `Usage` when the folder can't be read, `Refused` when the pack is frozen, when a rule forbids freezing it,
    and when only `tool-replay-v1` fits it.
    """
    root = Path(path)
    refuse_frozen(root, root / MANIFEST)
    examined = freezer.examine(root)
    manifest = examined.frozen.manifest
    if manifest is None:
        raise Refused("not a pack yet", examined.findings, str(root))
    if manifest.protocol == "tool-replay-v1":
        what = "a tool-replay-v1 task holds no readable requests: no call can be added to it"
        raise Refused(what, [Finding("pack-draft", str(root), what, "move the tasks into tasks/")], str(root))
    manifest = manifest.model_copy(update={"upstreams": dict(freezer.recorded_hosts(root))})
    return Pack(root, manifest, digest.of(manifest.text()))


def refuse_frozen(root: Path, manifest: Path | bytes) -> None:
    """Raises `Refused` when a manifest, or the file of one, pins tasks: nothing is added to what a digest names."""
    try:
        data = manifest if isinstance(manifest, bytes) else manifest.read_bytes()
    except FileNotFoundError:
        return
    if data and Manifest.from_bytes(data, MANIFEST).tasks:
        what = "the pack is frozen: a call that is added would not be what its digest names"
        mend = f"work on a copy: cp -r {root} DRAFT && rm DRAFT/{MANIFEST}; freeze it again when it is whole"
        raise Refused(what, [Finding("pack-frozen", str(root), what, mend)], str(root))
