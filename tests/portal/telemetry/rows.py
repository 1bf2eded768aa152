"""Rows of telemetry that the tests of this slice write."""

from datetime import datetime, timedelta
from typing import Any

from portal.fleet.models import Region
from portal.telemetry.models import HourCoverage, HourRollup, Series


def series(region: Region, signal: str, **labels: Any) -> Series:
    """A line of a signal."""
    return Series.objects.get_or_create(region=region, signal=signal, **labels)[0]


def gauge_hour(
    line: Series, hour: datetime, mean: float, *, seen: int = 12, version: str = "v1"
) -> HourRollup:
    """An hour of a gauge that stood at `mean` in its first `seen` five-minute steps."""
    HourCoverage.objects.update_or_create(
        region=line.region, signal=line.signal, hour=hour,
        defaults={"observed": seen, "expected": 12, "series": 1, "gauge": True},
    )  # fmt: skip
    return HourRollup.objects.create(
        series=line, hour=hour, version=version, sum_value=mean * seen, count=seen,
        min_value=mean, max_value=mean, last_value=mean,
        last_at=hour + timedelta(minutes=5 * (seen - 1)), observed=seen, expected=12,
    )  # fmt: skip


def counter_hour(line: Series, hour: datetime, increase: float) -> HourRollup:
    """An hour of a counter."""
    return HourRollup.objects.create(
        series=line, hour=hour, version="v1", sum_value=increase, count=12, observed=12, expected=12
    )


def histogram_hour(
    line: Series, hour: datetime, buckets: dict[str, float], total: float
) -> HourRollup:
    """An hour of a histogram."""
    return HourRollup.objects.create(
        series=line, hour=hour, version="v1", sum_value=total, count=buckets["+Inf"],
        buckets=buckets, observed=12, expected=12,
    )  # fmt: skip
