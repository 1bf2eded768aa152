"""Makes rows of a coarser level from those of the finer one, inside PostgreSQL.

The same as `rollups.rolled`, without bringing a hundred thousand rows here and back: the hour that
is under way is made anew from its steps with every collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from portal.fleet.models import Region
from portal.telemetry.models import Quality, Rollup, Series

MEASURED = (
    "sum_value", "count", "min_value", "max_value", "buckets", "last_value", "last_at", "observed",
    "expected", "quality",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """A table of rollups and its column for the instant."""

    model: type[Rollup]
    instant: str

    @property
    def table(self) -> str:
        """Its name as SQL has it."""
        return connection.ops.quote_name(self.model._meta.db_table)  # noqa: SLF001


def on_conflict(level: Level, *, whole_hours: bool = False) -> str:
    """Writes over the row of the same key, unless it is equal or better; the table is called `old`.

    Better is what holds more steps, and of as many what is complete: a server that has lost its
    memory, or half of which is away, takes nothing from what it told before. Of counts asked for
    `whole_hours` nobody knows how many steps they hold: there, more events are better.
    """
    more = (
        "old.last_at IS NULL AND (COALESCE(old.sum_value > excluded.sum_value, FALSE) "
        "OR old.count > excluded.count)"
    )
    return (
        f"ON CONFLICT (series_id, {level.instant}, version) DO UPDATE "
        f"SET {', '.join(f'{name} = excluded.{name}' for name in MEASURED)} "
        f"WHERE ({', '.join(f'old.{name}' for name in MEASURED)}) IS DISTINCT FROM "
        f"({', '.join(f'excluded.{name}' for name in MEASURED)}) "
        "AND NOT (old.observed > excluded.observed OR (old.observed = excluded.observed "
        f"AND old.quality = '{Quality.COMPLETE}' "
        f"AND (excluded.quality = '{Quality.PARTIAL}'{f' OR {more}' if whole_hours else ''})))"
    )


def roll(
    finer: Level,
    coarser: Level,
    *,
    region: Region,
    signal: str,
    version: str,
    start: datetime,
    end: datetime,
    expected: int,
) -> int:
    """Makes the rows of [start, end), one for each line; gives how many changed.

    Sums are taken in the order of time, so that the same rows always make the same sum. Of buckets,
    only the bounds stay that all parts with events have, as in `histograms.added`.
    """
    at, series = finer.instant, connection.ops.quote_name(Series._meta.db_table)  # noqa: SLF001
    sql = f"""
        WITH parts AS MATERIALIZED (
            SELECT * FROM {finer.table}
            WHERE series_id IN (SELECT id FROM {series} WHERE region_id = %(region)s
                                AND signal = %(signal)s)
              AND version = %(version)s AND {at} >= %(start)s AND {at} < %(end)s
        ), bounds AS (
            SELECT series_id, key AS bound, SUM(value::float8 ORDER BY {at}) AS events,
                COUNT(*) AS parts
            FROM (SELECT *, MAX(count) OVER (PARTITION BY series_id) AS most FROM parts) AS told,
                jsonb_each_text(buckets)
            WHERE buckets IS NOT NULL AND (count > 0 OR most = 0)
            GROUP BY series_id, key
        ), whole AS MATERIALIZED (
            SELECT series_id, jsonb_object_agg(bound, events) AS buckets
            FROM (SELECT *, MAX(parts) OVER (PARTITION BY series_id) AS most FROM bounds) AS common
            WHERE parts = most
            GROUP BY series_id
        ), plain AS MATERIALIZED (
            SELECT series_id, SUM(sum_value ORDER BY {at}) AS sum_value,
                SUM(count ORDER BY {at}) AS count, MIN(min_value) AS min_value,
                MAX(max_value) AS max_value,
                (ARRAY_AGG(last_value ORDER BY last_at DESC) FILTER (WHERE last_at IS NOT NULL))[1]
                    AS last_value,
                MAX(last_at) AS last_at, SUM(observed) AS observed,
                MAX(quality) AS quality
            FROM parts GROUP BY series_id
        )
        INSERT INTO {coarser.table} AS old
            (series_id, {coarser.instant}, version, {", ".join(MEASURED)})
        SELECT series_id, %(start)s, %(version)s, sum_value, count, min_value, max_value, buckets,
            last_value, last_at, observed, %(expected)s, quality
        FROM plain LEFT JOIN whole USING (series_id)
        ORDER BY series_id
        {on_conflict(coarser)}
    """  # noqa: S608 - own names
    # "partial" comes after "complete": the greatest quality of several is the worst.
    values: dict[str, Any] = {
        "region": region.pk, "signal": signal, "version": version, "start": start, "end": end,
        "expected": expected,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)
