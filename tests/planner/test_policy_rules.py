"""The rules of the five dimensions, each by itself, against published numbers or brute force."""

import dataclasses
import random
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import simulate
from planner.__main__ import records
from planner.fleet import Outage, Storage
from planner.policy import PolicySettings
from planner.policy.checkpoint import (
    back_off_seconds,
    spent,
    staging_seconds,
    write_seconds,
    writes_in,
)
from planner.policy.placement import Nodes
from planner.policy.priority import DominantShares, Lane
from planner.policy.quota import Accounts, Quota
from planner.scenario import ScenarioError
from planner.vocabulary import Placement, Queueing, Recovery
from tests.planner.building import job, scenario

# --- Quota: the numbers of Kueue's documentation (two queues of 9 and 12 in one cohort)


def _accounts(first: Quota, second: Quota) -> Accounts:
    return Accounts([0, 0], [(0, first), (1, second)])


def test_a_project_may_use_its_own_and_its_cohorts_quota() -> None:
    accounts = _accounts(Quota("a", "p", 9), Quota("b", "p", 12))
    assert accounts.most(0) == accounts.available(0) == 21
    assert accounts.fits(0, 21)
    assert not accounts.fits(0, 22)


def test_a_borrowing_limit_caps_what_is_borrowed() -> None:
    accounts = _accounts(Quota("a", "p", 9, borrowing_limit=1), Quota("b", "p", 12))
    assert accounts.most(0) == 10
    assert accounts.fits(0, 10)
    assert not accounts.fits(0, 11)
    assert accounts.available(0) == 21


def test_a_lending_limit_caps_what_is_lent() -> None:
    accounts = _accounts(Quota("a", "p", 9), Quota("b", "p", 12, lending_limit=1))
    assert accounts.most(0) == 10
    accounts.add(0, 10)
    assert accounts.borrows(0)
    assert accounts.available(1) == 11  # its guarantee; the one it lends is lent
    accounts.add(0, -10)
    assert accounts.available(1) == 21
    assert accounts.borrowers == 0


def test_promises_beyond_the_pool_are_run_and_capacity_decides() -> None:
    trace = simulate(
        scenario(
            job("a", gpus=16, work=10),
            job("b", gpus=16, work=10, project="vision"),
            quota=[
                {"project": "speech", "pool": "h100", "nominal": 16},
                {"project": "vision", "pool": "h100", "nominal": 16},
            ],
        )
    )
    assert trace.spells["reason"].tolist() == ["WaitingForCapacity"]
    assert trace.jobs["end_seconds"].tolist() == [10, 20]


# --- Priority


def test_the_higher_lane_goes_first_whoever_came_first() -> None:
    jobs = [
        job("fills", gpus=16, work=100),
        job("early", 1, gpus=16, work=10, lane="background"),
        job("late", 2, gpus=16, work=10, lane="primary"),
        job("last", 3, gpus=16, work=10, lane="emergency"),
    ]
    lanes = [
        {"name": "background", "rank": 10},
        {"name": "emergency", "rank": 100},
        {"name": "primary", "rank": 50},
    ]
    trace = simulate(scenario(*jobs, lane=lanes))
    assert trace.jobs["first_start_seconds"].tolist() == [0, 120, 110, 100]


def test_a_dominant_share_is_what_is_borrowed_of_the_cohort_by_weight() -> None:
    # Kueue's own row: nominal 5, usage 7, another queue with 5: (7 - 5) * 1000 / 10 = 200.
    accounts = Accounts([0, 0, 0], [(0, Quota("a", "p", 5)), (1, Quota("b", "p", 5))])
    shares = DominantShares([accounts], [Fraction(1), Fraction(2), Fraction(1)])
    accounts.add(0, 7)
    accounts.add(1, 7)
    for project in (0, 1):
        shares.forget(project)
    assert shares.of(0) == 2 * shares.of(1) > 0
    assert shares.of(2) == 0
    accounts.add(0, -2)
    shares.forget(0)
    assert shares.of(0) == 0


