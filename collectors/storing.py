"""Stores rollups in bulk: the lines of a signal, and rows over the same keys as often as one likes.

Rows come as frames: `series` (the key of the line), the instant of the level (`at`, `hour` or
`day`), and the measured columns of `rollups.MEASURED`; unknown is NaN, NaT or None.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from django.conf import settings
from django.db import connection

from collectors import rollups
from collectors.rolling import Level, on_conflict, roll
from portal.fleet.models import Region
from portal.telemetry.models import (
    DayRollup,
    HourRollup,
    Quality,
    Rollup,
    Series,
    StepRollup,
)

Booleans = np.ndarray[Any, np.dtype[np.bool_]]
COLUMNS = ("pool", "project", "lane", "storage", "detail")
STEPS, HOURS, DAYS = Level(StepRollup, "at"), Level(HourRollup, "hour"), Level(DayRollup, "day")
LEVELS = {level.model: level for level in (STEPS, HOURS, DAYS)}
# Enough that a statement costs nothing, few enough that its text stays within some megabytes.
CHUNK = 10_000
SQLITE_CHUNK = 500
_TYPES = {
    "sum_value": "float8", "count": "float8", "min_value": "float8", "max_value": "float8",
    "buckets": "text", "last_value": "float8", "last_at": "timestamptz", "observed": "int2",
    "expected": "int2", "quality": "text",
}  # fmt: skip
_CASTS = {"buckets": "::jsonb"}


class Of(TypedDict):
    """Whose rows: a signal of a region, asked in one way."""

    region: Region
    signal: str
    version: str


class Lines:
    """The lines of a region's signals and their keys; read once, made where they are new.

    Ask for keys before the transaction that stores the rows: what it rolls back would stay known.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self._known: dict[str, dict[tuple[str, ...], int]] = {}

    def keys(self, signal: str, frame: pd.DataFrame) -> rollups.Numbers:
        """The key of each row's line, in the order of the rows; label columns are those there."""
        names = [name for name in COLUMNS if name in frame]
        if not names:
            return np.full(len(frame), self._keys(signal, [()], [])[()], dtype=np.int64)
        number, lines = _distinct(frame, names)
        known = self._keys(signal, lines, names)
        keys: rollups.Numbers = np.array([known[line] for line in lines], dtype=np.int64)
        return keys[number]

    def _keys(
        self, signal: str, lines: Sequence[tuple[str, ...]], names: list[str]
    ) -> dict[tuple[str, ...], int]:
        whole = {
            line: tuple(dict(zip(names, line, strict=True)).get(name, "") for name in COLUMNS)
            for line in lines
        }
        known = self._known.get(signal)
        if known is None or not known.keys() >= set(whole.values()):
            known = self._known[signal] = self._read(signal)
        missing = set(whole.values()) - known.keys()
        if missing:
            Series.objects.bulk_create(
                [
                    Series(
                        region=self.region, signal=signal, **dict(zip(COLUMNS, line, strict=True))
                    )
                    for line in sorted(missing)
                ],
                batch_size=CHUNK,
                ignore_conflicts=True,
            )
            known = self._known[signal] = self._read(signal)
        return {line: known[full] for line, full in whole.items()}

    def _read(self, signal: str) -> dict[tuple[str, ...], int]:
        rows = Series.objects.filter(region=self.region, signal=signal)
        return {row[1:]: row[0] for row in rows.values_list("pk", *COLUMNS).iterator()}


def upsert(
    level: type[Rollup], rows: pd.DataFrame, *, version: str, whole_hours: bool = False
) -> int:
    """Writes the rows over those of the same series, instant and version; gives how many changed.

    Rows that are there and equal or better stay untouched; `rolling.on_conflict` says which. On
    SQLite all others count as changed.
    """
    if rows.empty:
        return 0
    instant = LEVELS[level].instant
    rows = rows.sort_values(["series", instant], kind="stable")
    if connection.vendor != "postgresql":
        rows = rows[~_worse(level, rows, version=version, whole_hours=whole_hours)]
        return _upsert_objects(level, rows, version=version)
    measured = ", ".join(_TYPES)
    sql = (
        f"INSERT INTO {LEVELS[level].table} AS old (series_id, {instant}, version, {measured}) "  # noqa: S608 - own names
        f"SELECT s, i, %s, {', '.join(name + _CASTS.get(name, '') for name in _TYPES)} "
        f"FROM unnest(%s::int8[], %s::timestamptz[], "
        f"{', '.join(f'%s::{kind}[]' for kind in _TYPES.values())}) "
        f"AS new (s, i, {measured}) "
        f"{on_conflict(LEVELS[level], whole_hours=whole_hours)}"
    )
    changed = 0
    with connection.cursor() as cursor:
        for first in range(0, len(rows), CHUNK):
            part = rows.iloc[first : first + CHUNK]
            columns = [part["series"], part[instant], *(_column(part, name) for name in _TYPES)]
            cursor.execute(sql, [version, *map(_literal, columns)])
            changed += cursor.rowcount
    return changed


