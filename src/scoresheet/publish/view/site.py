"""What is answered to which address: a table of pages, read from runs by their keys. No address names a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from scoresheet.documents.comparison import Comparison
from scoresheet.errors import Refused
from scoresheet.publish.page import listing, render
from scoresheet.publish.page.folder import Closed, Open
from scoresheet.publish.page.listing import Question
from scoresheet.publish.page.render import Link
from scoresheet.publish.view import stamp as stamps
from scoresheet.publish.view.runs import NotCompared, Runs, Seen, Unreadable, told

_LONGEST = 8192
_MOST_FIELDS = 256
Query = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, and the page."""

    status: int
    pieces: Iterator[str]


def answer(runs: Runs, target: str) -> Answer:
    """The page at `target`, the address behind the site's own path: nothing, `run/r1`, `compare?run=r1&run=r2`."""
    if len(target) > _LONGEST:
        return _nothing("The address is too long", 414)
    try:
        parts = urlsplit(f"/{target}")  # which takes `//[` for the beginning of a host
        query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, encoding="utf-8")
    except ValueError:
        return _nothing("The address asks too much", 400)
    page, slash, key = parts.path[1:].partition("/")
    found = _PAGES.get(page) if (page == "run") == bool(slash) else None
    return found(runs, key, query) if found is not None else _nothing("There is no such page")


def _list(runs: Runs, _: str, query: Query) -> Answer:
    all_runs, question = runs.listed(), Question.of(query)
    return Answer(200, render.runs(listing.chosen(all_runs, question), question, all_runs))


def _run(runs: Runs, key: str, _: Query) -> Answer:
    seen = runs.seen(key)
    if seen is None:
        return _nothing("There is no such run")
    links = (Link("All runs", "../"),)
    match seen.found:
        case Unreadable(name, why):
            return Answer(503, render.refused(f"{name} can't be read", why, links))
        case Closed():
            return Answer(200, render.closed(seen.found, links))
        case _:
            try:  # its episodes are read again while they are shown
                return Answer(200, iter((_page(runs, key, seen, seen.found, links),)))
            except (Refused, OSError) as error:
                why = (*told(error), "put back what the run wrote, and load this page again")
                return Answer(503, render.refused(f"{seen.listed.name} changed while it was read", why, links))


def _page(runs: Runs, key: str, seen: Seen, found: Open, links: Sequence[Link]) -> str:
    """The page of a run, as it was made last where nothing of what it shows has changed."""
    episodes = stamps.of_attempts(found.path, found.attempts)
    settled = episodes.settled and seen.stamp is not None and seen.stamp.settled
    stamp = episodes.digest + (b"" if seen.stamp is None else seen.stamp.digest)
    page = runs.pages.get(key, stamp) if settled else None
    if page is None:
        page = "".join(render.run(found, links))
        if settled:
            runs.pages.put(key, stamp, page)
    return page


def _compare(runs: Runs, _: str, query: Query) -> Answer:
    keys = query.get("run", ())
    each = (Link(seen.listed.name, f"run/{key}") for key in dict.fromkeys(keys) if (seen := runs.seen(key)) is not None)
    links = (Link("All runs", "./"), *each)
    found = runs.compare(keys, query.get("metric", ()))
    match found:
        case Comparison():
            return Answer(200, render.comparison(found, links))
        case NotCompared(what, reasons, fields):
            return Answer(200, render.refused(what, reasons, links, fields))


_PAGES: Mapping[str, Callable[[Runs, str, Query], Answer]] = {"": _list, "run": _run, "compare": _compare}


def _nothing(why: str, status: int = 404) -> Answer:
    return Answer(status, render.refused(why, (), ()))