def test_weight_zero_is_an_infinite_share_while_borrowing_only() -> None:
    accounts = Accounts([0, 0], [(0, Quota("a", "p", 5)), (1, Quota("b", "p", 5))])
    shares = DominantShares([accounts], [Fraction(0), Fraction(1)])
    assert shares.of(0) == 0
    accounts.add(0, 6)
    shares.forget(0)
    assert shares.of(0) == inf


def test_equal_fractions_are_equal_shares() -> None:
    # 2 / 6 / 3 and 1 / 9 / 1 are one number, but not as floats.
    six = Accounts([0, 1], [(0, Quota("a", "p", 6))])
    nine = Accounts([0, 1], [(1, Quota("b", "q", 9))])
    shares = DominantShares([six, nine], [Fraction(3), Fraction(1)])
    six.add(0, 8)
    nine.add(1, 10)
    for project in (0, 1):
        shares.forget(project)
    assert shares.of(0) == shares.of(1)


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"order": "fair-share", "backfill": "easy"}, "policy.backfill"),
        ({"order": "fifo", "multifactor": {"age_weight": 1}}, "policy.multifactor"),
        (
            {"order": "multifactor", "multifactor": {"age_weight": -1}},
            "policy.multifactor.age_weight",
        ),
        (
            {"order": "multifactor", "multifactor": {"half_life_seconds": 0}},
            "policy.multifactor.half_life_seconds",
        ),
    ],
)
def test_rules_that_do_not_go_together_are_refused_by_their_path(
    policy: dict[str, Any], path: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(job("a"), policy=policy)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_rules_may_be_given_by_their_words_but_not_by_others() -> None:
    by_word = dataclasses.replace(PolicySettings(), placement="pack")  # type: ignore[arg-type]
    assert by_word.placement is Placement.PACK
    lane = Lane("a", 1, queueing="strict", recovery="suspend")  # type: ignore[arg-type]
    assert (lane.queueing, lane.recovery) == (Queueing.STRICT, Recovery.SUSPEND)
    with pytest.raises(ValueError, match="lifo"):
        PolicySettings(order="lifo")  # type: ignore[arg-type]


# --- Placement


def _brute_fit(free: list[int], gpus: int, per_node: int) -> bool:
    whole, rest = divmod(gpus, per_node)
    ways = product(*[sorted({0, rest, per_node}) for _ in free])
    return any(
        all(take <= have for take, have in zip(way, free, strict=True))
        and (
            sum(take == per_node for take in way),
            sum(take == rest for take in way if rest and take < per_node),
        )
        == (whole, 1 if rest else 0)
        for way in ways
    )


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([1, 2, 4, 8]))
def test_a_gang_fits_exactly_when_some_arrangement_exists(
    seed: int, count: int, per_node: int
) -> None:
    draw = random.Random(seed)
    nodes = Nodes(count, per_node)
    for node in range(count):
        nodes.take([(node, draw.randint(0, per_node))])
    for gpus in range(1, count * per_node + 1):
        fits = nodes.fits(gpus)
        assert fits == _brute_fit(nodes.free, gpus, per_node)
        if fits:
            shares = nodes.choose(gpus)
            assert sum(taken for _, taken in shares) == gpus
            assert len({node for node, _ in shares}) == len(shares)
            after = nodes.copy()
            after.take(shares)
            assert min(after.free) >= 0
            after.give(shares)
            assert (after.free, after.nodes_with) == (nodes.free, nodes.nodes_with)


def test_a_small_gang_goes_to_the_fullest_node_that_holds_it() -> None:
    nodes = Nodes(3, 8)
    nodes.take([(0, 2), (1, 5), (2, 5)])
    assert nodes.choose(3) == [(1, 3)]  # 6, 3 and 3 are free: the lowest number of the fullest
    assert nodes.choose(4) == [(0, 4)]


def test_a_large_gang_takes_whole_nodes_and_the_remainder_best_fit() -> None:
    nodes = Nodes(4, 8)
    nodes.take([(0, 1), (3, 5)])
    assert nodes.choose(10) == [(1, 8), (3, 2)]
    assert nodes.choose(12) == [(1, 8), (0, 4)]
    assert nodes.choose(16) == [(1, 8), (2, 8)]


