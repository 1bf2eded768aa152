"""`explain`: the numbers behind a reason, pool by pool."""

from dataclasses import asdict
from typing import Any

from planner.scenario import Scenario
from planner.vocabulary import Reason
from tests.planner.building import job, mapping, scenario
from tests.planner.explaining import at, quotas


def test_the_quota_line_counts_what_is_guaranteed_borrowed_and_lent() -> None:
    plan = scenario(
        job("a", gpus=8), job("b", gpus=4, project="vision"), job("c", submit=10, gpus=8),
        quota=quotas(6, 8, borrowing_limit=4, lending_limit=2),
    )  # fmt: skip
    facts, en, _ = at(plan, "c", 20)
    assert asdict(facts.pools[0].quota) == {
        "nominal": 6,
        "lending_limit": 2,
        "guaranteed": 4,
        "usage": 8,
        "borrowed": 2,
        "borrowing_limit": 4,
        "ceiling": 10,
        "cohort": "all",
        "cohort_capacity": 10,  # 6 - 4 of speech, 8 of vision
        "cohort_use": 8,  # 8 - 4 of speech, 4 of vision
        "available": 2,
    }
    assert (
        "  Quota of speech in h100, in GPUs: nominal 6, guaranteed 4, usage 8, borrowed 2, "
        "borrowing limit 4; cohort all: 8 of 10 in use; available 2." in en
    )


def test_holders_are_told_by_project_and_lane_the_largest_first() -> None:
    plan = scenario(
        job("a", gpus=2), job("b", submit=3, gpus=2), job("d", gpus=8, project="vision"),
        job("e", submit=4, gpus=1, lane="emergency"), job("c", submit=10, gpus=8),
        quota=quotas(16, 16),
    )  # fmt: skip
    facts, en, ja = at(plan, "c", 20)
    assert [tuple(asdict(held).values()) for held in facts.pools[0].holders] == [
        ("vision", "primary", 8, 1, 0),
        ("speech", "primary", 4, 2, 0),
        ("speech", "emergency", 1, 1, 4),
    ]
    assert en[-1] == (
        "  Held in h100: vision in primary 8 GPUs (1 job, since second 0); speech in primary "
        "4 GPUs (2 jobs, since second 0); speech in emergency 1 GPU (1 job, since second 4)."
    )
    assert ja[-1] == (
        "  h100の使用中: vision/primary GPU 8基(ジョブ1件、0秒から)、speech/primary GPU 4基"
        "(ジョブ2件、0秒から)、speech/emergency GPU 1基(ジョブ1件、4秒から)。"
    )


def test_the_pool_that_gives_the_reason_is_told_first() -> None:
    pools = [mapping()["pool"][0] | {"name": name, "nodes": 1} for name in ("x", "y")]
    plan = scenario(
        job("a", gpus=5, pools=["y"]), job("c", gpus=8), pool=pools,
        quota=[
            {"project": "speech", "pool": "x", "nominal": 8},
            {"project": "speech", "pool": "y", "nominal": 16},
        ],
        outage=[{"pool": "x", "start_seconds": 0, "duration_seconds": 9}],
    )  # fmt: skip
    facts, en, _ = at(plan, "c", 5)
    assert [(pool.pool, pool.check) for pool in facts.pools] == [
        ("x", Reason.POOL_OUTAGE),
        ("y", Reason.WAITING_FOR_CAPACITY),
    ]
    assert facts.reason is Reason.WAITING_FOR_CAPACITY
    assert [line[:2] for line in en if line[:2] in ("x:", "y:")] == ["y:", "x:"]


def test_only_the_largest_holders_are_named_and_the_rest_is_summed_up() -> None:
    names = [f"q{number}" for number in range(7)]
    plan = scenario(
        *(job(f"j{name}", project=name, gpus=2) for name in names),
        job("c", submit=10, gpus=8, project="q0"),
        project=[{"name": name, "tenant": "kaguya"} for name in names],
        quota=[{"project": name, "pool": "h100", "nominal": 8} for name in names],
    )
    facts, en, _ = at(plan, "c", 20)
    assert len(facts.pools[0].holders) == 7
    assert "q4 in primary 2 GPUs (1 job, since second 0); and by 2 more, together 4 GPUs." in en[-1]
    assert "q5" not in en[-1]


