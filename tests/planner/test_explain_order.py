"""`explain --before`: why one job went before another, with the numbers of both."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import simulate
from planner.__main__ import records
from planner.explain import explain_order
from planner.explanation.facts import Decision, Precedence, Standing
from planner.explanation.order import NO_RIVAL
from planner.scenario import Scenario, parse
from planner.vocabulary import Reason
from tests.planner.building import job, mapping, scenario
from tests.planner.drawing import scenario_mappings

FIFO = {"order": "fifo", "placement": "listed"}
# Holds the whole pool until second 100, so that others queue up.
HOLDER = job("holder", gpus=16, lane="emergency")


def quotas(speech: int, vision: int, **of_vision: int) -> list[dict[str, Any]]:
    return [
        {"project": "speech", "pool": "h100", "nominal": speech},
        {"project": "vision", "pool": "h100", "nominal": vision} | of_vision,
    ]


def lanes(**primary: Any) -> list[dict[str, Any]]:
    return [
        {"name": "emergency", "rank": 100, "preempts": ["primary"]},
        {"name": "primary", "rank": 50} | primary,
    ]


def before(
    plan: Scenario, name: str, other: str, at: int | None = None
) -> tuple[Precedence, list[str], list[str]]:
    explanation = explain_order(plan, name, other, at_seconds=at)
    assert isinstance(explanation.facts, Precedence)
    return explanation.facts, explanation.lines("en"), explanation.lines("ja")


# --- The order decided ---------------------------------------------------------------------------


def test_the_lane_of_higher_rank_is_looked_at_first() -> None:
    plan = scenario(
        HOLDER, job("k", submit=1, gpus=8), job("j", submit=2, gpus=8, lane="emergency"),
        lane=[{"name": "emergency", "rank": 100}, {"name": "primary", "rank": 50}],
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.LANE_RANK
    assert (facts.at_seconds, facts.attempt, facts.pool) == (100, 1, "h100")
    assert en == [
        "j started at second 100 (2026-11-30 00:01:40+09:00) in pool h100, attempt 1.",
        "j is looked at before k: lane emergency has rank 100, lane primary rank 50.",
        "At that moment k fitted, too, in: h100. The order alone decided.",
    ]
    assert ja == [
        "jは100秒(2026-11-30 00:01:40+09:00)にプールh100で開始しました(1回目の実行)。",
        "jはkより先に検討されます。レーンのランクはemergencyが100、primaryが50です。",
        "その時点でkも次のプールに収まる状態でした: h100。順序だけで決まりました。",
    ]


def test_of_lanes_of_equal_rank_the_first_in_the_file_goes_first() -> None:
    plan = scenario(
        HOLDER, job("k", submit=1, gpus=8), job("j", submit=2, gpus=8, lane="emergency"),
        lane=[{"name": "emergency", "rank": 50}, {"name": "primary", "rank": 50}],
    )  # fmt: skip
    facts, en, _ = before(plan, "j", "k")
    assert facts.decision is Decision.LANE_PLACE
    assert en[1] == (
        "j is looked at before k: lanes emergency and primary have the same rank 50, and emergency "
        "stands before primary in the file."
    )


def test_within_a_project_the_first_submitted_goes_first() -> None:
    plan = scenario(HOLDER, job("j", submit=1, gpus=16), job("k", submit=2, gpus=16))
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.SUBMIT
    assert en[1] == (
        "j is looked at before k: within a project jobs go by their submission, at second 1 and at "
        "second 2."
    )
    assert ja[1] == (
        "jはkより先に検討されます。プロジェクト内は投入順で、それぞれ1秒と2秒の投入です。"
    )


def test_a_job_goes_with_the_first_job_of_its_project() -> None:
    """j was submitted after k, and went first because another job of its project was earlier."""
    plan = scenario(
        HOLDER, job("large", submit=1, gpus=16), job("k", submit=2, gpus=5, project="vision"),
        job("small", submit=0, gpus=4, work=500, lane="emergency", project="vision"),
        job("j", submit=3, gpus=8), policy=FIFO,
    )  # fmt: skip
    facts, en, _ = before(plan, "j", "k")
    assert facts.decision is Decision.PROJECT_SUBMIT
    assert en[1] == (
        "j is looked at before k: projects go by the submission of their first waiting job, speech "
        "by large at second 1, vision by k at second 2."
    )


def test_what_is_equal_goes_by_the_place_in_the_file() -> None:
    plan = scenario(HOLDER, job("j", submit=1, gpus=16), job("k", submit=1, gpus=16))
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.FILE_PLACE
    assert en[1] == (
        "j is looked at before k: all else is equal, and of the two jobs that were compared j "
        "stands before k in the file (rows 2 and 3)."
    )
    assert ja[1].endswith("ファイルではjがkより前にあります(2番目と3番目)。")


def test_the_smaller_dominant_share_goes_first_and_its_pool_is_named() -> None:
    plan = scenario(
        job("v", gpus=10, project="vision", work=500), job("h", gpus=6, work=100),
        job("k", submit=1, gpus=2, project="vision"), job("j", submit=2, gpus=6),
        policy={"order": "fair-share", "placement": "listed"}, quota=quotas(10, 6),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.SHARE
    assert facts.place is not None
    assert facts.other_place is not None
    share = facts.other_place.share
    assert share is not None
    assert (share.pool, share.borrowed, share.cohort_capacity, share.weight) == (
        "h100", 4, 16, 0.5,
    )  # fmt: skip
    assert share.share == 0.5  # 4 of 16, by a weight of a half
    assert en[1:4] == [
        (
            "j is looked at before k: the project with the smaller dominant share goes "
            "first, speech "
            "has 0, vision 0.5."
        ),
        "  speech borrowed nothing, so its dominant share is 0.",
        (
            "  vision borrowed 4 GPUs in h100, where its cohort has 16 GPUs; its weight "
            "is 0.5, so its "
            "dominant share is 0.5."
        ),
    ]
    assert ja[1].endswith("speechは0、visionは0.5です。")


def test_the_share_of_a_project_without_weight_that_borrows_is_infinite() -> None:
    plan = scenario(
        job("v", gpus=10, project="vision", work=500), job("h", gpus=6, work=100),
        job("k", submit=1, gpus=2, project="vision"), job("j", submit=2, gpus=6),
        policy={"order": "fair-share", "placement": "listed"}, quota=quotas(10, 6),
        tenant=[{"name": "kaguya"}, {"name": "hikari", "weight": 0}],
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.SHARE
    assert facts.other_place is not None
    assert facts.other_place.share is not None
    assert facts.other_place.share.share is None
    assert "vision infinite." in en[1]
    assert "visionは無限大です。" in ja[1]


SCORED = {
    "order": "multifactor",
    "placement": "listed",
    "multifactor": {
        "age_weight": 100, "fair_share_weight": 0, "size_weight": 1000, "lane_weight": 10,
        "max_age_seconds": 1000,
    },
}  # fmt: skip


def test_the_higher_score_goes_first_within_a_project_term_by_term() -> None:
    plan = scenario(HOLDER, job("k", submit=0, gpus=8), job("j", submit=50, gpus=16), policy=SCORED)
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.SCORE
    assert facts.place is not None
    score = facts.place.score
    assert score is not None
    # 50 s of 1,000 s waited; 16 of 16 GPUs; rank 50 of 100.
    assert (score.age, score.fair_share, score.size, score.lane) == (5.0, 0.0, 1000.0, 5.0)
    assert score.score == 1010.0
    assert en[1:4] == [
        "j is looked at before k: within a project the higher score goes first, 1010 against 515.",
        "  Score of j: age 5 + fair share 0 + size 1000 + lane 5 = 1010.",
        "  Score of k: age 10 + fair share 0 + size 500 + lane 5 = 515.",
    ]
    assert ja[2] == ("  jのスコア: 待ち時間5 + フェアシェア0 + 規模1000 + レーン5 = 1010。")
    started = next(row for row in records(simulate(plan).attempts) if row["job"] == "j")
    assert started["score"] == score.score


def test_projects_go_by_the_score_of_their_first_job() -> None:
    plan = scenario(
        HOLDER, job("k", submit=0, gpus=8, project="vision"), job("j", submit=50, gpus=16),
        policy=SCORED,
    )  # fmt: skip
    facts, en, _ = before(plan, "j", "k")
    assert facts.decision is Decision.PROJECT_SCORE
    assert en[1] == (
        "j is looked at before k: projects go by the score of their first waiting job, the higher "
        "first, speech by j with 1010, vision by k with 515."
    )


def test_a_job_that_came_second_and_did_not_fit_anyway_is_told_both() -> None:
    plan = scenario(
        job("holder", gpus=8, project="vision"), job("j", submit=1, gpus=8),
        job("k", submit=1, gpus=16),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.FILE_PLACE
    assert en[2:4] == [
        "At that moment k did not fit anyway:",
        "  h100: the job asks for 16 GPUs, and quota leaves its project 8 GPUs.",
    ]
    assert ja[2] == "そもそもkは、その時点では収まりませんでした。"


# --- The other was ahead -------------------------------------------------------------------------


def test_who_was_ahead_and_refused_is_told_what_refused_it() -> None:
    plan = scenario(
        job("holder", gpus=8, project="vision"), job("k", submit=1, gpus=16),
        job("j", submit=2, gpus=8),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert (facts.decision, facts.by_order) == (Decision.REFUSED, Decision.SUBMIT)
    assert facts.other_moment.pools[0].check is Reason.WAITING_FOR_QUOTA
    assert en == [
        "j started at second 2 (2026-11-30 00:00:02+09:00) in pool h100, attempt 1.",
        "k was ahead, but could not start:",
        "  h100: the job asks for 16 GPUs, and quota leaves its project 8 GPUs.",
        (
            "    Quota of speech in h100, in GPUs: nominal 8, guaranteed 0, usage 0, borrowed 0, "
            "borrowing limit none; cohort all: 8 of 16 in use; available 8."
        ),
        "    Free in h100: 8 of 16 GPUs, 1 of 2 nodes wholly.",
        "    Held in h100: vision in primary 8 GPUs (1 job, since second 0).",
        (
            "h100: the job fitted. It asks for 8 GPUs; 8 of 16 GPUs were free, and quota left its "
            "project 8 GPUs."
        ),
        (
            "k is looked at before j: within a project jobs go by their submission, at "
            "second 1 and at "
            "second 2."
        ),
    ]
    assert ja[1] == "kのほうが先でしたが、開始できませんでした。"


def test_who_holds_a_reservation_lets_a_short_job_go_before_it() -> None:
    plan = scenario(
        job("holder", gpus=12), job("k", submit=1, gpus=16), job("j", submit=2, gpus=4, work=98),
        policy=FIFO | {"backfill": "easy"}, quota=quotas(16, 16),
    )  # fmt: skip
    facts, en, _ = before(plan, "j", "k")
    assert facts.decision is Decision.REFUSED
    assert "    h100 is reserved for it from second 100 on." in en


def test_who_is_not_the_head_of_its_strict_line_is_not_tried() -> None:
    plan = scenario(
        job("holder", gpus=8, project="vision"), job("head", submit=1, gpus=16),
        job("k", submit=2, gpus=4), job("j", submit=3, gpus=8, project="vision"),
        lane=lanes(queueing="strict"),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert (facts.decision, facts.by_order) == (Decision.BEHIND_HEAD, Decision.PROJECT_SUBMIT)
    assert en[1:3] == [
        "k was ahead, but was not tried.",
        (
            "  Lane primary is a strict queue: of project speech only the first job, "
            "head, is tried, "
            "and it waits. WaitingForQuota: The project's quota and its cohort have fewer "
            "GPUs left than this job asks for."
        ),
    ]
    assert ja[1] == "kのほうが先でしたが、検討されませんでした。"


def test_whose_turn_was_over_when_room_came_free_waits_for_the_next_pass() -> None:
    plan = scenario(
        job("v", gpus=16, project="vision"), job("k", submit=5, gpus=12, lane="emergency"),
        job("s", submit=10, gpus=1), job("j", submit=10, gpus=1),
        lane=[{"name": "emergency", "rank": 100}, {"name": "primary", "rank": 50}],
        policy=FIFO | {"reclaim": "any"},
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert (facts.decision, facts.by_order) == (Decision.TURN_OVER, Decision.LANE_RANK)
    assert en[1] == (
        "k was ahead, but its turn in this pass was over when room for it came free; the next pass "
        "looks at it."
    )
    assert ja[1].startswith("kのほうが先でしたが、このサイクルで順番が過ぎたあとに")


# --- The other was no rival ----------------------------------------------------------------------


def test_a_job_that_was_evicted_to_make_room_is_told_the_ground_and_the_loss() -> None:
    plan = scenario(
        job("x", gpus=8), job("k", gpus=8, submit=4),
        job("j", gpus=16, submit=10, lane="emergency"),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.DISPLACED
    assert en[1:] == [
        "To start, j evicted: x.",
        (
            "k was running since second 4; j evicted it by preemption to start, and 48 "
            "GPU-seconds of "
            "its work were lost."
        ),
    ]
    assert ja[1:] == [
        "jの開始のために退避されたジョブ: x。",
        (
            "kは4秒から実行中でしたが、jのプリエンプションにより退避され、"
            "48 GPU秒の作業が失われました。"
        ),
    ]
    # It was looked at before anybody had gone.
    assert facts.moment.pools[0].free_gpus == 0


def test_a_job_evicted_for_somebody_else_in_the_same_pass_is_not_looked_at() -> None:
    plan = scenario(
        job("k", gpus=16),
        job("x", submit=10, gpus=8, lane="emergency"),
        job("j", submit=10, gpus=8),
    )
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.JUST_EVICTED
    assert en[1] == (
        "k was evicted in the same pass, and no pass looks again at a job that it has evicted."
    )
    assert ja[1].startswith("kは同じサイクルで退避されたため")


def test_a_job_in_back_off_is_not_in_the_queue() -> None:
    plan = scenario(
        job("k", gpus=16), job("x", submit=10, gpus=16, work=5, lane="emergency"),
        job("j", submit=12, gpus=16), lane=lanes(backoff_seconds=60),
    )  # fmt: skip
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.BACKING_OFF
    assert en[1] == "k was not in the queue: its back-off lasted until second 70."
    assert ja[1] == "kは退避後の待機時間中(70秒まで)で、キューにいませんでした。"


def test_a_job_that_was_not_there_yet_is_told_when_it_came() -> None:
    plan = scenario(job("j"), job("k", submit=5))
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.NOT_SUBMITTED
    assert en[1] == "k was not there yet: it is submitted at second 5."
    assert ja[1] == "kはまだ投入されていませんでした(投入は5秒)。"


def test_a_job_beyond_the_horizon_was_not_there_either() -> None:
    plan = scenario(job("j"), job("k", submit=500), horizon_seconds=400)
    facts, _, _ = before(plan, "j", "k")
    assert facts.decision is Decision.NOT_SUBMITTED


def test_a_job_that_can_never_run_is_told_why() -> None:
    facts, en, _ = before(scenario(job("k", gpus=17), job("j")), "j", "k")
    assert facts.decision is Decision.UNSCHEDULABLE
    assert en[1:] == [
        "k can never run. ExceedsPool: The job asks for more GPUs than any allowed pool has.",
        "It asks for 17 GPUs; open to it otherwise: h100 (16 GPUs).",
    ]


# --- It was the other way round, or neither ------------------------------------------------------


def test_the_reverse_is_said_and_nothing_is_made_up() -> None:
    plan = scenario(job("k"), job("j", submit=5))
    facts, en, ja = before(plan, "j", "k")
    assert facts.decision is Decision.REVERSE
    assert en[1:] == [
        "It was the other way round: k had started at second 0, before j did at second 5."
    ]
    assert ja[1:] == ["順序は逆です。kは0秒に開始しており、jの開始(5秒)より前です。"]


def test_of_two_that_start_in_one_second_the_later_of_the_pass_is_told_the_reverse() -> None:
    plan = scenario(job("k"), job("j"))
    assert before(plan, "j", "k")[0].decision is Decision.REVERSE
    assert before(plan, "k", "j")[0].decision is Decision.FILE_PLACE


def test_a_job_that_has_not_started_is_told_so_and_why() -> None:
    plan = scenario(job("k", gpus=16), job("j", submit=5))
    facts, en, _ = before(plan, "j", "k", at=20)
    assert (facts.decision, facts.attempt) == (Decision.REVERSE, None)
    assert en[:2] == [
        (
            "It was the other way round: k had started at second 0, and j had not "
            "started by second "
            "20."
        ),
        (
            "j waited at second 20 (2026-11-30 00:00:20+09:00), since second 5. "
            "WaitingForQuota: The "
            "project's quota and its cohort have fewer GPUs left than this job asks for."
        ),
    ]


def test_when_neither_has_started_that_is_said() -> None:
    plan = scenario(HOLDER, job("k", submit=1, gpus=2), job("j", submit=5))
    facts, en, ja = before(plan, "j", "k", at=20)
    assert facts.decision is Decision.NEVER_STARTED
    assert en[0] == "Neither j nor k had started by second 20 (2026-11-30 00:00:20+09:00)."
    assert ja[0] == "20秒(2026-11-30 00:00:20+09:00)の時点で、jもkも開始していません。"
    assert en[1].startswith("j waited at second 20")


def test_a_second_chooses_the_last_start_until_then() -> None:
    plan = scenario(
        job("j", gpus=16), job("x", submit=10, gpus=16, work=10, lane="emergency"),
        job("k", submit=12, gpus=16),
    )  # fmt: skip
    assert before(plan, "j", "k", at=5)[0].decision is Decision.NOT_SUBMITTED
    restarted, _, _ = before(plan, "j", "k", at=30)
    assert (restarted.decision, restarted.attempt) == (Decision.SUBMIT, 2)
    # Without a second it is the start at which both wanted to start.
    assert before(plan, "j", "k")[0] == restarted


def test_both_need_not_be_in_one_pool() -> None:
    pools = [mapping()["pool"][0] | {"name": name, "nodes": 1} for name in ("a", "b")]
    plan = scenario(
        job("h", gpus=8, pools=["a"]), job("k", submit=1, gpus=8, pools=["a"]),
        job("j", submit=2, gpus=8), pool=pools,
        quota=[{"project": "speech", "pool": name, "nominal": 8} for name in ("a", "b")],
    )  # fmt: skip
    facts, en, _ = before(plan, "j", "k")
    assert facts.pool == "b"
    assert [pool.pool for pool in facts.other_moment.pools] == ["a"]
    assert facts.decision is Decision.REFUSED
    assert any(line.startswith("b: the job fitted.") for line in en)


# --- Whatever the scenario -----------------------------------------------------------------------


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings(), st.randoms(use_true_random=False))
def test_what_is_said_of_two_jobs_is_what_happened(drawn: dict[str, Any], draw: Any) -> None:
    plan = parse(drawn)
    trace = simulate(plan, engine="reference")
    attempts, spells = records(trace.attempts), records(trace.spells)
    pairs = [
        (attempt, spell["job"])
        for attempt in attempts
        for spell in spells
        if spell["job"] != attempt["job"]
        and spell["start_seconds"] <= attempt["start_seconds"] < spell["end_seconds"]
    ]
    if not pairs:
        return
    start, other = draw.choice(pairs)
    facts, en, ja = before(plan, start["job"], other, at=start["start_seconds"])
    assert len(en) == len(ja) >= 2
    # The other waited then: it was no bystander, unless it had run until this very second.
    assert facts.at_seconds == start["start_seconds"]
    assert facts.decision not in (Decision.NOT_SUBMITTED, Decision.UNSCHEDULABLE)
    its = facts.other_moment
    if facts.decision is Decision.REFUSED:
        assert all(pool.check is not None for pool in its.pools)
    elif facts.decision is Decision.TURN_OVER:
        assert facts.job.lane != facts.other.lane
    elif facts.decision is Decision.DISPLACED:
        assert its.standing is Standing.RUNNING
    elif facts.decision is Decision.BACKING_OFF:
        assert its.standing is Standing.BACKING_OFF
    if facts.decision not in NO_RIVAL and facts.place is not None:
        assert facts.place.rank >= (facts.other_place or facts.place).rank or facts.decision in (
            Decision.REFUSED, Decision.BEHIND_HEAD, Decision.TURN_OVER,
        )  # fmt: skip
