"""The pictures of a page: SVG, drawn by svg.py from numbers alone, so that the same rows give the same bytes. Pure.

Colours are classes of the page's style sheet: a picture is light or dark as the page is. Nothing is told by colour
alone.
"""

from collections.abc import Iterable, Sequence
from html import escape

import svg

from scoresheet.documents.comparison import ComparedPair, Comparison
from scoresheet.publish.page.model import FATES, Fate, Mark, TaskRow
from scoresheet.publish.page.visible import line

WIDTH = 440
_LEFT, _RIGHT = 12, 12
_LABELLED = 60
"""Tasks that a map names; with more of them it is folded into columns without names."""


def forest(marks: Sequence[Mark], draft: bool) -> str:
    """Every figure on the one axis of shares, with its interval, or its bound, or neither."""
    return _forest(marks, 0.0, 1.0, (0, 0.25, 0.5, 0.75, 1), "Figures with their intervals", draft)


def measured(mark: Mark, title: str, draft: bool) -> str:
    """One figure that is no share, on an axis of its own from 0."""
    top = _round_up(mark.high if mark.high is not None else mark.value)
    return _forest((mark,), 0.0, top, (0, top / 4, top / 2, top * 3 / 4, top), title, draft)


def differences(found: Comparison, draft: bool) -> str:
    """Each pair of runs: the difference, its interval, and on which side of 0 it lies."""
    pairs = found.metrics[0].pairs
    ends = [abs(end) for pair in pairs for end in (pair.difference, *(pair.ci95 or ()))]
    margin = found.tie_margin if isinstance(found.tie_margin, float | int) else 0
    top = _round_up(max([*ends, float(margin), 0.1]))
    marks = [_difference(pair) for pair in pairs]
    return _forest(marks, -top, top, (-top, -top / 2, 0, top / 2, top), "Differences", draft, band=float(margin))


def _difference(pair: ComparedPair) -> Mark:
    low, high = pair.ci95 or (None, None)
    text = f"{pair.difference:+.4f}" if pair.difference else "0.0000"
    return Mark(f"{pair.first} − {pair.second}", pair.difference, text, low, high, "interval" if pair.ci95 else "point")


def _forest(
    marks: Sequence[Mark], low: float, high: float, ticks: Iterable[float], title: str, draft: bool, band: float = 0
) -> str:
    row, top = 36, 8
    bottom = top + row * len(marks)
    parts: list[svg.Element] = []

    def x(value: float) -> float:
        return round(_LEFT + (min(max(value, low), high) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT), 2)

    if band:
        parts.append(
            svg.Rect(x=x(-band), y=top, width=round(x(band) - x(-band), 2), height=bottom - top, class_=["band"])
        )
    for tick in ticks:
        parts.append(
            svg.Line(x1=x(tick), x2=x(tick), y1=top, y2=bottom, class_=["zero" if tick == 0 and low else "grid"])
        )
        anchor = "start" if tick == low else "end" if tick == high else "middle"
        parts.append(
            _text(
                x(tick) + (-8 if anchor == "start" else 8 if anchor == "end" else 0),
                bottom + 16,
                f"{tick:g}",
                "tick",
                anchor,
            )
        )
    for index, mark in enumerate(marks):
        y = top + row * index
        middle = y + 25
        parts += [_text(_LEFT, y + 14, mark.name, "name"), _text(WIDTH - _RIGHT, y + 14, mark.text, "number", "end")]
        if mark.low is not None and mark.high is not None:
            kind = "whisker" if mark.kind == "interval" else "bound"
            a, b = x(mark.low), x(mark.high)
            parts.append(svg.Line(x1=a, x2=b, y1=middle, y2=middle, class_=[kind]))
            ends = (a, b) if mark.kind == "interval" else (b if mark.high > mark.value else a,)
            parts += [svg.Line(x1=end, x2=end, y1=middle - 5, y2=middle + 5, class_=[kind]) for end in ends]
        if mark.kind == "reference":
            parts.append(svg.Path(d=_diamond(x(mark.value), middle), class_=["reference"]))
        else:
            parts.append(svg.Circle(cx=x(mark.value), cy=middle, r=4.5, class_=["point"]))
    described = "; ".join(f"{mark.name} {mark.text}" for mark in marks)
    return _picture(title, described, bottom + 24, parts, draft)


