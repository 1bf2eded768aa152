"""Measures the compiled engine: its speed, how it grows, its memory, and what others need."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import simpy

from planner import benchmarks, simulate
from planner.measures import use
from planner.workload import busy_fleet, one_pool

ROOT = Path(__file__).parents[2]
KTH = ROOT.parent / "shared" / "traces" / "swf" / "KTH-SP2_filtered_28481.swf.gz"
NODES = 100
TIMES = 5


class Line(NamedTuple):
    """One line of the page."""

    what: str
    value: str
    how: str


def lines() -> Iterator[Line]:
    """Everything that issue and contract name a figure for."""
    yield from compilation()
    yield from fleet()
    yield from history()


def compilation() -> Iterator[Line]:
    """The first compilation, and the first call when the cache is there."""
    program = (
        "import time, planner; from planner import benchmarks; start = time.perf_counter();"
        "benchmarks.warm(); print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        # Else libraries that were installed without bytecode are read as source each time.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def first_call() -> float:
            done = subprocess.run(
                [sys.executable, "-c", program],
                env=environment,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            return float(done.stdout)

        cold = first_call()
        cached = median(first_call() for _ in range(TIMES))
    yield Line("engine, first compilation", f"{cold:.1f} s", "once for a version of the code")
    yield Line("engine, first call", f"{cached:.2f} s", "in a new process, from the cache")


def fleet() -> Iterator[Line]:
    """The made-up fleet of 2,000 GPUs, 8 pools, 200 projects, 4 lanes."""
    small, large, crowded = (
        benchmarks.measure(busy_fleet(jobs, load=load), time.perf_counter, times=times)
        for jobs, load, times in (
            (100_000, 0.9, 3 * TIMES),
            (1_000_000, 0.9, TIMES),
            (100_000, 1.5, 3 * TIMES),
        )
    )
    for run in (small, large, crowded):
        yield Line(
            f"engine, {run.name}",
            f"{run.run_seconds:.3f} s",
            f"{run.seconds_per_event * 1e9:,.0f} ns an event, longest queue {run.longest_queue:,}, "
            f"{run.bytes_per_job:,.0f} bytes a job; besides {run.prepare_seconds:.2f} s to prepare "
            f"and {run.tell_seconds:.2f} s to tell",
        )
    growth = large.seconds_per_event / small.seconds_per_event
    yield Line("engine, ten times the jobs", f"{growth:.2f} ×", "time for each event")
    crowding = crowded.seconds_per_event / small.seconds_per_event
    yield Line("engine, 150 % load for 90 %", f"{crowding:.2f} ×", "time for each event")
    both, loop = benchmarks.both_cores(400_000, time.perf_counter, times=7)
    trace = simulate(busy_fleet(1_000_000))
    start = time.perf_counter()
    rows = len(use.hourly(trace, by=("pool", "lane")))
    yield Line(
        "engine, hours of 1000000 jobs",
        f"{time.perf_counter() - start:.2f} s",
        f"allocated, useful, waiting by pool and lane: {rows:,} rows, once",
    )
    yield Line(
        "engine, two threads",
        f"{both:.2f} ×",
        f"as much in a time as one; a bare loop on this machine {loop:.2f} ×",
    )


def history() -> Iterator[Line]:
    """KTH's history, first come first served and with EASY, beside a plain heap and simpy."""
    if not KTH.exists():
        return
    with gzip.open(KTH, "rt", encoding="utf-8") as file:
        fields = [[int(f) for f in line.split()] for line in file if not line.startswith(";")]
    plain = [(f[1], f[7], f[3], f[3]) for f in fields]
    limited = [(f[1], f[7], min(f[3], f[8]), f[8]) for f in fields]
    # This machine's speed swings within seconds: engine and heap take turns, and their ratio tells.
    engine: dict[str, list[float]] = {"first come": [], "EASY": []}
    heap = []
    for _ in range(2 * TIMES):
        for name, rows, easy in (("first come", plain, False), ("EASY", limited, True)):
            run = benchmarks.measure(one_pool(rows, easy=easy), time.perf_counter, times=TIMES)
            engine[name].append(run.run_seconds)
        start = time.perf_counter()
        benchmarks.first_come_first_served(plain, NODES)
        heap.append(time.perf_counter() - start)
    for name, seconds in engine.items():
        faster = median(by_heap / by_us for by_heap, by_us in zip(heap, seconds, strict=True))
        yield Line(
            f"KTH, {name}",
            _rate(len(plain), median(seconds)),
            f"the compiled engine itself; {faster:.2f} × a plain heap in turns with it",
        )
    yield Line(
        "KTH, first come, a plain heapq", _rate(len(plain), median(heap)), "for the same schedule"
    )
    start = time.perf_counter()
    _simpy(plain)
    yield Line("KTH, first come, simpy", _rate(len(plain), time.perf_counter() - start), "once")


def _rate(jobs: int, seconds: float) -> str:
    return f"{jobs / seconds:,.0f} jobs/s"


def _simpy(rows: list[tuple[int, int, int, int]]) -> None:
    environment = simpy.Environment()
    nodes = simpy.Container(environment, capacity=NODES, init=NODES)

    def visit(submit: int, wanted: int, work: int) -> Generator[Any, Any, None]:
        yield environment.timeout(submit)
        yield nodes.get(wanted)
        yield environment.timeout(work)
        yield nodes.put(wanted)

    for submit, wanted, work, _ in rows:
        environment.process(visit(submit, wanted, work))
    environment.run()


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(f"{line.what}: {line.value} ({line.how})\n")
        sys.stdout.flush()
