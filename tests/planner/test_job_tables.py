"""Jobs as columns: the same jobs, only cheaper to hold, to compare and to draw from."""

import pickle
import random
from decimal import Decimal

import numpy as np
import pytest

from planner.resampling import compose, draw, observed_days, resample
from planner.work import Job, JobTable

DAY = 86_400


def _jobs(number: int, seed: int) -> tuple[Job, ...]:
    dice = random.Random(seed)
    return tuple(
        Job(
            id=f"j{i}",
            submit_seconds=dice.randrange(DAY * dice.randint(1, 20)),
            project=dice.choice("abc"),
            lane=dice.choice("xy"),
            gpus=dice.randint(1, 9),
            work_seconds=dice.randrange(99),
            limit_seconds=dice.choice([None, 0, 7]),
            pools=dice.choice([None, ("p",)]),
            data_gb=dice.choice([Decimal(0), Decimal("0.1")]),
            restart_seconds=dice.choice([0, 3]),
        )
        for i in range(number)
    )


@pytest.mark.parametrize("number", [0, 1, 50])
def test_a_table_holds_the_jobs_that_were_put_into_it(number: int) -> None:
    jobs = _jobs(number, seed=1)
    table = JobTable.of(jobs)
    assert tuple(table) == jobs
    assert JobTable.of(table) is table
    assert pickle.loads(pickle.dumps(table)) == table
    assert tuple(table[::-2]) == jobs[::-2]


def test_tables_are_equal_when_their_jobs_are_whatever_else_they_name() -> None:
    jobs = _jobs(50, seed=2)
    whole = JobTable.of(jobs)
    part, alone = whole.take(np.arange(10, 20)), JobTable.of(jobs[10:20])
    assert part.project_names != alone.project_names or part.kinds != alone.kinds
    assert part == alone
    assert hash(part) == hash(alone)
    assert part != JobTable.of(jobs[11:21])
    assert whole != part


@pytest.mark.parametrize("field", ["id", "project", "lane", "limit_seconds", "data_gb"])
def test_one_other_value_makes_another_table(field: str) -> None:
    jobs = list(_jobs(20, seed=3))
    other = {"id": "z", "project": "z", "lane": "z", "limit_seconds": 8, "data_gb": Decimal(9)}
    changed = {name: getattr(jobs[5], name) for name in Job.__slots__} | {field: other[field]}
    assert JobTable.of(jobs) != JobTable.of([*jobs[:5], Job(**changed), *jobs[6:]])


def test_an_id_may_be_long_or_in_any_script() -> None:
    ids = ["", "学習-一", "x" * 1000, "nul\0inside"]
    table = JobTable.of([Job(name, 0, "a", "x", 1, 1) for name in ids])
    assert [job.id for job in table] == ids


@pytest.mark.parametrize("seed", range(20))
def test_a_drawn_week_is_what_one_job_after_the_other_gives(seed: int) -> None:
    jobs = _jobs(60, seed)
    drawn = draw(observed_days(jobs), 7, seed)
    expected = [
        (f"{job.id}~{day}", job.submit_seconds + (day - source) * DAY, job.project, job.data_gb)
        for day, source in enumerate(drawn)
        for job in sorted(jobs, key=lambda job: job.submit_seconds)
        if job.submit_seconds // DAY == source
    ]
    composed = compose(jobs, drawn)
    assert [(j.id, j.submit_seconds, j.project, j.data_gb) for j in composed] == expected
    assert resample(jobs, days=7, seed=seed) == composed
