"""Samples become steps of five minutes, steps hours, hours days: sums, counts and buckets. Pure.

Each level is made from the finer one as a whole, so that it can be made again. A ratio or a
quantile is made when somebody asks, never here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from collectors.catalogue import BUCKET_BOUND, Kind

STEP = timedelta(minutes=5)
HOUR = timedelta(hours=1)
EXPECTED = 12
MOST_NAME = 63
MEASURED = [
    "sum_value", "count", "min_value", "max_value", "buckets", "last_value", "last_at", "observed",
    "expected",
]  # fmt: skip
PARTIAL = "partial"
COMPLETE = "complete"
Numbers = np.ndarray[Any, np.dtype[np.integer[Any]]]


class UnusableAnswerError(ValueError):
    """The answer has not the shape that its signal needs: using it would be a guess."""


def tidy(frame: pd.DataFrame, columns: dict[str, str]) -> tuple[pd.DataFrame, int]:
    """Labels renamed to columns; an absent label is "". Also how many samples were refused.

    Names longer than the database keeps are refused rather than cut: two could become one. Raises
    UnusableAnswerError when two samples stand at one instant of one line, or a bucket has no bound.
    """
    has_bound = BUCKET_BOUND in frame
    wanted = {**columns, **({BUCKET_BOUND: BUCKET_BOUND} if has_bound else {})}
    kept = frame[["at", "value"]].copy()
    for label, column in wanted.items():
        kept[column] = _categories(frame, label)
    names = list(columns.values())
    fits = np.ones(len(kept), dtype=bool)
    for name in names:
        long = kept[name].cat.categories.astype(str).str.len() > MOST_NAME
        fits &= ~np.asarray(long)[kept[name].cat.codes]
    kept = kept[fits]
    if has_bound:
        used = kept[BUCKET_BOUND].cat.remove_unused_categories().cat.categories
        if pd.to_numeric(pd.Series(used, dtype=object), errors="coerce").isna().any():
            raise UnusableAnswerError("A bucket has no upper bound (label le) that is a number.")
    codes = pd.DataFrame({name: kept[name].cat.codes for name in wanted.values()})
    twice = codes.assign(at=kept["at"]).duplicated()
    if twice.any():
        row = kept[twice].iloc[0]
        line = ", ".join(f"{name} {row[name]!r}" for name in names) or "the whole region"
        raise UnusableAnswerError(
            f"Several series answer for {line}; the query must aggregate them."
        )
    return kept, int((~fits).sum())


def steps(
    kind: Kind,
    frame: pd.DataFrame,
    keys: list[str],
    sums: pd.DataFrame | None = None,
    *,
    step: timedelta = STEP,
) -> pd.DataFrame:
    """Rows of one signal as they were asked: columns `keys`, at and those of MEASURED.

    `frame` holds `at`, `value`, `keys` and, for a histogram, `bound`; `sums` its sums of values. A
    gauge's sample at 12:00 stands for the step from 12:00; an increase at 13:00 is that of the step
    before. A `step` of an hour stands for all twelve.
    """
    if frame.empty:
        return pd.DataFrame(columns=[*keys, "at", *MEASURED])
    if kind is Kind.HISTOGRAM:
        if BUCKET_BOUND not in frame:
            raise UnusableAnswerError("The query answers no buckets: the label le is missing.")
        return _histogram(frame, keys, sums, step)
    made = frame[[*keys, "at"]].copy()
    made["sum_value"] = frame["value"].astype("float64")
    made["count"] = float(step // STEP)
    made["buckets"] = None
    if kind is Kind.GAUGE:
        for name in ("min_value", "max_value", "last_value"):
            made[name] = made["sum_value"]
        made["last_at"] = made["at"]
    else:
        made = _without_newest(made)
        made["at"] -= step
    return _of_step(made, keys, step)


def rolled(
    frame: pd.DataFrame, *, at: str, into: str, expected: int, keys: list[str] | None = None
) -> pd.DataFrame:
    """Rows of a coarser level from all the rows of the finer one: one for each key and `into`.

    `frame` has the columns `keys`, `at` (instants of the finer level), `into` and those of
    MEASURED, perhaps `quality`: one part that is partial makes the whole so.
    """
    keys = keys or ["series"]
    by = [*keys, into]
    columns = [*by, *MEASURED, *(["quality"] if "quality" in frame else [])]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    frame = frame.sort_values([*keys, at], kind="stable")
    grouped = frame.groupby(by, sort=False, observed=True)
    made = grouped[["count", "observed"]].sum()
    made["observed"] = made["observed"].astype("int64")
    made["sum_value"] = grouped["sum_value"].sum(min_count=1)
    made["min_value"] = grouped["min_value"].min()
    made["max_value"] = grouped["max_value"].max()
    # The last one that is known: what has no value has no instant either.
    made["last_value"] = grouped["last_value"].last()
    made["last_at"] = grouped["last_at"].last()
    made["expected"] = expected
    added = _added(frame, grouped.ngroup().to_numpy(), len(made))
    made["buckets"] = pd.Series(added, index=made.index, dtype=object)
    if "quality" in frame:
        partial = (frame["quality"] == PARTIAL).groupby(grouped.ngroup(), sort=True).any()
        made["quality"] = np.where(partial.to_numpy(), PARTIAL, COMPLETE)
    return made.reset_index()[columns]


def into_hours(made: pd.DataFrame, keys: list[str] | None = None) -> pd.DataFrame:
    """Hour rows from all the steps of their hours."""
    if made.empty:
        return pd.DataFrame(columns=["hour" if name == "at" else name for name in made.columns])
    made = made.assign(hour=made["at"].dt.floor("h"))
    return rolled(made, at="at", into="hour", expected=EXPECTED, keys=keys)


def days_of(hours: Iterable[datetime], zone: ZoneInfo) -> list[tuple[datetime, datetime]]:
    """The days of a time zone that hold these hours: when each begins and ends, in UTC.

    An hour that holds midnight, as where a zone lies half an hour off, belongs to the day in which
    it begins; the days are cut at whole hours.
    """
    dates = sorted({hour.astimezone(zone).date() for hour in hours})
    return [(_midnight(date, zone), _midnight(date + timedelta(days=1), zone)) for date in dates]


def _midnight(date: Any, zone: ZoneInfo) -> datetime:
    """The first whole hour of a date."""
    instant = datetime.combine(date, time(), tzinfo=zone).astimezone(UTC)
    floor = instant.replace(minute=0, second=0, microsecond=0)
    return floor if floor == instant else floor + HOUR


def _categories(frame: pd.DataFrame, label: str) -> pd.Series[Any]:
    if label not in frame:
        return pd.Series("", index=frame.index, dtype=object).astype("category")
    labels = frame[label].astype("category")
    if not labels.isna().any():
        return labels
    if "" not in labels.cat.categories:
        labels = labels.cat.add_categories([""])
    return labels.fillna("")


def _without_newest(made: pd.DataFrame) -> pd.DataFrame:
    """What a count grew by has no extremes and no newest value."""
    for name in ("min_value", "max_value", "last_value"):
        made[name] = np.nan
    made["last_at"] = pd.Series(pd.NaT, index=made.index, dtype="datetime64[us, UTC]")
    return made


def _of_step(made: pd.DataFrame, keys: list[str], step: timedelta) -> pd.DataFrame:
    made["observed"] = made["expected"] = step // STEP
    return made[[*keys, "at", *MEASURED]].reset_index(drop=True)


def _histogram(
    frame: pd.DataFrame, keys: list[str], sums: pd.DataFrame | None, step: timedelta
) -> pd.DataFrame:
    by = [*keys, "at"]
    made, number = _numbered(frame, by)
    bounds = frame[BUCKET_BOUND].astype("category")
    found = _as_buckets(bounds, frame["value"], number, len(made))
    made["buckets"] = pd.Series(found, dtype=object)
    made["count"] = [buckets.get("+Inf", np.nan) for buckets in found]
    if sums is None or sums.empty:
        made["sum_value"] = np.nan
    else:
        total = sums[[*by, "value"]].rename(columns={"value": "sum_value"})
        made = made.merge(total, on=by, how="left")
    # Without the +Inf bucket nobody knows how many events there were.
    made = _without_newest(made[made["count"].notna()].copy())
    made["at"] -= step
    return _of_step(made, keys, step)


def _numbered(frame: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, Numbers]:
    """The distinct rows over `by` in their order, and for each row which of them it is."""
    number = frame.groupby(by, sort=False, observed=True).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    return frame[by].iloc[first].reset_index(drop=True), number


def _as_buckets(
    bounds: pd.Series[Any],
    events: pd.Series[Any],
    number: Numbers,
    groups: int,
) -> list[dict[str, float]]:
    """The events by bound of each group, bounds in their order: those that all its parts have."""
    texts = [str(text) for text in bounds.cat.categories]
    order = sorted(range(len(texts)), key=lambda code: float(texts[code]))
    place = np.empty(len(texts), dtype=np.intp)
    place[order] = np.arange(len(texts))
    column = place[bounds.cat.codes.to_numpy()]
    wide, parts = np.zeros((groups, len(texts))), np.zeros((groups, len(texts)), dtype=np.intp)
    np.add.at(wide, (number, column), events.to_numpy(dtype="float64"))
    np.add.at(parts, (number, column), 1)
    # Under a bound that one part does not know, nobody knows how many of its events fell.
    there = parts == parts.max(axis=1, keepdims=True, initial=1)
    names = [texts[code] for code in order]
    if there.all():
        return [dict(zip(names, row, strict=True)) for row in wide.tolist()]
    return [
        {name: value for name, value, known in zip(names, row, has, strict=True) if known}
        for row, has in zip(wide.tolist(), there.tolist(), strict=True)
    ]


def _added(frame: pd.DataFrame, number: Numbers, groups: int) -> list[dict[str, float] | None]:
    """The buckets of each group as one; None where no row of it has any."""
    found: list[dict[str, float] | None] = [None] * groups
    has = np.array([isinstance(one, dict) for one in frame["buckets"]])
    if not has.any():
        return found
    # Parts without events tell nothing, and so lack no bound; unless there are no others.
    counts = frame["count"].to_numpy(dtype="float64")
    most = np.zeros(groups)
    np.maximum.at(most, number[has], counts[has])
    has &= (counts > 0) | (most[number] == 0)
    rows = list(frame["buckets"][has])
    lengths = [len(row) for row in rows]
    bounds = pd.Series([text for row in rows for text in row], dtype=object).astype("category")
    events = pd.Series([events for row in rows for events in row.values()], dtype="float64")
    of_row = np.repeat(number[has], lengths)
    distinct, renumbered = np.unique(of_row, return_inverse=True)
    for group, buckets in zip(
        distinct.tolist(), _as_buckets(bounds, events, renumbered, len(distinct)), strict=True
    ):
        found[group] = buckets
    return found
