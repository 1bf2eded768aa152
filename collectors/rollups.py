"""Samples of five-minute steps become hours: sums, counts and buckets that can be added up. Pure.

A ratio or a quantile is made when somebody asks, never here.
"""

from __future__ import annotations

from datetime import timedelta

import pandas as pd

from collectors.catalogue import BUCKET_BOUND, Kind

STEP = timedelta(minutes=5)
EXPECTED = 12
MOST_NAME = 63
MEASURED = [
    "sum_value", "count", "min_value", "max_value", "buckets", "last_value", "last_at", "observed",
]  # fmt: skip


class UnusableAnswerError(ValueError):
    """The answer has not the shape that its signal needs: using it would be a guess."""


def tidy(frame: pd.DataFrame, columns: dict[str, str]) -> tuple[pd.DataFrame, int]:
    """Labels renamed to columns; an absent label is "". Also how many samples were refused.

    Names longer than the database keeps are refused rather than cut: two could become one. Raises
    UnusableAnswerError when two samples stand at one
    instant of one line, or a bucket has no bound.
    """
    kept = frame.copy()
    for label in columns:
        if label not in kept:
            kept[label] = ""
        kept[label] = kept[label].fillna("")
    bound = [BUCKET_BOUND] if BUCKET_BOUND in kept else []
    kept = kept[["at", "value", *columns, *bound]].rename(columns=columns)
    names = list(columns.values())
    fits = pd.Series(data=True, index=kept.index)
    for name in names:
        fits &= kept[name].astype(str).str.len() <= MOST_NAME
    refused = int((~fits).sum())
    kept = kept[fits]
    if bound and pd.to_numeric(kept[BUCKET_BOUND], errors="coerce").isna().any():
        raise UnusableAnswerError("A bucket has no upper bound (label le) that is a number.")
    twice = kept.duplicated(["at", *names, *bound])
    if twice.any():
        row = kept[twice].iloc[0]
        line = ", ".join(f"{name} {row[name]!r}" for name in names) or "the whole region"
        raise UnusableAnswerError(
            f"Several series answer for {line}; the query must aggregate them."
        )
    return kept, refused


def hours(
    kind: Kind,
    frame: pd.DataFrame,
    names: list[str],
    sums: pd.DataFrame | None = None,
    *,
    step: timedelta = STEP,
) -> pd.DataFrame:
    """Hour rows of one signal: columns `names`, hour and those of MEASURED.

    `frame` holds `at`, `value`, `names` and, for a histogram, `bound`; `sums` its sums of values. A
    gauge's sample at 12:00 belongs to the hour from 12:00; an increase at 13:00 is that of the step
    before, and belongs to it too. A `step` of an hour stands for all twelve.
    """
    if frame.empty:
        return pd.DataFrame(columns=[*names, "hour", *MEASURED])
    if kind is Kind.HISTOGRAM and BUCKET_BOUND not in frame:
        raise UnusableAnswerError("The query answers no buckets: the label le is missing.")
    keys = [*names, "hour"]
    placed = _placed(kind, frame, step)
    if kind is Kind.HISTOGRAM:
        return _histogram(
            placed, keys, None if sums is None else _placed(kind, sums, step), step // STEP
        )
    grouped = placed.groupby(keys, sort=True)["value"]
    made = grouped.agg(sum_value="sum", count="count", min_value="min", max_value="max")
    made["count"] *= step // STEP
    made["observed"] = made["count"].clip(upper=EXPECTED)
    made["buckets"] = None
    if kind is Kind.GAUGE:
        newest = placed.sort_values("at").drop_duplicates(keys, keep="last").set_index(keys)
        made["last_value"] = newest["value"]
        made["last_at"] = newest["at"]
    else:
        made[["min_value", "max_value", "last_value"]] = float("nan")
        made["last_at"] = pd.NaT
    return made.reset_index()[[*keys, *MEASURED]]


def _placed(kind: Kind, frame: pd.DataFrame, step: timedelta) -> pd.DataFrame:
    lag = timedelta() if kind is Kind.GAUGE else step
    return frame.assign(hour=(frame["at"] - lag).dt.floor("h"))


def _histogram(
    placed: pd.DataFrame, keys: list[str], sums: pd.DataFrame | None, steps: int
) -> pd.DataFrame:
    added = placed.groupby([*keys, BUCKET_BOUND], sort=True)["value"].sum().reset_index()
    rows = []
    for key, one in added.groupby(keys, sort=True):
        ordered = sorted(zip(one[BUCKET_BOUND], one["value"], strict=True), key=_by_bound)
        rows.append((*key, {str(bound): float(events) for bound, events in ordered}))
    made = pd.DataFrame(rows, columns=[*keys, "buckets"]).set_index(keys)
    made["count"] = [buckets.get("+Inf", float("nan")) for buckets in made["buckets"]]
    made["observed"] = (placed.groupby(keys)["at"].nunique() * steps).clip(upper=EXPECTED)
    made["sum_value"] = (
        float("nan") if sums is None or sums.empty else sums.groupby(keys)["value"].sum()
    )
    made[["min_value", "max_value", "last_value"]] = float("nan")
    made["last_at"] = pd.NaT
    # Without the +Inf bucket nobody knows how many events there were.
    return made[made["count"].notna()].reset_index()[[*keys, *MEASURED]]


def _by_bound(item: tuple[str, float]) -> float:
    return float(item[0])
