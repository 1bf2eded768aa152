"""The same history in VictoriaMetrics gives the same rows: nothing depends on one server.

It drops NaN samples, counts births in `increase` and has another rule for series that end. The
catalogue's queries ask so that none of this shows.
"""

from __future__ import annotations

from datetime import datetime

import pytest

from collectors import catalogue, ingest
from collectors.source import Access, BadQuery, Source, TooMuch
from portal.telemetry.models import HourRollup, RunState, StepRollup
from tests import prometheus, victoriametrics, worlds
from tests.collectors.test_real_prometheus import MIDNIGHT, NOW, STEP, history

pytestmark = [*prometheus.needed, *victoriametrics.needed]

FIGURES = (
    "sum_value", "count", "min_value", "max_value", "last_value", "buckets", "observed", "expected",
    "quality", "version",
)  # fmt: skip
Rows = dict[tuple[str, str, datetime], tuple[object, ...]]


def rows(world: worlds.World, address: str) -> Rows:
    """What a collection from a server stores at every level."""
    source = Source(Access(url=address))
    run = ingest.collect(
        region=world.regions["tokyo"], catalogue=catalogue.read(), source=source,
        asked_by="test", now=NOW, since=MIDNIGHT,
    )  # fmt: skip
    source.close()
    assert run.state == RunState.COMPLETE
    found: Rows = {}
    levels: list[tuple[type[StepRollup | HourRollup], str]] = [
        (StepRollup, "at"), (HourRollup, "hour"),
    ]  # fmt: skip
    for level, at in levels:
        for row in level.objects.select_related("series"):
            key = (level.__name__, str(row.series), getattr(row, at))
            found[key] = tuple(getattr(row, name) for name in FIGURES)
        level.objects.all().delete()
    return found


def test_both_servers_give_the_same_rows_at_every_level(world: worlds.World) -> None:
    with prometheus.running(history()) as address:
        by_prometheus = rows(world, address)
    with victoriametrics.running(history()) as address:
        by_victoriametrics = rows(world, address)
    assert len(by_prometheus) > 200
    # The day in Tokyo is not over.
    assert {key[0] for key in by_prometheus} == {"StepRollup", "HourRollup"}
    assert by_victoriametrics == by_prometheus


def test_its_refusals_have_the_same_names() -> None:
    with victoriametrics.running(history()) as address:
        source = Source(Access(url=address))
        with pytest.raises(BadQuery, match="does not accept the query"):
            source.fetch("sum by (", start=MIDNIGHT, end=NOW - (NOW - MIDNIGHT) % STEP, step=STEP,
                         max_points=100)  # fmt: skip
        far = MIDNIGHT + 40_000 * STEP
        with pytest.raises(TooMuch, match="does not give that much at once"):
            Source(Access(url=address, max_range=far - MIDNIGHT)).fetch(
                "up", start=MIDNIGHT, end=far, step=STEP, max_points=50_000
            )
        source.close()