def easy(*jobs: dict[str, Any]) -> Scenario:
    return scenario(
        *jobs,
        policy={"order": "fifo", "placement": "listed", "backfill": "easy"},
        quota=quotas(16, 16),
    )


def test_a_reservation_is_told_to_its_holder_and_to_whom_it_holds_back() -> None:
    plan = easy(
        job("a", gpus=12), job("b", submit=5, gpus=16), job("c", submit=10, gpus=4, work=200),
    )  # fmt: skip
    facts, en, ja = at(plan, "c", 20)
    assert facts.reason is Reason.BEHIND_IN_QUEUE
    reserved = facts.pools[0].reserved
    assert reserved is not None
    assert asdict(reserved) == {
        "holder": "b",
        "holder_gpus": 16,
        "at_seconds": 100,
        "spare_gpus": 0,
        "ends_seconds": 210,
        "binds": True,
    }
    assert en[3] == (
        "h100: the job would fit, but from second 100 on the pool is reserved for b (16 GPUs), "
        "which leaves 0 GPUs; by its limit the job would end at second 210."
    )
    assert ja[3].startswith(
        "h100: 空きには収まりますが、100秒からb(GPU 16基)のために予約されており"
    )
    holder, en, _ = at(plan, "b", 20)
    assert holder.reason is Reason.WAITING_FOR_CAPACITY
    assert en[-1] == "  h100 is reserved for it from second 100 on."


def test_a_job_that_lacks_gpus_itself_is_told_for_whom_the_pool_is_kept() -> None:
    plan = easy(job("a", gpus=14), job("b", submit=5, gpus=12), job("c", submit=10, gpus=4))
    facts, en, _ = at(plan, "c", 20)
    assert facts.reason is Reason.WAITING_FOR_CAPACITY
    assert en[-1] == "  h100 is reserved for b (12 GPUs) from second 100 on, which leaves 4 GPUs."


def test_a_job_evicted_in_a_pass_that_would_fit_at_once_waits_for_the_next_pass() -> None:
    """A job of a whole node evicts it from the one node, and it would fit on the other."""
    plan = scenario(
        job("long", gpus=5, work=9),
        job("k", gpus=2, lane="emergency"),
        job("c", gpus=4),
        job("e", submit=10, gpus=8, lane="emergency"),
        quota=quotas(16, 0),
    )
    facts, en, ja = at(plan, "c", 10)
    assert facts.evicted_in_pass
    assert facts.reason is Reason.BEHIND_IN_QUEUE
    assert en[3] == (
        "The pass at second 10 evicted it, and no pass looks again at a job that it has evicted; "
        "the next pass does."
    )
    assert ja[3].startswith("10秒のスケジューリングサイクルで退避されました。")
    assert en[4].startswith("h100: the job fitted. It asks for 4 GPUs; 6 of 16 GPUs were free")


def test_a_job_evicted_in_an_earlier_pass_is_not_taken_for_one_of_the_last() -> None:
    plan = scenario(
        job("c", gpus=16), job("e", submit=10, gpus=16, lane="emergency"), job("n", submit=20)
    )
    assert at(plan, "c", 10)[0].evicted_in_pass
    assert at(plan, "c", 19)[0].evicted_in_pass
    assert not at(plan, "c", 20)[0].evicted_in_pass


def test_who_fits_only_after_its_turn_is_over_waits_for_the_next_pass() -> None:
    """A job of a lower lane takes back what was lent, and frees more than it needs."""
    plan = scenario(
        job("v", gpus=16, project="vision"),
        job("c", submit=5, gpus=12, lane="emergency"),
        job("s", submit=10, gpus=4, work=10),
        lane=[{"name": "emergency", "rank": 100}, {"name": "primary", "rank": 50}],
        policy={"order": "fifo", "placement": "listed", "reclaim": "any"},
    )
    facts, en, ja = at(plan, "c", 10)
    assert facts.reason is Reason.BEHIND_IN_QUEUE
    assert facts.pools[0].check is None
    assert en[3:5] == [
        (
            "It fits, but the GPUs came free after its turn in the pass at second 10; "
            "the next pass "
            "looks at it."
        ),
        (
            "h100: the job fitted. It asks for 12 GPUs; 12 of 16 GPUs were free, and "
            "quota left its "
            "project 12 GPUs."
        ),
    ]
    assert ja[3].startswith("現在は収まりますが、10秒のスケジューリングサイクルで順番が過ぎた")