TWO_POOLS = {
    "pool": [
        {"name": "t", "domain": "tokyo-a", "accelerator": "H100", "nodes": 1, "gpus_per_node": 8},
        {"name": "o", "domain": "osaka-a", "accelerator": "H100", "nodes": 2, "gpus_per_node": 8},
    ],
    "quota": [
        {"project": "speech", "pool": "t", "nominal": 8},
        {"project": "speech", "pool": "o", "nominal": 16},
    ],
}


@pytest.mark.parametrize(
    ("placement", "jobs", "pools"),
    [
        ("listed", [job("a"), job("b")], ["t", "t"]),
        ("locality", [job("a"), job("b", data_region="tokyo", data_gb=1)], ["o", "t"]),
        ("pack", [job("a"), job("b", gpus=8)], ["t", "o"]),
        ("spread", [job("a", gpus=2), job("b"), job("c")], ["o", "t", "t"]),
    ],
)
def test_placement_tries_its_own_pool_first(
    placement: str, jobs: list[dict[str, object]], pools: list[str]
) -> None:
    policy = {"order": "fifo", "placement": placement}
    trace = simulate(scenario(*jobs, policy=policy, **TWO_POOLS))
    assert trace.jobs["pool"].tolist() == pools


# --- Checkpoint


def test_derived_durations_are_rounded_up_exactly() -> None:
    assert staging_seconds(Decimal("0.1"), Decimal("0.8")) == 1
    assert staging_seconds(Decimal("33.3"), Decimal("2.5")) == 107  # 106.56
    assert write_seconds(Decimal("0.3"), Decimal("0.1")) == 3  # as floats: 2.9999...
    assert write_seconds(Decimal("1.1"), Decimal("0.1")) == 11  # as floats: 11.0000...1
    assert write_seconds(Decimal(5), None) == 0


@pytest.mark.parametrize(
    ("work", "interval", "writes"), [(100, 0, 0), (100, 100, 0), (101, 100, 1), (200, 100, 1)]
)
def test_the_last_piece_of_work_writes_nothing(work: int, interval: int, writes: int) -> None:
    assert writes_in(work, interval) == writes


@given(
    st.integers(0, 400),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 40),
    st.integers(0, 20),
)
def test_the_split_of_an_attempt_equals_living_it_second_by_second(
    elapsed: int, staging: int, restart: int, interval: int, write: int
) -> None:
    progress = saved = writing = since_save = left_to_write = 0
    for second in range(elapsed):
        if second < staging + restart:
            continue
        if left_to_write:
            writing += 1
            left_to_write -= 1
            if not left_to_write:
                saved = progress
            continue
        progress += 1
        since_save += 1
        if interval and since_save == interval:
            since_save, left_to_write = 0, write
            if not write:
                saved = progress
    split = spent(elapsed, staging=staging, restart=restart, interval=interval, write=write)
    assert (split.progress, split.saved, split.writing) == (progress, saved, writing)
    assert split.staging == min(elapsed, staging)
    assert split.restart == min(max(0, elapsed - staging), restart)


def test_back_off_doubles_up_to_its_limit() -> None:
    assert [back_off_seconds(60, 300, n) for n in (1, 2, 3, 4, 900)] == [60, 120, 240, 300, 300]
    assert back_off_seconds(60, None, 5) == 960
    assert back_off_seconds(0, 300, 3) == 0


def test_storage_is_lost_with_its_domain_or_region_and_never_with_a_pool() -> None:
    regions = {"tokyo-a": "tokyo", "tokyo-b": "tokyo"}
    in_domain = Storage("s", Decimal(1), region="tokyo", domain="tokyo-a")
    in_region = Storage("s", Decimal(1), region="tokyo")
    anywhere = Storage("s", Decimal(1))
    cases = {
        Outage(0, 1, domain="tokyo-a"): (True, False, False),
        Outage(0, 1, domain="tokyo-b"): (False, False, False),
        Outage(0, 1, region="tokyo"): (True, True, False),
        Outage(0, 1, pool="p"): (False, False, False),
    }
    for outage, lost in cases.items():
        assert lost == tuple(
            storage.lost_with(outage, regions) for storage in (in_domain, in_region, anywhere)
        )


