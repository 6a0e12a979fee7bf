"""Every figure of a fixed set of samples, as text: run by each Python of the machine, with nothing installed."""

import hashlib
import json
import sys

from scoresheet.stats import compare, cost, interval, pass_k, ranks, ratio, resample, rounding, rows_v1
from scoresheet.stats.sample import sample


def figures() -> dict[str, object]:
    """Name -> exact text of what the statistics say."""
    start = resample.prefix(20260922, hashlib.sha256(b"demo-pack").hexdigest())
    found: dict[str, object] = {}
    for tasks in (4, 5, 8, 12, 120):
        values = {f"t{i}": [int((i * i + 3 * r) % 7 > 2) for r in range(5)] for i in range(tasks)}
        clusters = {f"t{i}": f"repo-{i % 40}" for i in range(0, tasks, 3)}
        for name, given in (("tasks", None), ("clusters", clusters)):
            found[f"{name} {tasks}"] = repr(interval.estimate(sample(values, given), start))
        ordered = [value for runs in values.values() for value in runs]
        found[f"rows {tasks}"] = repr(rows_v1.bootstrap_mean(ordered, 20260922, 200))
        found[f"seconds {tasks}"] = repr(rows_v1.bootstrap_mean([0.1 * i for i in range(tasks)], 7, 200))
        tokens = [900 + 37 * i * i % 4001 for i in range(tasks)]
        passed = [sum(values[f"t{i}"]) for i in range(tasks)]
        found[f"cost {tasks}"] = repr(cost.cost_per_success(tokens, passed, start))
        gaps = sample({f"t{i}": [passed[i] - 2] for i in range(tasks)}, unit=5)
        found[f"gap {tasks}"] = repr(compare.difference(gaps, start)) if tasks > 4 else ""
        other = {task: [int((i * i + r) % 5 > 1) for r in range(5)] for i, task in enumerate(values)}
        third = {task: [int((i + r) % 4 > 1) for r in range(5)] for i, task in enumerate(values)}
        for name, given in (("tasks", None), ("clusters", clusters)):
            sides = ((values, other), (values, third), (other, third))
            if (name, tasks) not in (("tasks", 5), ("tasks", 12), ("clusters", 12), ("clusters", 120)):
                continue
            pairs = [compare.paired(first, second, given) for first, second in sides]
            found[f"pair {name} {tasks}"] = repr(compare.compare(pairs[0], start))
            found[f"ranks {name} {tasks}"] = repr(ranks.rank(3, pairs, start))
        dearer = {task: 1 + tokens[i] * 9 // 7 for i, task in enumerate(values)}
        found[f"ratio {tasks}"] = repr(ratio.geometric(dict(zip(values, tokens, strict=True)), dearer))
        bills = ((tokens, passed), (list(dearer.values()), [sum(runs) for runs in other.values()]))
        found[f"bill {tasks}"] = repr(ratio.per_success(*bills, start))
        found[f"pass^3 {tasks}"] = str(rounding.nearest(pass_k.mean_all_of([(5, c) for c in passed], 3)))
        found[f"stream {tasks}"] = resample.stream_sha256(start, tasks)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures()))
