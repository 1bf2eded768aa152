"""What the compiled engine takes: time, memory, and how both grow. The clock is an argument."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np

from planner.description.record import Scenario
from planner.engine import compiled
from planner.engine.kernel import layout as k
from planner.work import Numbers
from planner.workload import busy_fleet, one_pool

Clock = Callable[[], float]
# What a scenario brings along: it is read by the engine, and counts as input.
INPUT = ("submit", "work", "limit", "interval", "restart", "kind")


class Run(NamedTuple):
    """One scenario, run several times: medians in seconds."""

    name: str
    jobs: int
    events: int
    longest_queue: int
    prepare_seconds: float
    run_seconds: float
    tell_seconds: float
    bytes_per_job: float

    @property
    def seconds_per_event(self) -> float:
        """Return the time of the engine itself for each event."""
        return self.run_seconds / max(1, self.events)


def measure(scenario: Scenario, clock: Clock, *, times: int = 5) -> Run:
    """Run a scenario several times, warm, and return the medians."""
    prepare, run, tell = [], [], []
    for _ in range(times):
        start = clock()
        state = compiled.build(scenario)
        built = clock()
        state = compiled.run_state(state)
        ran = clock()
        compiled.tell(scenario, state)
        prepare.append(built - start)
        run.append(ran - built)
        tell.append(clock() - ran)
    jobs = len(scenario.table)
    own = sum(array.nbytes for name, array in state._asdict().items() if name not in INPUT)
    return Run(
        scenario.name,
        jobs,
        int(state.st[k.EVENTS]),
        int(state.st[k.LONGEST_QUEUE]),
        median(prepare),
        median(run),
        median(tell),
        own / max(1, jobs),
    )


def warm() -> None:
    """Compile the engine, or load it from the cache, by running one job."""
    compiled.simulate(one_pool([(0, 1, 1, 1)], easy=False))


def suite(jobs: Sequence[int], clock: Clock, *, times: int = 5) -> Iterator[Run]:
    """Measure the fleet at 90 % load for each number of jobs, and the first also at 150 %."""
    for number in jobs:
        yield measure(busy_fleet(number), clock, times=times)
    yield measure(busy_fleet(jobs[0], load=1.5), clock, times=times)


def both_cores(jobs: int, clock: Clock, *, times: int = 5) -> tuple[float, float]:
    """Return how many times as much two threads do in a time as one: the engine, and a bare loop.

    2 is all there is; the loop touches no memory, so it says what the machine itself gives.
    """
    scenario = busy_fleet(jobs)

    def gain(work: Callable[[Any], object], args: Sequence[object]) -> float:
        seconds = []
        for some in (args[:1], args[1:]):
            start = clock()
            with ThreadPoolExecutor(len(some)) as threads:
                list(threads.map(work, some))
            seconds.append(clock() - start)
        return 2 * seconds[0] / seconds[1]

    _loop(1)
    pairs = [
        (
            gain(compiled.run_state, [compiled.build(scenario) for _ in range(3)]),
            gain(_loop, [600_000_000] * 3),
        )
        for _ in range(times)
    ]
    return median(engine for engine, _ in pairs), median(loop for _, loop in pairs)


@numba.njit(nogil=True)
def _loop(count: int) -> np.uint64:
    value = np.uint64(1)
    for _ in range(count):
        value = value * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return value


def first_come_first_served(rows: Sequence[tuple[int, int, int, int]], gpus: int) -> Numbers:
    """Return the start of each job by a plain heap: what the engine is compared with."""
    free, now = gpus, 0
    ends: list[tuple[int, int]] = []
    starts = np.zeros(len(rows), np.int64)
    for number, (submit, wanted, work, _) in enumerate(rows):
        now = max(now, submit)
        while ends and ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while free < wanted:
            end, given = heapq.heappop(ends)
            now, free = max(now, end), free + given
        starts[number] = now
        free -= wanted
        heapq.heappush(ends, (now + work, wanted))
    return starts
