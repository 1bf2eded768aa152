"""Which stretches of time a run asks of a signal, and what is left to ask afterwards. Pure.

What is known of a signal is its progress: up to the mark it is collected, but for its gaps. A step
that was ever to be asked lies behind the mark and outside the gaps only when it came; whatever
fails, and whenever a run ends, it stays at or after the mark, or in a gap.

1. The newest stretch goes first: from the mark to the newest step that is settled, no more than a
   piece of it. What lies between the mark and that piece becomes a gap once the piece has come.
2. Then the gaps, from their newest end, piece by piece, so much a run. Those that failed before go
   last, and wait longer each time: a stretch that a server cannot answer holds up no other.
3. Every quarter of an hour one is read again that lies LATE behind, with the newest stretch: so
   every step is read a second time, and what was late is counted. Signals take turns, for no run to
   read much more than another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from collectors.ranges import STEPS_FOR, floor
from collectors.rollups import HOUR, STEP

# The newest step may still be filling.
SETTLES = timedelta(seconds=30)
# So far back a signal is collected when it is new.
FIRST = timedelta(hours=24)
# So long after it was read first, a step is read again: a sample that came up to then is counted.
LATE = timedelta(hours=2)
# So much at once: what each series costs beside its samples is paid once for three steps.
AGAIN = timedelta(minutes=15)
# What is asked and stored at once: a kill loses no more, and a server can answer it in time.
PIECE = STEPS_FOR
# Asked for by hand: larger pieces, for somebody waits. A week at once would be gigabytes.
BACK_FILL_PIECE = timedelta(days=1)
# What was answered in part is asked again for so long, then kept as partial.
PARTIAL_FOR = timedelta(hours=24)
MOST_WAIT_STEPS = 12

Stretch = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch [start, end) that has not come, or only in part; asked in vain `tries` times."""

    start: datetime
    end: datetime
    tries: int = 0
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Up to `mark` a signal is collected, but for its gaps: disjoint, in order, behind the mark.

    Quarters of hours that are read again end so much after those of the clock (`turn`).
    """

    mark: datetime
    gaps: tuple[Gap, ...] = ()
    turn: timedelta = timedelta(0)


class Why(StrEnum):
    """What a window is asked for."""

    NEWEST = "newest"
    GAP = "gap"
    BACK_FILL = "back-fill"


class Outcome(StrEnum):
    """How a window was answered."""

    WHOLE = "whole"
    PARTIAL = "partial"
    FAILED = "failed"
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch [start, end) to ask for; of a gap, how often it was asked in vain.

    `late` is a stretch to read again with it.
    """

    start: datetime
    end: datetime
    why: Why
    tries: int = 0
    late: Stretch | None = None

    @property
    def stretches(self) -> list[Stretch]:
        """Everything that is asked for, the oldest first."""
        own = (self.start, self.end)
        return [own] if self.late is None else [self.late, own]


def settled(now: datetime) -> datetime:
    """Up to where steps are full: the last one that may still be filling is left out."""
    return floor(now - SETTLES, STEP)


def begin(
    *,
    now: datetime,
    since: datetime | None = None,
    before: Progress | None = None,
    turn: timedelta = timedelta(0),
) -> Progress:
    """The progress of a signal that was never asked in this way.

    `before` is that of the version before it: what that one owed, the new one owes. A back-fill of
    less than FIRST begins at its `since`.
    """
    first = floor(settled(now) - FIRST, HOUR)
    if since is not None:
        first = max(first, floor(since, HOUR))
    # So that what is to be read again begins in the first hour, and not before it.
    mark = min(first + LATE + turn, settled(now))
    if before is None:
        return Progress(mark, turn=turn)
    mark = min(mark, before.mark)
    return taken_over(Progress(mark, turn=turn), before.gaps)


def scheduled(progress: Progress, *, now: datetime, most: timedelta) -> list[Window]:
    """What a run asks of a signal, in order: its newest piece, then at most `most` of its gaps."""
    end, start = settled(now), progress.mark
    found, gaps = [], list(progress.gaps)
    if start < end:
        first, late = max(start, _piece_start(end, PIECE)), _late(progress, end)
        # After an outage it is a gap like others; and what a gap holds may fail: not with the news.
        if first > start or (late and _without(gaps, *late) != gaps):
            late = None
        newest = Window(first, end, Why.NEWEST, late=late)
        found.append(newest)
        gaps = list(_moved(progress, newest).gaps)
    left = most
    for gap in sorted(gaps, key=lambda one: (one.tries, -one.end.timestamp())):
        if gap.not_before is not None and gap.not_before > now:
            continue
        upper = gap.end
        while upper > gap.start and left > timedelta(0):
            lower = max(gap.start, _piece_start(upper, PIECE), upper - left)
            found.append(Window(lower, upper, Why.GAP, gap.tries))
            left -= upper - lower
            upper = lower
    return found


