"""The simplest case, one-GPU jobs in one pool, held against simpy."""

import random
from collections.abc import Generator
from typing import Any

import simpy

from planner import simulate
from tests.planner.building import job, scenario

SERVERS = 4


def _arrivals(seed: int, count: int, load: float) -> list[tuple[int, int]]:
    """Draw (submit, work) in seconds; work is exponential with a mean of 10,000 s."""
    draw = random.Random(seed)
    now, jobs = 0.0, []
    for _ in range(count):
        now += draw.expovariate(load * SERVERS / 10_000)
        jobs.append((int(now), max(1, round(draw.expovariate(1 / 10_000)))))
    return jobs


def _planner_waits(jobs: list[tuple[int, int]]) -> list[int]:
    pool = {"name": "h100", "domain": "tokyo-a", "accelerator": "H100"}
    trace = simulate(
        scenario(
            *(job(str(i), submit=submit, work=work) for i, (submit, work) in enumerate(jobs)),
            pool=[pool | {"nodes": SERVERS, "gpus_per_node": 1}],
        )
    )
    return [int(wait) for wait in trace.jobs["wait_seconds"]]


def test_waits_equal_those_of_a_simpy_resource_second_by_second() -> None:
    jobs = _arrivals(5, 600, 0.95)
    environment = simpy.Environment()
    servers = simpy.Resource(environment, capacity=SERVERS)
    waits: dict[int, int] = {}

    def visit(number: int, submit: int, work: int) -> Generator[Any, Any, None]:
        yield environment.timeout(submit)
        with servers.request() as turn:
            yield turn
            waits[number] = int(environment.now) - submit
            yield environment.timeout(work)

    for number, (submit, work) in enumerate(jobs):
        environment.process(visit(number, submit, work))
    environment.run()
    planned = _planner_waits(jobs)
    assert planned == [waits[number] for number in range(len(jobs))]
    assert sum(wait > 0 for wait in planned) > 100
