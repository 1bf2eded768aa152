"""Arithmetic on frames for the dashboards: means, steps of time, bands, stretches. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pandas as pd

from portal.telemetry.histograms import added, quantile

HOUR = pd.Timedelta(hours=1)
USUAL_LOW, USUAL_HIGH = 0.10, 0.90


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, [start, end)."""

    start: datetime
    end: datetime


def means(frame: pd.DataFrame) -> pd.Series[float]:
    """The mean of a gauge in each row; unknown where nothing was sampled."""
    count = frame["count"].astype("float64")
    return frame["sum_value"].astype("float64") / count.where(count > 0)


def by_hour(frame: pd.DataFrame, *, column: str | None = None) -> pd.DataFrame | pd.Series[float]:
    """A gauge's mean per hour, summed over its other labels, or one column per value of a label."""
    if frame.empty:
        return pd.DataFrame() if column else pd.Series(dtype="float64")
    known = frame.assign(mean=means(frame))
    if column:
        return known.pivot_table(index="hour", columns=column, values="mean", aggfunc="sum")
    return known.groupby("hour")["mean"].sum(min_count=1)


def grid(start: datetime, end: datetime) -> pd.DatetimeIndex:
    """Every hour of a window."""
    return pd.date_range(start, end, freq=HOUR, inclusive="left")


def compute(
    *,
    held: pd.Series[float],
    active: pd.Series[float],
    reporting: pd.Series[float],
    start: datetime,
    end: datetime,
) -> pd.DataFrame:
    """Per hour: GPUs in use, held but idle, free, and those that report. A gap is a row of NaN."""
    hours = grid(start, end)
    frame = pd.DataFrame(index=hours)
    frame["total"] = _on(hours, reporting)
    frame["held"] = _on(hours, held)
    frame["in_use"] = _on(hours, active)
    # Activity can exceed what the queue counts as held by a sample's width: held then is the floor.
    frame["idle"] = (frame["held"] - frame["in_use"]).clip(lower=0)
    busy = frame[["held", "in_use"]].max(axis=1, skipna=False)
    frame["free"] = (frame["total"] - busy).clip(lower=0)
    return frame[["in_use", "idle", "free", "held", "total"]]


def _on(index: pd.DatetimeIndex, values: pd.Series[float]) -> pd.Series[float]:
    if values.empty:
        return pd.Series(float("nan"), index=index)
    return values.reindex(index).astype("float64")


def stepped(frame: pd.DataFrame, *, hours: int) -> pd.DataFrame:
    """Hourly means as means over longer steps; a step without any hour stays unknown."""
    return frame if hours == 1 else frame.resample(f"{hours}h", origin="start").mean()


def quantile_by_hour(frame: pd.DataFrame, *, q: float, hours: int = 1) -> pd.Series[float]:
    """A quantile of a histogram per step; buckets are added up first."""
    if frame.empty:
        return pd.Series(dtype="float64")
    floor = frame["hour"].dt.floor(f"{hours}h")
    found = {
        at: quantile(added(group), q) for at, group in frame["buckets"].groupby(floor, sort=True)
    }
    return pd.Series(found, dtype="float64")


def usual_band(hourly: pd.Series[float]) -> tuple[float, float] | None:
    """Between which values a quantile usually lies; unknown with less than a day of it."""
    known = hourly.dropna()
    if len(known) < 24:
        return None
    return float(known.quantile(USUAL_LOW)), float(known.quantile(USUAL_HIGH))


def stretches(flags: pd.Series[bool], *, least: int = 1) -> list[Stretch]:
    """Consecutive hours that are flagged, as stretches of at least so many hours."""
    found: list[Stretch] = []
    run: list[pd.Timestamp] = []
    for at in flags.index[flags.to_numpy(dtype=bool)]:
        if run and at - run[-1] != HOUR:
            found += _closed(run, least)
            run = []
        run.append(at)
    return found + _closed(run, least)


def _closed(run: Sequence[pd.Timestamp], least: int) -> list[Stretch]:
    if len(run) < least:
        return []
    return [Stretch(run[0].to_pydatetime(), (run[-1] + timedelta(hours=1)).to_pydatetime())]


def gaps(frame: pd.DataFrame, *, until: datetime) -> list[Stretch]:
    """The stretches before `until` in which nothing at all is known."""
    past = frame[frame.index < pd.Timestamp(until) - HOUR]
    return stretches(past.isna().all(axis=1))