# --- Preemption


def test_who_would_borrow_displaces_nobody_of_another_project() -> None:
    jobs = [
        job("own", project="vision", gpus=8, work=1000),
        job("other", submit=1, gpus=8, work=1000),
        job("urgent", submit=2, gpus=8, work=10, lane="emergency", project="vision"),
    ]
    trace = simulate(scenario(*jobs))
    # `other` is the younger one, but vision holds all its nominal quota already.
    pairs = [(row["victim"], row["preemptor"]) for row in records(trace.evictions)]
    assert pairs == [("own", "urgent")]


_LANES = [
    {"name": "emergency", "rank": 100, "preempts": ["primary", "background"]},
    {"name": "primary", "rank": 50},
    {"name": "background", "rank": 10},
]
_ALL = [{"project": "speech", "pool": "h100", "nominal": 16}]


@pytest.mark.parametrize(
    ("running", "asks", "more", "victim"),
    [
        pytest.param(
            [
                job("borrows", project="vision", gpus=8, work=900),
                job("own", 10, gpus=8, work=900),
            ],
            {"project": "audio", "gpus": 4},
            {
                "project": [
                    {"name": name, "tenant": "kaguya"} for name in ("speech", "vision", "audio")
                ],
                "quota": [
                    {"project": "speech", "pool": "h100", "nominal": 8},
                    {"project": "vision", "pool": "h100", "nominal": 4},
                    {"project": "audio", "pool": "h100", "nominal": 4},
                ],
            },
            "borrows",
            id="who borrows, though older",
        ),
        pytest.param(
            [job("low", lane="background", gpus=8, work=900), job("high", 10, gpus=8, work=900)],
            {"gpus": 8},
            {"quota": _ALL},
            "low",
            id="the lower lane, though older",
        ),
        pytest.param(
            [job("young", 10, gpus=8, work=900), job("old", gpus=8, work=900)],
            {"gpus": 8},
            {"quota": _ALL},
            "young",
            id="the youngest, though first in the file",
        ),
        pytest.param(
            [job("first", gpus=8, work=900), job("last", gpus=8, work=900)],
            {"gpus": 8},
            {"quota": _ALL},
            "last",
            id="the last in the file where all else is equal",
        ),
        pytest.param(
            # At 100 the wide one would lose 90 s of 4 GPUs, the narrow one 100 s of 1.
            [
                job("wide", 10, gpus=4, work=900),
                job("narrow", gpus=1, work=900),
                job("other", lane="emergency", gpus=11, work=900),
            ],
            {"gpus": 1},
            {"quota": _ALL, "policy": {"victims": "least-lost-work", "placement": "listed"}},
            "narrow",
            id="the least lost in GPU-seconds, not in seconds",
        ),
    ],
)
def test_victims_are_taken_in_the_order_of_the_contract(
    running: list[dict[str, object]],
    asks: dict[str, int],
    more: dict[str, object],
    victim: str,
) -> None:
    urgent = job("urgent", 100, lane="emergency", work=10) | asks
    trace = simulate(scenario(*running, urgent, lane=_LANES, **more))
    assert trace.evictions["victim"].tolist() == [victim]
    assert trace.evictions["at_seconds"].tolist() == [100]


def test_the_one_taken_later_is_spared_first() -> None:
    jobs = [
        job("c", gpus=8, work=900),
        job("b", 10, gpus=4, work=900),
        job("a", 20, gpus=4, work=900),
        job("urgent", 100, lane="emergency", gpus=12, work=10),
    ]
    # Taken: a (4), b (8), c (16 free). With b back 12 are free, enough; with a back too, 8.
    trace = simulate(scenario(*jobs, lane=_LANES, quota=_ALL))
    assert sorted(trace.evictions["victim"]) == ["a", "c"]