def back_fill(*, since: datetime, until: datetime | None, now: datetime) -> list[Window]:
    """What is asked when somebody names a stretch: whole hours, in pieces, the newest first."""
    end = settled(now)
    if until is not None:
        end = min(end, floor(until + HOUR - timedelta.resolution, HOUR))
    start, found = floor(since, HOUR), []
    while start < end:
        lower = max(start, _piece_start(end, BACK_FILL_PIECE))
        found.append(Window(lower, end, Why.BACK_FILL))
        end = lower
    return found


def after(progress: Progress, window: Window, outcome: Outcome, *, now: datetime) -> Progress:
    """What is left to ask for when a window was answered, or was not."""
    if outcome in (Outcome.WHOLE, Outcome.PARTIAL):
        came = _moved(progress, window)
        if outcome is Outcome.WHOLE:
            return came
        gaps, horizon = list(came.gaps), floor(now - PARTIAL_FOR, STEP)
        for first, last in window.stretches:
            if horizon < last:
                gaps.append(_tried(max(first, horizon), last, tries=window.tries, now=now))
        return replace(came, gaps=tuple(_merged(gaps)))
    start, end = window.start, min(window.end, progress.mark)
    if window.why is Why.NEWEST or start >= end:
        return progress  # it stays to be asked: it lies after the mark
    if outcome is Outcome.FAILED:
        gaps = _without(progress.gaps, start, end)
        gaps.append(_tried(start, end, tries=window.tries, now=now))
        return replace(progress, gaps=tuple(_merged(gaps)))
    return taken_over(progress, [Gap(start, end)]) if window.why is Why.BACK_FILL else progress


def taken_over(progress: Progress, gaps: Iterable[Gap]) -> Progress:
    """The progress with more to ask for, as if it was never tried; its own gaps stay."""
    missing = _kept(gaps, end=progress.mark)
    for gap in progress.gaps:
        missing = _without(missing, gap.start, gap.end)
    if not missing:
        return progress
    return replace(progress, gaps=tuple(_merged([*progress.gaps, *missing])))


def _tried(start: datetime, end: datetime, *, tries: int, now: datetime) -> Gap:
    """A stretch that was asked in vain once more: the next run asks again, later ones wait."""
    return Gap(start, end, tries + 1, now + min(tries, MOST_WAIT_STEPS) * STEP)


def _moved(progress: Progress, window: Window) -> Progress:
    """The progress when a window has come: it may pass over what is then owed."""
    gaps: Iterable[Gap] = progress.gaps
    owed = []
    if progress.mark < window.end:
        late = _late(progress, window.end)
        owed = [Gap(*one) for one in (late, (progress.mark, window.end)) if one is not None]
    for stretch in window.stretches:
        gaps, owed = _without(gaps, *stretch), _without(owed, *stretch)
    mark = max(progress.mark, window.end)
    return taken_over(replace(progress, mark=mark, gaps=tuple(_merged(gaps))), owed)


def _late(progress: Progress, end: datetime) -> Stretch | None:
    """What is due to be read again when the mark moves to `end`.

    From 12:55 to 13:00: what lies from 10:45 to 11:00. What lies behind the mark by more than an
    outage lasted was read again before; what lies after the mark has not been read at all.
    """
    start, upper = (
        floor(at - progress.turn, AGAIN) + progress.turn - LATE for at in (progress.mark, end)
    )
    upper = min(upper, progress.mark)
    return (start, upper) if start < upper else None


def _piece_start(end: datetime, piece: timedelta) -> datetime:
    """Where a piece begins that ends here: on an hour, so that hours are asked as wholes."""
    return floor(end - piece, HOUR)


def _without(gaps: Iterable[Gap], start: datetime, end: datetime) -> list[Gap]:
    """The gaps without the stretch [start, end)."""
    left = []
    for gap in gaps:
        if gap.end <= start or end <= gap.start:
            left.append(gap)
            continue
        if gap.start < start:
            left.append(replace(gap, end=start))
        if end < gap.end:
            left.append(replace(gap, start=end))
    return left


def _kept(gaps: Iterable[Gap], *, end: datetime) -> list[Gap]:
    """The gaps before an instant, as if they were never tried."""
    return [Gap(gap.start, min(gap.end, end)) for gap in gaps if gap.start < end]


def _merged(gaps: Iterable[Gap]) -> list[Gap]:
    """The gaps in order; neighbours become one.

    Those that were tried become no larger than a piece, or a store that is down for a day would
    leave hundreds of small ones, each to be asked for by itself.
    """
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda one: one.start):
        last = found[-1] if found else None
        if (
            last is not None
            and last.end == gap.start
            and (not last.tries) == (not gap.tries)
            and (not gap.tries or gap.end - last.start <= PIECE)
        ):
            waits = [one.not_before for one in (last, gap) if one.not_before is not None]
            found[-1] = Gap(
                last.start, gap.end, max(last.tries, gap.tries), max(waits, default=None)
            )
        else:
            found.append(gap)
    return found
