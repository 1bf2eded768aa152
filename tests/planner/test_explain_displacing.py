"""`explain`: why nobody was displaced for a job that may displace others."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from planner.explanation.facts import Spared, Undisplaced
from planner.scenario import Scenario, parse
from planner.vocabulary import Reclaim
from tests.planner.building import job, scenario
from tests.planner.drawing import scenario_mappings
from tests.planner.explaining import at, quotas

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def lanes(protect: int) -> list[dict[str, Any]]:
    return [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50, "protect_seconds": protect},
    ]


def undisplaced(plan: Scenario) -> tuple[Undisplaced | None, list[str], list[str]]:
    """Why nobody was displaced for job "c" by second 20, and all that is said of it."""
    facts, en, ja = at(plan, "c", 20)
    (pool,) = facts.pools
    return pool.undisplaced, en, ja


URGENT = job("c", submit=10, gpus=8, lane="emergency")
RECLAIM = {"policy": {"order": "fifo", "placement": "listed", "reclaim": "any"}}
# What there is; why nobody goes, how many jobs and GPUs might, how many of them are protected
# until when; and the sentences, both at second 20.
SPARED: dict[str, tuple[Scenario, tuple[object, ...], str, str]] = {
    "nobody below it": (
        scenario(job("a", gpus=16, lane="emergency"), URGENT, quota=quotas(32, 8)),
        (Spared.NOBODY, 0, 0, 0, None),
        (
            "nothing runs there in a lane that emergency preempts (primary), and nothing borrowed "
            "can be reclaimed (reclaim: never)."
        ),
        "レーン(primary)のジョブも、回収できる借用分(reclaim: never)もありませんでした。",
    ),
    "nobody borrows": (
        scenario(
            job("a", gpus=16, project="vision"), job("c", submit=10, gpus=4),
            quota=quotas(8, 16), **RECLAIM,
        ),
        (Spared.NOBODY, 0, 0, 0, None),
        (
            "nothing runs there in a lane that primary preempts (none), and nothing borrowed "
            "can be reclaimed (reclaim: any)."
        ),
        "レーン(なし)のジョブも、回収できる借用分(reclaim: any)もありませんでした。",
    ),
    "it would borrow": (
        scenario(job("a", gpus=12, project="vision"), URGENT, quota=quotas(6, 16)),
        (Spared.OVER_NOMINAL, 0, 0, 0, None),
        (
            "with 8 GPUs more project speech would hold 8 GPUs of 6 nominal, and borrowed GPUs "
            "displace no other project's jobs."
        ),
        "さらにGPU 8基を使うとプロジェクトspeechの使用はGPU 8基となって公称6を超え",
    ),
    "all protected": (
        scenario(
            job("a", gpus=8), job("b", submit=5, gpus=8), URGENT,
            lane=lanes(60), quota=quotas(32, 0),
        ),
        (Spared.PROTECTED, 2, 16, 2, 60),
        (
            "in the latest pass, at second 10, those that it may displace (2 jobs, 16 GPUs) were "
            "protected, the first of them until second 60; the next pass after that looks again."
        ),
        (
            "直近の10秒のスケジューリングサイクルでは、退避できるジョブ(2件、GPU 16基)は"
            "すべて保護期間中でした(最初に終わる保護は60秒まで)。その後のサイクルで再び検討されます。"
        ),
    ),
    "too few": (
        scenario(
            job("a", gpus=12, lane="emergency"), job("b", gpus=3), URGENT, quota=quotas(32, 0)
        ),
        (Spared.NOT_ENOUGH, 1, 3, 0, None),
        (
            "those that it may displace (1 job, 3 GPUs; reclaimed ones only as long as their "
            "project borrows) would not make enough room."
        ),
        "ジョブ(1件、GPU 3基。回収は相手が借用している範囲まで)では足りません。",
    ),
    "too few, and the others protected": (
        scenario(
            job("a", gpus=4), job("b", submit=5, gpus=4), job("d", submit=5, gpus=8),
            URGENT, lane=lanes(8), quota=quotas(32, 0),
        ),
        (Spared.NOT_ENOUGH, 3, 16, 2, 13),
        (
            "in the latest pass, at second 10, those that it may displace (3 jobs, 16 GPUs; "
            "reclaimed ones only as long as their project borrows), less 2 jobs still protected, "
            "would not have made enough room; the first protection ends at second 13, and the "
            "next pass after that looks again."
        ),
        "のうち2件は保護期間中で(最初に終わる保護は13秒まで)、残りでは足りませんでした。",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARED)
def test_a_job_with_rights_is_told_why_nobody_was_displaced(name: str) -> None:
    plan, numbers, english, japanese = SPARED[name]
    facts, en, ja = undisplaced(plan)
    assert facts is not None
    assert numbers == (
        facts.why,
        facts.jobs,
        facts.gpus,
        facts.protected_jobs,
        facts.protected_until_seconds,
    )
    assert f"  Nobody was displaced in h100: {english}" in en
    assert any("h100で退避されたジョブはありません" in line and japanese in line for line in ja)


def test_a_protection_that_is_over_is_told_as_it_was_when_the_job_was_last_looked_at() -> None:
    # The end of a protection is no instant of its own: nobody looked again by second 70.
    plan = scenario(job("a", gpus=16), URGENT, lane=lanes(50), quota=quotas(32, 0))
    _, en, ja = at(plan, "c", 70)
    assert [line for line in en if "in the latest pass, at second 10, " in line]
    assert [line for line in en if "were protected, the first of them until second 50;" in line]
    assert [line for line in ja if "直近の10秒" in line and "50秒まで" in line]


def test_every_cause_is_told_here() -> None:
    assert {numbers[0] for _, numbers, _, _ in SPARED.values()} == set(Spared)


def test_a_job_without_rights_is_not_told_of_others() -> None:
    facts, en, _ = undisplaced(
        scenario(job("a", gpus=16), job("c", submit=10), quota=quotas(32, 0))
    )
    assert facts is None
    assert not [line for line in en if "displaced" in line]


def test_who_was_not_tried_is_not_told_of_others() -> None:
    strict = [lane | {"queueing": "strict"} for lane in lanes(100)]
    plan = scenario(
        job("a", gpus=16), job("b", submit=5, gpus=8, lane="emergency"), URGENT,
        lane=strict, quota=quotas(40, 0),
    )  # fmt: skip
    facts, en, _ = undisplaced(plan)
    assert facts is None
    assert [line for line in en if "were protected, the first of them until second 100;" in line]


@MANY
@given(scenario_mappings())
def test_it_is_told_to_whoever_has_rights_and_to_nobody_else(drawn: dict[str, Any]) -> None:
    plan = parse(drawn)
    lane_of = {lane.name: lane for lane in plan.lanes}
    for each in plan.jobs[:6]:
        facts, _, _ = at(plan, each.id, plan.horizon_seconds or 200)
        for pool in facts.pools:
            if pool.undisplaced is None:
                continue
            assert lane_of[each.lane].preempts or plan.policy.reclaim is not Reclaim.NEVER
            protected = pool.undisplaced.protected_until_seconds
            assert protected is None or protected > facts.passed_at_seconds
            assert (pool.undisplaced.jobs == 0) == (
                pool.undisplaced.why in (Spared.NOBODY, Spared.OVER_NOMINAL)
            )