def test_who_would_be_cancelled_would_lose_saved_work_too() -> None:
    lanes = [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50, "max_requeues": 1},
    ]
    jobs = [
        job("again", gpus=8, work=900, checkpoint_interval_seconds=10),
        job("fresh", gpus=8, work=900, checkpoint_interval_seconds=22, project="vision"),
        job("first", 55, lane="emergency", gpus=8, work=5),
        job("urgent", 65, lane="emergency", gpus=8, work=5),
    ]
    # At 55 `again` would lose 5 s and `fresh` 11. At 65 `fresh` would lose 21, and `again`, 5 s
    # into its second attempt, would be cancelled and lose the 50 s it had saved as well.
    trace = simulate(
        scenario(
            *jobs,
            lane=lanes,
            policy={"order": "fifo", "victims": "least-lost-work", "placement": "listed"},
            quota=[
                {"project": "speech", "pool": "h100", "nominal": 16},
                {"project": "vision", "pool": "h100", "nominal": 8},
            ],
        )
    )
    assert trace.evictions["victim"].tolist() == ["again", "fresh"]
    assert trace.evictions["lost_gpu_seconds"].tolist() == [8 * 5, 8 * 21]


def test_a_young_attempt_is_protected() -> None:
    lanes = [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50, "protect_seconds": 60},
    ]
    jobs = [
        job("a", gpus=8, work=1000),
        job("e", submit=10, gpus=8, lane="emergency"),
        job("tick", submit=59, project="vision", work=1),
        job("tock", submit=61, project="vision", work=1),
    ]
    quota = [
        {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
        {"project": "vision", "pool": "h100", "nominal": 8},
    ]
    trace = simulate(scenario(*jobs, lane=lanes, quota=quota))
    # At 59 it is 59 s old; at 60 `tick` ends, and the pass of that second may evict it.
    assert trace.evictions["at_seconds"].tolist() == [60]


def test_a_job_evicted_too_often_is_cancelled_and_loses_everything() -> None:
    lanes = [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50, "max_requeues": 1},
    ]
    jobs = [
        job("a", gpus=8, work=1000, checkpoint_interval_seconds=10),
        job("e1", submit=55, gpus=8, work=5, lane="emergency"),
        job("e2", submit=80, gpus=8, work=5, lane="emergency"),
    ]
    limited = [
        {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 0},
        {"project": "vision", "pool": "h100", "nominal": 8},
    ]
    trace = simulate(scenario(*jobs, lane=lanes, quota=limited))
    row = records(trace.jobs)[0]
    # 0 to 55 (50 saved), 60 to 80: the second eviction is one too many.
    assert (row["state"], row["end_seconds"], row["preemptions"]) == ("cancelled", 80, 2)
    assert (row["useful_gpu_seconds"], row["lost_gpu_seconds"]) == (0, 8 * (55 + 20))
    assert trace.evictions["lost_gpu_seconds"].tolist() == [8 * 5, 8 * (50 + 20)]


# --- Jobs that can never run


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"project": "vision"}, "LaneNotAssigned"),
        ({"pools": ["spare"]}, "NoQuota"),
        ({"accelerator": "A100"}, "NoMatchingAccelerator"),
        ({"regions": ["osaka"]}, "ResidencyForbids"),
        ({"data_region": "osaka"}, "NoLink"),
        ({"gpus": 17}, "ExceedsPool"),
        ({"gpus": 13}, "ExceedsMaxQuota"),
        ({"gpus": 5, "lane": "emergency"}, "ExceedsMaxQuota"),
    ],
)
def test_a_job_that_can_never_run_is_told_the_first_step_that_leaves_no_pool(
    more: dict[str, object], reason: str
) -> None:
    pool = {"domain": "tokyo-a", "accelerator": "H100", "nodes": 2, "gpus_per_node": 8}
    trace = simulate(
        scenario(
            job("a") | more,
            link=[],
            pool=[pool | {"name": "h100"}, pool | {"name": "spare"}],
            quota=[
                {"project": "speech", "pool": "h100", "nominal": 8, "borrowing_limit": 4},
                {"project": "vision", "pool": "h100", "nominal": 8},
            ],
            assignment=[
                {"project": "speech", "lane": "primary"},
                {"project": "speech", "lane": "emergency", "max_gpus": 4},
            ],
        )
    )
    assert records(trace.jobs)[0]["reason"] == reason
    assert len(trace.spells) == 0
