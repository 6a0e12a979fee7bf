"""Pages by cursor: each page says where the next one starts, so that new rows shift nothing."""

import base64
import json


def encode(position):
    """A position as an opaque word for URLs, without padding."""
    text = json.dumps(position, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor):
    """The position that `encode` was given. Raises ValueError for any other word."""
    padded = cursor + "=" * (-len(cursor) % 4)
    return json.loads(base64.urlsafe_b64decode(padded))


def after(rows, size, cursor=None):
    """(rows of a page, cursor of the next one or None); rows are sorted by `key`, and by `id` where keys are equal."""
    ordered = sorted(rows, key=lambda row: (row["key"], row["id"]))
    if cursor is not None:
        position = tuple(decode(cursor))
        ordered = [row for row in ordered if (row["key"], row["id"]) > position]
    found = ordered[:size]
    more = len(ordered) > size
    return found, encode([found[-1]["key"], found[-1]["id"]]) if more else None
