"""Rules of the split: only held-out tasks enter a published figure, each once, each known, each with an origin."""

import unicodedata
from collections import Counter

from scoresheet.gate.facts import CardFacts, Findings

HOLDOUT = "dataset_split.holdout"
TRAIN = "dataset_split.train_like"
ORIGINS = ("scraped-issue", "internal-bug", "synthetic", "homework")


def split_overlap(facts: CardFacts) -> Findings:
    """No id stands in both splits."""
    train = {_same(name) for name in facts.texts(TRAIN)}
    for name in dict.fromkeys(facts.texts(HOLDOUT)):
        if _same(name) in train:
            what = f"task {name!r} is in holdout and in train_like"
            yield facts.finding(
                "split-overlap", HOLDOUT, what, "a task that was tuned on is no holdout: remove it there"
            )


def split_duplicates(facts: CardFacts) -> Findings:
    """No id stands twice, also not in another Unicode form or with blanks around it."""
    for pointer in (TRAIN, HOLDOUT):
        counts = Counter(_same(name) for name in facts.texts(pointer))
        for name, count in counts.items():
            if count > 1:
                what = f"{pointer} lists task {name!r} {count} times"
                yield facts.finding("split-duplicates", pointer, what, "keep one")


def split_known(facts: CardFacts) -> Findings:
    """Every id is a task of the pack, and every task of the pack is in a split."""
    if facts.pack is None:
        return
    tasks = set(facts.pack.task_ids)
    for pointer in (TRAIN, HOLDOUT):
        for name in dict.fromkeys(facts.texts(pointer)):
            if name not in tasks:
                what = f"{pointer} lists {name!r}, which is no task of the pack"
                yield facts.finding("split-known", pointer, what, "correct the id, or freeze the pack with the task")
    listed = {*facts.texts(TRAIN), *facts.texts(HOLDOUT)}
    left_out = sorted(tasks - listed)
    if left_out:
        what = f"{len(left_out)} of the pack's tasks are in no split, such as {left_out[0]!r}"
        yield facts.finding("split-known", HOLDOUT, what, "list each task under holdout or train_like")


def split_content(facts: CardFacts) -> Findings:
    """No task of one split is a copy of a task of the other."""
    if facts.pack is None:
        return
    train = {facts.pack.content[name]: name for name in facts.texts(TRAIN) if name in facts.pack.content}
    for name in dict.fromkeys(facts.texts(HOLDOUT)):
        twin = train.get(facts.pack.content.get(name, ""))
        if twin is not None and twin != name:
            what = f"holdout task {name!r} has the same content as train_like task {twin!r}"
            yield facts.finding("split-content", HOLDOUT, what, "remove one: a copy of a training task is no holdout")


def split_count(facts: CardFacts) -> Findings:
    """task_count is the sum of the taxonomy, the number of ids in the splits, and the pack's number of tasks."""
    count = facts.get("suite.task_count")
    if isinstance(count, bool) or not isinstance(count, int) or count <= 0:
        return
    name = "suite.task_count"
    taxonomy = facts.get("suite.taxonomy")
    kinds = list(taxonomy.values()) if isinstance(taxonomy, dict) else []
    if kinds and all(type(number) is int for number in kinds) and sum(kinds) != count:
        what = f"suite.taxonomy sums to {sum(kinds)}, but suite.task_count is {count}"
        yield facts.finding("split-count", "suite.taxonomy", what, "every task has exactly one kind")
    listed = {_same(task) for task in (*facts.texts(TRAIN), *facts.texts(HOLDOUT))}
    if facts.texts(HOLDOUT) and len(listed) != count:
        what = f"{name} is {count}, but the splits list {len(listed)} tasks"
        yield facts.finding("split-count", name, what, "every task of the suite is in one split")
    if facts.pack is not None and len(facts.pack.task_ids) != count:
        what = f"{name} is {count}, but the pack has {len(facts.pack.task_ids)} tasks"
        yield facts.finding("split-count", name, what, f"write {len(facts.pack.task_ids)}")


def split_origins(facts: CardFacts) -> Findings:
    """Every holdout task says where it comes from, in the card or in its own file, once; each origin is a known one."""
    origins = facts.get("suite.origins")
    said: dict[str, str] = {}
    for origin, names in origins.items() if isinstance(origins, dict) else ():
        if origin not in ORIGINS and not str(origin).startswith("other: "):
            what = f"suite.origins knows no {origin!r}"
            yield facts.finding(
                "split-origins", f"suite.origins.{origin}", what, f"write one of {', '.join(ORIGINS)}, or `other: …`"
            )
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and said.setdefault(name, origin) != origin:
                what = f"task {name!r} has two origins, {said[name]!r} and {origin!r}"
                yield facts.finding("split-origins", f"suite.origins.{origin}", what, "keep one")
    if facts.pack is not None:
        tasks = frozenset(facts.pack.task_ids)
        for name in said:
            if name not in tasks:
                what = f"suite.origins lists {name!r}, which is no task of the pack"
                yield facts.finding("split-origins", "suite.origins", what, "correct the id, or remove it")
        said = {**facts.pack.origins, **said}
    without = [name for name in dict.fromkeys(facts.texts(HOLDOUT)) if name not in said]
    if without:
        more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
        what = f"holdout task {without[0]!r}{more} has no origin"
        yield facts.finding("split-origins", HOLDOUT, what, "list it under suite.origins, by where it was taken from")


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()
