"""Simulating a pending request again."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.policy.services import change_quota
from portal.requests.models import QuotaRequest
from tests.portal.requests.asking import ask, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:simulate", args=[request.pk])


def test_it_stands_on_what_is_in_force_now(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    before = asked.plan_id
    change_quota(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], nominal_gpus=20,
        starts_at=NOW, by=ben, because="incident", now=NOW,
    )  # fmt: skip

    signed_in(ben).post(url(asked))

    asked.refresh_from_db()
    assert asked.base_nominal_gpus == 20
    assert asked.plan_id != before


def test_auditors_and_strangers_do_not_simulate_it(
    world: World, aiko: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    answers = [signed_in(user).post(url(asked)).status_code for user in (dana, chidi)]
    assert answers == [403, 404]
