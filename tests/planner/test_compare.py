"""Comparing two policies: the same work for both, and an interval for every difference."""

import dataclasses
import json
import math
import random
import statistics
from typing import Any

import pytest

from planner import PLANNER_VERSION
from planner.compare import (
    Cancelled,
    Comparison,
    Effect,
    compare,
    replicate,
    resample,
    summarise,
)
from planner.intervals import interval, student_t95
from planner.resampling import DAY
from planner.scenario import Scenario, content_hash
from tests.planner.building import job, scenario


@pytest.fixture
def busy() -> Scenario:
    """Fourteen days in which speech wants more than its eight GPUs, and may not borrow."""
    draw = random.Random(3)
    jobs = [
        job(
            f"{project}-{i}",
            submit=draw.randrange(14 * DAY),
            gpus=draw.choice([1, 2, 4]),
            work=draw.randrange(3600, 20_000),
            project=project,
            lane=draw.choice(["emergency", "primary"]),
            data_region="osaka",
            data_gb=draw.choice([0, 100]),
        )
        for project, count in (("speech", 400), ("vision", 100))
        for i in range(count)
    ]
    limited = [
        {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
        {"project": "vision", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
    ]
    return scenario(*jobs, quota=limited)


def _lend(before: Scenario) -> Scenario:
    quotas = tuple(dataclasses.replace(row, borrowing_limit=8) for row in before.quotas)
    return dataclasses.replace(before, quotas=quotas)


def _effect(comparison: Comparison, measure: str, **about: Any) -> Effect:
    (found,) = (
        effect
        for effect in comparison.effects
        if effect.measure == measure
        and all(
            getattr(effect, name) == about.get(name)
            for name in ("project", "lane", "pool", "domain")
        )
    )
    return found


def test_lending_shortens_the_waits_of_who_had_too_little(busy: Scenario) -> None:
    proposal = _lend(busy)
    comparison = compare(busy, proposal, replications=6)
    effect = _effect(comparison, "wait_p95_seconds", project="speech", lane="primary")
    assert effect.tenant == "kaguya"
    assert effect.verdict == "better"
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < effect.difference < effect.high < 0
    assert effect.difference == pytest.approx(effect.after - effect.before)
    assert (comparison.replications, comparison.days) == (6, 7)
    assert comparison.baseline_hash == content_hash(busy)
    assert comparison.proposal_hash == content_hash(proposal)
    assert comparison.planner_version == PLANNER_VERSION
    assert {effect.measure for effect in comparison.effects} == {
        "wait_p95_seconds",
        "wait_p50_seconds",
        "lost_gpu_seconds_per_week",
        "staged_gb_per_week",
        "oversubscription",
        "oversubscription_with_domain_down",
    }
    text = json.dumps(comparison.to_mapping())
    assert Comparison.from_mapping(json.loads(text)) == comparison


def test_no_change_has_no_effect(busy: Scenario) -> None:
    for effect in compare(busy, busy, replications=3).effects:
        assert (effect.difference, effect.low, effect.high) == (0, 0, 0)
        assert effect.verdict == "unclear"


def test_the_pieces_put_together_are_the_whole(busy: Scenario) -> None:
    proposal = _lend(busy)
    results = [
        replicate(busy, proposal, index=index, days=2, warmup_days=1, seed=5) for index in range(3)
    ]
    whole = compare(busy, proposal, replications=3, days=2, warmup_days=1, seed=5)
    assert summarise(results[::-1]) == whole
    assert compare(busy, proposal, replications=3, days=2, warmup_days=1, seed=6) != whole
    with pytest.raises(ValueError, match="twice"):
        summarise([results[0], results[0]])
    with pytest.raises(ValueError, match="different comparisons"):
        summarise([results[0], replicate(busy, busy, index=1, days=2, seed=5)])
    with pytest.raises(ValueError, match="at least one"):
        summarise([])


def test_progress_is_told_and_can_call_the_comparison_off(busy: Scenario) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> bool:
        told.append((done, total))
        return done < 2

    with pytest.raises(Cancelled, match="after 2 of 5"):
        compare(busy, busy, replications=5, days=1, progress=progress)
    assert told == [(1, 5), (2, 5)]


def test_jobs_of_the_warm_up_are_not_measured(busy: Scenario) -> None:
    only_first_day = dataclasses.replace(
        busy, jobs=tuple(job for job in busy.jobs if job.submit_seconds < DAY)
    )
    count = len(only_first_day.jobs)
    result = replicate(only_first_day, only_first_day, index=0, days=2, warmup_days=3)
    (total,) = (
        figure
        for cell, figure in result.before.items()
        if cell.measure == "lost_gpu_seconds_per_week" and cell.project is None
    )
    assert total.jobs == 2 * count


def test_too_few_jobs_give_no_verdict() -> None:
    jobs = [job(f"j{i}", submit=i * DAY + 100, gpus=8, work=50_000) for i in range(7)]
    jobs += [job(f"k{i}", submit=i * DAY + 200, gpus=8, work=50_000) for i in range(7)]
    tight = [
        {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
        {"project": "vision", "pool": "h100", "nominal": 8},
    ]
    before = scenario(*jobs, quota=tight)
    comparison = compare(before, _lend(before), replications=3, days=2, warmup_days=0)
    effect = _effect(comparison, "wait_p95_seconds", lane="primary")
    assert effect.high is not None
    assert effect.high < 0
    assert effect.jobs == 12
    assert effect.verdict == "unclear"


def test_promises_are_compared_with_what_there_is(busy: Scenario) -> None:
    quotas = (dataclasses.replace(busy.quotas[0], nominal=16), busy.quotas[1])
    comparison = compare(busy, dataclasses.replace(busy, quotas=quotas), replications=1, days=1)
    effect = _effect(comparison, "oversubscription", pool="h100")
    assert (effect.before, effect.after, effect.verdict) == (1.0, 1.5, "worse")
    down = _effect(comparison, "oversubscription_with_domain_down", domain="osaka-a")
    assert (down.before, down.after) == (1.0, 1.5)


# --- Resampling


def test_resampled_work_is_whole_days_with_the_time_of_day_kept() -> None:
    original = scenario(*(job(f"d{day}", submit=day * DAY + 60 * day) for day in range(5))).jobs
    drawn = resample(original, days=30, seed=1)
    assert len({job.id for job in drawn}) == len(drawn) == 30
    for day, job_ in enumerate(drawn):
        source = int(job_.id.split("~", maxsplit=1)[0].removeprefix("d"))
        assert job_.submit_seconds == day * DAY + 60 * source
    assert resample(original, days=30, seed=1) == drawn
    assert resample(original, days=30, seed=2) != drawn
    assert len({job.id.split("~")[0] for job in drawn}) == 5


def test_days_of_the_week_are_kept_where_two_of_each_were_observed() -> None:
    original = scenario(*(job(f"d{day}", submit=day * DAY) for day in range(21))).jobs
    for number, drawn in enumerate(resample(original, days=14, seed=4)):
        source = int(drawn.id.split("~", maxsplit=1)[0].removeprefix("d"))
        assert source % 7 == number % 7


def test_no_work_resamples_to_no_work() -> None:
    assert len(resample((), days=3, seed=1)) == 0


# --- Intervals


def test_students_t_equals_its_tables() -> None:
    table = {1: 6.3138, 5: 2.0150, 19: 1.7291, 30: 1.6973, 40: 1.6839, 60: 1.6706, 120: 1.6577}
    for degrees, value in table.items():
        assert student_t95(degrees) == pytest.approx(value, abs=1e-4)


def test_the_interval_covers_the_mean_in_nine_of_ten_samples() -> None:
    draw = random.Random(11)
    covered = 0
    for _ in range(2000):
        low, high = interval([draw.gauss(5, 2) for _ in range(8)])
        assert low is not None
        assert high is not None
        covered += low <= 5 <= high
    assert covered / 2000 == pytest.approx(0.9, abs=0.02)


def test_one_difference_has_no_interval() -> None:
    assert interval([1.0]) == (None, None)
    assert interval([2.0, 2.0]) == (2.0, 2.0)
    low, high = interval([0.0, 1.0])
    half = 6.3138 * statistics.stdev([0, 1]) / math.sqrt(2)
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half))
