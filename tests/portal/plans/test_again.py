from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.plans.models import Plan
from portal.policy.models import Quota
from tests.portal.plans.conftest import Make
from tests.worlds import World

SignIn = Callable[[User], Client]


def test_the_same_change_is_simulated_again_on_the_new_base(
    make: Make, aiko: User, observed: World, signed_in: SignIn
) -> None:
    plan = make(aiko)
    Quota.objects.create(
        project=observed.projects["speech"], pool=observed.pools["tokyo-a-h100"], nominal_gpus=32,
        starts_at=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip

    response = signed_in(aiko).post(reverse("plans:again", args=[plan.pk]))

    fresh = Plan.objects.exclude(pk=plan.pk).get()
    assert response["Location"] == reverse("plans:detail", args=[fresh.pk])
    assert (fresh.state, fresh.title) == ("queued", plan.title)


def test_an_auditor_changes_nothing_and_another_tenant_finds_nothing(
    make: Make, aiko: User, dana: User, chidi: User, signed_in: SignIn
) -> None:
    address = reverse("plans:again", args=[make(aiko).pk])

    assert signed_in(dana).post(address).status_code == 403
    assert signed_in(chidi).post(address).status_code == 404
    assert Plan.objects.count() == 1
