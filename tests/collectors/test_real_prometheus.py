"""The collectors against a real Prometheus, over histories whose figures are known by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from collectors import catalogue, ingest
from collectors.source import Access, Source, SourceError
from portal.telemetry import selectors
from portal.telemetry.models import (
    CollectionRun,
    Doubt,
    DoubtKind,
    HourRollup,
    RunState,
    SignalFetch,
    Watermark,
)
from tests import worlds
from tests.conftest import SHARED
from tests.prometheus import needed, openmetrics, running

pytestmark = needed

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
NOW = MIDNIGHT + timedelta(hours=4, minutes=32)  # settled up to 04:30
HOUR = timedelta(hours=1)
STEP = timedelta(minutes=5)
TOKYO = 'region="tokyo"'
GPU = f'{TOKYO},pool="tokyo-a-h100"'
Value = Callable[[datetime], float | None]


def _hours(at: datetime) -> float:
    return (at - MIDNIGHT) / HOUR


def _flat(value: float) -> Value:
    return lambda _at: value


def _cut(value: Value, *, since: float = 0, until: float = 99) -> Value:
    """The values of some hours only."""
    return lambda at: value(at) if since <= _hours(at) < until else None


def _gap(at: datetime) -> float | None:
    """16 GPUs held, but no scrape from 02:15 (inclusive) to 02:45."""
    return None if 2.25 <= _hours(at) < 2.75 else 16.0


def _admitted(at: datetime) -> float:
    """One admission every five minutes; the process restarts at 01:30, losing its count."""
    steps = (at - MIDNIGHT) // STEP
    return float(steps + 100) if _hours(at) < 1.5 else float(steps - 18)


def _born(at: datetime) -> float | None:
    """The first node failure of the queue: the series appears at 02:20, with 1; 3 from 03:10."""
    if _hours(at) < 2 + 20 / 60:
        return None
    return 1.0 if _hours(at) < 3 + 10 / 60 else 3.0


def _waits(bound: float) -> Value:
    """A wait of 15 s every ten minutes, and one of 100,000 s at 01:05."""

    def value(at: datetime) -> float:
        short = float((at - MIDNIGHT) // timedelta(minutes=10)) if bound >= 20 else 0.0
        return short + (1.0 if bound > 40960 and _hours(at) >= 1 + 5 / 60 else 0.0)

    return value


def history() -> str:
    queue = f'{TOKYO},cluster_queue="robotics"'
    engine, util = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
    usage, total = "kueue_cluster_queue_resource_usage", "kueue_evicted_workloads_total"
    held = f'{queue},flavor="tokyo-a-h100",resource="nvidia.com/gpu",cohort="all"'
    wait = "kueue_admission_wait_time_seconds"
    lane = f'{queue},priority_class="primary"'
    saves = f'{GPU},tenant="raijin",lane="primary",storage="tokyo-ckpt"'
    series: dict[str, Value] = {
        # One GPU whose host label is renamed at 01:00; one seen by two Prometheus replicas; one
        # shared by two jobs; one that reports a sentinel, then NaN.
        f'{engine}{{{GPU},UUID="a",Hostname="n0"}}': _cut(_flat(0.5), until=1),
        f'{engine}{{{GPU},UUID="a",hostname="n0"}}': _cut(_flat(0.5), since=1),
        f'{engine}{{{GPU},UUID="b",prometheus_replica="a"}}': _flat(1.0),
        f'{engine}{{{GPU},UUID="b",prometheus_replica="b"}}': _flat(1.0),
        f'{engine}{{{GPU},UUID="c",hpc_job="71001"}}': _flat(0.25),
        f'{engine}{{{GPU},UUID="c",hpc_job="71002"}}': _flat(0.25),
        f'{util}{{{GPU},UUID="b"}}': _flat(100.0),
        f'{util}{{{GPU},UUID="d"}}': lambda at: (
            9223372036854775794.0 if _hours(at) < 2 else float("nan")
        ),
        # Two MIG slices of one GPU, of which one is busy.
        f'{engine}{{{GPU},UUID="m",GPU_I_ID="1"}}': _flat(1.0),
        f'{engine}{{{GPU},UUID="m",GPU_I_ID="2"}}': _flat(0.0),
        f'{usage}{{{held},replica_role="leader"}}': _gap,
        f'{usage}{{{held},replica_role="follower"}}': _gap,
        f'kueue_cluster_queue_nominal_quota{{{held},replica_role="leader"}}': _flat(24.0),
        f'kueue_cluster_queue_nominal_quota{{{held},replica_role="other"}}': _flat(float("inf")),
        f'kueue_pending_workloads{{{queue},status="active",custom_lane="primary"}}': _flat(7.0),
        f'kueue_admitted_workloads_total{{{lane},replica_role="leader"}}': _admitted,
        f'{total}{{{lane},reason="Preempted",underlying_cause=""}}': _flat(5.0),
        f'{total}{{{lane},reason="NodeFailures",underlying_cause=""}}': _born,
        f"{wait}_sum{{{lane}}}": lambda at: 15.0 * ((at - MIDNIGHT) // timedelta(minutes=10)),
        # Two trainers each count their own bytes; the second starts at 02:00 from nothing.
        f'trainer_checkpoint_bytes_total{{{saves},instance="t1"}}': lambda at: (
            1e9 * _hours(at) // 1
        ),
        f'trainer_checkpoint_bytes_total{{{saves},instance="t2"}}': lambda at: (
            None if _hours(at) < 2 else 1e6 * ((at - MIDNIGHT - 2 * HOUR) // STEP)
        ),
        f'up{{{TOKYO},job="kueue",instance="k1"}}': _flat(1.0),
        f'up{{{TOKYO},job="kueue",instance="k2"}}': _flat(0.0),
        # Another region's Prometheus data at the same address must not be counted here.
        f'{usage}{{region="osaka",cluster_queue="robotics",flavor="tokyo-a-h100"}}': _flat(99.0),
    }
    # Prometheus 3 spells the bounds otherwise: from 03:00 on.
    series[f'{wait}_bucket{{{lane},le="+Inf"}}'] = _waits(float("inf"))
    for bound in (10, 20, 40960):
        series[f'{wait}_bucket{{{lane},le="{bound}"}}'] = _cut(_waits(bound), until=3)
        series[f'{wait}_bucket{{{lane},le="{bound}.0"}}'] = _cut(_waits(bound), since=3)
    return openmetrics(series, start=MIDNIGHT, end=NOW, every=timedelta(minutes=1))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(history()) as url:
        yield url


@pytest.fixture
def source(address: str) -> Iterator[Source]:
    made = Source(Access(url=address, connect_seconds=2, read_seconds=20))
    yield made
    made.close()


def _collect(
    world: worlds.World, source: Source, *, now: datetime = NOW, since: datetime | None = MIDNIGHT
) -> CollectionRun:
    return ingest.collect(
        region=world.regions["tokyo"], catalogue=catalogue.read(), source=source,
        asked_by="test", now=now, since=since,
    )  # fmt: skip


def _by_hour(
    signal: str, by: list[str], what: str = "sum_value"
) -> dict[tuple[object, ...], float]:
    """(whole hours after midnight, *by) → value; gauges as means."""
    frame = selectors.hours(signal=signal, start=MIDNIGHT, end=NOW, by=by)
    frame["hour"] = ((frame["hour"] - pd.Timestamp(MIDNIGHT)) / pd.Timedelta(HOUR)).astype(int)
    value = frame["sum_value"] / frame["count"] if what == "mean" else frame[what]
    return dict(zip(frame[["hour", *by]].itertuples(index=False, name=None), value, strict=True))


def test_every_signal_comes_with_its_figures_right(world: worlds.World, source: Source) -> None:
    run = _collect(world, source)
    errors = {fetch.signal: fetch.error for fetch in run.fetches.exclude(error="")}
    assert errors == {}
    assert run.state == RunState.COMPLETE

    pool = "tokyo-a-h100"
    # a 0.5 + b 1 + c 0.25 + m (1 + 0) / 2: renamed label, replicas and jobs counted once.
    assert _by_hour("gpu_engine_active_gpus", ["pool"], "mean") == {
        (hour, pool): pytest.approx(2.25) for hour in range(5)
    }
    # d reports only a sentinel, then NaN: it is not there.
    assert _by_hour("gpu_reporting_gpus", ["pool"], "mean") == {(h, pool): 4.0 for h in range(5)}
    assert _by_hour("gpu_resident_gpus", ["pool"], "mean") == {(h, pool): 1.0 for h in range(5)}
    # Leader and follower are one queue; an infinite limit is none.
    assert _by_hour("quota_used_gpus", ["pool", "project"], "mean") == {
        (hour, pool, "robotics"): 16.0 for hour in range(5)
    }
    assert set(_by_hour("quota_nominal_gpus", ["pool"], "mean").values()) == {24.0}
    assert _by_hour("pending_jobs", ["project", "lane", "detail"], "mean")[
        (0, "robotics", "primary", "active")
    ] == pytest.approx(7)
    assert set(_by_hour("source_up_ratio", ["detail"], "mean").values()) == {0.5}


def test_a_scrape_gap_is_a_gap_and_not_a_zero(world: worlds.World, source: Source) -> None:
    _collect(world, source)
    frame = selectors.hours(signal="quota_used_gpus", start=MIDNIGHT, end=NOW, by=["project"])
    seen = dict(
        zip((frame["hour"] - pd.Timestamp(MIDNIGHT)) // HOUR, frame["observed"], strict=True)
    )
    # The last scrape, of 02:14, is still given for 02:15; 02:20 to 02:40 are missing.
    assert seen == {0: 12, 1: 12, 2: 7, 3: 12, 4: 6}
    assert set(frame["expected"]) == {12}


def test_a_reset_and_a_birth_are_counted_exactly(world: worlds.World, source: Source) -> None:
    _collect(world, source)
    admitted = _by_hour("admitted_jobs", ["project", "lane"])
    # 00:05 … 01:00 is hour 0, but nobody knows what happened before the first sample at 00:00.
    # At 01:30 the count falls from 117 to 0: the admission at the restart is lost with it.
    assert admitted == {
        (0, "robotics", "primary"): 12.0,
        (1, "robotics", "primary"): 11.0,
        (2, "robotics", "primary"): 12.0,
        (3, "robotics", "primary"): 12.0,
        (4, "robotics", "primary"): 6.0,
    }
    evicted = _by_hour("evicted_jobs", ["detail"])
    assert {key: value for key, value in evicted.items() if value} == {
        (2, "NodeFailures"): 1.0,  # born at 1: counted, for its family was there before
        (3, "NodeFailures"): 2.0,
    }
    assert evicted[(0, "Preempted")] == 0.0


def test_running_counts_of_several_trainers_are_added(world: worlds.World, source: Source) -> None:
    _collect(world, source)
    assert _by_hour("checkpoint_written_bytes", ["pool", "storage", "lane"])[
        (3, "tokyo-a-h100", "tokyo-ckpt", "primary")
    ] == pytest.approx(1e9 + 12e6)


def test_waits_keep_their_buckets_over_a_renamed_bound(world: worlds.World, source: Source) -> None:
    _collect(world, source)
    frame = selectors.hours(signal="wait_seconds", start=MIDNIGHT, end=NOW, by=["lane"])
    buckets = list(frame["buckets"])
    assert buckets[0] == {"10": 0.0, "20": 6.0, "40960": 6.0, "+Inf": 6.0}
    assert buckets[1] == {"10": 0.0, "20": 6.0, "40960": 6.0, "+Inf": 7.0}
    assert buckets[3] == {"10": 0.0, "20": 6.0, "40960": 6.0, "+Inf": 6.0}  # not 24: no birth
    assert list(frame["count"]) == [6, 7, 6, 6, 3]
    assert list(frame["sum_value"]) == [90, 90, 90, 90, 45]
    assert selectors.is_more_than(buckets[1], 0.99)


def _rows() -> list[tuple[object, ...]]:
    names = [f.name for f in HourRollup._meta.concrete_fields if f.name not in ("id", "series")]
    fields = [f"series__{n}" for n in ("signal", "pool", "project", "lane", "storage", "detail")]
    return [
        tuple(repr(value) for value in row)
        for row in HourRollup.objects.order_by("hour", *fields).values_list(*fields, *names)
    ]


def test_collecting_twice_changes_nothing(world: worlds.World, source: Source) -> None:
    _collect(world, source)
    once, marks = _rows(), list(Watermark.objects.order_by("pk").values_list())
    assert len(once) > 50
    _collect(world, source)
    assert _rows() == once
    assert list(Watermark.objects.order_by("pk").values_list()) == marks


def test_five_minute_runs_end_with_the_rows_of_one_back_fill(
    world: worlds.World, source: Source
) -> None:
    _collect(world, source)
    wanted = _rows()
    HourRollup.objects.all().delete()
    Watermark.objects.all().delete()
    _collect(world, source, now=MIDNIGHT + HOUR * 3 + timedelta(minutes=17), since=MIDNIGHT)
    for minute in (22, 27, 32, 72):
        _collect(world, source, now=MIDNIGHT + HOUR * 3 + timedelta(minutes=minute), since=None)
    _collect(world, source, since=None)
    assert _rows() == wanted


def test_a_window_that_failed_is_fetched_again(
    world: worlds.World, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    _collect(world, source)
    wanted = _rows()
    HourRollup.objects.all().delete()
    Watermark.objects.all().delete()
    first = MIDNIGHT + HOUR * 2 + timedelta(minutes=2)
    _collect(world, source, now=first)
    real = source.fetch

    def failing(query: str, **kwargs: object) -> object:
        if "kueue_pending" in query:
            raise SourceError("gone")
        return real(query, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "fetch", failing)
    run = _collect(world, source, now=first + HOUR, since=None)
    assert run.state == RunState.PARTIAL
    assert list(run.fetches.filter(state="failed").values_list("signal", "error")) == [
        ("pending_jobs", "gone")
    ]
    monkeypatch.undo()
    _collect(world, source, since=None)
    assert _rows() == wanted


def test_a_raw_query_of_a_site_is_refused_and_costs_no_other_signal(
    world: worlds.World, source: Source
) -> None:
    tables = catalogue.read().model_dump(mode="json", exclude_none=True)
    tables["regions"]["tokyo"] = {
        "signals": {
            "pending_jobs": {
                "query": "DCGM_FI_PROF_GR_ENGINE_ACTIVE{$selector}",
                "labels": {"pool_": "project"},
            },
            "pending_gpus": {"query": "sum(({$selector}", "labels": {}},
        }
    }
    run = ingest.collect(
        region=world.regions["tokyo"], catalogue=catalogue.check(tables), source=source,
        asked_by="test", now=NOW, since=MIDNIGHT,
    )  # fmt: skip
    fetches = {fetch.signal: fetch for fetch in run.fetches.all()}
    assert "must aggregate" in fetches["pending_jobs"].error
    assert fetches["pending_gpus"].error_kind == "bad-query"
    assert "parse error" in fetches["pending_gpus"].error
    assert run.state == RunState.PARTIAL
    assert fetches["quota_used_gpus"].state == RunState.COMPLETE
    assert SignalFetch.objects.filter(state="failed").count() == 2


def test_the_quirks_of_real_exporters_do_no_harm(world: worlds.World) -> None:
    quirks = SHARED / "cases" / "prometheus" / "quirks.openmetrics.txt"
    if not quirks.exists():
        pytest.skip(f"{quirks} is not here")
    end = datetime.fromtimestamp(
        max(float(line.split()[-1]) for line in quirks.read_text().splitlines() if line[0] != "#"),
        UTC,
    )
    with running(quirks.read_text("utf-8")) as url:
        source = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        run = _collect(world, source, now=end + timedelta(minutes=6), since=end - 2 * HOUR)
        source.close()
    assert run.state == RunState.COMPLETE

    def hours(signal: str, by: list[str]) -> pd.DataFrame:
        return selectors.hours(signal=signal, start=end - 3 * HOUR, end=end + HOUR, by=by)

    resident = hours("gpu_resident_gpus", ["pool"])
    # Seven devices, each counted once: a renamed host, two HPC jobs and a sentinel among them.
    assert resident["max_value"].max() <= 7
    reporting = hours("gpu_reporting_gpus", ["pool"])
    assert reporting["max_value"].max() == 7
    evicted = hours("evicted_jobs", ["detail"])
    total = evicted.groupby("detail")["sum_value"].sum().to_dict()
    assert total == {"Preempted": 11.0, "NodeFailures": 1.0}  # over a reset; born at 1
    pending = hours("pending_jobs", ["project"])
    assert set(pending["max_value"]) == {7.0}  # leader and follower are one queue, not 14


def test_a_collection_that_contradicts_what_is_entered_leaves_a_doubt(
    world: worlds.World, source: Source
) -> None:
    pool = world.pools["tokyo-a-h100"]
    pool.nodes = 1  # 8 GPUs are entered, and 16 held
    pool.save()
    _collect(world, source)
    doubt = Doubt.objects.get(kind=DoubtKind.HELD_OVER_INSTALLED)
    assert (doubt.subject, doubt.found, doubt.against) == ("tokyo-a-h100", 16, 8)
    assert doubt.since == NOW
