"""Which windows a run asks for: worked out by hand, then for every order of failures."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import ranges, windows
from collectors.rollups import HOUR, STEP
from collectors.windows import Gap, Outcome, Progress, Why, Window

DAY = datetime(2026, 11, 30, tzinfo=UTC)
MOST = timedelta(hours=24)


def at(text: str, *, day: int = 0) -> datetime:
    hour, minute = map(int, text.split(":"))
    return DAY + timedelta(days=day, hours=hour, minutes=minute)


def _plan(progress: Progress, now: datetime, most: timedelta = MOST) -> list[Window]:
    return windows.scheduled(progress, now=now, most=most)


def test_the_step_that_is_still_filling_is_left_out() -> None:
    # Until 30 s after 12:30 the step that ends there may still be filling.
    assert windows.settled(at("12:30") + timedelta(seconds=29)) == at("12:25")
    assert windows.settled(at("12:30") + timedelta(seconds=30)) == at("12:30")
    assert _plan(Progress(at("12:30")), at("12:34")) == []


def test_a_run_goes_on_from_the_mark() -> None:
    assert _plan(Progress(at("12:05")), at("12:11")) == [
        Window(at("12:05"), at("12:10"), Why.NEWEST)
    ]


def test_each_quarter_of_an_hour_the_one_two_hours_before_is_read_again() -> None:
    # A sample of 10:00 that came at 12:00 was two hours late.
    assert _plan(Progress(at("12:10")), at("12:16")) == [
        Window(at("12:10"), at("12:15"), Why.NEWEST, late=(at("10:00"), at("10:15")))
    ]
    assert _plan(Progress(at("12:55")), at("13:01")) == [
        Window(at("12:55"), at("13:00"), Why.NEWEST, late=(at("10:45"), at("11:00")))
    ]
    # Another signal takes its turn five minutes later.
    progress = Progress(at("12:15"), turn=STEP)
    (window,) = _plan(progress, at("12:21"))
    assert window.late == (at("10:05"), at("10:20"))
    progress = windows.after(progress, window, Outcome.WHOLE, now=at("12:21"))
    assert progress == Progress(at("12:20"), turn=STEP)
    (window,) = _plan(progress, at("12:31"))
    assert window.late is None


def test_after_an_outage_what_was_read_again_before_is_not_read_a_third_time() -> None:
    # Down from 10:00 to 13:00: 08:00-10:00 was due to be read again from 10:00 to 12:00; what lies
    # after 10:00 is read for the first time.
    (window,) = _plan(Progress(at("10:00")), at("13:01"))
    assert window == Window(at("10:00"), at("13:00"), Why.NEWEST, late=(at("08:00"), at("10:00")))
    # Down for an hour only: the rest of it is due later.
    (window,) = _plan(Progress(at("10:00")), at("11:01"))
    assert window.late == (at("08:00"), at("09:00"))


def test_what_is_owed_anyway_is_not_read_again_with_the_news() -> None:
    # It failed before: were it asked with the newest window, that would not come either.
    progress = Progress(at("12:10"), (Gap(at("10:05"), at("10:12"), 2, at("13:00")),))
    newest, *rest = _plan(progress, at("12:16"))
    assert newest == Window(at("12:10"), at("12:15"), Why.NEWEST)
    # What of it is in no gap is asked by itself, and owed when the newest has come.
    assert rest == [
        Window(at("10:12"), at("10:15"), Why.GAP), Window(at("10:00"), at("10:05"), Why.GAP),
    ]  # fmt: skip
    after = windows.after(progress, newest, Outcome.WHOLE, now=at("12:16"))
    assert after == Progress(
        at("12:15"),
        (Gap(at("10:00"), at("10:05")), *progress.gaps, Gap(at("10:12"), at("10:15"))),
    )


def test_what_did_not_come_a_second_time_becomes_a_gap() -> None:
    now = at("12:16")
    (newest,) = _plan(Progress(at("12:10")), now)
    whole = windows.after(Progress(at("12:10")), newest, Outcome.WHOLE, now=now)
    assert whole == Progress(at("12:15"))
    without = replace(newest, late=None)
    after = windows.after(Progress(at("12:10")), without, Outcome.WHOLE, now=now)
    assert after == Progress(at("12:15"), (Gap(at("10:00"), at("10:15")),))


def test_a_new_signal_is_asked_newest_first_a_day_back() -> None:
    # The newest piece begins on the hour six hours before 04:30; then pieces of six hours.
    now = at("04:32", day=1)
    progress = windows.begin(now=now)
    assert progress == Progress(at("06:00"))
    assert _plan(progress, now) == [
        Window(at("22:00"), at("04:30", day=1), Why.NEWEST),
        Window(at("16:00"), at("22:00"), Why.GAP),
        Window(at("10:00"), at("16:00"), Why.GAP),
        Window(at("04:00"), at("10:00"), Why.GAP),
    ]


def test_after_an_outage_the_newest_comes_first_and_each_run_is_bounded() -> None:
    # Down from 03:10 for three days; a run fills at most 12 hours of what was missed.
    now = at("09:21", day=3)
    most = timedelta(hours=12)
    first = _plan(Progress(at("03:10")), now, most)
    assert first == [
        Window(at("03:00", day=3), at("09:20", day=3), Why.NEWEST),
        Window(at("21:00", day=2), at("03:00", day=3), Why.GAP),
        Window(at("15:00", day=2), at("21:00", day=2), Why.GAP),
    ]
    progress = Progress(at("03:10"))
    for window in first:
        progress = windows.after(progress, window, Outcome.WHOLE, now=now)
    # At 03:00 it was read again up to 01:00.
    assert progress == Progress(at("09:20", day=3), (Gap(at("01:00"), at("15:00", day=2)),))


def test_a_newest_window_that_fails_moves_nothing() -> None:
    progress = Progress(at("12:10"), (Gap(at("02:00"), at("03:00")),))
    newest, _gap = _plan(progress, at("12:16"))
    for outcome in (Outcome.FAILED, Outcome.NOT_ASKED):
        assert windows.after(progress, newest, outcome, now=at("12:16")) == progress


def test_a_gap_that_fails_goes_last_and_waits_longer_each_time() -> None:
    now = at("12:16")
    progress = Progress(at("12:15"), (Gap(at("02:00"), at("03:00")), Gap(at("06:00"), at("07:00"))))
    newer, older = _plan(progress, now)
    assert (newer.start, older.start) == (at("06:00"), at("02:00"))
    progress = windows.after(progress, newer, Outcome.FAILED, now=now)
    assert [window.start for window in _plan(progress, now)] == [at("02:00"), at("06:00")]
    again = _plan(progress, now)[1]
    progress = windows.after(progress, again, Outcome.FAILED, now=now)
    assert progress.gaps[1] == Gap(at("06:00"), at("07:00"), 2, now + STEP)
    assert [window.start for window in _plan(progress, now)] == [at("02:00")]
    for _ in range(30):
        again = Window(at("06:00"), at("07:00"), Why.GAP, progress.gaps[1].tries)
        progress = windows.after(progress, again, Outcome.FAILED, now=now)
    assert progress.gaps[1].not_before == now + HOUR  # and never longer


def test_a_server_that_was_not_reached_makes_no_gap_wait() -> None:
    progress = Progress(at("12:15"), (Gap(at("02:00"), at("03:00")),))
    (gap,) = _plan(progress, at("12:16"))
    assert windows.after(progress, gap, Outcome.NOT_ASKED, now=at("12:16")) == progress


def test_a_partial_answer_moves_the_mark_and_is_asked_again_for_a_day() -> None:
    now = at("12:16", day=1)
    (newest,) = _plan(Progress(at("12:10", day=1)), now)
    progress = windows.after(Progress(at("12:10", day=1)), newest, Outcome.PARTIAL, now=now)
    again = Gap(at("10:00", day=1), at("10:15", day=1), 1, now)
    assert progress == Progress(newest.end, (again, Gap(newest.start, newest.end, 1, now)))
    # Only the day before now: 12:15 of the day before is the step that holds it.
    old = Window(at("10:00"), at("14:00"), Why.GAP)
    progress = windows.after(Progress(newest.end), old, Outcome.PARTIAL, now=now)
    assert progress.gaps == (Gap(at("12:15"), at("14:00"), 1, now),)
    gone = Window(at("10:00"), at("12:00"), Why.GAP)
    assert windows.after(Progress(newest.end), gone, Outcome.PARTIAL, now=now).gaps == ()


def test_a_store_that_is_down_for_a_day_leaves_a_handful_of_gaps() -> None:
    progress, asked = Progress(DAY), 0
    for minutes in range(6, 24 * 60, 5):
        now = DAY + timedelta(minutes=minutes)
        for window in _plan(progress, now):
            progress = windows.after(progress, window, Outcome.PARTIAL, now=now)
            asked += 1
    assert len(progress.gaps) <= 6
    # 287 newest windows; each of the few gaps at most once an hour when it has failed often.
    assert asked < 287 + 24 * 12


def test_a_back_fill_is_asked_in_pieces_and_cuts_the_gaps_it_covers() -> None:
    now = at("04:32", day=20)
    asked = windows.back_fill(since=at("01:20"), until=None, now=now)
    assert [(w.start, w.end) for w in asked][:2] == [
        (at("04:00", day=19), at("04:30", day=20)),
        (at("04:00", day=18), at("04:00", day=19)),
    ]
    assert (len(asked), asked[-1].start, asked[-1].end) == (21, at("01:00"), at("04:00"))
    assert windows.back_fill(since=at("01:20"), until=at("02:01"), now=now) == [
        Window(at("01:00"), at("03:00"), Why.BACK_FILL)
    ]
    progress = Progress(at("04:30", day=20), (Gap(at("00:00"), at("02:00"), 3, now),))
    (hour,) = windows.back_fill(since=at("01:00"), until=at("02:00"), now=now)
    after = windows.after(progress, hour, Outcome.WHOLE, now=now)
    assert after.gaps == (Gap(at("00:00"), at("01:00"), 3, now),)


def test_a_back_fill_that_failed_is_made_up_for_later() -> None:
    now = at("04:32", day=1)
    (window,) = windows.back_fill(since=at("01:00", day=-7), until=at("02:00", day=-7), now=now)
    progress = Progress(at("04:30", day=1))
    failed = windows.after(progress, window, Outcome.FAILED, now=now)
    assert failed.gaps == (Gap(window.start, window.end, 1, now),)
    skipped = windows.after(progress, window, Outcome.NOT_ASKED, now=now)
    assert skipped.gaps == (Gap(window.start, window.end),)


def test_a_back_fill_after_the_mark_leaves_what_it_skips_as_a_gap() -> None:
    now = at("12:31")
    (window,) = windows.back_fill(since=at("11:00"), until=None, now=now)
    after = windows.after(Progress(at("08:20")), window, Outcome.WHOLE, now=now)
    assert after == Progress(at("12:30"), (Gap(at("06:15"), at("11:00")),))
    # Where nothing is skipped, what was to be read again is owed: 06:15-08:20.
    (window,) = windows.back_fill(since=at("08:20"), until=None, now=now)
    after = windows.after(Progress(at("08:20")), window, Outcome.WHOLE, now=now)
    assert after == Progress(at("12:30"), (Gap(at("06:15"), at("08:00")),))


def test_the_first_back_fill_of_a_signal_leaves_no_gap_before_it() -> None:
    now = at("04:32", day=1)
    progress = windows.begin(now=now, since=at("01:20", day=1))
    (window,) = windows.back_fill(since=at("01:20", day=1), until=None, now=now)
    after = windows.after(progress, window, Outcome.WHOLE, now=now)
    assert after == Progress(at("04:30", day=1))
    # When it fails the schedule reads from there, and not before; whatever its turn.
    for steps in range(3):
        progress = windows.begin(now=now, since=at("01:20", day=1), turn=steps * STEP)
        (newest,) = _plan(progress, now)
        assert newest.stretches[0][0] == at("01:00", day=1) + steps * STEP
    assert windows.begin(now=now, since=at("01:20", day=-7)) == Progress(at("06:00"))


def test_a_new_version_owes_what_the_one_before_owed() -> None:
    now = at("04:32", day=3)
    before = Progress(at("10:00"), (Gap(at("02:00"), at("03:00"), 5, now + HOUR),))
    assert windows.begin(now=now, before=before) == Progress(
        at("10:00"), (Gap(at("02:00"), at("03:00")),)
    )
    # What the old one collected in the last day is collected again, for charts to be of one kind.
    before = Progress(at("04:30", day=3), (Gap(at("04:00", day=3), at("04:20", day=3)),))
    assert windows.begin(now=now, before=before) == Progress(at("06:00", day=2))


def test_what_another_version_owes_is_added_to_what_is_owed() -> None:
    # The query was changed and changed back: what came between is after the mark anyway.
    own = Gap(at("05:00"), at("06:00"), 3, at("09:00"))
    others = (Gap(at("04:30"), at("06:30"), 2, at("09:00")), Gap(at("09:00"), at("11:00")))
    assert windows.taken_over(Progress(at("10:00"), (own,)), others) == Progress(
        at("10:00"),
        (
            Gap(at("04:30"), at("05:00")),
            own,
            Gap(at("06:00"), at("06:30")),
            Gap(at("09:00"), at("10:00")),
        ),
    )


def test_a_window_is_asked_as_whole_hours_and_the_newest_six_as_steps() -> None:
    def asked(start: str, end: str, now: str = "12:31") -> list[tuple[datetime, datetime, bool]]:
        found = ranges.ranges(start=at(start), end=at(end), now=at(now))
        return [(one.start, one.end, one.as_steps) for one in found]

    assert asked("04:00", "12:30") == [
        (at("04:00"), at("06:00"), False), (at("06:00"), at("12:30"), True),
    ]  # fmt: skip
    assert asked("04:00", "05:00") == [(at("04:00"), at("05:00"), False)]
    assert asked("04:10", "04:40") == [(at("04:00"), at("05:00"), False)]
    assert asked("06:10", "06:40") == [(at("06:10"), at("06:40"), True)]
    # Hours of which some steps are known are asked step by step.
    whole = ranges.Range(at("01:00"), at("05:00"), as_steps=False)
    parts = whole.split([at("02:00"), at("04:00")])
    assert [(one.start, one.end, one.as_steps) for one in parts] == [
        (at("01:00"), at("02:00"), False), (at("02:00"), at("03:00"), True),
        (at("03:00"), at("04:00"), False), (at("04:00"), at("05:00"), True),
    ]  # fmt: skip


# --- whatever happens ------------------------------------------------------------------------


def _steps(start: datetime, end: datetime) -> set[int]:
    return set(range(int((start - DAY) / STEP), int((end - DAY) / STEP)))


class _Story:
    """A signal over time: what was to be asked, what came whole, what is still owed."""

    def __init__(self) -> None:
        self.now = at("12:31", day=10)
        self.progress = windows.begin(now=self.now)
        self.begun = self.progress.mark
        self.asked: set[int] = set()
        self.came: set[int] = set()

    def run(self, asked: list[Window], outcomes: list[Outcome], *, killed_after: int) -> None:
        """A run of some windows; it is killed after so many of them were stored."""
        for number, window in enumerate(asked):
            assert window.start < window.end
            if number == killed_after:
                return
            outcome = outcomes[number % len(outcomes)]
            if outcome in (Outcome.WHOLE, Outcome.PARTIAL):
                whole = _steps(window.start, window.end)
                if outcome is Outcome.PARTIAL:  # after a day it is kept as it is
                    whole = {n for n in whole if DAY + n * STEP < self.now - windows.PARTIAL_FOR}
                self.came |= whole
            if window.why is Why.BACK_FILL:
                self.asked |= _steps(window.start, window.end)
            self.progress = windows.after(self.progress, window, outcome, now=self.now)
            self.check()

    def check(self) -> None:
        """What lies behind the mark came, or is in a gap; gaps are disjoint and behind the mark."""
        gaps = self.progress.gaps
        assert all(gap.start < gap.end <= self.progress.mark for gap in gaps)
        assert all(a.end <= b.start for a, b in itertools.pairwise(gaps))
        owed = set().union(*(_steps(gap.start, gap.end) for gap in gaps))
        behind = _steps(self.begun, self.progress.mark)
        behind |= {n for n in self.asked if DAY + n * STEP < self.progress.mark}
        assert behind <= self.came | owed

    def end(self) -> int:
        """Runs without a fault, five minutes apart, until nothing is owed; gives how many."""
        runs = 0
        while True:
            plan = _plan(self.progress, self.now)
            if not plan and not self.progress.gaps:
                return runs
            runs += 1
            assert runs < 1000
            self.run(plan, [Outcome.WHOLE], killed_after=len(plan))
            self.now += STEP if self.progress.gaps else timedelta(0)


OUTCOMES = st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=5)
PASSING = st.integers(0, 3) | st.integers(0, 400)  # steps between runs: mostly few, or an outage


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            PASSING,
            OUTCOMES,
            st.integers(0, 8),
            st.none() | st.tuples(st.integers(1, 4000), st.none() | st.integers(1, 300)),
        ),
        max_size=12,
    )
)
def test_whatever_fails_every_step_comes_in_the_end(
    story: list[tuple[int, list[Outcome], int, tuple[int, int | None] | None]],
) -> None:
    signal = _Story()
    for passing, outcomes, killed_after, by_hand in story:
        signal.now += passing * STEP
        if by_hand is None:
            plan = _plan(signal.progress, signal.now)
        else:
            since = signal.now - by_hand[0] * STEP
            until = None if by_hand[1] is None else since + by_hand[1] * STEP
            plan = windows.back_fill(since=since, until=until, now=signal.now)
        signal.run(plan, outcomes, killed_after=killed_after)
    signal.end()
    assert signal.progress.mark == windows.settled(signal.now)
    assert _steps(signal.begun, signal.progress.mark) <= signal.came
    assert signal.asked <= signal.came


@settings(max_examples=60, deadline=None)
@given(PASSING, st.integers(1, 48), st.integers(0, 11), st.randoms(use_true_random=False))
def test_a_plan_is_newest_first_disjoint_and_bounded(
    passing: int, most_hours: int, minute: int, draw: random.Random
) -> None:
    now, most = at("12:31", day=10) + minute * STEP, most_hours * HOUR
    mark = windows.settled(now) - passing * STEP
    gaps, upper = [], mark
    for _ in range(draw.randrange(5)):
        end = upper - draw.randrange(1, 50) * STEP
        upper = end - draw.randrange(1, 300) * STEP
        gaps.append(Gap(upper, end))
    plan = _plan(Progress(mark, tuple(reversed(gaps))), now, most)
    steps = [_steps(window.start, window.end) for window in plan]
    assert sum(map(len, steps)) == len(set().union(*steps))
    assert [w.end for w in plan] == sorted((w.end for w in plan), reverse=True)
    filled = sum((w.end - w.start for w in plan if w.why is Why.GAP), timedelta())
    assert filled <= most
    assert all(w.end - w.start <= windows.PIECE + HOUR for w in plan)
    if passing:
        assert plan[0].why is Why.NEWEST
        assert plan[0].end == windows.settled(now)


@pytest.mark.parametrize("bad_hours", [1, 7])
def test_a_stretch_that_never_answers_holds_up_no_other(bad_hours: int) -> None:
    """Two days were missed; some hours in the middle of them break the server each time."""
    bad = _steps(at("06:00", day=9), at("06:00", day=9) + bad_hours * HOUR)
    now = at("12:31", day=10)
    progress = Progress(at("12:00", day=8))
    for _ in range(12):
        for window in _plan(progress, now, 12 * HOUR):
            broken = bool(_steps(window.start, window.end) & bad)
            outcome = Outcome.FAILED if broken else Outcome.WHOLE
            progress = windows.after(progress, window, outcome, now=now)
        now += STEP
    owed = set().union(*(_steps(gap.start, gap.end) for gap in progress.gaps))
    # No more than the pieces that the bad hours lie in: hours 04-10, with seven also 10-16.
    assert owed >= bad
    assert owed <= _steps(at("00:00", day=9), at("18:00", day=9))
    assert progress.mark == windows.settled(now - STEP)
