from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.tenants.models import Membership
from tests.worlds import World

SignIn = Callable[[User], Client]


@pytest.fixture
def staff(ben: User, signed_in: SignIn) -> Client:
    """Ben, with all rights in the administration."""
    ben.is_staff = ben.is_superuser = True
    ben.save()
    return signed_in(ben)


@pytest.mark.parametrize("model", ["tenant", "project", "membership"])
def test_tenants_can_be_listed_searched_and_added_to(
    world: World, staff: Client, model: str
) -> None:
    listed = reverse(f"admin:tenants_{model}_changelist")
    assert staff.get(listed, {"q": "kaguya"}).status_code == 200
    assert staff.get(reverse(f"admin:tenants_{model}_add")).status_code == 200


def test_a_membership_of_another_tenants_project_is_refused(
    world: World, staff: Client, dana: User
) -> None:
    robotics = world.projects["robotics"]
    terms = {
        "user": dana.pk, "tenant": world.projects["speech"].tenant_id, "project": robotics.pk,
        "role": "lead",
    }  # fmt: skip

    response = staff.post(reverse("admin:tenants_membership_add"), terms)

    assert "belongs to another tenant" in response.content.decode()
    assert not Membership.objects.filter(user=dana).exists()
