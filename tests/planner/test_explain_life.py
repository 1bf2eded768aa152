"""`explain` without a second: how a job waited all its life, and how it ran."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import simulate
from planner.__main__ import records
from planner.explain import explain
from planner.explanation.facts import Life
from planner.scenario import parse
from planner.vocabulary import SENTENCES, Reason
from tests.planner.building import job, scenario
from tests.planner.drawing import scenario_mappings


def test_a_life_adds_up_its_waits_by_reason_and_tells_its_attempts() -> None:
    plan = scenario(
        job("a", gpus=8, work=100, checkpoint_interval_seconds=30),
        job("b", submit=50, gpus=16, work=20, lane="emergency"),
        lane=[
            {"name": "emergency", "rank": 100, "preempts": ["primary"]},
            {"name": "primary", "rank": 50, "backoff_seconds": 10},
        ],
        outage=[{"pool": "h100", "start_seconds": 100, "duration_seconds": 7}],
    )
    explanation = explain(plan, "a")
    life = explanation.facts
    assert isinstance(life, Life)
    assert life.total_wait_seconds == 27
    assert [(wait.reason, wait.seconds) for wait in life.waits] == [
        (Reason.BACKING_OFF, 10),
        (Reason.WAITING_FOR_QUOTA, 10),
        (Reason.POOL_OUTAGE, 7),
    ]
    assert [(spell.start_seconds, spell.end_seconds, spell.reason) for spell in life.spells] == [
        (50, 60, Reason.BACKING_OFF),
        (60, 70, Reason.WAITING_FOR_QUOTA),
        (100, 107, Reason.POOL_OUTAGE),
    ]
    en, ja = explanation.lines("en"), explanation.lines("ja")
    assert en[2:10] == [
        (
            "Attempt 1: in h100 from second 0 to second 50, when b (project speech, lane "
            "emergency) "
            "evicted it by preemption; 160 GPU-seconds of work were lost."
        ),
        (
            "Attempt 2: in h100 from second 70 to second 100, when an outage evicted it; "
            "0 GPU-seconds of work were lost."
        ),
        "Attempt 3: in h100 from second 107 to second 147, where it finished.",
        "It waited 27 s in all:",
        f"  10 s BackingOff: {SENTENCES[Reason.BACKING_OFF].en}",
        f"  10 s WaitingForQuota: {SENTENCES[Reason.WAITING_FOR_QUOTA].en}",
        f"  7 s PoolOutage: {SENTENCES[Reason.POOL_OUTAGE].en}",
        "10 s from second 50 to second 60, BackingOff. When this began:",
    ]
    assert "  h100: the job asks for 8 GPUs, and quota leaves its project 0 GPUs." in en
    assert en[-1] == "  h100: in an outage from second 100 until second 107."
    assert ja[3] == (
        "2回目の実行: h100で70秒から100秒まで。停止により退避され、0 GPU秒の作業が失われました。"
    )
    assert ja[5] == "待ち時間は合計27秒で、内訳は次のとおりです。"


def test_only_the_ten_longest_spells_are_shown_and_the_others_are_summed_up() -> None:
    outages = [
        {"pool": "h100", "start_seconds": 100 * n, "duration_seconds": n} for n in range(1, 9)
    ]
    plan = scenario(
        job("a", gpus=16, work=1000), job("c", gpus=16), outage=outages, horizon_seconds=810
    )
    explanation = explain(plan, "c")
    life = explanation.facts
    assert isinstance(life, Life)
    # The pool is out eight times; before, between and after that the first job holds the quota.
    assert len(life.spells) == 17
    assert [spell.moment is not None for spell in life.spells] == [True] * 10 + [False] * 7
    lengths = [spell.end_seconds - spell.start_seconds for spell in life.spells]
    assert lengths == [100, *range(99, 92, -1), 8, 7, 6, 5, 4, 3, 2, 2, 1]
    assert life.total_wait_seconds == 810
    assert explanation.lines("en")[-1] == ("Shorter spells that are not shown: 7, together 23 s.")
    assert explanation.lines("ja")[-1] == "これより短い待ちが、ほかに7回、合計23秒あります。"


def test_a_job_that_never_waited_says_so() -> None:
    explanation = explain(scenario(job("a")), "a")
    assert explanation.lines("en")[-1] == "It never waited."
    assert explanation.lines("ja")[-1] == "待ち時間はありませんでした。"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings(), st.randoms(use_true_random=False))
def test_a_life_adds_up_and_each_spell_is_what_a_look_at_its_start_finds(
    drawn: dict[str, Any], draw: Any
) -> None:
    plan = parse(drawn)
    trace = simulate(plan, engine="reference")
    if not len(trace.jobs):
        return
    row = draw.choice(records(trace.jobs))
    explanation = explain(plan, row["id"])
    life = explanation.facts
    assert isinstance(life, Life)
    assert life.total_wait_seconds == (row["total_wait_seconds"] or 0)
    assert life.total_wait_seconds == sum(wait.seconds for wait in life.waits)
    assert len(life.attempts) == row["attempts"]
    evictions = [attempt.eviction for attempt in life.attempts if attempt.eviction is not None]
    assert len(evictions) == (trace.evictions["victim"] == row["id"]).sum()
    for spell in life.spells[:3]:
        assert spell.moment is not None
        assert spell.moment.reason is spell.reason
        assert spell.moment == explain(plan, row["id"], at_seconds=spell.start_seconds).facts
    assert json.loads(json.dumps(explanation.to_mapping()))["question"] == "life"
