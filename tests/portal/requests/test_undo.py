"""Undoing an approval before it is in force."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import SOON, nominal, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:undo", args=[request.pk])


def test_the_quota_stays_what_it_was_and_the_request_waits_again(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW)

    signed_in(ben).post(url(asked))

    asked.refresh_from_db()
    assert asked.state == RequestState.IN_REVIEW
    assert nominal(world, SOON) == 24


def test_what_is_in_force_cannot_be_undone(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben, starts_at=NOW)
    services.approve(request=asked, by=ben, now=NOW)

    page = signed_in(ben).post(url(asked), follow=True)

    assert "from there that step is not possible" in page.content.decode()
    assert nominal(world, NOW) == 40


def test_only_ops_undo(
    world: World, aiko: User, ben: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW)
    answers = [signed_in(user).post(url(asked)).status_code for user in (aiko, dana, chidi)]
    assert answers == [403, 403, 404]
