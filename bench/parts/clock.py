"""How the benches measure: the least time of many, and the processor time of others."""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path


def best(rounds: int, *contestants: Callable[[], object], synced: bool = False) -> list[float]:
    """The best time of each, in seconds; they take turns, each after what was written before is on the disk."""
    times = [float("inf")] * len(contestants)
    for _ in range(rounds):
        for place, contestant in enumerate(contestants):
            if synced:
                os.sync()
            started = time.perf_counter()
            contestant()
            times[place] = min(times[place], time.perf_counter() - started)
    return times


def children_s(work: Callable[[], object]) -> float:
    """Processor seconds, user and system, of what the work starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def process_s(pid: int) -> float:
    """Processor seconds of every thread that a process has, as the scheduler counts them."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def ticks_s(pid: int) -> float:
    """Processor seconds of a process and of the threads that it has had, in the kernel's ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
