from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.policy import models as policy
from portal.policy.models import LaneAssignment, Quota
from portal.policy.services import cancel, change_quota
from tests.worlds import NOW, World

SignIn = Callable[[User], Client]
ADD = reverse("admin:policy_quota_add")


@pytest.fixture
def staff(ben: User, signed_in: SignIn) -> Client:
    """Ben, with all rights in the administration."""
    ben.is_staff = ben.is_superuser = True
    ben.save()
    return signed_in(ben)


def form(world: World, starts_at: datetime, gpus: int = 40) -> dict[str, object]:
    return {
        "project": world.projects["speech"].pk,
        "pool": world.pools["tokyo-a-h100"].pk,
        "nominal_gpus": gpus,
        "starts_at_0": f"{starts_at:%Y-%m-%d}",
        "starts_at_1": f"{starts_at:%H:%M:%S}",
        "because": "",
    }


def change(row: Quota) -> str:
    return reverse("admin:policy_quota_change", args=[row.pk])


@pytest.mark.parametrize("name", policy.__all__)
def test_every_rule_has_its_list_and_its_form(world: World, staff: Client, name: str) -> None:
    model = getattr(policy, name)
    if not hasattr(model, "_meta") or name == "LaneAssignmentPool":
        return
    for page in ("changelist", "add"):
        address = reverse(f"admin:policy_{model._meta.model_name}_{page}")
        assert staff.get(address).status_code == 200
    search = reverse(f"admin:policy_{model._meta.model_name}_changelist")
    assert staff.get(search, {"q": "x"}).status_code == 200


def test_a_new_row_keeps_who_recorded_it(world: World, staff: Client, ben: User) -> None:
    start = timezone.now() + timedelta(days=1)

    assert staff.post(ADD, form(world, start)).status_code == 302

    assert Quota.objects.get(nominal_gpus=40).recorded_by == ben


def test_a_row_cannot_start_in_the_past(world: World, staff: Client) -> None:
    response = staff.post(ADD, form(world, timezone.now() - timedelta(minutes=1)))

    assert response.status_code == 200
    assert "cannot start in the past" in response.content.decode()
    assert not Quota.objects.filter(nominal_gpus=40).exists()


def test_a_row_that_has_started_can_be_read_but_not_changed_or_deleted(
    world: World, staff: Client
) -> None:
    row = Quota.objects.get(project__name="speech")

    assert staff.get(change(row)).status_code == 200
    assert b'name="_save"' not in staff.get(change(row)).content
    later = form(world, timezone.now() + timedelta(days=1))
    assert staff.post(change(row), later).status_code == 403
    delete = reverse("admin:policy_quota_delete", args=[row.pk])
    assert staff.post(delete, {"post": "yes"}).status_code == 403
    staff.post(
        reverse("admin:policy_quota_changelist"),
        {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
    )
    row.refresh_from_db()
    assert row.nominal_gpus == 24


def test_a_row_that_has_not_started_may_still_be_changed_and_deleted(
    world: World, staff: Client
) -> None:
    start = timezone.now() + timedelta(days=1)
    staff.post(ADD, form(world, start))
    row = Quota.objects.get(nominal_gpus=40)

    assert staff.post(change(row), form(world, start, gpus=48)).status_code == 302
    row.refresh_from_db()
    assert row.nominal_gpus == 48
    delete = reverse("admin:policy_quota_delete", args=[row.pk])
    assert staff.post(delete, {"post": "yes"}).status_code == 302
    assert not Quota.objects.filter(pk=row.pk).exists()


def test_the_pools_of_a_started_assignment_cannot_be_changed(world: World, staff: Client) -> None:
    row = LaneAssignment.objects.first()
    assert row is not None
    address = reverse("admin:policy_laneassignment_change", args=[row.pk])
    terms = {
        "allowed_pools-TOTAL_FORMS": 1,
        "allowed_pools-INITIAL_FORMS": 0,
        "allowed_pools-0-pool": world.pools["tokyo-a-h100"].pk,
        "allowed_pools-0-position": 1,
    }

    assert staff.post(address, terms).status_code == 403
    assert 'name="_save"' not in staff.get(address).content.decode()
    assert not row.allowed_pools.exists()


def test_people_without_staff_rights_do_not_reach_the_administration(
    dana: User, signed_in: SignIn
) -> None:
    response = signed_in(dana).get(ADD)
    assert response.status_code == 302
    assert "/admin/login/" in response["Location"]


def test_a_change_of_quota_is_on_the_audit_trail_with_who_did_it(world: World, ben: User) -> None:
    rows = change_quota(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], nominal_gpus=40,
        starts_at=NOW + timedelta(days=1), by=ben, because="January", now=NOW,
    )  # fmt: skip
    cancel(rows=rows, by=ben, now=NOW)

    made, taken_back = LogEntry.objects.get_for_objects(
        Quota.objects.filter(pk=rows[0].pk)
    ).order_by("pk")
    assert (made.actor, made.action) == (ben, LogEntry.Action.CREATE)
    assert (taken_back.actor, taken_back.action) == (ben, LogEntry.Action.UPDATE)
    assert list(taken_back.changes_dict) == ["cancelled_at"]
