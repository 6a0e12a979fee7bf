"""A comparison as people read it: text, Markdown, and the rows of its table. Pure.

Verdicts stand before figures of cost, and a tie is called one.
"""

from collections.abc import Iterable, Iterator

from scoresheet.documents.comparison import ComparedPair, ComparedRun, Comparison, CostRatio, FieldDifference
from scoresheet.errors import Finding
from scoresheet.publish.block import in_markdown, one_line

BANNER = "DRAFT: a run is not admissible, so nothing here is a result"


def text(found: Comparison, table: Iterable[str] | None = None) -> str:
    """The whole comparison as plain text, with a final newline; `table` stands for the lines of the task table."""
    lines = list(head(found))
    lines += ["", *(plain_table(found) if table is None else table)]
    whole = "".join(f"{line}\n" for line in lines)
    return f"{whole}\n{not_admissible(found.reasons)}" if found.reasons else whole


def head(found: Comparison) -> Iterator[str]:
    """Everything above the table of tasks."""
    if found.draft:
        yield BANNER
        yield "draft: true"
    yield f"protocol: {found.protocol}"
    yield f"manifest_sha256: {found.manifest_sha256}"
    yield f"card_sha256: {found.card_sha256 or 'none'}"
    yield f"alike: {_alike(found)}"
    primary = found.metrics[0]
    yield f"metric: {primary.metric}"
    for run in found.runs:
        yield f"run {run.label}: {one_line(_run(run))}"
        yield f"rows_sha256 {run.label}: {run.rows_sha256}"
    for pair in primary.pairs:
        yield f"{pair.first} - {pair.second}: {_pair(pair)}"
        yield f"  {checks(pair)}"
        yield f"  {pair.interval_method}"
    if len(primary.pairs) > 1:
        yield f"all pairs at once: {primary.method}"
    yield f"ranks: {ranks(found)}"
    yield f"reading: {found.reading}"
    yield f"tie_margin: {found.tie_margin}"
    for other in found.metrics[1:]:
        direction = "more" if other.higher_is_better else "fewer"
        yield f"metric: {other.metric} ({direction} is better; not adjusted for multiplicity)"
        means = (f"{run.label} {_four(mean)}" for run, mean in zip(found.runs, other.means, strict=True))
        yield f"  {', '.join(means)}"
        for pair in other.pairs:
            yield f"  {pair.first} - {pair.second}: {_pair(pair)}"
    yield from tokens(found)
    yield from cost(found)
    for note in found.notes:
        yield f"note: {one_line(note)}"


def ranks(found: Comparison) -> str:
    """Every ranked run's rank set, and whom it is tied with."""
    ties: dict[str, list[str]] = {}
    for pair in found.metrics[0].pairs:
        if pair.tie:
            ties.setdefault(pair.first, []).append(pair.second)
            ties.setdefault(pair.second, []).append(pair.first)
    said = []
    for run in found.runs:
        if run.best_rank is not None:
            tied = f" (tie with {', '.join(sorted(ties[run.label]))})" if run.label in ties else ""
            said.append(f"{run.label} {rank_set(run)}{tied}")
    return "; ".join(said)


def rank_set(run: ComparedRun) -> str:
    """`2`, or `1-3`; nothing for a baseline."""
    if run.best_rank is None:
        return ""
    return str(run.best_rank) if run.best_rank == run.worst_rank else f"{run.best_rank}-{run.worst_rank}"


def rows(found: Comparison) -> Iterator[tuple[str, ...]]:
    """The table: a row of headings, then a task a row; for two runs with the difference of their means."""
    two = len(found.runs) == 2
    yield ("task", *(run.label for run in found.runs), *(("A - B",) if two else ()))
    for task in found.per_task:
        shares = [f"{count}/{planned}" for count, planned in zip(task.successes, task.planned, strict=True)]
        gap = task.successes[0] / task.planned[0] - task.successes[-1] / task.planned[-1]
        yield (task.task_id, *shares, *((f"{gap:+.4f}" if gap else "0",) if two else ()))


