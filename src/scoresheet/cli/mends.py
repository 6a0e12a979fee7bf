"""How to mend a command line that is wrong, or a path that can't be read or written: what to type instead."""

import ast
import difflib
import errno
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from scoresheet.cli.verbs import VERBS

_SHOWN = 12
_PATH = re.compile(r"(?:File|Directory|Path) (?P<path>'.*'|\".*\") (?P<fault>does not exist|is a \w+|is not \w+)\.$")
_VERB = re.compile(r"no such command '(.*)'$")
_WANTED = {
    "pack": "a pack's folder, such as examples/packs/billing-v3",
    "bundle": "the file that `scoresheet bundle` wrote",
    "run": "the folder that `scoresheet run --out DIR` wrote",
    "runs": "the folder that `scoresheet run --out DIR` wrote, or a bundle",
}
"""Argument → what belongs there."""


def what(error: click.ClickException) -> str:
    """What is wrong, on one line, alike in every version of click."""
    if isinstance(error, click.NoSuchOption):
        return f"no such option {error.option_name!r}"
    text = " ".join(error.format_message().split()).rstrip(".")
    return text[:1].lower() + text[1:]


def of_call(error: click.ClickException, context: click.Context | None) -> str:
    """What to type instead, for an error of the command line of `context`."""
    more = f"{context.command_path if context else 'scoresheet'} --help says more"
    params = context.command.params if context else []
    match error:
        case click.NoSuchOption(option_name=name):
            known = [each for param in params if isinstance(param, click.Option) for each in param.opts]
            near = difflib.get_close_matches(name, known, 1)
            return f"did you mean {near[0]}? {more}" if near else f"its options: {_some(known)}; {more}"
        case click.MissingParameter(param=click.Parameter() as param):
            return "; ".join(filter(None, (f"give {_told(param)}", _example(context))))
        case click.BadParameter(param=click.Parameter() as param):
            return _of_path(error.message, param) or f"give {_told(param)}"
        case click.BadParameter(param_hint=str(name)) | click.BadOptionUsage(option_name=name):
            return next((f"give {_told(param)}" for param in params if name in param.opts), more)
        case _ if (found := _VERB.match(what(error))) is not None:
            near = difflib.get_close_matches(found[1], VERBS, 1)
            return (
                f"did you mean {near[0]}? scoresheet --help lists the verbs"
                if near
                else "scoresheet --help lists the verbs"
            )
        case _:
            return _example(context) or more


def of_file(error: OSError, writing: bool = False) -> str:
    """What to do about a file or folder that can't be read, or written."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else None
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR if path is not None:
            return _missing(path, writing)
        case errno.ENOENT | errno.ENOTDIR:
            return "correct the path: nothing is there"
        case errno.EINVAL:  # our own word for it, and the system's
            return "that is a pipe, a device or a name that can't be: name a regular file"
        case errno.EISDIR:
            return "that is a folder: name a file in it"
        case errno.EEXIST | errno.ENOTEMPTY:
            return "name another place, or remove what is there"
        case errno.EACCES | errno.EPERM:
            return "take a place that you may write to" if path is None else f"{_owner(path)}, or take another place"
        case errno.EROFS:
            return "nothing can be written there: take another place"
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full: free some room, or take another place"
        case errno.ENAMETOOLONG:
            return "take a shorter name"
        case errno.ELOOP:
            return "that is a link: name the file itself"
        case _:
            return "see that the file is whole and that its disk can be read"


def _missing(path: str, writing: bool = False) -> str:
    """For a path at which nothing is: its folder, or a name that is near."""
    folder = os.path.dirname(path) or "."
    if os.path.exists(folder) and not os.path.isdir(folder):
        return f"{folder} is a file, not a folder: correct the path"
    if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
        return f"{_owner(folder)}, or take another place"
    if not os.path.isdir(folder):
        make = f"make it first (mkdir -p {shlex.quote(folder)}), or " if writing else ""
        return f"there is no folder {folder}: {make}correct the path"
    try:
        near = difflib.get_close_matches(os.path.basename(path), os.listdir(folder), 1)
    except OSError:
        near = []
    if near:
        return f"did you mean {os.path.join(os.path.dirname(path), near[0])}?"
    return f"correct the path: there is no {os.path.basename(path)} in {'this folder' if folder == '.' else folder}"


def _owner(path: str) -> str:
    """Who may read or write there."""
    place = Path(path)
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    try:
        return f"{place} is {place.owner()}'s: ask for leave (chmod)"
    except (OSError, KeyError, NotImplementedError):
        return f"you have no leave at {place} (chmod)"


def _of_path(message: str, param: click.Parameter) -> str:
    """For a path that is not there, or is of the wrong kind; empty for any other fault."""
    found = _PATH.search(message)
    if found is None:
        return ""
    path, fault = str(ast.literal_eval(found["path"])), found["fault"]
    wanted = _WANTED.get(param.name or "", "")
    if fault == "does not exist":
        return f"{_missing(path)}{f'; name {wanted}' if wanted else ''}"
    if fault.startswith("is not "):
        return f"{_owner(path)}, or name another"
    return f"name {wanted or ('a folder' if fault == 'is a file' else 'a file')}"


def _told(param: click.Parameter) -> str:
    """`--seat LABEL: Who or what runs this …`, as its help says."""
    if not isinstance(param, click.Option):
        return ": ".join(filter(None, (param.human_readable_name, _WANTED.get(param.name or "", ""))))
    name = max(param.opts, key=len)
    kind = param.type
    if isinstance(kind, click.Choice):
        return f"{name} one of {', '.join(map(str, kind.choices))}"
    takes = "" if param.is_flag else f" {param.metavar or kind.name.upper()}"
    bounds = ""
    if isinstance(kind, click.IntRange | click.FloatRange):
        least = "" if kind.min is None else f" from {kind.min}"
        most = "" if kind.max is None else f" to {kind.max}"
        bounds = f" (a {'whole ' if isinstance(kind, click.IntRange) else ''}number{least}{most})"
    return f"{name}{takes}{bounds}: {(param.help or '').rstrip('.')}"


def _example(context: click.Context | None) -> str:
    """The first example of a command's help, on one line."""
    _, found, rest = ((context.command.help if context else None) or "").partition("Example:")
    lines: list[str] = []
    for line in rest.strip().split("\n") if found else []:
        lines.append(line.strip().removesuffix("\\").strip())
        if not line.rstrip().endswith("\\"):
            break
    return f"for example: {' '.join(lines)}" if lines else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
