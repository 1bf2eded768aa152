"""Nothing is lost and nothing is twice, whatever is killed while a region is collected.

A site of its own (PostgreSQL, Redis, a Prometheus behind a proxy that misbehaves, two workers, two
beats) collects a morning while its processes are killed and its servers restart. At the end its
rollups are those of a collection that nobody disturbed. NEVER_LOSE_KILLS makes it longer,
NEVER_LOSE_SEED repeats one; the seed is printed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from collectors import windows
from collectors.rollups import STEP
from tests.collectors.site import Site, wait_until
from tests.collectors.test_real_prometheus import MIDNIGHT, history
from tests.prometheus import needed

KILLS = int(os.environ.get("NEVER_LOSE_KILLS", "20"))
SEED = int(os.environ.get("NEVER_LOSE_SEED", random.randrange(10**6)))
BEGIN = MIDNIGHT + timedelta(hours=2, minutes=17)
END = MIDNIGHT + timedelta(hours=5, minutes=47)
INSTANTS = [BEGIN + n * STEP for n in range((END - BEGIN) // STEP + 1)]
SIGNALS = 7  # of site_app.py
LEVELS = {"step": "at", "hour": "hour", "day": "day"}
MEASURED = (
    "sum_value, count, min_value, max_value, buckets, last_value, last_at, observed, expected, "
    "quality"
)

pytestmark = [*needed, pytest.mark.timeout(240 + 10 * KILLS)]


@pytest.fixture(scope="module")
def draw() -> random.Random:
    return random.Random(SEED)


@pytest.fixture(scope="module")
def site(draw: random.Random) -> Iterator[Site]:
    with Site(history(), draw) as made:
        yield made


def _rows(database: psycopg.Connection[Any], level: str) -> list[tuple[Any, ...]]:
    return database.execute(
        f"SELECT signal, pool, project, lane, storage, detail, version, {LEVELS[level]}, {MEASURED}"
        f" FROM telemetry_{level}rollup JOIN telemetry_series s ON s.id = series_id"
        " ORDER BY 1, 2, 3, 4, 5, 6, 7, 8"
    ).fetchall()


def _one(site: Site, query: str) -> Any:
    """A figure of the database; None while it is away."""
    try:
        with site.database() as database:
            row = database.execute(query).fetchone()
    except psycopg.OperationalError:
        return None
    return None if row is None else row[0]


class _Trouble:
    """What happens to the site, in an order drawn beforehand."""

    def __init__(self, site: Site, draw: random.Random) -> None:
        self._site = site
        self._draw = draw
        events: list[Callable[[], None]] = [
            *[self._kill_collecting] * (KILLS - KILLS // 10),
            *[self._kill_worker] * (KILLS // 10),
            *[self._restart_redis] * 2,
            lambda: self._restart_postgres(signal.SIGINT),
            lambda: self._restart_postgres(signal.SIGQUIT),  # as if the power went
        ]
        draw.shuffle(events)
        self.events = events
        self.killed = 0

    def happen(self) -> None:
        """One after the other, each some requests after the one before."""
        for number, event in enumerate(self.events):
            self._site.set_clock(INSTANTS[min(number, len(INSTANTS) - 1)])
            begun = self._site.proxy.requests
            # A run asks at least once for each signal: it is its middle that is meant.
            some = self._draw.randint(1, SIGNALS - 2)
            wait_until(
                lambda begun=begun, some=some: self._site.proxy.requests >= begun + some,  # type: ignore[misc]
                seconds=20, step_seconds=0.002,
            )  # fmt: skip
            # Now Prometheus is asked: what comes is parsed and stored in about so long.
            time.sleep(self._draw.uniform(0, 0.05))
            event()

    def _kill_collecting(self) -> None:
        assert self._site.kill_collecting()
        self.killed += 1

    def _kill_worker(self) -> None:
        worker = self._draw.choice(self._site.workers)
        worker.end(signal.SIGKILL, with_children=True)
        worker.start()
        self.killed += 1

    def _restart_redis(self) -> None:
        self._site.redis.end(signal.SIGKILL)
        time.sleep(self._draw.uniform(0, 1))
        self._site.redis.start()

    def _restart_postgres(self, how: signal.Signals) -> None:
        self._site.postgres.end(how)
        time.sleep(self._draw.uniform(0, 1))
        self._site.postgres.start()


def _all_is_collected(site: Site, now: datetime) -> Callable[[], bool]:
    until = windows.settled(now)
    query = f"""
        SELECT (SELECT count(*) FROM telemetry_watermark WHERE collected_until = '{until}')
             - (SELECT count(*) FROM telemetry_gap)
             - (SELECT count(*) FROM telemetry_collectionrun WHERE state = 'running')
             - (SELECT count(*) FROM telemetry_claim WHERE owner <> '')
    """
    return lambda: bool(_one(site, query) == SIGNALS)


def test_a_morning_of_kills_and_restarts_ends_with_the_rows_of_a_quiet_one(
    site: Site, draw: random.Random
) -> None:
    sys.stdout.write(f"NEVER_LOSE_SEED={SEED} NEVER_LOSE_KILLS={KILLS}\n")
    site.set_clock(BEGIN)
    with ThreadPoolExecutor() as beside:
        quietly = beside.submit(site.undisturbed, [BEGIN, END])
        site.start_workers()
        site.proxy.faults_ratio = 0.03
        trouble = _Trouble(site, draw)
        quiet = quietly.result()
    trouble.happen()
    site.proxy.faults_ratio = 0.0
    assert trouble.killed == KILLS

    # The trouble is over: what is owed is made up for by itself. Time goes on, as gaps that failed
    # more than once wait; then it stands still.
    for instant in INSTANTS[len(trouble.events) :]:
        site.set_clock(instant)
        time.sleep(0.3)
    assert wait_until(_all_is_collected(site, END), seconds=60), site.logs()

    lost = "SELECT count(*) FROM telemetry_collectionrun WHERE duration_seconds IS NULL"
    assert _one(site, lost) >= KILLS // 2  # they were killed in the middle
    with site.database() as disturbed, site.database(quiet) as undisturbed:
        for level in LEVELS:
            wanted = _rows(undisturbed, level)
            assert len({row[:6] for row in wanted}) >= SIGNALS
            assert _rows(disturbed, level) == wanted
