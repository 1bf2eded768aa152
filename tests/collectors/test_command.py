from __future__ import annotations

import io
import itertools
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from collectors import catalogue, checks, ingest, tasks, windows
from collectors.claims import Claim
from collectors.rollups import STEP
from portal import celery
from portal.telemetry import models
from portal.telemetry.models import CollectionRun, Gap, HourRollup, RunState, SignalFetch
from tests import worlds
from tests.collectors.servers import Reply, answering
from tests.collectors.test_faults import _good


def _collect(*args: str) -> str:
    out = io.StringIO()
    call_command("collect", *args, stdout=out, stderr=out)
    return out.getvalue()


def test_a_back_fill_prints_what_was_asked_and_what_came(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(_good) as (url, _seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        said = _collect("tokyo", "--since", "7d")
    assert f"tokyo from {url}" in said
    assert "gpu_reporting_gpus" in said
    assert "complete in" in said
    run = CollectionRun.objects.get()
    assert (run.asked_by, run.state, run.region.name) == ("command", "complete", "tokyo")
    fetches = list(run.fetches.filter(signal="wait_seconds").order_by("asked_from"))
    spans = [fetch.asked_to - fetch.asked_from for fetch in fetches]
    assert timedelta(days=7) - timedelta(hours=1) < sum(spans, timedelta()) < timedelta(days=7.1)
    assert all(one.asked_to == after.asked_from for one, after in itertools.pairwise(fetches))
    # One day at a time: a week of a large region is gigabytes.
    assert max(spans) < timedelta(hours=25)
    assert sum(fetch.rows for fetch in fetches) >= 168


def test_each_region_asks_its_own_prometheus(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(_good) as (tokyo, in_tokyo), answering(_good) as (osaka, in_osaka):
        monkeypatch.setenv("PROMETHEUS_URL", tokyo)
        monkeypatch.setenv("PROMETHEUS_URL_OSAKA", osaka)
        _collect()
    assert all('region="tokyo"' in request.query["query"][0] for request in in_tokyo)
    assert all('region="osaka"' in request.query["query"][0] for request in in_osaka)
    assert len(in_tokyo) == len(in_osaka) >= 16


def test_a_failed_collection_says_why_and_ends_with_1(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(lambda _request: Reply("no", 401)) as (url, _seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        with pytest.raises(SystemExit) as ended:
            _collect("tokyo")
    assert ended.value.code == 1
    assert CollectionRun.objects.get().state == RunState.FAILED


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["kyoto"], "'kyoto' is no region; expected one of osaka, tokyo"),
        (["tokyo", "--since", "yesterday"], "expected a length such as 7d"),
        (["tokyo", "--since", "2026-11-30T00:00"], "has no zone"),
        (["tokyo", "--since", "2099-01-01T00:00Z"], "future"),
        (["tokyo", "--until", "1h"], "--since before it"),
        (["tokyo", "--since", "1h", "--until", "2h"], "--since before it"),
    ],
)
def test_bad_input_is_refused_with_status_2_and_nothing_is_written(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch, args: list[str], said: str
) -> None:
    monkeypatch.setenv("PROMETHEUS_URL", "http://127.0.0.1:1")
    with pytest.raises(CommandError, match=said) as refused:
        _collect(*args)
    assert refused.value.returncode == 2 or "--since" in str(refused.value)
    assert not CollectionRun.objects.exists()


def test_a_region_without_an_address_is_named(world: worlds.World) -> None:
    with pytest.raises(CommandError, match="PROMETHEUS_URL_TOKYO") as refused:
        _collect("tokyo")
    assert refused.value.returncode == 2


def test_a_broken_catalogue_is_refused_and_nothing_is_written(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ours.toml"
    path.write_text("[regions.tokyo]\nmax_points = -5\npreset = ['kueue']")
    monkeypatch.setenv("COLLECT_CATALOGUE", str(path))
    with answering(_good) as (url, seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        with pytest.raises(CommandError) as refused:
            _collect("tokyo")
    assert refused.value.returncode == 2
    assert "regions.tokyo.max_points: is -5; expected greater than 0" in str(refused.value)
    assert "regions.tokyo.preset: is no key" in str(refused.value)
    assert not seen
    assert not CollectionRun.objects.exists()


def test_the_schedule_says_that_the_catalogue_is_broken(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ours.toml"
    path.write_text("[regions.tokyo]\npresets = ['kueu']")
    monkeypatch.setenv("COLLECT_CATALOGUE", str(path))
    monkeypatch.setenv("PROMETHEUS_URL", "http://127.0.0.1:1")
    tasks.collect_region("tokyo")
    run = CollectionRun.objects.get()
    assert (run.state, run.error_kind) == (RunState.FAILED, "bad-catalogue")
    assert "'kueu' is unknown; expected one of" in run.error
    (message,) = checks.catalogue_is_sound()
    assert "'kueu' is unknown" in message.msg
    monkeypatch.setenv("COLLECT_CATALOGUE", "")
    assert checks.catalogue_is_sound() == []


def test_nothing_due_is_no_collection(world: worlds.World, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(_good) as (url, seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        _collect("tokyo", "--since", "1h")
        before, asked = CollectionRun.objects.get(), len(seen)
        monkeypatch.setattr(timezone, "now", lambda: before.started_at)
        while Gap.objects.exists():
            _collect("tokyo")
        runs, asked = CollectionRun.objects.count(), len(seen)
        said = _collect("tokyo")
    assert "nothing is due before" in said
    assert "complete" not in said
    assert (CollectionRun.objects.count(), len(seen)) == (runs, asked)


def test_the_task_collects_a_region_and_passes_when_it_is_busy(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(_good) as (url, _seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        tasks.collect_region("tokyo")
        assert CollectionRun.objects.get().asked_by == "schedule"
        assert HourRollup.objects.exists()
        assert Claim(world.regions["tokyo"], owner="another").take()
        tasks.collect_region("tokyo")
    assert CollectionRun.objects.count() == 1
    # A day of a new signal: the newest six hours, and three times six before them.
    assert SignalFetch.objects.count() == 4 * len(catalogue.read().asked_in("tokyo"))


def test_a_collection_that_comes_too_late_is_passed_over_and_counted(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers were busy, or away: the next collection asks for what this one would have."""
    with answering(_good) as (url, seen):
        monkeypatch.setenv("PROMETHEUS_URL", url)
        late = timezone.now() - tasks.OVERDUE_AFTER
        tasks.collect_region("tokyo", (late - timedelta(seconds=5)).isoformat())
        assert not seen
        assert models.Claim.objects.get().overdue == 1
        tasks.collect_region("tokyo", (late + timedelta(seconds=60)).isoformat())
        assert seen
    assert CollectionRun.objects.count() == 1
    # The next one is due five minutes later: what comes shortly before it is not worth while.
    assert timedelta(minutes=4) < tasks.OVERDUE_AFTER < STEP


def test_a_collection_is_tried_again_when_the_database_went_away() -> None:
    assert OperationalError in tasks.collect_region.autoretry_for  # type: ignore[attr-defined]
    # Handed out again after a kill it could end one worker after the other.
    assert not tasks.collect_region.acks_late
    # Redis hands out again what is not acknowledged by then.
    longest = max(celery.app.conf.task_time_limit, tasks.collect_region.time_limit)
    assert celery.app.conf.broker_transport_options["visibility_timeout"] > longest


def test_every_region_with_an_address_gets_a_task_of_its_own(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.collect_region, "delay", lambda name, _due_at: sent.append(name))
    monkeypatch.setenv("PROMETHEUS_URL_OSAKA", "http://127.0.0.1:1")
    tasks.collect_all()
    assert sent == ["osaka"]
    assert tasks.collect_all.name == "collectors.collect_all"
    assert tasks.collect_region.name == "collectors.collect_region"


def test_each_scheduled_collection_finds_a_newer_step_settled() -> None:
    due = celery.app.conf.beat_schedule["collect every region"]["schedule"]
    assert len(due.minute) == 12
    settled = [timedelta(minutes=minute) - windows.SETTLES for minute in sorted(due.minute)]
    assert [instant // STEP for instant in settled] == list(range(12))


def test_the_daily_task_forgets_old_collections(world: worlds.World) -> None:
    ages = (ingest.KEPT_FOR + timedelta(days=1), timedelta(0))
    runs = [
        CollectionRun.objects.create(
            region=world.regions["tokyo"], asked_by="schedule", source="x",
            state=RunState.COMPLETE, started_at=timezone.now() - age,
        )
        for age in ages
    ]  # fmt: skip
    tasks.prune()
    assert list(CollectionRun.objects.all()) == runs[1:]
