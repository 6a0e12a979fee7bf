"""Writes pages: one self-contained HTML file each, which asks no network for anything.

A page is text in pieces, so that the details of many episodes are never held at once. All that stands in it passes
`finalize` (nothing invisible) and the templates' own escaping; scripts and styles are named by digest in the page's
content security policy, so that nothing else in it could ever run.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from scoresheet.documents.comparison import Comparison
from scoresheet.publish.page import comparing, pictures
from scoresheet.publish.page.attempts import Attempt
from scoresheet.publish.page.comparing import Unlike
from scoresheet.publish.page.folder import Closed, Open
from scoresheet.publish.page.listing import STANDINGS, Listed, Question, packs
from scoresheet.publish.page.model import FATES, total
from scoresheet.publish.page.visible import visible

_PACKAGE = "scoresheet.publish.page"


@dataclass(frozen=True, slots=True)
class Link:
    """A place to go to, for pages that are served among others."""

    text: str
    href: str


def run(opened: Open, links: Sequence[Link] = ()) -> Iterator[str]:
    """The page of a run that `folder.read` opened; `links` stand above it."""
    page = opened.page
    return _pieces(
        "run.html.jinja",
        links,
        page=page,
        draft=page.draft,
        pictures={
            "forest": Markup(pictures.forest(page.marks, page.draft)),
            "fates": Markup(pictures.fates(page.tasks, page.draft)),
            "exits": Markup(pictures.exits(page.exits, page.planned, page.draft)),
            "curve": Markup(pictures.curve(page.curve, page.draft)) if len(page.curve) > 1 else None,
            "apart": Markup(pictures.forest(page.apart.marks, page.draft)) if page.apart else None,
            "latency": Markup(pictures.measured(page.latency, "Recorded latency, ms", page.draft))
            if page.latency
            else None,
        },
        totals=total(page.tasks),
        signs={fate: Markup(sign) for fate, sign in pictures.key().items()},
        meanings=FATES,
        chunks=_chunks(opened),
        index=_data(_index(opened.attempts)),
        attempts=len(opened.attempts),
    )


def comparison(found: Comparison, links: Sequence[Link] = ()) -> Iterator[str]:
    """The page of a comparison that `publish.comparison.build` made: behind the gate of `scoresheet compare`."""
    page = comparing.page(found)
    return _pieces(
        "comparison.html.jinja",
        links,
        page=page,
        draft=found.draft,
        pictures={
            "differences": Markup(pictures.differences(found, found.draft)),
            "forest": Markup(pictures.forest(page.marks, found.draft)),
            "ranks": Markup(pictures.ranks(found, found.draft)),
        },
    )


def closed(found: Closed, links: Sequence[Link] = ()) -> Iterator[str]:
    """The page of a run whose figures may not be shown: every reason, no figure."""
    return _pieces("closed.html.jinja", links, page=found, draft=False)


def runs(listed: Sequence[Listed], question: Question, every: Sequence[Listed]) -> Iterator[str]:
    """The list of runs that are served: those that a question leaves, of every one there is."""
    return _pieces(
        "runs.html.jinja",
        (),
        forms=True,
        draft=False,
        runs=listed,
        question=question,
        every=len(every),
        standings=STANDINGS,
        packs=packs(every),
    )


def refused(
    what: str, reasons: Sequence[str], links: Sequence[Link] = (), fields: Sequence[Unlike] = ()
) -> Iterator[str]:
    """A page that says why there is no other; of runs that are not alike, field by field."""
    return _pieces("refused.html.jinja", links, draft=False, what=what, reasons=reasons, fields=fields)


def policy(*, forms: bool = False) -> str:
    """The content security policy of every page: its own style and script by digest, and nothing from anywhere."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{_sha256(_asset('page.css'))}'",
            f"script-src 'sha256-{_sha256(_asset('page.js'))}'",
            "base-uri 'none'",
            "form-action 'self'" if forms else "form-action 'none'",
        )
    )


def _pieces(template: str, links: Sequence[Link], *, forms: bool = False, **values: Any) -> Iterator[str]:
    style, script = (Markup(_asset(name)) for name in ("page.css", "page.js"))
    found = _environment().get_template(template)
    return found.generate(links=links, policy=policy(forms=forms), style=style, script=script, **values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_final,
    )


def _final(value: object) -> object:
    """What stands in a page: text with nothing invisible in it."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


@cache
def _asset(name: str) -> str:
    return files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _chunks(opened: Open) -> Iterator[Markup]:
    """The details of every task's attempts, one JSON text a task: a browser reads those that are opened."""
    for attempts in opened.attempts.tasks():
        yield _data([*opened.details(attempts)])


def _index(attempts: Iterable[Attempt]) -> dict[str, Any]:
    tasks: dict[str, int] = {}
    reasons: dict[str, int] = {}
    fates = {fate: number for number, fate in enumerate(FATES)}
    rows = [
        [
            tasks.setdefault(each.task_id, len(tasks)),
            each.repeat,
            each.attempt,
            fates[each.fate],
            reasons.setdefault(each.exit_reason, len(reasons)),
            each.tool_calls,
            each.misses,
        ]
        for each in attempts
    ]
    return {"tasks": [*tasks], "reasons": [*reasons], "fates": [*FATES], "meanings": [*FATES.values()], "rows": rows}


def _data(value: object) -> Markup:
    """JSON that can stand in a script element: no character of HTML, nothing but ASCII."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