def plain_table(found: Comparison) -> Iterator[str]:
    """The table in columns of blanks."""
    cells = [*rows(found)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        first, *others = (
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()


def markdown(found: Comparison) -> str:
    """A section: verdicts as a table, the whole text as a block, then the tasks."""
    parts = [f"## Comparison: {'DRAFT, not admissible' if found.draft else f'{len(found.runs)} runs'}", ""]
    parts += ["| run | agent | mean | 95 % | ranks |", "|---|---|---|---|---|"]
    for run in found.runs:
        ranked = rank_set(run) or "baseline, not ranked"
        cells = (run.label, in_markdown(run.agent), _four(run.mean), ends(run.ci95), ranked)
        parts.append(f"| {' | '.join(cells)} |")
    parts += ["", "| pair | difference | 95 % | verdict |", "|---|---|---|---|"]
    for pair in found.metrics[0].pairs:
        verdicts = (f"{pair.first} - {pair.second}", signed(pair.difference), ends(pair.ci95), verdict(pair))
        parts.append(f"| {' | '.join(verdicts)} |")
    parts += ["", f"{found.reading[0].upper()}{found.reading[1:]}.", "", "```text", *head(found), "```", ""]
    heading, *tasks = rows(found)
    parts += [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    parts += [f"| {' | '.join(row)} |" for row in tasks]
    if found.reasons:
        parts += ["", "Not admissible:", "", *(f"- {in_markdown(reason)}" for reason in found.reasons)]
    return "\n".join(parts) + "\n"


def not_admissible(reasons: Iterable[str]) -> str:
    """`not admissible:` and every reason with its run, with a final newline."""
    return "".join(f"{line}\n" for line in ("not admissible:", *(f"  - {one_line(reason)}" for reason in reasons)))


def findings(differences: Iterable[FieldDifference]) -> Iterator[Finding]:
    """What keeps runs from being compared, each field with both sides."""
    for each in differences:
        what = f"{each.field} is {each.first_value} in {each.first}, and {each.second_value} in {each.second}"
        yield Finding("compare-field", f"{each.first} and {each.second}", what)


def _alike(found: Comparison) -> str:
    return (
        f"{found.tasks} tasks, {found.repeats} repeats, {found.retries} retries, timeout_s {found.timeout_s:g}, "
        f"seed {found.seed}, live_network {found.live_network}"
    )


def _run(run: ComparedRun) -> str:
    confounds = "no confound log" if run.confounds is None else f"confounds {run.confounds}"
    standing = "baseline, not ranked" if run.baseline else "draft" if run.draft else "admissible"
    return (
        f"{run.name}: {_four(run.mean)} {ends(run.ci95)}, {run.successes} of {run.planned}; {run.agent} "
        f"sha256:{run.agent_sha256[:12]}; seat {run.seat or 'none'} on {run.host}; {confounds}; {standing}"
    )


def _pair(pair: ComparedPair) -> str:
    return f"{signed(pair.difference)} {ends(pair.ci95)} {verdict(pair)}"


def verdict(pair: ComparedPair) -> str:
    """Who is better, or that it is a tie, and of which kind."""
    match pair.verdict:
        case "better" | "worse":
            return f"{pair.first} is {pair.verdict}"
        case "equivalent":
            return "tie: equivalent, within the margin"
        case "unresolved":
            return "tie: unresolved"


def checks(pair: ComparedPair) -> str:
    """The cross-checks of a pair, which decide nothing."""
    said = [f"{pair.different} of {pair.clusters} differ", f"sign-flip p {_p(pair.sign_flip_p)} (exact)"]
    if pair.holm_p is not None:
        said.append(f"Holm-t p {_p(pair.holm_p)}")
        said.append(f"this pair alone {ends(pair.single_ci95)}")
    said.append(f"mde {'none' if pair.mde is None else _four(pair.mde)}")
    return ", ".join(said)


def tokens(found: Comparison) -> Iterator[str]:
    """The cost axis, a line each: `what: value`."""
    axis = found.tokens
    if axis is None:
        yield f"tokens: not compared: {found.why_no_tokens}"
        return
    ranked = [run.label for run in found.runs if not run.baseline]
    for label, total, per_success in zip(ranked, axis.totals, axis.per_success, strict=True):
        yield f"tokens {label}: {total}; per success {per_success}"
    for pair in axis.pairs:
        if pair.geometric is None:
            yield f"tokens {pair.first} / {pair.second}: not computed: {pair.why_no_geometric}"
        else:
            yield f"tokens {pair.first} / {pair.second}: {_ratio(pair.geometric, pair.first)}, paired geometric mean"
        if pair.per_success is not None:
            yield f"tokens per success {pair.first} / {pair.second}: {_ratio(pair.per_success, pair.first)}"


def cost(found: Comparison) -> Iterator[str]:
    """What the tokens cost in money, a line each: `what: value`."""
    axis = found.cost
    if axis is None:
        yield f"cost: not compared: {found.why_no_cost}"
        return
    tables: dict[str, list[str]] = {}
    for each in axis.bills:
        if each.currency is not None:
            table = f"{each.currency} of {each.prices_date} (sha256:{each.prices_sha256})"
            tables.setdefault(table, []).append(each.run)
    for table, runs in tables.items():
        yield f"prices {', '.join(runs)}: {table}"
    for each in axis.bills:
        if each.total is None:
            yield f"cost {each.run}: not known: {one_line(each.why_not or '')}"
        else:
            yield f"cost {each.run}: {each.total} {each.currency}; per success {each.per_success}"
    for pair in axis.pairs:
        if pair.geometric is None:
            yield f"cost {pair.first} / {pair.second}: not computed: {one_line(pair.why_not or '')}"
        else:
            yield f"cost {pair.first} / {pair.second}: {_ratio(pair.geometric, pair.first)}, paired geometric mean"
        if pair.per_success is not None:
            yield f"cost per success {pair.first} / {pair.second}: {_ratio(pair.per_success, pair.first)}"


def _ratio(found: CostRatio, first: str) -> str:
    if found.low is None:
        ends = "no interval"
    elif found.high is None:
        ends = f"(>= {_four(found.low)}, upper unbounded)"
    else:
        ends = f"[{_four(found.low)}, {_four(found.high)}]"
    match found.verdict:
        case "less" | "more":
            verdict = f"{first} costs {found.verdict}"
        case "unresolved":
            verdict = "tie: unresolved"
    return f"{_four(found.ratio)} {ends} {verdict}"


def _p(value: float) -> str:
    return _four(value) if value else "under 0.0001"


def _four(value: float) -> str:
    return f"{value:.4f}"


def signed(value: float) -> str:
    """A difference to 4 places, with its sign."""
    return f"{value:+.4f}" if value else "0.0000"


def ends(value: tuple[float, float] | str | None) -> str:
    """An interval to 4 places, or that there is none."""
    if value is None:
        return "no interval"
    return value if isinstance(value, str) else f"[{_four(value[0])}, {_four(value[1])}]"
