"""Blanks of a task: texts that its author was to write, and that still say REPLACE_ME. Pure."""

from collections.abc import Iterator

from scoresheet.canonical import JsonValue

BLANK = "REPLACE_ME"
_WRITTEN = ("prompt", "expected", "origin", "licence", "oracle")


def written(task: JsonValue, pointer: str = "") -> Iterator[tuple[str, str]]:
    """JSON pointer and text of what a task's author writes; recordings are left alone."""
    if isinstance(task, dict):
        for name, item in task.items():
            if pointer or name in _WRITTEN:
                yield from written(item, f"{pointer}/{name}")
    elif isinstance(task, str) and pointer:
        yield pointer, task


def begins_blank(text: str) -> bool:
    """True for a text that the template's blank begins, in any case."""
    return text.lstrip().upper().startswith(BLANK)


def blanks(task: JsonValue) -> Iterator[str]:
    """Pointers of the texts that the template's blank begins."""
    return (pointer for pointer, text in written(task) if begins_blank(text))
