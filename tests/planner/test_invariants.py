"""What must hold in every run, whatever the scenario."""

import dataclasses
import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

from planner import simulate
from planner.__main__ import records
from planner.measures import goodput, use
from planner.scenario import Scenario, content_hash, dumps, parse, to_mapping
from planner.trace import Trace
from tests.planner.drawing import scenario_mappings

MANY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PARTS = ("useful", "lost", "checkpoint", "restart", "staging")


def _end(attempt: dict[str, Any], trace: Trace) -> int:
    end = attempt["end_seconds"]
    return trace.end_seconds if end is None else end


@MANY
@given(scenario_mappings())
def test_gpu_seconds_of_every_attempt_add_up_to_the_seconds_held(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    gpus = {job.id: job.gpus for job in trace.scenario.jobs}
    per_job: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(PARTS, 0))
    for attempt in records(trace.attempts):
        held = (_end(attempt, trace) - attempt["start_seconds"]) * gpus[attempt["job"]]
        assert sum(attempt[f"{part}_gpu_seconds"] for part in PARTS) == held
        assert min(attempt[f"{part}_gpu_seconds"] for part in PARTS) >= 0
        for part in PARTS:
            per_job[attempt["job"]][part] += attempt[f"{part}_gpu_seconds"]
    for row in records(trace.jobs):
        assert {part: row[f"{part}_gpu_seconds"] for part in PARTS} == per_job[row["id"]]
    assert trace.evictions["lost_gpu_seconds"].sum() == trace.attempts["lost_gpu_seconds"].sum()


