"""Ending a granted change before its time."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import clock, services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import nominal, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:revoke", args=[request.pk])


def granted(world: World, aiko: User, ben: User) -> QuotaRequest:
    """In force for an hour by now."""
    asked = reviewed(world, aiko, ben, starts_at=NOW - clock.NOTICES[-1])
    return services.approve(request=asked, by=ben, now=NOW - clock.NOTICES[-1])


def test_the_quota_goes_back_and_the_reason_is_kept(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = granted(world, aiko, ben)
    assert nominal(world, NOW) == 40

    signed_in(ben).post(url(asked), {"text": "tokyo-a is down"})

    asked.refresh_from_db()
    assert asked.state == RequestState.REVOKED
    assert nominal(world, NOW) == 24
    last = asked.events.last()
    assert last is not None
    assert last.comment == "tokyo-a is down"


def test_without_a_reason_nothing_is_revoked(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = granted(world, aiko, ben)

    page = signed_in(ben).post(url(asked), {"text": " "}, follow=True)

    assert "required" in page.content.decode()
    assert nominal(world, NOW) == 40


def test_only_ops_revoke(
    world: World, aiko: User, ben: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = granted(world, aiko, ben)
    posts = [signed_in(user).post(url(asked), {"text": "x"}) for user in (aiko, dana, chidi)]
    assert [answer.status_code for answer in posts] == [403, 403, 404]