def stored(
    level: type[Rollup],
    *,
    region: Region,
    signal: str,
    version: str,
    start: datetime,
    end: datetime,
) -> pd.DataFrame:
    """The rows of a signal and version in [start, end), as they would be given to `upsert`."""
    instant = LEVELS[level].instant
    names = [instant, *rollups.MEASURED, "quality"]
    found = level._default_manager.filter(  # noqa: SLF001
        series__region=region, series__signal=signal, version=version,
        **{f"{instant}__gte": start, f"{instant}__lt": end},
    ).values_list("series_id", *names)  # fmt: skip
    frame = pd.DataFrame.from_records(list(found), columns=["series", *names])
    for name in (instant, "last_at"):
        frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
    numbers = ["sum_value", "count", "min_value", "max_value", "last_value"]
    frame[numbers] = frame[numbers].astype("float64")
    return frame


def renew_hours(*, region: Region, signal: str, version: str, hours: Iterable[datetime]) -> int:
    """Makes the hours anew from all their steps; gives the rows changed."""
    of = Of(region=region, signal=signal, version=version)
    return sum(_renew(STEPS, HOURS, of, hour, hour + rollups.HOUR) for hour in sorted(hours))


def renew_days(
    *, region: Region, signal: str, version: str, hours: Iterable[datetime], until: datetime
) -> int:
    """Makes the days anew that hold these hours and are over at `until`; gives the rows changed.

    A day that is under way has no row: it would have to be made of all its hours every time.
    """
    of, zone = Of(region=region, signal=signal, version=version), ZoneInfo(settings.REPORT_TIMEZONE)
    days = rollups.days_of(hours, zone)
    return sum(_renew(HOURS, DAYS, of, day, end) for day, end in days if end <= until)


def _renew(finer: Level, coarser: Level, of: Of, start: datetime, end: datetime) -> int:
    expected = (end - start) // rollups.STEP
    if connection.vendor == "postgresql":
        return roll(finer, coarser, **of, start=start, end=end, expected=expected)
    found = stored(finer.model, **of, start=start, end=end)
    found[coarser.instant] = pd.Timestamp(start)
    made = rollups.rolled(found, at=finer.instant, into=coarser.instant, expected=expected)
    return upsert(coarser.model, made, version=of["version"])


def _distinct(
    frame: pd.DataFrame, names: list[str]
) -> tuple[rollups.Numbers, list[tuple[str, ...]]]:
    """The number of each row's line, and the lines by their numbers."""
    number = frame.groupby(names, sort=False, observed=True, dropna=False).ngroup().to_numpy()
    first = frame[names].iloc[np.unique(number, return_index=True)[1]]
    lines = [tuple(map(str, line)) for line in first.itertuples(index=False, name=None)]
    return number, lines


def _column(part: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name == "quality" and name not in part:
        return pd.Series(Quality.COMPLETE.value, index=part.index, dtype=object)
    return part[name]


def _literal(column: pd.Series[Any]) -> str:
    """The column as PostgreSQL writes an array: one text, where the driver would quote each."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        # Few instants stand in many rows.
        codes, distinct = pd.factorize(column)
        texts = [f'"{instant.isoformat()}"' for instant in pd.DatetimeIndex(distinct)]
        values = [*texts, "NULL"]
        return "{" + ",".join([values[code] for code in codes.tolist()]) + "}"
    if column.dtype.kind in "iuf":
        return "{" + ",".join(map(repr, column.tolist())).replace("nan", "NULL") + "}"
    return "{" + ",".join(map(_written, column)) + "}"


def _written(value: Any) -> str:
    if isinstance(value, dict):
        # A NaN is no JSON: it fails here, not when the row is read.
        return '"' + json.dumps(value, allow_nan=False).replace('"', '\\"') + '"'
    return value if isinstance(value, str) else "NULL"


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The column as Python's own values, None where it is unknown."""
    values: list[Any] = column.tolist()
    missing = column.isna()
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        values = [instant.to_pydatetime() for instant in column]
    if missing.any():
        return [None if gone else value for value, gone in zip(values, missing, strict=True)]
    return values


def _worse(level: type[Rollup], rows: pd.DataFrame, *, version: str, whole_hours: bool) -> Booleans:
    """Which rows would be written over better ones; the same as `rolling.on_conflict`."""
    instant = LEVELS[level].instant
    there = level._default_manager.filter(  # noqa: SLF001
        series__in=rows["series"].unique().tolist(), version=version,
        **{f"{instant}__range": (rows[instant].min(), rows[instant].max())},
    )  # fmt: skip
    known = {(row.series_id, pd.Timestamp(getattr(row, instant))): row for row in there}
    found = []
    for new in rows.assign(quality=_column(rows, "quality")).to_dict("records"):
        old = known.get((new["series"], new[instant]))
        if old is None or old.observed != new["observed"]:
            found.append(old is not None and old.observed > new["observed"])
            continue
        more = (old.sum_value or 0) > new["sum_value"] or old.count > new["count"]
        less = new["quality"] == Quality.PARTIAL or (whole_hours and old.last_at is None and more)
        found.append(old.quality == Quality.COMPLETE and less)
    return np.array(found, dtype=bool)


def _upsert_objects(level: type[Rollup], rows: pd.DataFrame, *, version: str) -> int:
    instant = LEVELS[level].instant
    columns = {"series_id": _plain(rows["series"]), instant: _plain(rows[instant])}
    columns |= {name: _plain(_column(rows, name)) for name in _TYPES}
    made = [
        level(version=version, **dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    ]
    level._default_manager.bulk_create(  # noqa: SLF001
        made, batch_size=SQLITE_CHUNK, update_conflicts=True,
        unique_fields=["series", instant, "version"], update_fields=list(_TYPES),
    )  # fmt: skip
    return len(made)