def fates(tasks: Sequence[TaskRow], draft: bool) -> str:
    """Task × repeat: how every planned episode went, each fate a colour and a shape of its own."""
    if len(tasks) <= _LABELLED:
        return _named_map(tasks, draft)
    return _folded_map(tasks, draft)


def _named_map(tasks: Sequence[TaskRow], draft: bool) -> str:
    repeats = max((len(task.fates) for task in tasks), default=1)
    left = round(14 + 6.9 * max((min(24, len(task.task_id)) for task in tasks), default=0))
    size = min(22.0, (WIDTH - left - _RIGHT) / repeats)
    tall = max(14.0, size)
    parts: list[svg.Element] = []
    cells: dict[Fate, list[str]] = {}
    for row, task in enumerate(tasks):
        y = 22 + row * tall
        parts.append(_text(left - 6, round(y + tall / 2 + 4, 2), _shortened(task.task_id, 24), "name", "end"))
        for column, fate in enumerate(task.fates):
            cells.setdefault(fate, []).append(_shape(fate, left + column * size, y + (tall - size) / 2, size))
    step = 1 if repeats <= 10 else 5
    for column in range(0, repeats, step):
        parts.append(_text(round(left + (column + 0.5) * size, 2), 14, str(column), "tick", "middle"))
    parts += _cells(cells)
    width = round(left + size * repeats + _RIGHT)
    return _picture("Tasks and repeats", _tally(tasks), round(22 + tall * len(tasks) + 6), parts, draft, width)


