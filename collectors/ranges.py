"""What is asked for a window: the newest hours step by step, older ones as whole hours. Pure.

A count's increase over an hour costs a server a twelfth of that over twelve steps, and a week of
steps is millions of rows that nobody reads. But of two resets within an hour the part between them
is lost, so the newest hours are asked step by step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from collectors.catalogue import Kind
from collectors.rollups import HOUR, STEP

# What is collected as it happens, or made up for after a short outage, is kept as steps.
STEPS_FOR = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of time [start, end) that is asked in one way: as steps, or as whole hours."""

    start: datetime
    end: datetime
    as_steps: bool

    def instants(self, kind: Kind) -> tuple[datetime, datetime, timedelta]:
        """The first and the last instant to ask for, and the step between them.

        A gauge is read at the start of each five minutes, also for whole hours. An increase is
        asked at the end of each step, or of each hour.
        """
        if kind is Kind.GAUGE:
            return self.start, self.end - STEP, STEP
        step = STEP if self.as_steps else HOUR
        return self.start + step, self.end, step

    def split(self, hours: Iterable[datetime]) -> list[Range]:
        """The same stretch, with these hours of it (in order) asked step by step."""
        found, start = [], self.start
        for hour in hours:
            if start < hour:
                found.append(replace(self, start=start, end=hour))
            found.append(Range(hour, hour + HOUR, as_steps=True))
            start = hour + HOUR
        if start < self.end:
            found.append(replace(self, start=start))
        return found


def ranges(*, start: datetime, end: datetime, now: datetime) -> list[Range]:
    """The window [start, end) in at most two ranges; both lie on the grid of steps.

    An hour that lies too far back for steps is asked as a whole, however little of it the window
    holds: half an hour must not be written over a whole one.
    """
    border = floor(now - STEPS_FOR, HOUR)
    found = []
    if start < border:
        whole = min(floor(end + HOUR - STEP, HOUR), border)
        found.append(Range(floor(start, HOUR), whole, as_steps=False))
    if end > border:
        found.append(Range(max(start, border), end, as_steps=True))
    return found


def floor(instant: datetime, unit: timedelta) -> datetime:
    """The instant on the grid of a unit, at or before; the grid starts at the epoch."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant.astimezone(UTC) - epoch) // unit * unit
