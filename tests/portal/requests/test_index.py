"""The list: what waits first, oldest on top; nothing disappears."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import services
from tests.portal.requests.asking import ask, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]

URL = reverse("requests:index")


def test_a_lead_finds_every_own_request_with_its_decision_and_reason(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    denied = reviewed(world, aiko, ben)
    services.deny(request=denied, reason="The pool is full until May.", by=ben, now=NOW)
    waiting = ask(world, aiko)

    page = signed_in(aiko).get(URL)

    assert list(page.context["pending"]) == [waiting]
    assert list(page.context["decided"]) == [denied]
    assert "The pool is full until May." in page.content.decode()
    assert "denied by Ben" in page.content.decode()


def test_ops_see_the_oldest_pending_request_first_and_cannot_approve_from_the_list(
    world: World, aiko: User, ben: User, chidi: User, signed_in: SignedIn
) -> None:
    first = ask(world, chidi, project=world.projects["robotics"], extra_gpus=8)
    second = ask(world, aiko)

    page = signed_in(ben).get(URL)

    assert list(page.context["pending"]) == [first, second]
    for asked in (first, second):
        assert reverse("requests:decide", args=[asked.pk]) not in page.content.decode()


def test_another_tenants_requests_are_not_there(
    world: World, aiko: User, chidi: User, signed_in: SignedIn
) -> None:
    ask(world, aiko)

    page = signed_in(chidi).get(URL)

    assert not page.context["pending"]
    assert "speech" not in page.content.decode()


def test_an_auditor_reads_all_and_is_not_offered_to_ask(
    world: World, aiko: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)

    page = signed_in(dana).get(URL)

    assert list(page.context["pending"]) == [asked]
    assert reverse("requests:draft") not in page.content.decode()


def test_the_list_takes_as_many_queries_for_many_requests_as_for_one(
    world: World,
    aiko: User,
    ben: User,
    signed_in: SignedIn,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    for _number in range(6):
        services.deny(request=reviewed(world, aiko, ben), reason="no", by=ben, now=NOW)
    client = signed_in(ben)

    with django_assert_max_num_queries(14):  # type: ignore[attr-defined]
        client.get(URL)