@MANY
@given(scenario_mappings())
def test_a_finished_job_has_done_its_work_once(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    work = {job.id: job.gpus * job.work_seconds for job in trace.scenario.jobs}
    for row in records(trace.jobs):
        if row["state"] == "finished":
            assert row["useful_gpu_seconds"] == work[row["id"]]
        else:
            assert row["useful_gpu_seconds"] <= work[row["id"]]
        if row["state"] == "cancelled":
            assert row["useful_gpu_seconds"] == 0


@MANY
@given(scenario_mappings())
def test_no_pool_ever_holds_more_than_its_nodes_nor_anything_in_an_outage(
    mapping: dict[str, Any],
) -> None:
    trace = simulate(parse(mapping))
    scenario = trace.scenario
    gpus = {job.id: job.gpus for job in scenario.jobs}
    region = {domain.name: domain.region for domain in scenario.domains}
    for pool in scenario.pools:
        changes: list[tuple[int, int]] = []
        rows = [row for row in records(trace.attempts) if row["pool"] == pool.name]
        for row in rows:
            changes += [
                (row["start_seconds"], gpus[row["job"]]),
                (_end(row, trace), -gpus[row["job"]]),
            ]
        assert max(itertools.accumulate(c for _, c in sorted(changes)), default=0) <= pool.gpus
        for outage in scenario.outages:
            if pool.name == outage.pool or pool.domain == outage.domain:
                pass
            elif region[pool.domain] != outage.region:
                continue
            until = outage.start_seconds + outage.duration_seconds
            for row in rows:
                start, end = row["start_seconds"], _end(row, trace)
                assert end <= outage.start_seconds or start >= until


@MANY
@given(scenario_mappings())
def test_a_jobs_time_is_waiting_by_reason_and_attempts_without_gap(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    pieces: dict[str, list[tuple[int, int]]] = defaultdict(list)
    waited: dict[str, int] = defaultdict(int)
    for spell in records(trace.spells):
        pieces[spell["job"]].append((spell["start_seconds"], spell["end_seconds"]))
        waited[spell["job"]] += spell["end_seconds"] - spell["start_seconds"]
    for attempt in records(trace.attempts):
        pieces[attempt["job"]].append((attempt["start_seconds"], _end(attempt, trace)))
    for row in records(trace.jobs):
        if row["state"] == "unschedulable":
            assert row["total_wait_seconds"] is None
            assert row["reason"] is not None
            continue
        assert row["total_wait_seconds"] == waited[row["id"]]
        at = row["submit_seconds"]
        for start, end in sorted(pieces[row["id"]]):
            assert start == at
            at = end
        assert at == (trace.end_seconds if row["end_seconds"] is None else row["end_seconds"])


@MANY
@given(scenario_mappings())
def test_no_project_holds_more_than_quota_and_lane_allow(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    scenario = trace.scenario
    jobs = {job.id: job for job in scenario.jobs}
    by_pool: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    by_lane: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in records(trace.attempts):
        job = jobs[row["job"]]
        changes = [(row["start_seconds"], job.gpus), (_end(row, trace), -job.gpus)]
        by_pool[job.project, row["pool"]] += changes
        by_lane[job.project, job.lane] += changes

    def most(changes: list[tuple[int, int]]) -> int:
        return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)

    for quota in scenario.quotas:
        if quota.borrowing_limit is not None:
            limit = quota.nominal + quota.borrowing_limit
            assert most(by_pool[quota.project, quota.pool]) <= limit
    for assigned in scenario.assignments:
        if assigned.max_gpus is not None:
            assert most(by_lane[assigned.project, assigned.lane]) <= assigned.max_gpus
    for pool in scenario.pools:
        for cohort in {project.cohort for project in scenario.projects}:
            members = {p.name for p in scenario.projects if p.cohort == cohort}
            together = [
                change
                for (project, where), changes in by_pool.items()
                if where == pool.name and project in members
                for change in changes
            ]
            nominal = sum(
                row.nominal
                for row in scenario.quotas
                if row.pool == pool.name and row.project in members
            )
            assert most(together) <= nominal


@MANY
@given(scenario_mappings())
def test_what_is_written_reads_back_equal_and_hashes_equal(mapping: dict[str, Any]) -> None:
    scenario = parse(mapping)
    assert parse(to_mapping(scenario)) == scenario
    assert content_hash(parse(to_mapping(scenario))) == content_hash(scenario)
    assert dumps(scenario, "toml") == dumps(parse(to_mapping(scenario)), "toml")


@settings(max_examples=40, deadline=None)
@given(scenario_mappings())
def test_hours_add_up_to_what_was_held_and_waited(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    held = goodput.attempts(trace)
    hourly = use.hourly(trace)
    assert hourly["allocated_gpu_seconds"].sum() == held["held_gpu_seconds"].sum()
    assert hourly["useful_gpu_seconds"].sum() == held["useful_gpu_seconds"].sum()
    assert (hourly["useful_gpu_seconds"] <= hourly["allocated_gpu_seconds"]).all()
    waiting = use.hourly(trace, by=("lane",))["waiting_gpu_seconds"].sum()
    jobs = trace.jobs
    assert waiting == (jobs["total_wait_seconds"] * jobs["gpus"]).sum()


@settings(max_examples=40, deadline=None)
@given(scenario_mappings())
def test_hours_are_what_counting_second_by_second_gives(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    expected: Counter[tuple[int, str, str]] = Counter()
    lane_of = dict(zip(trace.jobs["id"], trace.jobs["lane"], strict=True))
    gpus_of = dict(zip(trace.jobs["id"], trace.jobs["gpus"], strict=True))
    for row in records(trace.attempts):
        end = trace.end_seconds if row["end_seconds"] is None else row["end_seconds"]
        hours = np.arange(row["start_seconds"], end) // 3600 * 3600
        for hour, seconds in zip(*np.unique(hours, return_counts=True), strict=True):
            expected[int(hour), row["pool"], lane_of[row["job"]]] += seconds * gpus_of[row["job"]]
    rows = records(use.hourly(trace, by=("pool", "lane")))
    found = {
        (row["hour_seconds"], row["pool"], row["lane"]): row["allocated_gpu_seconds"]
        for row in rows
    }
    assert {key: value for key, value in found.items() if value} == expected


@settings(max_examples=60, deadline=None)
@given(scenario_mappings())
def test_stopping_earlier_shows_the_same_beginning(mapping: dict[str, Any]) -> None:
    whole = simulate(_without_horizon(parse(mapping)))
    half = whole.end_seconds // 2
    part = simulate(dataclasses.replace(whole.scenario, horizon_seconds=half))
    starts = whole.attempts[whole.attempts["start_seconds"] <= half]
    columns = ["job", "attempt", "pool", "start_seconds"]
    assert records(part.attempts[columns]) == records(starts[columns])


def _without_horizon(scenario: Scenario) -> Scenario:
    return dataclasses.replace(scenario, horizon_seconds=None)
