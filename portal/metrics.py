"""Sekisho's own metrics for a Prometheus: how well collecting goes. Read with a token only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from secrets import compare_digest

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from portal.telemetry.condition import RegionCondition, SignalCondition, condition
from portal.telemetry.models import DoubtKind
from portal.version import VERSION

COVERED = timedelta(hours=24)
WRONG_TOKENS_A_MINUTE = 10


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Our own metrics. Without SEKISHO_METRICS_TOKEN there is no such page."""
    if not settings.METRICS_TOKEN:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()):
        status = 429 if _guesses_too_often(request) else 401
        refused = HttpResponse(status=status, content_type="text/plain")
        refused["WWW-Authenticate"] = "Bearer"
        return refused
    registry = CollectorRegistry()
    registry.register(Collecting(now=timezone.now()))
    write, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(write(registry), content_type=content_type)


def _guesses_too_often(request: HttpRequest) -> bool:
    """Counts a wrong token against its address; allauth limits only what is posted."""
    key = f"metrics-token:{get_adapter().get_client_ip(request)}"
    cache.add(key, 0, timeout=60)
    try:
        return cache.incr(key) > WRONG_TOKENS_A_MINUTE
    except ValueError:  # it ran out between the two
        return False


class Collecting(Collector):
    """How collecting stands at one instant; what is unknown has no sample."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Each family once, with its samples of every region."""
        about = GaugeMetricFamily(
            "sekisho_build_info", "The version that runs.", labels=["version"]
        )
        about.add_metric([VERSION], 1)
        yield about
        regions = condition(now=self._now, since=self._now - COVERED)
        for name, text, of_region in _REGION:
            family = GaugeMetricFamily(name, text, labels=["region"])
            for region in regions.values():
                if (value := of_region(region)) is not None:
                    family.add_metric([region.region], value)
            yield family
        for name, text, of_signal in _SIGNAL:
            family = GaugeMetricFamily(name, text, labels=["region", "signal"])
            for region in regions.values():
                for signal in region.signals:
                    if (value := of_signal(signal)) is not None:
                        family.add_metric([region.region, signal.signal], value)
            yield family
        passed = CounterMetricFamily(
            "sekisho_collection_passed_over",
            "Collections that were not made: another one was under way, or it came too late.",
            labels=["region", "why"],
        )
        for region in regions.values():
            for why, count in region.passed_over.items():
                passed.add_metric([region.region, why], count)
        yield passed
        doubts = GaugeMetricFamily(
            "sekisho_doubts", "Figures that contradict each other now.", labels=["region", "kind"]
        )
        for region in regions.values():
            for kind in DoubtKind:
                count = sum(doubt.kind == kind for doubt in region.doubts)
                doubts.add_metric([region.region, kind.value], count)
        yield doubts


def _last_success(region: RegionCondition) -> float | None:
    return None if region.last_success_at is None else region.last_success_at.timestamp()


def _last_duration(region: RegionCondition) -> float | None:
    return None if region.last_run is None else region.last_run.duration_seconds


def _last_sample(signal: SignalCondition) -> float | None:
    return None if signal.last_sample_at is None else signal.last_sample_at.timestamp()


_REGION = (
    (
        "sekisho_collection_last_success_timestamp_seconds",
        "When a collection of the region last brought something.",
        _last_success,
    ),
    (
        "sekisho_collection_last_duration_seconds",
        "How long the newest collection of the region took.",
        _last_duration,
    ),
    (
        "sekisho_collection_failed_in_a_row",
        "Collections of the region that failed one after the other, up to now.",
        lambda region: region.failed_in_a_row,
    ),
)
_SIGNAL = (
    (
        "sekisho_signal_last_sample_timestamp_seconds",
        "When the newest sample of the signal was taken.",
        _last_sample,
    ),
    (
        "sekisho_signal_lag_seconds",
        "How far collecting of the signal is behind now.",
        lambda signal: signal.lag_seconds,
    ),
    (
        "sekisho_signal_owed_seconds",
        "Time of the signal that could not be fetched yet and is asked again.",
        lambda signal: signal.owed_seconds,
    ),
    (
        "sekisho_signal_coverage_ratio",
        "The share (0-1) of five-minute steps of the last 24 hours that had a sample.",
        lambda signal: signal.coverage_ratio,
    ),
    (
        "sekisho_signal_series",
        "Lines that the newest query of the signal answered.",
        lambda signal: signal.series,
    ),
    (
        "sekisho_signal_rejected_samples",
        "Samples of the last 24 hours that were no measurements.",
        lambda signal: signal.rejected,
    ),
    (
        "sekisho_signal_failing",
        "1 while the newest query of the signal failed.",
        lambda signal: int(bool(signal.error_kind)),
    ),
    (
        "sekisho_signal_partial",
        "1 while the newest query of the signal was answered only in part.",
        lambda signal: int(signal.partial),
    ),
)
