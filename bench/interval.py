"""Bench (d): the interval of 2,000 tasks × 5 repeats × 10,000 resamples against `scipy.stats.bootstrap`.

    python bench/interval.py [--tasks 2000] [--repeats 5] [--resamples 10000] [--rounds 5]

The peer is run twice: on the outcomes as they lie, where its unit is the row (and its interval too short, for repeats
of one task are not independent), and on the task means, where it gives the interval that we give. Before any timing
each answer is held against the exact bootstrap distribution (a convolution). The contestants take turns, scipy
vectorized at the batch size that suits it best; the least CPU time of the rounds counts on all sides, for each has one
thread. Where scipy is not
installed, the script makes a virtual environment for itself and throws it away.

What a stream that any language can redo costs is printed too: SHAKE128 alone takes most of our time.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

GOAL = 3.0
BATCHES = (10, 25, 50, 100, 250, 500)
SRC = Path(__file__).resolve().parents[1] / "src"


def elsewhere() -> int:
    """This script again, in a throw-away environment that has scipy."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "scipy", "numpy"], check=True)
        environment = os.environ | {"PYTHONPATH": str(SRC)}
        return subprocess.run([python, *sys.argv], env=environment).returncode


def clock(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def exact(totals: list[int], level: float) -> tuple[float, float]:
    """Ends of the percentile interval with infinitely many resamples, by convolution (FFT: ends are far from ties)."""
    import numpy as np

    count, top = len(totals), max(totals)
    size = 1 << (count * top + 1).bit_length()
    one = np.bincount(totals, minlength=top + 1) / count
    pmf = np.fft.irfft(np.fft.rfft(one, size) ** count, size)
    cumulated = np.cumsum(np.clip(pmf, 0, None))
    return float(np.searchsorted(cumulated, level)), float(np.searchsorted(cumulated, 1 - level))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("tasks", 2000), ("repeats", 5), ("resamples", 10_000), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if importlib.util.find_spec("scipy") is None:
        sys.exit(elsewhere())

    import numpy as np
    import scipy
    from numpy.typing import NDArray
    from scipy import stats

    from scoresheet.stats import resample
    from scoresheet.stats.interval import estimate, order_statistic
    from scoresheet.stats.sample import sample

    random = Random(20260922)
    skill = [random.betavariate(1.4, 0.6) for _ in range(options.tasks)]
    values = {
        f"task-{number:06}": [int(random.random() < p) for _ in range(options.repeats)]
        for number, p in enumerate(skill)
    }
    start = resample.prefix(20260922, "78568c0f78a363e24164f2ee4a9f9fcb29891ee5b4c8a0e8b88040fc0977d6ae")
    means = np.array([sum(runs) / len(runs) for runs in values.values()])
    outcomes = np.array([float(value) for runs in values.values() for value in runs])
    totals = [sum(runs) for runs in values.values()]

    def ours() -> tuple[float, float]:
        found = estimate(sample(values), start, resamples=options.resamples).interval
        assert found is not None
        assert not found.boundary
        return float(found.low), float(found.high)

    def theirs(data: NDArray[np.float64], batch: int) -> tuple[float, float]:
        found = stats.bootstrap(
            (data,), np.mean, vectorized=True, axis=-1, n_resamples=options.resamples, batch=batch,
            confidence_level=0.95, method="percentile", rng=np.random.default_rng(20260922),
        ).confidence_interval  # fmt: skip
        return float(found.low), float(found.high)

    def stream() -> None:
        for replicate in range(options.resamples):
            hashlib.shake_128(start + replicate.to_bytes(8, "little")).digest(4 * options.tasks)

    scale = options.tasks * options.repeats
    level = order_statistic(options.tasks, options.resamples) / (options.resamples + 1)
    ones = [int(value) for value in outcomes]
    for name, found, truth in (
        ("scoresheet", ours(), exact(totals, level)),
        ("scipy, task means", theirs(means, 100), exact(totals, 0.025)),
        ("scipy, rows", theirs(outcomes, 100), exact(ones, 0.025)),
    ):
        low, high = (end / scale for end in truth)
        print(f"{name}: [{found[0]:.5f}, {found[1]:.5f}], exact bootstrap [{low:.5f}, {high:.5f}]")
        assert max(abs(found[0] - low), abs(found[1] - high)) < 0.05 * (high - low), f"{name} is wrong"

    peers = {"outcomes as they lie (10,000 rows)": outcomes, "task means": means}

    def suited(name: str) -> int:
        return min(BATCHES, key=lambda size: clock(partial(theirs, peers[name], size)))

    batch = {name: suited(name) for name in peers}
    best = dict.fromkeys(("ours", "stream", *peers), float("inf"))
    for _ in range(options.rounds):
        best["ours"] = min(best["ours"], clock(ours))
        best["stream"] = min(best["stream"], clock(stream))
        for name, data in peers.items():
            best[name] = min(best[name], clock(partial(theirs, data, batch[name])))
    mine = best["ours"]
    size = f"{options.tasks} tasks x {options.repeats} repeats x {options.resamples} resamples"
    print(f"interval, {size}: {mine:.3f} s of CPU; load {os.getloadavg()[0]:.1f}")
    for name in peers:
        ratio = best[name] / mine
        verdict = "met" if ratio >= GOAL else f"MISSED by {1 - ratio / GOAL:.0%}"
        print(f"  scipy.stats.bootstrap on {name}: {best[name]:.3f} s, batch={batch[name]}", end="; ")
        print(f"we are {ratio:.2f}x as fast (goal {GOAL:g}x: {verdict})")
    limit = best[next(iter(peers))] / best["stream"]
    print(
        f"  SHAKE128 of {4 * options.tasks * options.resamples / 1e6:.0f} MB alone: {best['stream']:.3f} s,"
        f" {best['stream'] / mine:.0%} of our time: were all else free, {limit:.1f}x on rows"
    )
    print(f"  peer: scipy {scipy.__version__}, percentile, vectorized, batch the best of {BATCHES}")
    print(f"  ours: the whole estimate, from outcomes to interval, ICC and MDE; numpy {np.__version__} on both sides,")
    print(
        f"  Python {platform.python_version()}, {os.cpu_count()} processors, one thread each, best of {options.rounds}"
    )


if __name__ == "__main__":
    main()
