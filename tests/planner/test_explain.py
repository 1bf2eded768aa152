"""`explain`: why a job was not running at a second, with the numbers behind it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import simulate
from planner.__main__ import records
from planner.explain import explain
from planner.explanation.facts import Life, Standing
from planner.scenario import Scenario, parse
from planner.vocabulary import SENTENCES, Reason
from tests.planner.building import job, mapping, scenario
from tests.planner.drawing import scenario_mappings
from tests.planner.explaining import at, quotas

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def nodes(count: int) -> dict[str, Any]:
    pool = mapping()["pool"][0] | {"nodes": count}
    return {"pool": [pool], "quota": quotas(8 * count, 8 * count)}


def lanes(**primary: Any) -> list[dict[str, Any]]:
    return [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50} | primary,
    ]


# --- Each reason, with its numbers ---------------------------------------------------------------

BLOCKED = job("c", submit=10, gpus=4)
# The plan, and what must be said of job "c" at second 20, in English and in Japanese.
WAITS: dict[Reason, tuple[Scenario, str, str]] = {
    Reason.WAITING_FOR_QUOTA: (
        scenario(
            job("a", gpus=6), job("b", gpus=4, project="vision"), job("c", submit=10, gpus=3),
            quota=quotas(8, 4),
        ),
        "h100: the job asks for 3 GPUs, and quota leaves its project 2 GPUs.",
        "h100: 要求はGPU 3基ですが、プロジェクトがクォータで使えるのはあとGPU 2基です。",
    ),
    Reason.BORROWING_LIMIT_REACHED: (
        scenario(job("a", gpus=8), BLOCKED, quota=quotas(8, 8, borrowing_limit=2)),
        ("h100: with 4 GPUs more the project would hold 12 GPUs; its nominal quota and its "
        "borrowing limit allow 10 GPUs."),
        ("h100: さらにGPU 4基を使うとプロジェクトの使用はGPU 12基となり、"
        "公称クォータと借用上限を合わせたGPU 10基を超えます。"),
    ),
    Reason.LANE_LIMIT_REACHED: (
        scenario(
            job("a", gpus=3), BLOCKED,
            assignment=[{"project": "speech", "lane": "primary", "max_gpus": 6}],
        ),
        ("h100: with 4 GPUs more the project would hold 7 GPUs in lane primary, where its limit is "
        "6 GPUs."),
        ("h100: さらにGPU 4基を使うと、レーンprimaryでのプロジェクトの使用はGPU 7基となり、"
        "上限のGPU 6基を超えます。"),
    ),
    Reason.WAITING_FOR_CAPACITY: (
        scenario(
            job("a", gpus=8), job("b", gpus=5, project="vision"), BLOCKED, quota=quotas(16, 16)
        ),
        "h100: the job asks for 4 GPUs, and 3 of 16 GPUs were free.",
        "h100: 要求はGPU 4基ですが、空きはGPU 16基のうち3基です。",
    ),
    Reason.FRAGMENTED: (
        scenario(job("a", gpus=5), job("b", gpus=5, project="vision"), BLOCKED),
        ("h100: 6 GPUs were free in sum, but no more than 3 GPUs on any one node; the job needs "
        "4 GPUs on one node."),
        ("h100: 空きは合計GPU 6基ですが、1ノードの空きは最大でGPU 3基です。"
        "ジョブには1ノードにGPU 4基の空きが必要です。"),
    ),
    Reason.BEHIND_IN_QUEUE: (
        scenario(
            job("a", gpus=9), job("b", submit=5, gpus=8), job("c", submit=10),
            lane=lanes(queueing="strict"),
        ),
        ("Lane primary is a strict queue: of project speech only the first job, b, is "
         "tried, and it "
        "waits. WaitingForQuota: The project's quota and its cohort have fewer GPUs left than this "
        "job asks for."),
        ("レーンprimaryは厳密な順序のキュー(strict)で、プロジェクトspeechの先頭のジョブbだけが検討され、"
        "それが待機中です。WaitingForQuota: プロジェクトのクォータとコホートの残りが、"
        "このジョブの要求するGPU数に足りません。"),
    ),
    Reason.BACKING_OFF: (
        scenario(
            job("c", gpus=4), job("d", submit=10, gpus=16, lane="emergency"),
            lane=lanes(backoff_seconds=60),
        ),
        "After 1 eviction its back-off lasts until second 70.",
        "これまでの1回の退避により、再びキューに入るのは70秒です。",
    ),
    Reason.SUSPENDED: (
        scenario(
            job("c", gpus=4), job("d", submit=10, gpus=16, lane="emergency"),
            lane=lanes(recovery="suspend"),
        ),
        ("d (project speech, lane emergency) evicted it from h100 at second 10 by preemption; "
        "0 GPU-seconds of work were lost."),
        ("10秒にd(プロジェクトspeech、レーンemergency)のプリエンプションによりh100から退避され、"
        "0 GPU秒の作業が失われました。"),
    ),
    Reason.POOL_OUTAGE: (
        scenario(
            BLOCKED,
            outage=[
                {"pool": "h100", "start_seconds": 5, "duration_seconds": 10},
                {"domain": "tokyo-a", "start_seconds": 15, "duration_seconds": 20},
                {"region": "tokyo", "start_seconds": 500, "duration_seconds": 20},
            ],
        ),
        "h100: in an outage from second 5 until second 35.",
        "h100: 5秒から35秒まで停止中です。",
    ),
}  # fmt: skip
ELSEWHERE = {"name": "a100", "domain": "osaka-a", "accelerator": "A100", "nodes": 1}
NEVER: dict[Reason, tuple[Scenario, str, str]] = {
    Reason.LANE_NOT_ASSIGNED: (
        scenario(job("c"), assignment=[{"project": "speech", "lane": "emergency"}]),
        "It was sent to lane primary; lanes assigned to project speech: emergency.",
        "投入先はレーンprimary、プロジェクトspeechに割り当てられたレーン: emergency。",
    ),
    Reason.NO_QUOTA: (
        scenario(
            job("c", pools=["a100"]),
            pool=[*mapping()["pool"], ELSEWHERE | {"gpus_per_node": 8}],
        ),
        (
            "Pools in which project speech has quota: h100; pools that the job and its lane allow: "
            "a100."
        ),
        (
            "プロジェクトspeechのクォータがあるプール: h100。"
            "ジョブとレーンの割り当てが許すプール: a100。"
        ),
    ),
    Reason.NO_MATCHING_ACCELERATOR: (
        scenario(
            job("c", accelerator="A100"),
            pool=[*mapping()["pool"], ELSEWHERE | {"gpus_per_node": 8}],
        ),
        "It asks for A100; open to it otherwise: h100 (H100).",
        "要求はA100、それ以外の条件を満たすプール: h100(H100)。",
    ),
    Reason.RESIDENCY_FORBIDS: (
        scenario(job("c", regions=["osaka"])),
        "Regions in which its data may be: osaka; open to it otherwise: h100 (tokyo).",
        "データを置けるリージョン: osaka。それ以外の条件を満たすプール: h100(tokyo)。",
    ),
    Reason.NO_LINK: (
        scenario(job("c", data_region="osaka", data_gb=1), link=[]),
        "Its data are in osaka, from where no link leads to: h100 (tokyo).",
        "データはosakaにあり、次のプールへの回線がありません: h100(tokyo)。",
    ),
    Reason.EXCEEDS_POOL: (
        scenario(job("c", gpus=17)),
        "It asks for 17 GPUs; open to it otherwise: h100 (16 GPUs).",
        "要求はGPU 17基、それ以外の条件を満たすプール: h100(GPU 16基)。",
    ),
    Reason.EXCEEDS_MAX_QUOTA: (
        scenario(job("c", gpus=11), quota=quotas(8, 8, borrowing_limit=2)),
        (
            "It asks for 11 GPUs; the most that project speech could ever hold: h100 (10 "
            "GPUs); its "
            "limit in lane primary: none."
        ),
        (
            "要求はGPU 11基、プロジェクトspeechが持ちうる最大: h100(GPU 10基)。"
            "レーンprimaryでの上限: なし。"
        ),
    ),
}


def test_every_reason_is_explained_here() -> None:
    assert WAITS.keys() | NEVER.keys() == set(Reason)


@pytest.mark.parametrize("reason", WAITS, ids=str)
def test_a_wait_is_explained_with_its_numbers(reason: Reason) -> None:
    plan, english, japanese = WAITS[reason]
    facts, en, ja = at(plan, "c", 20)
    assert facts.reason is reason
    assert facts.since_seconds == 10
    assert facts.waited_seconds == 10
    assert en[0] == (
        f"c waited at second 20 (2026-11-30 00:00:20+09:00), since second 10. {reason}: "
        f"{SENTENCES[reason].en}"
    )
    assert ja[0] == (
        f"cは20秒(2026-11-30 00:00:20+09:00)の時点で待機中でした(10秒から)。{reason}: "
        f"{SENTENCES[reason].ja}"
    )
    assert english in en
    assert japanese in ja


@pytest.mark.parametrize("reason", NEVER, ids=str)
def test_a_job_that_can_never_run_is_told_what_it_asked_for_and_what_there_was(
    reason: Reason,
) -> None:
    plan, english, japanese = NEVER[reason]
    facts, en, ja = at(plan, "c", 20)
    assert (facts.standing, facts.reason) == (Standing.UNSCHEDULABLE, reason)
    assert en[0] == f"c can never run. {reason}: {SENTENCES[reason].en}"
    assert ja[0] == f"cは実行できません。{reason}: {SENTENCES[reason].ja}"
    assert en[-1] == english
    assert ja[-1] == japanese


def test_a_pool_of_which_the_project_may_hold_nothing_is_told_with_its_zero() -> None:
    plan = scenario(job("c"), quota=quotas(0, 8, borrowing_limit=0))
    _, en, _ = at(plan, "c", 0)
    assert "could ever hold: h100 (0 GPUs);" in en[-1]


def test_whole_nodes_are_counted_for_a_job_that_needs_them() -> None:
    held = [job(name, gpus=5, project="vision") for name in "abd"]
    facts, en, _ = at(scenario(*held, job("c", gpus=16), **nodes(4)), "c", 0)
    assert (facts.pools[0].free_nodes, facts.pools[0].most_free_on_a_used_node) == (1, 3)
    assert "h100: 17 GPUs were free in sum, but only 1 node wholly; the job needs 2 nodes " in en[3]


def test_nodes_and_a_remainder_are_told_for_a_job_that_needs_both() -> None:
    held = [job(name, gpus=5, project="vision") for name in "ab"]
    _, en, ja = at(scenario(*held, job("c", gpus=12), **nodes(3)), "c", 0)
    assert en[3] == (
        "h100: 14 GPUs were free in sum, but only 1 node wholly, and no more than 3 GPUs on any "
        "other; the job needs 1 node wholly free and 4 GPUs on one other."
    )
    assert "丸ごと空いているのは1ノード、それ以外の1ノードの空きは最大でGPU 3基です。" in ja[3]


def test_the_lanes_use_is_counted_over_all_pools() -> None:
    plan, _, _ = WAITS[Reason.LANE_LIMIT_REACHED]
    facts, en, _ = at(plan, "c", 20)
    assert (facts.lane.use, facts.lane.limit) == (3, 6)
    assert en[-1] == "Project speech held 3 GPUs in lane primary, where its limit is 6 GPUs."


def test_a_job_behind_the_head_of_a_line_is_told_what_the_head_waits_for() -> None:
    plan, _, _ = WAITS[Reason.BEHIND_IN_QUEUE]
    facts, en, _ = at(plan, "c", 20)
    assert facts.ahead is not None
    assert (facts.ahead.job.id, facts.ahead.reason) == ("b", Reason.WAITING_FOR_QUOTA)
    assert "h100: the job asks for 8 GPUs, and quota leaves its project 7 GPUs." in en


# --- A job that does not wait --------------------------------------------------------------------


STANDS = (
    ("a", 4, Standing.NOT_SUBMITTED, "had not been submitted by second 4", "that is at second 5."),
    ("a", 5, Standing.RUNNING, "was running at second 5", "since second 5, attempt 1."),
    ("a", 104, Standing.RUNNING, "was running at second 104", "since second 5, attempt 1."),
    ("a", 105, Standing.FINISHED, "had finished by second 105", "at second 105, in pool h100."),
    ("b", 215, Standing.CANCELLED, "had been cancelled by second 215", "at second 210."),
)


@pytest.mark.parametrize(("name", "seconds", "standing", "begins", "ends"), STANDS)
def test_a_job_that_does_not_wait_gets_the_sentence_for_how_it_stands(
    name: str, seconds: int, standing: Standing, begins: str, ends: str
) -> None:
    plan = scenario(
        job("a", submit=5), job("b", submit=200, gpus=16),
        job("d", submit=210, lane="emergency", gpus=16), lane=lanes(recovery="cancel"),
    )  # fmt: skip
    facts, en, ja = at(plan, name, seconds)
    assert (facts.standing, facts.reason) == (standing, None)
    assert en[0].startswith(f"{name} {begins} (2026-11-30 00:0")
    assert en[0].endswith(ends)
    assert ja[0].startswith(f"{name}は{seconds}秒(2026-11-30 00:0")
    if standing is Standing.CANCELLED:
        assert en[-1].endswith("by preemption; 160 GPU-seconds of work were lost.")


def test_a_second_counts_after_the_last_pass_of_that_second() -> None:
    """A job without work starts and ends in one second, which then has two passes."""
    plan = scenario(job("a", gpus=16, work=0), job("c", gpus=16, work=10))
    facts, _, _ = at(plan, "c", 0)
    assert facts.standing is Standing.RUNNING


def test_a_job_that_the_horizon_leaves_out_has_not_been_submitted() -> None:
    plan = scenario(job("a"), job("late", submit=900), horizon_seconds=500)
    explanation = explain(plan, "late")
    assert isinstance(explanation.facts, Life)
    assert explanation.facts.now.standing is Standing.NOT_SUBMITTED
    assert explanation.lines() == [
        (
            "late had not been submitted by second 500 (2026-11-30 00:08:20+09:00); that is at "
            "second 900."
        )
    ]


# --- Whatever the scenario -----------------------------------------------------------------------


def _end(attempt: dict[str, Any]) -> float:
    end = attempt["end_seconds"]
    return float("inf") if end is None else end


@MANY
@given(scenario_mappings(), st.randoms(use_true_random=False))
def test_the_reason_at_a_second_is_the_spell_that_covers_it(
    drawn: dict[str, Any], draw: Any
) -> None:
    plan = parse(drawn)
    trace = simulate(plan, engine="reference")
    spells = records(trace.spells)
    if spells and draw.random() < 0.8:
        spell = draw.choice(spells)
        name = spell["job"]
        seconds = draw.randint(spell["start_seconds"], spell["end_seconds"] - 1)
    else:
        name = draw.choice(plan.jobs).id
        seconds = draw.randint(0, trace.end_seconds)
    facts, _, _ = at(plan, name, seconds)

    covering = [
        spell
        for spell in spells
        if spell["job"] == name and spell["start_seconds"] <= seconds < spell["end_seconds"]
    ]
    if facts.standing is Standing.UNSCHEDULABLE:
        row = next(row for row in records(trace.jobs) if row["id"] == name)
        assert facts.reason == row["reason"]
    elif covering or seconds < trace.end_seconds:
        assert [facts.reason] == ([spell["reason"] for spell in covering] or [None])
        assert [facts.since_seconds] == ([spell["start_seconds"] for spell in covering] or [None])

    # What is free, and who holds the rest, is what the attempts say that cover the second.
    job_of = {each.id: each for each in plan.jobs}
    running = [
        (attempt["pool"], job_of[attempt["job"]])
        for attempt in records(trace.attempts)
        if attempt["start_seconds"] <= seconds < _end(attempt)
    ]
    for pool in facts.pools:
        held = [each for name, each in running if name == pool.pool]
        own = [each.gpus for each in held if each.project == facts.job.project]
        assert pool.quota.usage == sum(own)
        assert sum(holder.gpus for holder in pool.holders) == sum(each.gpus for each in held)
        assert sum(holder.jobs for holder in pool.holders) == len(held)
        if pool.check is not Reason.POOL_OUTAGE:
            assert pool.free_gpus == pool.gpus - sum(each.gpus for each in held)
