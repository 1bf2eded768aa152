"""Seeding makes the world once; after that only the missing time is added."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import transaction
from django.db.models import Count, F
from pytest_django import DjangoDbBlocker

from portal.accounts.models import User
from portal.demo import services, story, world
from portal.fleet.models import Outage, Pool
from portal.policy.models import Quota
from portal.requests.models import QuotaRequest, RequestState
from portal.telemetry.models import AttemptRecord, HourRollup, ImportBatch, JobRecord, Watermark
from portal.tenants.models import Project
from tests.portal.demo.conftest import NOW

TABLES = (Pool, Project, Quota, User, Outage, JobRecord, AttemptRecord, HourRollup, QuotaRequest)

# One worker seeds for all tests of this file.
pytestmark = pytest.mark.xdist_group("seeding")


@pytest.fixture(scope="module")
def world_of_a_week(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[services.Told]:
    """The world, seeded once with one week of history instead of eight; gone after these tests."""
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(story, "HISTORY", timedelta(weeks=1))
        patch.setattr(world, "HISTORY", timedelta(weeks=1))
        story._told.cache_clear()
        with transaction.atomic():
            told = services.seed(now=NOW)
            yield told
            transaction.set_rollback(True)
        story._told.cache_clear()


@pytest.fixture
def seeded(world_of_a_week: services.Told, db: None) -> services.Told:
    """What the one seeding wrote; each test's own changes are undone after it."""
    return world_of_a_week


def rows() -> dict[str, int]:
    return {model.__name__: model.objects.count() for model in TABLES}


def figures() -> dict[tuple[int, datetime], tuple[float | None, float]]:
    """Every hour of every series: a sum of floats would depend on how the database adds."""
    return {
        (hour.series_id, hour.hour): (hour.sum_value, hour.count)
        for hour in HourRollup.objects.all()
    }


def test_the_world_is_there_and_dates_end_now(seeded: services.Told) -> None:
    assert seeded.seeded
    assert rows() | {"JobRecord": 0, "AttemptRecord": 0, "HourRollup": 0, "Quota": 0} == {
        "Pool": 6, "Project": 14, "User": 5, "Outage": 1, "QuotaRequest": 3,
        "JobRecord": 0, "AttemptRecord": 0, "HourRollup": 0, "Quota": 0,
    }  # fmt: skip
    newest = HourRollup.objects.order_by("-hour")[0]
    assert newest.hour == NOW.replace(minute=0) - timedelta(hours=1)
    assert JobRecord.objects.latest("submit_at").submit_at > NOW - timedelta(hours=2)
    assert ImportBatch.objects.get().known_until == NOW
    assert JobRecord.objects.filter(state="running", end_at=None).exists()
    assert not JobRecord.objects.filter(submit_at__gt=NOW).exists()


def test_people_sign_in_with_the_password_that_is_shown(seeded: services.Told) -> None:
    for person in world.PEOPLE:
        user = User.objects.get(email=person.email)
        assert user.check_password(world.PASSWORD)
        assert not user.is_superuser


def test_seeding_twice_changes_nothing(seeded: services.Told) -> None:
    before = rows()
    held = figures()
    again = services.seed(now=NOW)
    assert not again.seeded
    assert again.jobs == 0
    assert rows() == before
    assert figures() == held


def test_a_later_start_adds_the_missing_time(seeded: services.Told) -> None:
    later = NOW + timedelta(hours=30)
    told = services.seed(now=later)
    assert not told.seeded
    newest = HourRollup.objects.order_by("-hour")[0]
    assert newest.hour == later.replace(minute=0) - timedelta(hours=1)
    hours = HourRollup.objects.filter(series__signal="quota_used_gpus").values("series")
    assert {row["n"] for row in hours.annotate(n=Count("hour"))} == {7 * 24 + 14 + 30}
    assert JobRecord.objects.filter(submit_at__gt=NOW, submit_at__lte=later).exists()
    assert Watermark.objects.filter(version="import").latest("last_sample_at").last_sample_at


def test_a_tick_tells_of_what_went_on_and_keeps_the_list_of_imports_short(
    seeded: services.Told,
) -> None:
    jobs = JobRecord.objects.count()
    for minute in range(1, 4):
        services.tick(now=NOW + timedelta(minutes=20 * minute))
    assert JobRecord.objects.count() > jobs
    assert ImportBatch.objects.count() <= 4
    assert services.first_day() == NOW.astimezone(story.JST).date()


def test_quota_in_force_is_the_story_s_but_for_one_move_in_history(seeded: services.Told) -> None:
    moved = Quota.objects.filter(because=world.MOVED_BECAUSE)
    assert {row.project.name for row in moved} == {world.MOVED_FROM, world.MOVED_TO}
    told = story.tell(first_day=NOW.astimezone(story.JST).date(), now=NOW)
    just_before = NOW - timedelta(days=6, hours=1)
    in_force = {
        (row.project.name, row.pool.name): row.nominal_gpus
        for row in Quota.objects.at(just_before).select_related("project", "pool")
    }
    assert in_force == {
        (quota.project, quota.pool): quota.nominal for quota in told.trace.scenario.quotas
    }


def test_requests_are_denied_in_force_and_pending(seeded: services.Told) -> None:
    states = {row.project.name: row for row in QuotaRequest.objects.select_related("project")}
    assert states["speech"].state == RequestState.DENIED
    assert states["speech"].decision_reason
    assert states["vision"].state == RequestState.ACTIVE
    assert states["robotics"].is_pending
    vision = Quota.objects.at(NOW).get(project__name="vision", pool__name="tokyo-a-a100")
    assert vision.nominal_gpus == 16 + 4
    assert not QuotaRequest.objects.filter(decided_by=F("requested_by")).exists()
