"""Pages that were made, kept while what they were made of is what it was. Bounded; safe for several threads."""

import threading
from collections import OrderedDict

MOST = 64 << 20
"""Characters that are kept of all pages together."""


class Pages:
    """Key → a page and the stamp of what it was made of. The one that was asked for least lately goes first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held = 0
        self._pages: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, stamp: bytes) -> str | None:
        """The page of that key, when it was made of just this."""
        with self._lock:
            found = self._pages.get(key)
            if found is None or found[0] != stamp:
                return None
            self._pages.move_to_end(key)
            return found[1]

    def put(self, key: str, stamp: bytes, page: str) -> None:
        """Keep a page, in the place of an older one; not one that is larger than all that may be kept."""
        with self._lock:
            before = self._pages.pop(key, None)
            self._held -= 0 if before is None else len(before[1])
            if len(page) > self._most:
                return
            self._held += len(page)
            self._pages[key] = (stamp, page)
            while self._held > self._most:
                _, (_, gone) = self._pages.popitem(last=False)
                self._held -= len(gone)
