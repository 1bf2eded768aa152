"""The week's arithmetic, by hand: what is clipped, what is counted when, what stays unknown."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.reports import fairness
from portal.reports.fairness import Span
from tests.portal.reports.weeks import (
    END,
    MONDAY,
    TENANTS,
    WEEK,
    at,
    attempt,
    frames,
    job,
    level,
)

Rows = list[dict[str, Any]]


def week(jobs: Rows, attempts: Rows, levels: Rows, span: Span = WEEK) -> Any:
    frame = fairness.week(**frames(jobs, attempts, levels), span=span, tenants=TENANTS)
    return frame.set_index(["scope", "name"])


def speech(jobs: Rows, attempts: Rows, levels: Rows, span: Span = WEEK) -> Any:
    return week(jobs, attempts, levels, span).loc[("project", "speech")]


def test_a_run_inside_the_week_delivers_its_gpus_times_its_hours() -> None:
    found = speech([job("a", 1, 2, 12)], [attempt("a", 2, 12)], [level(8)])

    assert found["entitled_gpu_hours"] == 8 * 168
    assert found["delivered_gpu_hours"] == 80
    assert found["useful_gpu_hours"] == 80
    assert found["delivered_entitled_ratio"] == 0.06  # 80 / 1344 = 0.0595
    assert found["idle_entitlement_gpu_hours"] == 8 * 158
    assert found["jobs_started"] == 1
    assert found["first_wait_p50_minutes"] == 60
    assert found["waited_job_hours"] == 1


def test_a_run_over_both_edges_counts_only_what_lies_inside() -> None:
    found = speech([job("a", -20, -10, 178)], [attempt("a", -10, 178)], [level(8)])

    assert found["delivered_gpu_hours"] == 8 * 168
    assert found["useful_gpu_hours"] == 8 * 168
    assert found["delivered_entitled_ratio"] == 1
    assert found["idle_entitlement_gpu_hours"] == 0
    assert found["jobs_started"] == 0
    assert found["waited_job_hours"] == 0
    assert pd.isna(found["first_wait_p50_minutes"])


def test_useful_time_is_spread_evenly_over_an_attempt_that_crosses_the_edge() -> None:
    # 40 h of 8 GPUs, of which a quarter was useful; 10 of the 40 hours lie in the week.
    run = attempt("a", -30, 10, useful_gpu_seconds=80 * 3600)
    found = speech([job("a", -31, -30, 10)], [run], [level(8)])

    assert found["delivered_gpu_hours"] == 80
    assert found["useful_gpu_hours"] == 20


def test_a_run_that_goes_on_is_held_until_where_the_records_end() -> None:
    so_far = replace(WEEK, until=at(50), known_until=at(50))
    run = attempt("a", 40, None, useful_gpu_seconds=40 * 3600)
    found = speech([job("a", 40, 40, None)], [run], [level(8)], so_far)

    assert found["delivered_gpu_hours"] == 80
    assert found["useful_gpu_hours"] == 40
    assert found["entitled_gpu_hours"] == 8 * 50


def test_what_ran_before_the_records_end_is_not_stretched_to_the_end_of_the_week() -> None:
    found = speech(
        [job("a", 150, 150, None)],
        [attempt("a", 150, None)],
        [level(8)],
        replace(WEEK, known_until=END),
    )
    assert found["delivered_gpu_hours"] == 8 * 18


def test_an_eviction_is_suffered_by_one_and_caused_by_the_other() -> None:
    jobs = [
        job("a", 0, 0, 30, attempts_count=2),
        job("b", 10, 10, 20, project="robotics", lane="emergency"),
    ]
    attempts = [
        attempt(
            "a", 0, 10, ended="evicted", ground="preemption", evicted_by_project="robotics",
            evicted_by_lane="emergency", useful_gpu_seconds=64 * 3600, lost_gpu_seconds=16 * 3600,
        ),
        attempt("a", 20, 30, number=2),
        attempt("b", 10, 20, project="robotics", lane="emergency"),
    ]  # fmt: skip
    found = week(jobs, attempts, [level(8), level(8, project="robotics")])

    victim, preemptor = found.loc[("project", "speech")], found.loc[("project", "robotics")]
    assert (victim["preemptions_suffered"], victim["preemptions_caused"]) == (1, 0)
    assert (preemptor["preemptions_suffered"], preemptor["preemptions_caused"]) == (0, 1)
    assert (victim["lost_gpu_hours"], preemptor["lost_gpu_hours"]) == (16, 0)
    assert victim["requeues"] == 1
    assert victim["waited_job_hours"] == 10  # between the two attempts
    assert found.loc[("lane", "emergency"), "preemptions_caused"] == 1
    assert found.loc[("lane", "primary"), "preemptions_suffered"] == 1
    assert found.loc[("tenant", "raijin"), "preemptions_caused"] == 1
    assert found.loc[("total", ""), "preemptions_caused"] == 1


def test_an_outage_is_not_a_preemption() -> None:
    run = attempt("a", 0, 10, ended="evicted", ground="outage", lost_gpu_seconds=3600)
    found = speech([job("a", 0, 0, None, state="waiting")], [run], [level(8)])

    assert (found["preemptions_suffered"], found["outage_interruptions"]) == (0, 1)
    assert (found["lost_gpu_hours"], found["requeues"]) == (1, 1)


def test_a_job_that_its_eviction_ended_was_not_put_back() -> None:
    run = attempt("a", 0, 10, ended="evicted", ground="reclaim", evicted_by_project="vision")
    found = speech([job("a", 0, 0, 10, state="cancelled")], [run], [level(8)])

    assert (found["preemptions_suffered"], found["requeues"]) == (1, 0)


def test_a_loss_belongs_to_the_week_of_its_eviction_as_a_whole() -> None:
    run = attempt("a", -10, 10, ended="evicted", ground="reclaim", lost_gpu_seconds=7 * 3600)
    inside = speech([job("a", -10, -10, 30)], [run], [level(8)])
    before = Span(start=at(-168), until=MONDAY, known_until=END)

    assert inside["lost_gpu_hours"] == 7
    assert (
        speech([job("a", -10, -10, 30)], [run], [level(8, -168, 0)], before)["lost_gpu_hours"] == 0
    )


def test_an_eviction_at_the_stroke_of_midnight_is_in_one_week_only() -> None:
    run = attempt("a", 160, 168, ended="evicted", ground="reclaim", lost_gpu_seconds=3600)
    jobs = [job("a", 160, 160, 190)]
    after = Span(start=END, until=END + (END - MONDAY), known_until=WEEK.known_until)

    assert speech(jobs, [run], [level(8)])["preemptions_suffered"] == 1
    # The selector no longer returns it for the next week: it ended at that week's start.
    assert speech(jobs, [run], [level(8, 168, 336)], after)["preemptions_suffered"] == 0


def test_without_entitlement_the_ratio_is_unknown_and_not_infinite() -> None:
    found = speech([job("a", 0, 0, 10)], [attempt("a", 0, 10)], [])

    assert found["delivered_gpu_hours"] == 80
    assert pd.isna(found["entitled_gpu_hours"])
    assert pd.isna(found["delivered_entitled_ratio"])
    assert pd.isna(found["idle_entitlement_gpu_hours"])


def test_a_quota_of_zero_has_no_ratio_either() -> None:
    found = speech([job("a", 0, 0, 10)], [attempt("a", 0, 10)], [level(0)])

    assert pd.isna(found["delivered_entitled_ratio"])


def test_a_quota_that_changes_in_mid_week_counts_each_part() -> None:
    levels = [level(8, 0, 84), level(24, 84, 168)]
    found = speech([job("a", 80, 80, 90, gpus=16)], [attempt("a", 80, 90, gpus=16)], levels)

    assert found["entitled_gpu_hours"] == 8 * 84 + 24 * 84
    assert found["delivered_gpu_hours"] == 160
    # 4 h at 8 entitled and 16 held: nothing idle; 6 h at 24 entitled and 16 held: 8 idle.
    assert found["idle_entitlement_gpu_hours"] == 8 * 80 + 8 * 6 + 24 * 78


def test_borrowing_later_does_not_make_up_for_idle_entitlement() -> None:
    found = speech([job("a", 84, 84, 168, gpus=16)], [attempt("a", 84, 168, gpus=16)], [level(8)])

    assert found["delivered_entitled_ratio"] == 1
    assert found["idle_entitlement_gpu_hours"] == 8 * 84


def test_entitlement_in_one_pool_is_idle_while_the_project_runs_in_another() -> None:
    found = speech(
        [job("a", 0, 0, 168, pool="osaka")], [attempt("a", 0, 168, pool="osaka")], [level(8)]
    )
    assert found["idle_entitlement_gpu_hours"] == 8 * 168


def test_a_job_still_waiting_counts_with_its_age() -> None:
    jobs = [job("a", 0, 1, 2), job("b", 160, None, None)]
    found = speech(jobs, [attempt("a", 1, 2)], [level(8)])

    assert found["still_waiting"] == 1
    assert found["first_wait_longest_minutes"] == 8 * 60
    assert found["first_wait_p50_minutes"] == 270  # between 1 h and 8 h
    assert found["waited_job_hours"] == 9
    assert found["jobs_started"] == 1


def test_a_job_that_starts_next_week_was_still_waiting_in_no_pool() -> None:
    found = week([job("a", 160, 170, 171)], [], [level(8)])

    assert found.loc[("project", "speech"), "still_waiting"] == 1
    assert found.loc[("pool", ""), "still_waiting"] == 1
    assert found.loc[("pool", "tokyo"), "still_waiting"] == 0
    assert found.loc[("project", "speech"), "jobs_started"] == 0


def test_a_job_of_another_week_does_not_wait_in_this_one() -> None:
    found = speech([job("a", -50, -40, 20)], [attempt("a", -40, 20)], [level(8)])

    assert pd.isna(found["first_wait_longest_minutes"])
    assert found["still_waiting"] == 0


def test_a_job_that_can_never_run_does_not_wait() -> None:
    found = speech([job("a", 0, None, None, state="unschedulable")], [], [level(8)])

    assert found["still_waiting"] == 0
    assert found["waited_job_hours"] == 0


def test_a_record_without_attempts_tells_of_its_first_wait_only() -> None:
    found = speech([job("a", 0, 5, 100, attempts_count=0)], [], [level(8)])

    assert found["waited_job_hours"] == 5
    assert found["delivered_gpu_hours"] == 0


def test_requests_are_placed_where_they_first_started() -> None:
    jobs = [job("a", 0, 1, 30, pool="osaka", attempts_count=2)]
    attempts = [
        attempt("a", 1, 10, ended="evicted", ground="outage"),
        attempt("a", 12, 30, number=2, pool="osaka"),
    ]
    found = week(jobs, attempts, [level(8)])

    assert found.loc[("pool", "tokyo"), "jobs_started"] == 1
    assert found.loc[("pool", "osaka"), "jobs_started"] == 0
    assert found.loc[("pool", "osaka"), "delivered_gpu_hours"] == 8 * 18


def test_work_of_a_project_nobody_registered_is_kept_under_no_tenant() -> None:
    found = week([job("a", 0, 0, 1, project="ghost")], [attempt("a", 0, 1, project="ghost")], [])

    assert found.loc[("tenant", ""), "delivered_gpu_hours"] == 8
    assert found.loc[("project", "ghost"), "tenant"] == ""


def test_lanes_have_no_entitlement_and_quota_is_no_lane() -> None:
    found = week([job("a", 0, 0, 1)], [attempt("a", 0, 1)], [level(8)])

    assert list(found.loc["lane"].index) == ["primary"]
    assert pd.isna(found.loc[("lane", "primary"), "entitled_gpu_hours"])


def test_shares_are_of_all_that_was_delivered() -> None:
    jobs = [job("a", 0, 0, 30), job("b", 0, 0, 10, project="robotics")]
    attempts = [attempt("a", 0, 30), attempt("b", 0, 10, project="robotics")]
    found = week(jobs, attempts, [])

    assert found.loc[("project", "speech"), "share_ratio"] == 0.75
    assert found.loc[("project", "robotics"), "share_ratio"] == 0.25
    assert found.loc[("total", ""), "share_ratio"] == 1


def test_jains_index_is_over_delivered_against_entitled() -> None:
    jobs = [job("a", 0, 0, 168), job("b", 0, 0, 84, project="robotics")]
    attempts = [attempt("a", 0, 168), attempt("b", 0, 84, project="robotics")]
    found = week(
        jobs, attempts, [level(8), level(8, project="robotics"), level(8, project="vision")]
    )

    # ratios 1, 0.5 and 0: (1.5)² / (3 × 1.25)
    assert found.loc[("total", ""), "jain_index"] == 0.6
    assert found.loc[("pool", "tokyo"), "jain_index"] == 0.6
    assert found.loc[("tenant", "kaguya"), "jain_index"] == 0.5  # 1 and 0
    assert found.loc[("tenant", "raijin"), "jain_index"] == 1
    assert pd.isna(found.loc[("project", "speech"), "jain_index"])


@pytest.mark.parametrize(
    ("ratios", "index"), [([], None), ([0, 0], None), ([2, 2, 2], 1), ([1, 0, 0, 0], 0.25)]
)
def test_jains_index_by_hand(ratios: list[float], index: float | None) -> None:
    assert fairness.jain(ratios) == index


def test_halves_are_rounded_up_as_spreadsheets_do() -> None:
    jobs = [job("a", 0, 150 / 3600, 1)]  # 2.5 minutes
    found = speech(jobs, [attempt("a", 150 / 3600, 1)], [level(8)])

    assert found["first_wait_p50_minutes"] == 3


def test_the_change_is_the_difference_of_the_two_files() -> None:
    now = fairness.week(
        **frames([job("a", 0, 1, 11)], [attempt("a", 1, 11)], [level(8)]),
        span=WEEK,
        tenants=TENANTS,
    )
    before = fairness.week(
        **frames(
            [job("b", -160, -158, -138)],
            [attempt("b", -158, -138)],
            [level(8, -168, 0)],
        ),
        span=Span(start=at(-168), until=MONDAY, known_until=END),
        tenants=TENANTS,
    )
    both = fairness.compared(now, before)
    found: Any = both.set_index(["scope", "name"]).loc[("project", "speech")]

    assert found["delivered_change_gpu_hours"] == -80
    assert found["first_wait_p90_change_minutes"] == -60
    assert found["delivered_entitled_change_ratio"] == -0.059  # 0.060 - 0.119


def test_without_a_week_before_there_is_no_change() -> None:
    now = fairness.week(
        **frames([job("a", 0, 1, 11)], [attempt("a", 1, 11)], [level(8)]),
        span=WEEK,
        tenants=TENANTS,
    )
    found = fairness.compared(now, pd.DataFrame(columns=fairness.COLUMNS))

    assert found["delivered_change_gpu_hours"].isna().all()


# ---- properties -------------------------------------------------------------------------------

hours = st.integers(-200, 300)


@st.composite
def records(draw: st.DrawFn) -> tuple[Rows, Rows, Rows]:
    """Jobs with zero to three attempts each, in any project, lane and pool, and some quota."""
    jobs: Rows = []
    attempts: Rows = []
    for number in range(draw(st.integers(1, 6))):
        name = f"j{number}"
        edges = sorted(draw(st.lists(hours, min_size=1, max_size=8, unique=True)))
        who = {
            "project": draw(st.sampled_from([*TENANTS, "ghost"])),
            "lane": draw(st.sampled_from(["primary", "background"])),
            "gpus": draw(st.integers(1, 16)),
        }
        submit, rest = edges[0], edges[1:]
        pairs = list(zip(rest[0::2], [*rest[1::2], None], strict=False))
        for index, (start, end) in enumerate(pairs, 1):
            last = index == len(pairs)
            attempts.append(
                attempt(
                    name,
                    start,
                    end,
                    number=index,
                    pool=draw(st.sampled_from(["tokyo", "osaka"])),
                    ended="running" if end is None else "finished" if last else "evicted",
                    ground="" if last else draw(st.sampled_from(["preemption", "outage"])),
                    evicted_by_project="" if last else draw(st.sampled_from(["", "vision"])),
                    evicted_by_lane="" if last else "primary",
                    useful_gpu_seconds=draw(st.integers(0, 10**7)),
                    lost_gpu_seconds=draw(st.integers(0, 10**6)),
                    **who,
                )
            )
        first, last_end = (pairs[0][0], pairs[-1][1]) if pairs else (None, None)
        jobs.append(job(name, submit, first, last_end, attempts_count=len(pairs), **who))
    levels = [
        level(draw(st.integers(0, 32)), -200, middle, project=project, pool=pool)
        if half == 0
        else level(draw(st.integers(0, 32)), middle, 300, project=project, pool=pool)
        for project in TENANTS
        for pool in ["tokyo", "osaka"]
        for middle in [draw(hours)]
        for half in range(2)
    ]
    return jobs, attempts, levels


def touching(rows: Rows, begin: str, span: Span) -> Rows:
    """The rows that the selectors would return for a span."""
    return [
        row
        for row in rows
        if row[begin] < span.until and (row["end_at"] is None or row["end_at"] > span.start)
    ]


def added(drawn: tuple[Rows, Rows, Rows], span: Span) -> pd.DataFrame:
    jobs, attempts, levels = drawn
    return fairness.facts(
        **frames(touching(jobs, "submit_at", span), touching(attempts, "start_at", span), levels),
        span=span,
        tenants=TENANTS,
    )


KNOWN = at(400)
WHOLE = Span(start=at(0), until=at(168), known_until=KNOWN)


@settings(deadline=None, max_examples=25)
@given(drawn=records(), middle=st.integers(1, 167))
def test_two_parts_of_a_week_add_up_to_the_week(
    drawn: tuple[Rows, Rows, Rows], middle: int
) -> None:
    first = added(drawn, replace(WHOLE, until=at(middle)))
    second = added(drawn, replace(WHOLE, start=at(middle)))
    whole = added(drawn, WHOLE)

    for keys in (["project"], ["lane"], ["tenant"]):
        parts = pd.concat([first, second]).groupby(keys)[fairness.ADDED].sum()
        together = whole.groupby(keys)[fairness.ADDED].sum()
        pd.testing.assert_frame_equal(
            parts.reindex(together.index, fill_value=0), together, check_dtype=False
        )


@settings(deadline=None, max_examples=25)
@given(drawn=records())
def test_projects_lanes_tenants_and_pools_each_add_up_to_the_total(
    drawn: tuple[Rows, Rows, Rows],
) -> None:
    jobs, attempts, levels = drawn
    found = fairness.week(
        **frames(touching(jobs, "submit_at", WHOLE), touching(attempts, "start_at", WHOLE), levels),
        span=WHOLE,
        tenants=TENANTS,
    )
    counts = [
        "jobs_started", "still_waiting", "preemptions_suffered", "preemptions_caused",
        "outage_interruptions", "requeues",
    ]  # fmt: skip
    total = found[found["scope"] == "total"].iloc[0]
    for scope in ("project", "tenant", "lane", "pool"):
        rows = found[found["scope"] == scope]
        for column in counts:
            assert rows[column].sum() == total[column], (scope, column)
        for column in ("delivered_gpu_hours", "useful_gpu_hours", "lost_gpu_hours"):
            # Each row is rounded to 0.1 on its own.
            assert abs(rows[column].sum() - total[column]) <= 0.05 * (len(rows) + 1) + 1e-9


@settings(deadline=None, max_examples=25)
@given(drawn=records())
def test_idle_is_never_less_than_what_is_missing_nor_more_than_what_is_entitled(
    drawn: tuple[Rows, Rows, Rows],
) -> None:
    by_pool = added(drawn, WHOLE).groupby(["project", "pool"])[fairness.ADDED].sum()
    entitled, held = by_pool["entitled_gpu_seconds"], by_pool["delivered_gpu_seconds"]

    assert (by_pool["idle_gpu_seconds"] <= entitled).all()
    assert (by_pool["idle_gpu_seconds"] >= entitled - held).all()


@settings(deadline=None, max_examples=25)
@given(drawn=records())
def test_nothing_is_negative_and_useful_is_no_more_than_recorded(
    drawn: tuple[Rows, Rows, Rows],
) -> None:
    found = added(drawn, WHOLE)

    assert (found[fairness.ADDED] >= 0).all().all()
    assert found["useful_gpu_seconds"].sum() <= sum(row["useful_gpu_seconds"] for row in drawn[1])
