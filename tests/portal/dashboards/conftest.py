"""A day of signals on the small world, so that pages have something to show."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from portal.telemetry.models import HourCoverage, HourRollup, ImportBatch, Series, Watermark
from tests.worlds import World, job

Gauge = Callable[..., None]


@pytest.fixture(autouse=True)
def _cold_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def now() -> datetime:
    """The present, to the second."""
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def gauge(world: World, now: datetime) -> Gauge:
    """Writes the last 24 hours of a gauge; `age` is how old its newest sample is."""

    def write(
        signal: str, value: float, *, age: timedelta = timedelta(minutes=2), **labels: str
    ) -> None:
        region = world.regions["tokyo"]
        series = Series.objects.create(region=region, signal=signal, **labels)
        last = (now - age).replace(minute=0, second=0)
        for hour in range(24):
            at = last - timedelta(hours=hour)
            HourRollup.objects.create(
                series=series, hour=at, version="1", sum_value=12 * value, count=12,
                min_value=value, max_value=value, last_value=value, observed=12, expected=12,
                last_at=now - age if hour == 0 else at + timedelta(minutes=55),
            )  # fmt: skip
            HourCoverage.objects.update_or_create(
                region=region, signal=signal, hour=at,
                defaults={"observed": 12, "expected": 12, "series": 1, "gauge": True},
            )  # fmt: skip
        Watermark.objects.update_or_create(
            region=region, signal=signal, version="1",
            defaults={"collected_until": now, "last_sample_at": now - age},
        )  # fmt: skip

    return write


@pytest.fixture
def busy(gauge: Gauge, now: datetime) -> None:
    """tokyo-a-h100: 64 GPUs report, 40 are held (robotics borrows 8), 30 work; a run waits."""
    gauge("gpu_reporting_gpus", 64, pool="tokyo-a-h100")
    gauge("gpu_engine_active_gpus", 30, pool="tokyo-a-h100")
    gauge("quota_used_gpus", 32, pool="tokyo-a-h100", project="robotics")
    gauge("quota_used_gpus", 8, pool="tokyo-a-h100", project="speech")
    gauge("pending_gpus", 8, project="speech", lane="primary")
    job("done", project="speech", submit_at=now - timedelta(hours=10))
    job("hungry", project="speech", submit_at=now - timedelta(hours=3), wait=None)
    job("theirs", project="robotics", submit_at=now - timedelta(hours=4), run=None)
    ImportBatch.objects.update(known_until=now)
