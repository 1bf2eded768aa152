"""Measures collecting: a five-minute collection, a week's back-fill, twenty regions, bulk rows.

A region of 64 pools, 200 projects and 4 lanes, every signal of the default presets, a real
Prometheus and PostgreSQL. Each measurement runs in a process of its own, as a worker does, so that
its peak of memory is its own:

    python -m tests.bench.collection '{"regions": ["bench-01"], "now": …, "since": …}'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import django
import numpy as np
import pandas as pd

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402

from collectors import asking, ingest, storing  # noqa: E402
from collectors.ranges import floor  # noqa: E402
from collectors.windows import SETTLES  # noqa: E402
from portal.fleet.models import Region  # noqa: E402
from portal.telemetry.models import (  # noqa: E402
    DayRollup,
    HourRollup,
    RunState,
    Series,
    StepRollup,
)
from tests.bench.engine import Line  # noqa: E402
from tests.conftest import ROOT  # noqa: E402
from tests.prometheus import running  # noqa: E402

STEP, HOUR = timedelta(minutes=5), timedelta(hours=1)
POOLS, PROJECTS, POOLS_A_PROJECT, GPUS_A_POOL = 64, 200, 3, 16
LANES = ("emergency", "primary", "exploratory", "background")
REASONS = ("Preempted", "PodsReadyTimeout")
STATUSES = ("active", "inadmissible")
WAIT_BOUNDS = [*(10.0 * 2**n for n in range(15)), float("inf")]
SAVE_BOUNDS = [*(1.0 * 2**n for n in range(10)), float("inf")]
REGIONS, WORKERS = 20, 4
BACK_FILL = timedelta(days=7)
ROWS = 20_000


def lines() -> Iterator[Line]:
    """Everything that the issue names a figure for."""
    yield bulk()
    hour = floor(datetime.now(UTC), HOUR) - 2 * HOUR
    text = history(start=hour - BACK_FILL - 2 * HOUR, end=hour + 2 * HOUR)
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site.toml"
        names = [f"bench-{n:02}" for n in range(1, REGIONS + 3)]
        site.write_text("".join(f'[regions.{n}.selector]\nregion = "bench"\n' for n in names))
        for name in names:
            Region.objects.create(name=name, label=name, label_ja=name)
        # Samples lie an hour apart where only whole hours are asked for.
        with running(text, flags=["--query.lookback-delta=70m"]) as url:
            env = os.environ | {
                "PROMETHEUS_URL": url, "COLLECT_CATALOGUE": str(site),
                "PROMETHEUS_READ_SECONDS": "120",
            }  # fmt: skip
            yield five_minutes(names[-1], hour, env)
            yield end_of_hour(names[-1], hour, env)
            yield back_fill(names[-2], hour, env)
            yield many(names[:REGIONS], hour, env)


def bulk() -> Line:
    """Hour rows written over the same keys."""
    region = Region.objects.create(name="bench-rows", label="rows", label_ja="rows")
    names = pd.DataFrame({"project": [f"p{n % 200}" for n in range(ROWS)]})
    names["detail"] = [f"d{n // 200}" for n in range(ROWS)]
    keys = storing.Lines(region).keys("quota_used_gpus", names)
    speed = {}
    rows = pd.DataFrame({"series": keys, "sum_value": np.arange(ROWS) / 7, "count": 12.0})
    rows["hour"] = rows["last_at"] = pd.Timestamp("2026-01-01", tz="UTC")
    rows["min_value"] = rows["max_value"] = rows["last_value"] = rows["sum_value"] / 12
    rows["buckets"] = None
    rows["observed"] = rows["expected"] = 12
    for what, change in (("new", 0.0), ("changed", 1.0), ("equal", 0.0)):
        taken = []
        for n in range(3):
            rows["hour"] = pd.Timestamp("2026-01-01", tz="UTC") + n * pd.Timedelta(HOUR)
            given = rows.assign(sum_value=rows["sum_value"] + change * (n + 1))
            if what == "equal":
                given = rows.assign(sum_value=rows["sum_value"] + n + 1)
            start = time.perf_counter()
            with transaction.atomic():
                storing.upsert(HourRollup, given, version="bench")
            taken.append(time.perf_counter() - start)
        speed[what] = ROWS / sorted(taken)[1]
    Series.objects.filter(region=region).delete()
    return Line(
        "rollups written in bulk",
        f"{speed['new']:,.0f} rows/s",
        f"{ROWS:,} rows; over others {speed['changed']:,.0f}, over equal ones"
        f" {speed['equal']:,.0f} rows/s",
    )


def five_minutes(region: str, hour: datetime, env: dict[str, str]) -> Line:
    """One scheduled collection, at the end of its hour, which is made anew from eleven steps."""
    _worker(env, [region], now=_after(hour, 50), since=hour - 3 * HOUR)
    done = _worker(env, [region], now=_after(hour, 55))
    return _line("collection of five minutes", done, f"{done['series']:,} series of Prometheus;")


def end_of_hour(region: str, hour: datetime, env: dict[str, str]) -> Line:
    """The one after it, which ends the hour."""
    done = _worker(env, [region], now=_after(hour, 60))
    return _line("the next, at the end of the hour", done, "")


def back_fill(region: str, hour: datetime, env: dict[str, str]) -> Line:
    """A week at once, as a site does on its first day."""
    done = _worker(env, [region], now=_after(hour, 55), since=hour - BACK_FILL)
    return _line("back-fill of 7 days", done, f"{done['rows']:,} rows;")


def many(regions: Sequence[str], hour: datetime, env: dict[str, str]) -> Line:
    """Twenty regions on four workers, as every five minutes; before it their lines are made."""
    first, _memory = _at_once(regions, env, now=_after(hour, 5), since=hour)
    seconds, memory = _at_once(regions, env, now=_after(hour, 10))
    return Line(
        f"{len(regions)} regions on {WORKERS} workers",
        f"{seconds:.0f} s",
        f"five minutes of each; for the first time, with their lines, {first:.0f} s;"
        f" peak {memory / 1e6:,.0f} MB a worker; Prometheus and PostgreSQL on the same cores; once",
    )


def _at_once(
    regions: Sequence[str], env: dict[str, str], *, now: datetime, since: datetime | None = None
) -> tuple[float, int]:
    """The seconds that all workers took together, and the peak of the largest."""
    start = time.perf_counter()
    workers = [_started(env, regions[n::WORKERS], now=now, since=since) for n in range(WORKERS)]
    found = [_ended(worker) for worker in workers]
    return time.perf_counter() - start, max(one["peak_bytes"] for one in found)


def history(*, start: datetime, end: datetime) -> str:
    """The region's exporters as OpenMetrics: hourly samples, every five minutes for eight hours."""
    fine = end - 10 * HOUR
    coarse = int((fine - start) / HOUR)
    instants = [start + n * HOUR for n in range(coarse)]
    instants += [fine + n * STEP for n in range(int((end - fine) / STEP) + 1)]
    texts = [f"{int(at.timestamp())}" for at in instants]
    minutes = [int((at - start) / timedelta(minutes=1)) for at in instants]
    found = []
    for number, (line, per_hour) in enumerate(_exported()):
        if per_hour is None:
            values = [str((number + n) % 16) for n in range(len(texts))]
        else:
            values = [str(int(per_hour * minute) // 60) for minute in minutes]
        found.append("\n".join(f"{line} {v} {t}" for v, t in zip(values, texts, strict=True)))
    return "\n".join([*found, "# EOF", ""])


def _exported() -> Iterator[tuple[str, float | None]]:
    """Each series and, for a count, what it grows by in an hour."""
    here = 'region="bench"'
    yield f'up{{{here},job="bench"}}', None
    for n in range(POOLS * GPUS_A_POOL):
        pool, project = n % POOLS, n % PROJECTS
        gpu = f'{here},pool="pool-{pool}",UUID="{n}",exported_namespace="p{project}"'
        for name in (
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED",
            "DCGM_FI_DEV_FB_FREE",
        ):  # fmt: skip
            yield f"{name}{{{gpu}}}", None
    yield from chain.from_iterable(_queues(here, project) for project in range(PROJECTS))
    for pool in range(POOLS):
        for lane in LANES:
            one = f'{here},pool="pool-{pool}",lane="{lane}",storage="s{pool % 4}"'
            name = "trainer_checkpoint_write_duration_seconds"
            yield from _histogram(name, f'{one},phase="total"', SAVE_BOUNDS)
            yield f"trainer_checkpoint_bytes_total{{{one}}}", 1e12
            yield f"trainer_checkpoint_failures_total{{{one}}}", 1.0


def _queues(here: str, project: int) -> Iterator[tuple[str, float | None]]:
    queue = f'{here},cluster_queue="p{project}",replica_role="leader"'
    for n in range(POOLS_A_PROJECT):
        flavor = f'flavor="pool-{(project + n * 21) % POOLS}",resource="nvidia.com/gpu"'
        for name in ("resource_usage", "nominal_quota", "borrowing_limit", "lending_limit"):
            yield f"kueue_cluster_queue_{name}{{{queue},{flavor}}}", None
    for reason in REASONS:
        labels = f'{here},preempting_cluster_queue="p{project}",reason="{reason}"'
        yield f"kueue_preempted_workloads_total{{{labels}}}", 2.0
    for lane in LANES:
        for status in STATUSES:
            labels = f'{queue},custom_lane="{lane}",status="{status}"'
            yield f"kueue_pending_workloads{{{labels}}}", None
        labels = f'{queue},custom_lane="{lane}",resource="nvidia.com/gpu"'
        yield f"kueue_cluster_queue_resource_pending{{{labels}}}", None
        labels = f'{queue},priority_class="{lane}"'
        yield f"kueue_admitted_workloads_total{{{labels}}}", 24.0
        yield f"kueue_finished_workloads_total{{{labels}}}", 23.0
        for reason in REASONS:
            caused = f'{labels},reason="{reason}",underlying_cause=""'
            yield f"kueue_evicted_workloads_total{{{caused}}}", 3.0
            yield f"kueue_evicted_workloads_once_total{{{caused}}}", 2.0
        yield from _histogram("kueue_admission_wait_time_seconds", labels, WAIT_BOUNDS)


def _histogram(name: str, labels: str, bounds: list[float]) -> Iterator[tuple[str, float]]:
    for n, bound in enumerate(bounds):
        text = "+Inf" if np.isinf(bound) else f"{bound:g}"
        yield f'{name}_bucket{{{labels},le="{text}"}}', 24.0 * (n + 1) / len(bounds)
    yield f"{name}_sum{{{labels}}}", 24_000.0


def _after(hour: datetime, minutes: int) -> datetime:
    """When the step that ends so many minutes past the hour has settled."""
    return hour + timedelta(minutes=minutes) + 2 * SETTLES


def _line(what: str, done: dict[str, Any], more: str) -> Line:
    return Line(
        what,
        f"{done['own_seconds']:.1f} s",
        f"{more} of {done['seconds']:.1f} s on the clock the rest is waiting for Prometheus;"
        f" {done['stored']:,} rows written; peak {done['peak_bytes'] / 1e6:,.0f} MB; once",
    )


def _started(
    env: dict[str, str], regions: Sequence[str], *, now: datetime, since: datetime | None = None
) -> subprocess.Popen[str]:
    work = {
        "regions": list(regions), "now": now.isoformat(), "since": since and since.isoformat(),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.collection", json.dumps(work)],
        env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _ended(worker: subprocess.Popen[str]) -> dict[str, Any]:
    said, _nothing = worker.communicate()
    if worker.returncode:
        raise SystemExit(f"a worker ended with {worker.returncode}")
    done: dict[str, Any] = json.loads(said.splitlines()[-1])
    return done


def _worker(
    env: dict[str, str], regions: Sequence[str], *, now: datetime, since: datetime | None = None
) -> dict[str, Any]:
    return _ended(_started(env, regions, now=now, since=since))


def work(given: dict[str, Any]) -> dict[str, Any]:
    """Collects the regions, as a worker does; gives times, rows and the peak of memory.

    Our own time is that of our processor and what PostgreSQL took; the rest is Prometheus's.
    """
    catalogue = asking.site_catalogue()
    now = datetime.fromisoformat(given["now"])
    since = datetime.fromisoformat(given["since"]) if given["since"] else None
    waited = 0.0

    def timed(execute: Any, *args: Any) -> Any:
        nonlocal waited
        start, busy = time.perf_counter(), time.process_time()
        try:
            return execute(*args)
        finally:
            waited += time.perf_counter() - start - (time.process_time() - busy)

    start, busy = time.perf_counter(), time.process_time()
    series = samples = stored = 0
    with connection.execute_wrapper(timed):
        for name in given["regions"]:
            region = Region.objects.get(name=name)
            with asking.source_of(name) as source:
                run = ingest.collect(
                    region=region, catalogue=catalogue, source=source, asked_by="bench",
                    now=now, since=since,
                )  # fmt: skip
            wrong = [f"{one.signal}: {one.error}" for one in run.fetches.exclude(error="")]
            if run.state != RunState.COMPLETE:
                raise SystemExit(f"{name} is {run.state}: {wrong}")
            for fetch in run.fetches.all():
                series, samples = series + fetch.series, samples + fetch.samples
                stored += fetch.rows
    seconds, own = time.perf_counter() - start, time.process_time() - busy + waited
    rows = sum(
        level._default_manager.filter(series__region__name__in=given["regions"]).count()
        for level in (StepRollup, HourRollup, DayRollup)
    )
    return {
        "seconds": seconds, "own_seconds": own, "series": series, "samples": samples,
        "stored": stored, "rows": rows,
        "peak_bytes": _peak_bytes(),
    }  # fmt: skip


def _peak_bytes() -> int:
    """The peak of this program alone: getrusage also counts what its parent held before it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(next(one for one in status.splitlines() if "VmHWM" in one).split()[1])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(work(json.loads(sys.argv[1]))) + "\n")
