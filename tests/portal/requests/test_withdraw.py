"""Taking a request back."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import ask, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:withdraw", args=[request.pk])


def test_it_is_withdrawn_and_stays_in_the_list(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    client = signed_in(aiko)

    client.post(url(asked))

    asked.refresh_from_db()
    assert asked.state == RequestState.WITHDRAWN
    assert list(client.get(reverse("requests:index")).context["decided"]) == [asked]


def test_what_is_decided_is_not_withdrawn(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW)

    page = signed_in(aiko).post(url(asked), follow=True)

    assert "from there that step is not possible" in page.content.decode()
    asked.refresh_from_db()
    assert asked.state == RequestState.SCHEDULED


def test_only_those_who_may_ask_withdraw_it(
    world: World, aiko: User, ben: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    answers = [signed_in(user).post(url(asked)).status_code for user in (ben, dana, chidi)]
    assert answers == [403, 403, 404]
    assert signed_in(aiko).get(url(asked)).status_code == 405
