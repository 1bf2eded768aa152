"""Our own metrics: with the token only, the right values, nothing for what is unknown."""

import re
from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from portal.fleet.models import Region
from portal.telemetry.models import (
    Claim,
    CollectionRun,
    Doubt,
    DoubtKind,
    Gap,
    HourCoverage,
    RunState,
    SignalFetch,
    Watermark,
)
from tests.conftest import ROOT
from tests.worlds import World

TOKEN = "a-token-of-some-length"
Samples = dict[tuple[str, str, str], float]


@pytest.fixture(autouse=True)
def _token(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


def read() -> Samples:
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    found = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = sample.labels
            other = labels.get("signal") or labels.get("kind") or labels.get("why") or ""
            found[sample.name.removeprefix("sekisho_"), labels.get("region", ""), other] = (
                sample.value
            )
    return found


def run(region: Region, at: datetime, ended: RunState, **fetch: object) -> None:
    made = CollectionRun.objects.create(
        region=region, asked_by="schedule", source="http://p", state=ended, started_at=at,
        finished_at=at + timedelta(seconds=4), duration_seconds=4.0,
    )  # fmt: skip
    if fetch:
        SignalFetch.objects.create(
            run=made, version="v1", query="q", asked_from=at - timedelta(hours=1), asked_to=at,
            duration_seconds=1, **fetch,
        )  # fmt: skip


def test_the_token_and_nothing_else_opens_the_page(settings: Settings, ben: object) -> None:
    assert Client().get("/metrics").status_code == 401
    wrong = Client().get("/metrics", headers={"Authorization": "Bearer something else"})
    assert wrong.status_code == 401
    assert wrong["WWW-Authenticate"] == "Bearer"
    client = Client()
    client.force_login(ben)  # type: ignore[arg-type]
    assert client.get("/metrics").status_code == 401
    assert read()
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.django_db
def test_wrong_tokens_are_counted_and_the_right_one_still_works() -> None:
    cache.clear()
    answers = [
        Client().get("/metrics", headers={"Authorization": f"Bearer {guess}"}).status_code
        for guess in range(11)
    ]
    assert answers == [401] * 10 + [429]
    assert read()


def test_every_figure_is_the_one_worked_out_by_hand(world: World, now: datetime) -> None:
    tokyo = world.regions["tokyo"]
    hour = now.replace(minute=0, second=0)
    run(tokyo, now - timedelta(minutes=20), RunState.PARTIAL,
        signal="pending_jobs", state="complete", series=7)  # fmt: skip
    for minutes in (10, 5):
        run(tokyo, now - timedelta(minutes=minutes), RunState.FAILED, signal="pending_jobs",
            state="failed", error_kind="unreachable", error="Nothing answers.")  # fmt: skip
    run(tokyo, now - timedelta(minutes=1), RunState.RUNNING)
    Watermark.objects.create(
        region=tokyo, signal="pending_jobs", version="v1",
        collected_until=now - timedelta(minutes=25), last_sample_at=now - timedelta(minutes=30),
    )  # fmt: skip
    # Of the last three whole hours one was not collected, one gave 12 of 12, one 6 of 12.
    for ago, observed, rejected in ((3, 12, 0), (1, 6, 5)):
        HourCoverage.objects.create(
            region=tokyo, signal="pending_jobs", hour=hour - timedelta(hours=ago),
            observed=observed, expected=12, series=7, rejected=rejected,
        )  # fmt: skip
    Doubt.objects.create(
        region=tokyo, kind=DoubtKind.CLOCK_OFF, found=3, against=1, since=now - timedelta(hours=2)
    )

    for ago in (5, 3):
        Gap.objects.create(
            region=tokyo, signal="pending_jobs", version="v1", start=hour - timedelta(hours=ago),
            end=hour - timedelta(hours=ago, minutes=-30),
        )  # fmt: skip
    Claim.objects.create(region=tokyo, busy=3, overdue=1)

    found = read()

    of = ("tokyo", "pending_jobs")
    assert found["signal_owed_seconds", *of] == 2 * 30 * 60
    assert found["collection_passed_over_total", "tokyo", "busy"] == 3
    assert found["collection_passed_over_total", "tokyo", "overdue"] == 1
    success = now - timedelta(minutes=20) + timedelta(seconds=4)
    assert found["collection_last_success_timestamp_seconds", "tokyo", ""] == success.timestamp()
    assert found["collection_failed_in_a_row", "tokyo", ""] == 2
    assert found["collection_last_duration_seconds", "tokyo", ""] == 4
    sampled = now - timedelta(minutes=30)
    assert found["signal_last_sample_timestamp_seconds", *of] == sampled.timestamp()
    assert found["signal_lag_seconds", *of] == pytest.approx(25 * 60, abs=30)
    assert found["signal_coverage_ratio", *of] == pytest.approx((12 + 0 + 6) / 36)
    assert found["signal_rejected_samples", *of] == 5
    assert found["signal_failing", *of] == 1
    assert found["doubts", "tokyo", "clock-off"] == 1
    assert found["doubts", "tokyo", "held-over-installed"] == 0


def test_what_is_unknown_has_no_sample(world: World, now: datetime) -> None:
    tokyo = world.regions["tokyo"]
    run(tokyo, now, RunState.FAILED, signal="pending_jobs", state="failed", error_kind="timed-out")

    found = read()

    assert found["signal_failing", "tokyo", "pending_jobs"] == 1
    for name in ("last_sample_timestamp_seconds", "lag_seconds", "coverage_ratio", "series"):
        assert (f"signal_{name}", "tokyo", "pending_jobs") not in found
    assert ("collection_last_success_timestamp_seconds", "tokyo", "") not in found
    assert not [key for key in found if key[1] == "osaka"]


@pytest.mark.parametrize("signals", [1, 8])
def test_the_queries_do_not_grow_with_the_signals(
    world: World, now: datetime, signals: int
) -> None:
    for region in world.regions.values():
        for number in range(signals):
            run(region, now, RunState.COMPLETE, signal=f"signal_{number}", state="complete")
    with CaptureQueriesContext(connection) as queries:
        read()
    assert len(queries) == 8


def test_the_alert_rules_name_only_metrics_that_we_give(world: World, now: datetime) -> None:
    run(world.regions["tokyo"], now, RunState.COMPLETE, signal="pending_jobs", state="complete")
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    given = set(re.findall(r"^# TYPE (\S+)", answer.content.decode(), re.MULTILINE))
    asked = set(re.findall(r"\bsekisho_\w+", (ROOT / "collectors" / "alerts.yml").read_text()))
    assert asked
    assert asked <= given