def _folded_map(tasks: Sequence[TaskRow], draft: bool) -> str:
    """Read down, then right: tasks in the order of the table."""
    repeats = max(len(task.fates) for task in tasks)
    size = 6.0
    while size > 1.5 and len(tasks) * size / max(1, int((WIDTH - 24) // (repeats * size + size))) > 420:
        size -= 0.5
    columns = max(1, int((WIDTH - 24) // (repeats * size + size)))
    per = -(-len(tasks) // columns)
    cells: dict[Fate, list[str]] = {}
    for index, task in enumerate(tasks):
        x, y = _LEFT + (index // per) * (repeats + 1) * size, 8 + (index % per) * size
        for column, fate in enumerate(task.fates):
            cells.setdefault(fate, []).append(_square(x + column * size, y, size, 0.25))
    height = round(8 + per * size + 8)
    parts = _cells(cells)
    if draft:  # the cells cover what stands behind them
        height += 18
        parts.append(_text(_LEFT, height - 5, "DRAFT: not a score", "note"))
    return _picture("Tasks and repeats", _tally(tasks), height, parts, draft)


def key() -> dict[Fate, str]:
    """Fate → its sign, for a legend."""
    return {
        fate: str(
            svg.SVG(
                viewBox=svg.ViewBoxSpec(0, 0, 18, 18),
                width=18,
                height=18,
                class_=["sign"],
                extra={"aria-hidden": "true"},
                elements=_cells({fate: [_shape(fate, 0, 0, 18)]}),
            )
        )
        for fate in FATES
    }


def exits(counts: Sequence[tuple[str, int]], planned: int, draft: bool) -> str:
    """Exit reason → episodes, every reason there is."""
    row, left = 24, 120
    parts: list[svg.Element] = []
    for index, (reason, count) in enumerate(counts):
        y = 6 + index * row
        wide = round(count / planned * (WIDTH - left - 70), 2) if planned else 0
        parts.append(_text(left - 8, y + 15, reason, "name", "end"))
        parts.append(
            svg.Rect(
                x=left, y=y + 3, width=max(wide, 1), height=row - 8, class_=["bar", "none"] if not count else ["bar"]
            )
        )
        parts.append(_text(round(left + max(wide, 1) + 6, 2), y + 15, str(count), "number"))
    described = ", ".join(f"{reason} {count}" for reason, count in counts)
    return _picture(
        "Exit reasons", f"of {planned} planned episodes: {described}", 6 + row * len(counts) + 4, parts, draft
    )


def curve(points: Sequence[tuple[int, float, float]], draft: bool) -> str:
    """pass@k and pass^k against k."""
    left, right, top, bottom = 40, WIDTH - 70, 14, 190
    last = max(k for k, _, _ in points)

    def x(k: int) -> float:
        return round(left + (k - 1) / max(1, last - 1) * (right - left), 2)

    def y(value: float) -> float:
        return round(bottom - value * (bottom - top), 2)

    parts: list[svg.Element] = []
    for tick in (0, 0.5, 1):
        parts += [
            svg.Line(x1=left, x2=right, y1=y(tick), y2=y(tick), class_=["grid"]),
            _text(left - 8, y(tick) + 4, f"{tick:g}", "tick", "end"),
        ]
    for k in sorted({1, last, *(k for k, _, _ in points if last <= 10)}):
        parts.append(_text(x(k), bottom + 18, str(k), "tick", "middle"))
    for place, name, kind in ((1, "pass@k", "at"), (2, "pass^k", "hat")):
        values = [(x(each[0]), y(each[place])) for each in points]
        path = "M" + "L".join(f"{a:g} {b:g}" for a, b in values)
        parts.append(svg.Path(class_=["curve", kind], extra={"d": path}))
        parts += [svg.Circle(cx=a, cy=b, r=3, class_=["point", kind]) for a, b in values]
        shift = -4 if place == 1 else 12
        parts.append(_text(values[-1][0] + 8, values[-1][1] + shift, name, "name"))
    described = "; ".join(f"k={k}: pass@k {at:.4f}, pass^k {hat:.4f}" for k, at, hat in points)
    return _picture("pass@k and pass^k", described, bottom + 28, parts, draft)


def ranks(found: Comparison, draft: bool) -> str:
    """Every run that may be ranked: the ranks that the data allow."""
    ranked = [run for run in found.runs if run.best_rank is not None and run.worst_rank is not None]
    row, left, top = 28, 160, 8
    bottom, last = top + row * len(ranked), max(1, len(ranked))

    def x(rank: int) -> float:
        return round(left + (rank - 1) / max(1, last - 1) * (WIDTH - left - 30), 2)

    parts: list[svg.Element] = []
    for rank in range(1, last + 1):
        parts += [
            svg.Line(x1=x(rank), x2=x(rank), y1=top, y2=bottom, class_=["grid"]),
            _text(x(rank), bottom + 16, str(rank), "tick", "middle"),
        ]
    for index, run in enumerate(ranked):
        best, worst, y = run.best_rank or 1, run.worst_rank or 1, top + row * index + row // 2
        parts.append(_text(left - 14, y + 4, f"{run.label} {_shortened(run.name, 18)}", "name", "end"))
        parts.append(svg.Line(x1=x(best), x2=x(worst), y1=y, y2=y, class_=["rank"]))
        parts += [svg.Circle(cx=x(end), cy=y, r=5, class_=["point"]) for end in sorted({best, worst})]
    described = "; ".join(f"{run.label} {run.best_rank} to {run.worst_rank}" for run in ranked)
    return _picture("Rank sets", described, bottom + 24, parts, draft)


def _picture(
    title: str, described: str, height: int, parts: Sequence[svg.Element], draft: bool, width: int = WIDTH
) -> str:
    """The whole picture; a draft says so in each."""
    size = round(min(72.0, width / 5.5), 1)
    banner = _text(width / 2, round(height / 2 + size / 3, 1), "DRAFT", "banner", "middle")
    banner.font_size = size
    name = f"{title}, DRAFT: not a score" if draft else title
    return str(
        svg.SVG(
            viewBox=svg.ViewBoxSpec(0, 0, width, height),
            width=round(width * 1.3),
            height=round(height * 1.3),
            class_=["picture"],
            elements=[banner, *parts] if draft else [*parts],
            extra={"role": "img", "aria-label": escape(line(f"{name}: {described}"[:2000]))},
        )
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> svg.Text:
    """svg.py writes text as it gets it: the only place that gives it any."""
    return svg.Text(x=x, y=y, text=escape(line(text)), class_=[kind] if anchor == "start" else [kind, anchor])


def _cells(cells: dict[Fate, list[str]]) -> list[svg.Element]:
    """One path a fate: ten thousand episodes are eight elements."""
    return [svg.Path(class_=["fate", fate], extra={"d": "".join(cells[fate])}) for fate in FATES if fate in cells]


def _square(x: float, y: float, size: float, inset: float) -> str:
    side = size - 2 * inset
    return f"M{x + inset:g} {y + inset:g}h{side:g}v{side:g}h{-side:g}z"


def _shape(fate: Fate, x: float, y: float, size: float) -> str:
    """A sign in a cell, told apart without colour."""
    inset = 1.5
    a, b, c, d = x + inset, y + inset, x + size - inset, y + size - inset
    mx, my, side = (a + c) / 2, (b + d) / 2, size - 2 * inset
    hole = side / 4
    match fate:
        case "success":
            return _square(x, y, size, inset)
        case "wrong":  # a frame
            inner = side - 2 * hole
            return _square(x, y, size, inset) + f"M{a + hole:g} {b + hole:g}v{inner:g}h{inner:g}v{-inner:g}z"
        case "unrecorded":  # a cross
            t = side / 5
            return (
                f"M{a:g} {b + t:g}L{a + t:g} {b:g}L{mx:g} {my - t:g}L{c - t:g} {b:g}L{c:g} {b + t:g}L{mx + t:g} {my:g}"
                f"L{c:g} {d - t:g}L{c - t:g} {d:g}L{mx:g} {my + t:g}L{a + t:g} {d:g}L{a:g} {d - t:g}L{mx - t:g} {my:g}z"
            )
        case "timeout":  # an hourglass
            return f"M{a:g} {b:g}H{c:g}L{a:g} {d:g}H{c:g}z"
        case "stopped":  # a bar
            return f"M{a:g} {my - side / 6:g}H{c:g}V{my + side / 6:g}H{a:g}z"
        case "error":  # a triangle
            return f"M{mx:g} {b:g}L{c:g} {d:g}H{a:g}z"
        case "pending":  # a diamond
            return _diamond_text(mx, my, side / 2)
        case "lost":  # a dot
            return _square(x, y, size, size / 2 - 1.5)


def _diamond_text(x: float, y: float, half: float) -> str:
    return f"M{x:g} {y - half:g}L{x + half:g} {y:g}L{x:g} {y + half:g}L{x - half:g} {y:g}z"


def _diamond(x: float, y: float) -> list[svg.PathData]:
    return [svg.M(x, y - 5), svg.L(x + 5, y), svg.L(x, y + 5), svg.L(x - 5, y), svg.Z()]


def _tally(tasks: Sequence[TaskRow]) -> str:
    counts = {fate: sum(task.fates.count(fate) for task in tasks) for fate in FATES}
    told = ", ".join(f"{FATES[fate]} {count}" for fate, count in counts.items() if count)
    return f"{len(tasks)} tasks: {told}. The same is in the table of tasks"


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-(most - most // 2) :]}"


def _round_up(value: float) -> float:
    """The next of 1, 2, 5 × a power of ten."""
    if value <= 0:
        return 1.0
    step = 1.0
    while step > value:
        step /= 10
    while step * 10 <= value:
        step *= 10
    return next(round(step * factor, 9) for factor in (1, 2, 2.5, 5, 10) if round(step * factor, 9) >= value)
