"""What holds in every run, on drawn scenarios; and what one would wish, and does not hold."""

import dataclasses
import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import simulate, simulation
from planner.scenario import ScenarioError, parse
from planner.simulation import ENGINES
from tests.planner.building import job, mapping
from tests.planner.drawing import scenario_mappings

MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FRAMES = ("jobs", "attempts", "spells", "evictions")


@MANY
@given(scenario_mappings())
def test_without_the_right_to_displace_nobody_is_displaced(drawn: dict[str, Any]) -> None:
    drawn["policy"]["reclaim"] = "never"
    for lane in drawn["lane"]:
        lane["preempts"] = []
    evictions = simulate(parse(drawn)).evictions
    assert set(evictions["ground"]) <= {"outage"}


@MANY
@given(scenario_mappings(), st.integers(1, 3000))
def test_a_run_to_a_horizon_agrees_with_the_whole_run_up_to_it(
    drawn: dict[str, Any], horizon: int
) -> None:
    drawn.pop("horizon_seconds", None)
    whole = simulate(parse(drawn)).attempts
    part = simulate(parse(drawn | {"horizon_seconds": horizon})).attempts
    begun = whole[whole["start_seconds"] <= horizon].reset_index(drop=True)
    same = ["job", "attempt", "pool", "start_seconds", "staging_seconds", "restart_seconds"]
    pd.testing.assert_frame_equal(part[same], begun[same])
    ended = (begun["end_seconds"] <= horizon).fillna(value=False)
    pd.testing.assert_frame_equal(
        part[ended][["end_seconds", "ended", "by_job", "ground"]],
        begun[ended][["end_seconds", "ended", "by_job", "ground"]],
    )
    assert part[~ended]["end_seconds"].isna().all()


@MANY
@given(scenario_mappings())
def test_names_and_the_order_of_tenants_decide_nothing(drawn: dict[str, Any]) -> None:
    before = simulate(parse(drawn))
    renamed = dict(drawn)
    renamed["tenant"] = [row | {"name": f"z-{row['name']}"} for row in reversed(drawn["tenant"])]
    renamed["project"] = [
        row | {"name": f"y-{row['name']}", "tenant": f"z-{row['tenant']}"}
        for row in drawn["project"]
    ]
    for table in ("quota", "assignment", "job"):
        renamed[table] = [row | {"project": f"y-{row['project']}"} for row in drawn[table]]
    after = simulate(parse(renamed))
    for frame in FRAMES:
        old, new = getattr(before, frame), getattr(after, frame)
        named = [c for c in old.columns if c in {"project", "tenant"} or c.endswith("_project")]
        pd.testing.assert_frame_equal(old.drop(columns=named), new.drop(columns=named))


def _one_line(nodes: int, jobs: list[tuple[int, int]]) -> dict[str, Any]:
    drawn = mapping(
        *(job(f"j{i}", submit, gpus=1, work=work) for i, (submit, work) in enumerate(jobs))
    )
    drawn["pool"][0] |= {"nodes": nodes, "gpus_per_node": 1}
    drawn["quota"][0]["nominal"] = nodes
    drawn["lane"][1]["queueing"] = "strict"
    return drawn


@MANY
@given(
    st.integers(1, 5), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200)), max_size=40)
)
def test_in_one_line_of_single_gpus_a_node_more_makes_nobody_wait_longer(
    nodes: int, jobs: list[tuple[int, int]]
) -> None:
    few, more = (simulate(parse(_one_line(n, jobs))).jobs for n in (nodes, nodes + 1))
    assert (more["wait_seconds"] <= few["wait_seconds"]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_node_more_can_make_a_job_wait_longer(engine: str) -> None:
    """The anomaly of docs/concepts/scheduling.md."""

    def wait_of_c(nodes: int) -> int:
        drawn = mapping(job("a", gpus=2, work=10), job("b", gpus=2, work=100), job("c", gpus=1))
        drawn["pool"][0] |= {"nodes": nodes, "gpus_per_node": 1}
        jobs = simulate(parse(drawn), engine=engine).jobs.set_index("id")
        return int(jobs["wait_seconds"]["c"])

    assert (wait_of_c(3), wait_of_c(4)) == (0, 10)


# --- Hard cases that must end well


def _hard(engine: str, *jobs: dict[str, Any], **more: Any) -> Any:
    return simulate(parse(mapping(*jobs, **more)), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_hard_cases_end_well(engine: str) -> None:
    assert len(_hard(engine).jobs) == 0
    huge = _hard(engine, job("a", gpus=10_000)).jobs.iloc[0]
    assert (huge["state"], huge["reason"]) == ("unschedulable", "ExceedsPool")
    together = _hard(engine, *(job(f"j{i}", 7, gpus=8, work=0) for i in range(300))).jobs
    assert set(together["first_start_seconds"]) == {7}
    year = _hard(engine, job("a", work=31_536_000)).jobs.iloc[0]
    assert year["end_seconds"] == year["useful_gpu_seconds"] == 31_536_000
    early = _hard(engine, job("a", 100), horizon_seconds=50)
    assert (len(early.jobs), early.end_seconds) == (0, 50)
    for_ever = [{"pool": "h100", "start_seconds": 10, "duration_seconds": 2**53 - 1}]
    gone = _hard(engine, job("a", 20), outage=for_ever, horizon_seconds=1000).jobs.iloc[0]
    assert (gone["state"], gone["waiting_reason"]) == ("waiting", "PoolOutage")
    assert gone["total_wait_seconds"] == 980


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_beyond_what_64_bits_hold_is_refused_by_both_engines(engine: str) -> None:
    with pytest.raises(ScenarioError, match="goes beyond second"):
        _hard(engine, job("a", submit=1, work=2**53))
    inside = _hard(engine, job("a", work=2**53 - 5), horizon_seconds=1000).jobs.iloc[0]
    assert (inside["state"], inside["useful_gpu_seconds"]) == ("running", 1000)


@pytest.mark.parametrize("engine", ENGINES)
def test_thousands_of_pools_are_no_trouble(engine: str) -> None:
    base = mapping()
    pools = [base["pool"][0] | {"name": f"pool-{i}"} for i in range(5000)]
    quotas = [{"project": "speech", "pool": f"pool-{i}", "nominal": 8} for i in (0, 4999)]
    jobs = simulate(
        parse(base | {"pool": pools, "quota": quotas, "job": [job("a"), job("b", gpus=8)]}),
        engine=engine,
    ).jobs
    assert list(jobs["state"]) == ["finished", "finished"]


def test_weights_too_fine_for_64_bits_are_compared_exactly_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(simulation, "_tell_once", told.append)
    fine = random.Random(7)
    drawn = mapping(*(job(f"j{i}", i, gpus=4, work=50) for i in range(20)))
    drawn["policy"]["order"] = "fair-share"
    for project in drawn["project"]:
        project["weight"] = fine.randrange(10**14, 10**15) / 10**14
    for tenant in drawn["tenant"]:
        tenant["weight"] = fine.randrange(10**14, 10**15) / 10**14
    scenario = parse(drawn)
    trace = simulate(scenario)
    assert len(told) == 1
    assert "too fine for 64 bits" in told[0]
    whole = simulate(dataclasses.replace(scenario), engine="reference")
    pd.testing.assert_frame_equal(trace.jobs, whole.jobs)
