"""Where in a JSON document a byte stands. Pure, and content with text that is broken further on."""

import re

from scoresheet import json_pointer

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)
_FAR = 4 << 20
"""Bytes into a document up to which pointers are worked out; further in, the line has to do."""


def pointers(data: bytes, offsets: list[int]) -> list[str]:
    """The JSON pointer of the string that holds each offset, in order; `""` where this is not one JSON document."""
    found = [""] * len(offsets)
    if data.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] not in (b"{", b"["):
        return found
    path: list[str | int] = []
    kinds: list[bytes] = []
    is_key = False
    at = 0
    for match in _TOKEN.finditer(data):
        while at < len(offsets) and match.end() > offsets[at]:
            found[at] = json_pointer.of(path)
            at += 1
        if at == len(offsets) or match.start() > _FAR:
            break
        token = match[0]
        if token in (b"{", b"["):
            kinds.append(token)
            path.append("" if token == b"{" else 0)
            is_key = token == b"{"
        elif token in (b"}", b"]"):
            if len(kinds) < 2:
                break  # the document ends; what follows is told by its line
            kinds.pop()
            path.pop()
            is_key = False
        elif token == b",":
            if not kinds:
                break
            is_key = kinds[-1] == b"{"
            if not is_key:
                path[-1] = int(path[-1]) + 1
        elif token == b":":
            is_key = False
        elif is_key:
            path[-1] = token[1:-1].decode("utf-8", "replace")
    return found
