"""What the exporters and the imported hours show is what the jobs did."""

import json
import re
import shutil
import subprocess
from datetime import timedelta

import numpy as np
import pytest

from portal.demo import exposition, history, signals, story
from tests.portal.demo.conftest import NOW

WEEK = timedelta(days=7)
SAMPLE = re.compile(r'^[a-zA-Z_:][\w:]*\{(\w+="[^"\\]*",?)+\} [-+.\deE]+$')


def lines_of(told: story.Story, signal: str, *, hours: int = 24 * 7) -> list[history.Line]:
    first = told.seconds(NOW.replace(minute=0)) - hours * 3600
    return [line for line in history.lines(told, first=first, hours=hours) if line.signal == signal]


def test_gpus_held_in_the_hours_are_the_attempts_at_those_instants(told: story.Story) -> None:
    first = told.seconds(NOW.replace(minute=0)) - 24 * 7 * 3600
    grid = first + 300 * np.arange(24 * 7 * 12)
    attempts = signals.attempts_of(told)
    by_hand = sum(
        gpus * int(((grid >= start) & (grid < end)).sum())
        for gpus, start, end in attempts[["gpus", "start", "end"]].to_numpy().tolist()
    )
    in_hours = sum(line.sums.sum() for line in lines_of(told, "quota_used_gpus"))
    assert in_hours == by_hand > 0


def test_devices_are_held_by_whom_the_quota_says(told: story.Story) -> None:
    grid = told.seconds(NOW) - 300 * np.arange(200)[::-1]
    held = signals.signals(told).held
    for pool, seen in signals.devices(told, grid).items():
        for (_region, of, project), steps in held.items():
            if of == pool:
                mine = (seen.owner == seen.projects.index(project)).sum(axis=0)
                assert (mine == steps.at(grid)).all(), (pool, project)


def test_waits_count_every_first_start_once(told: story.Story) -> None:
    start, end = (
        told.seconds(NOW.replace(minute=0)) - 7 * 86400,
        told.seconds(NOW.replace(minute=0)),
    )
    first = told.trace.jobs["first_start_seconds"].dropna()
    started = ((first >= start) & (first < end)).sum()
    counted = sum(line.counts.sum() for line in lines_of(told, "wait_seconds"))
    assert counted == started > 0
    for line in lines_of(told, "wait_seconds", hours=2):
        assert line.buckets is not None
        for text, count in zip(line.buckets, line.counts, strict=True):
            buckets = json.loads(text)
            assert buckets["+Inf"] == count
            assert list(buckets.values()) == sorted(buckets.values())


def test_jobs_pending_now_are_those_that_wait(told: story.Story) -> None:
    jobs, _attempts = story.records(told, now=NOW)
    pending = sum(
        steps.at([told.seconds(NOW)])[0] for steps in signals.signals(told).pending.values()
    )
    assert pending == (jobs["state"] == "waiting").sum()


def test_a_stalled_storage_writes_four_times_slower_and_keeps_engines_idle(
    told: story.Story,
) -> None:
    start, end = (told.seconds(instant) for instant in told.stall)
    stalled = 0.0
    for key, writes in signals.signals(told).writes.items():
        before, during = (
            np.diff(writes.total.at([a, b]))[0] / max(1, np.diff(writes.count.at([a, b]))[0])
            for a, b in ((start - 86400, start), (start + 300, end))
        )
        if key[-1] == story.STALLED_STORAGE and during and before:
            stalled = max(stalled, during / before)
    assert stalled > 2.5
    seen = signals.devices(told, np.array([start - 600, start + 600]))["tokyo-a-h100"]
    engine, held = seen.engine.sum(axis=0), (seen.owner >= 0).sum(axis=0)
    assert engine[1] / held[1] < 0.5 * engine[0] / held[0]
    evicted = told.trace.evictions["at_seconds"].between(start, end) & (
        told.trace.evictions["ground"] == "outage"
    )
    assert not evicted.any()


def test_a_domain_that_is_out_does_not_report_and_is_not_zero(told: story.Story) -> None:
    inside = told.seconds(told.outage[0]) + 3600
    seen = signals.devices(told, np.array([inside]))
    assert np.isnan(seen["tokyo-b-h100"].engine).all()
    assert not np.isnan(seen["tokyo-a-h100"].engine).any()


@pytest.mark.parametrize("job", exposition.JOBS)
@pytest.mark.parametrize("region", ["tokyo", "osaka"])
def test_a_scrape_is_well_formed_and_names_each_series_once(
    told: story.Story, region: str, job: str
) -> None:
    text = exposition.scrape(told, region=region, job=job, second=told.seconds(NOW))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert samples
    assert all(SAMPLE.match(line) for line in samples)
    series = [line.rpartition(" ")[0] for line in samples]
    assert len(series) == len(set(series))
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert "error while linting" not in done.stderr


def test_counters_of_the_back_fill_end_where_the_exporter_goes_on(told: story.Story) -> None:
    now = told.seconds(NOW)
    text = "".join(exposition.openmetrics(told, instants=np.array([now - 300.0, now])))
    assert text.endswith("# EOF\n")
    filled = {}
    for line in text.splitlines():
        if line.startswith("kueue_admitted_workloads_total") and 'region="tokyo"' in line:
            series, value, stamp = line.rsplit(" ", 2)
            assert int(stamp) <= NOW.timestamp()
            filled[series] = float(value)  # the later sample of a series comes last
    scraped = exposition.scrape(told, region="tokyo", job="kueue", second=now)
    live = [
        float(line.rpartition(" ")[2])
        for line in scraped.splitlines()
        if line.startswith("kueue_admitted_workloads_total")
    ]
    assert sorted(live) == sorted(filled.values())
    assert sum(live) > 0
