"""What the measures say of runs that can be worked out by hand."""

import pickle

import pytest

from planner import simulate
from planner.__main__ import records
from planner.measures import fairness, goodput, ledger, locality, use, waits
from planner.trace import Trace
from planner.vocabulary import SENTENCES, Reason
from tests.planner.building import job, scenario

NO_BORROWING = [
    {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
    {"project": "vision", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
]


@pytest.fixture
def queue() -> Trace:
    """Three jobs of one project, one after the other: 0 to 100, to 200, the third waits."""
    jobs = [job(f"j{i}", submit=10 * i, gpus=8, work=100) for i in range(3)]
    return simulate(scenario(*jobs, quota=NO_BORROWING, horizon_seconds=150))


def test_waits_count_who_still_waits_with_their_age_and_say_at_least(queue: Trace) -> None:
    (row,) = records(waits.by(queue, ("lane",)))
    # 0, 90 and, so far, 150 - 20 = 130.
    assert (row["lane"], row["jobs"], row["waiting"]) == ("primary", 3, 1)
    assert (row["p50_seconds"], row["p90_seconds"], row["longest_seconds"]) == (90, 130, 130)
    assert row["mean_seconds"] == pytest.approx(220 / 3)
    assert row["at_least"] is True


def test_waits_are_of_the_jobs_submitted_in_a_time(queue: Trace) -> None:
    (row,) = records(waits.by(queue, (), since_seconds=5, until_seconds=20))
    assert (row["jobs"], row["p99_seconds"], row["at_least"]) == (1, 90, False)
    assert records(waits.by(queue, ("lane",), since_seconds=1000)) == []


def test_waits_group_by_several_keys_and_leave_out_what_can_never_run() -> None:
    jobs = [job("a"), job("b", project="vision"), job("c", gpus=99)]
    rows = records(waits.by(simulate(scenario(*jobs)), ("project", "lane")))
    assert [(row["project"], row["jobs"]) for row in rows] == [("speech", 1), ("vision", 1)]


def test_first_and_total_wait_are_two_things() -> None:
    jobs = [
        job("a", gpus=8, work=100),
        job("e", submit=50, gpus=8, work=30, lane="emergency"),
    ]
    trace = simulate(scenario(*jobs, quota=NO_BORROWING))
    first = {row["lane"]: row["longest_seconds"] for row in records(waits.by(trace))}
    total = {r["lane"]: r["longest_seconds"] for r in records(waits.by(trace, which="total"))}
    assert first == {"emergency": 0, "primary": 0}
    assert total == {"emergency": 0, "primary": 30}


@pytest.fixture
def eviction() -> Trace:
    """A job loses 20 of 120 s to an emergency, restarts for 5 s and finishes."""
    jobs = [
        job("a", gpus=8, work=200, checkpoint_interval_seconds=100, restart_seconds=5),
        job("e", submit=120, gpus=8, work=30, lane="emergency"),
    ]
    return simulate(scenario(*jobs, quota=NO_BORROWING))


def test_goodput_splits_what_was_held_and_names_the_cause_of_the_loss(eviction: Trace) -> None:
    rows = {row["lane"]: row for row in records(goodput.by(eviction, ("lane",)))}
    primary = rows["primary"]
    assert primary["held_gpu_seconds"] == 8 * (120 + 5 + 100)
    assert primary["useful_gpu_seconds"] == 1600
    assert primary["lost_gpu_seconds"] == primary["lost_to_preemption_gpu_seconds"] == 160
    assert primary["lost_to_reclaim_gpu_seconds"] == primary["lost_to_outage_gpu_seconds"] == 0
    assert primary["restart_gpu_seconds"] == 40
    assert primary["goodput_ratio"] == pytest.approx(1600 / 1800)
    assert rows["emergency"]["goodput_ratio"] == 1
    (total,) = records(goodput.by(eviction, ()))
    assert total["held_gpu_seconds"] == 1800 + 240


def test_the_ledger_names_both_sides(eviction: Trace) -> None:
    assert records(ledger.pairs(eviction)) == [
        {
            "preemptor_project": "speech",
            "preemptor_lane": "emergency",
            "victim_project": "speech",
            "victim_lane": "primary",
            "ground": "preemption",
            "evictions": 1,
            "lost_gpu_seconds": 160,
        }
    ]


def test_a_pair_that_meets_three_times_in_an_hour_is_a_loop() -> None:
    urgent = [
        job(f"e{i}", submit=at, gpus=8, work=10, lane="emergency")
        for i, at in enumerate([100, 1000, 2000, 9000, 20_000, 20_100])
    ]
    trace = simulate(scenario(job("a", gpus=8, work=30_000), *urgent, quota=NO_BORROWING))
    (loop,) = records(ledger.loops(trace))
    assert (loop["from_seconds"], loop["to_seconds"], loop["evictions"]) == (100, 2000, 3)


def test_locality_tells_what_ran_beside_its_data_and_what_was_moved() -> None:
    jobs = [
        job("home", gpus=1, work=100, data_region="tokyo", data_gb=100),
        job("away", gpus=2, work=80, data_region="osaka", data_gb=100),
        job("none", gpus=4, work=100),
    ]
    trace = simulate(scenario(*jobs))
    (row,) = records(locality.by_project(trace))
    # 100 GB x 8 / 40 Gbit/s = 20 s on 2 GPUs; no data, no say in the ratio.
    assert (row["held_gpu_seconds"], row["beside_data_gpu_seconds"]) == (100 + 200, 100)
    assert row["beside_data_ratio"] == pytest.approx(1 / 3)
    assert (row["staged_gb"], row["staging_seconds"], row["staging_gpu_seconds"]) == (100, 20, 40)
    (link,) = records(locality.by_link(trace))
    assert (link["from_region"], link["to_region"], link["staged_gb"]) == ("osaka", "tokyo", 100)


def test_delivered_is_measured_against_the_nominal_part_of_the_pool(queue: Trace) -> None:
    speech, vision = records(fairness.delivered(queue))
    assert (speech["delivered_gpu_seconds"], speech["entitled_gpu_seconds"]) == (1200, 1200)
    assert (speech["delivered_ratio"], vision["delivered_ratio"]) == (1, 0)


def test_jains_index_runs_from_one_over_n_to_one() -> None:
    assert fairness.jain([3, 3, 3]) == 1
    assert fairness.jain([1, 0, 0, 0]) == 0.25
    assert fairness.jain([1, None, float("nan"), 1]) == 1
    assert fairness.jain([]) is None
    assert fairness.jain([0, 0]) is None


def test_use_is_cut_at_full_hours() -> None:
    trace = simulate(scenario(job("a", submit=3000, gpus=2, work=5000)))
    rows = records(use.hourly(trace))
    assert [(row["hour_seconds"], row["allocated_gpu_seconds"]) for row in rows] == [
        (0, 2 * 600),
        (3600, 2 * 3600),
        (7200, 2 * 800),
    ]
    assert [row["useful_gpu_seconds"] for row in rows] == [1200, 7200, 1600]


def test_waiting_is_cut_at_full_hours() -> None:
    jobs = [job("a", gpus=8, work=4000), job("b", submit=3000, gpus=4, work=1)]
    trace = simulate(scenario(*jobs, quota=NO_BORROWING))
    rows = records(use.hourly(trace, by=("lane",)))
    assert [(row["hour_seconds"], row["waiting_gpu_seconds"]) for row in rows] == [
        (0, 4 * 600),
        (3600, 4 * 400),
    ]


def test_useful_work_stands_in_the_hour_it_was_done() -> None:
    # 10 minutes of work, then 5 of writing: at 3600 s four of them are over, at 7200 s eight.
    run = job("a", gpus=2, work=5400, checkpoint_interval_seconds=600, checkpoint_gb=450)
    trace = simulate(scenario(run))
    rows = records(use.hourly(trace))
    assert [(row["useful_gpu_seconds"], row["allocated_gpu_seconds"]) for row in rows] == [
        (2 * 2400, 2 * 3600),
        (2 * 2400, 2 * 3600),
        (2 * 600, 2 * 600),
    ]


def test_a_job_waits_at_every_pool_that_may_hold_it() -> None:
    like = {"domain": "tokyo-a", "accelerator": "H100", "nodes": 1, "gpus_per_node": 8}
    quota = [
        {"project": "speech", "pool": name, "nominal": 8, "borrowing_limit": 0}
        for name in ("a", "b")
    ]
    trace = simulate(
        scenario(
            *[job("1", gpus=8), job("2", gpus=8), job("3", gpus=2, work=1)],
            pool=[{"name": name} | like for name in ("a", "b")],
            quota=quota,
        )
    )
    rows = records(use.hourly(trace, by=("pool", "lane")))
    assert [(row["pool"], row["waiting_gpu_seconds"]) for row in rows] == [
        ("a", 2 * 100),
        ("b", 2 * 100),
    ]
    (together,) = records(use.hourly(trace, by=()))
    assert together["waiting_gpu_seconds"] == 2 * 100


def test_hours_beyond_a_century_are_refused_in_words() -> None:
    trace = simulate(scenario(job("a", gpus=1, work=1 << 50)))
    with pytest.raises(ValueError, match="expected at most 1,000,000"):
        use.hourly(trace)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="got colour"):
        use.hourly(simulate(scenario(job("a"))), by=("colour",))


def test_a_run_without_jobs_has_empty_measures() -> None:
    trace = simulate(scenario(horizon_seconds=10))
    frames = [
        waits.by(trace),
        goodput.by(trace),
        ledger.pairs(trace),
        ledger.loops(trace),
        locality.by_project(trace),
        locality.by_link(trace),
        use.hourly(trace),
    ]
    assert [len(frame) for frame in frames] == [0] * len(frames)
    assert [row["delivered_gpu_seconds"] for row in records(fairness.delivered(trace))] == [0, 0]


def test_every_reason_has_its_sentences() -> None:
    assert set(SENTENCES) == set(Reason)
    assert all(sentence.en.endswith(".") for sentence in SENTENCES.values())
    assert all(sentence.ja.endswith("。") for sentence in SENTENCES.values())


def test_a_trace_that_was_pickled_has_the_same_records(eviction: Trace) -> None:
    again = pickle.loads(pickle.dumps(eviction))
    assert records(again.jobs) == records(eviction.jobs)
    assert records(again.evictions) == records(eviction.evictions)
    assert records(goodput.by(again)) == records(goodput.by(eviction))
