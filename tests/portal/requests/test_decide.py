"""Deciding a request."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import rules, services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import SOON, nominal, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def post(client: Client, request: QuotaRequest, decision: str, **values: object) -> int:
    address = reverse("requests:decide", args=[request.pk])
    said = {"decision": decision, "seen": rules.mark(request)} | values
    return client.post(address, said).status_code


def test_approved_it_is_scheduled_and_the_quota_changes_when_it_starts(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)

    assert post(signed_in(ben), asked, "approve") == 302

    asked.refresh_from_db()
    assert (asked.state, asked.decided_by, asked.decided_at) == (RequestState.SCHEDULED, ben, NOW)
    assert (nominal(world, NOW), nominal(world, SOON)) == (24, 40)


def test_a_part_and_a_denial_take_what_was_typed(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    assert post(signed_in(ben), asked, "deny", reason="Not before May.") == 302
    asked.refresh_from_db()
    assert (asked.state, asked.decision_reason) == (RequestState.DENIED, "Not before May.")

    other = reviewed(world, aiko, ben)
    assert post(signed_in(ben), other, "part", granted_extra_gpus=8) == 302
    assert nominal(world, SOON) == 32


@pytest.mark.parametrize(
    ("decision", "values", "sentence"),
    [
        ("deny", {"reason": " "}, "denied only with a reason"),
        ("deny", {"reason": "x" * 2001}, "at most 2000 characters"),
        ("part", {}, "Say how many GPUs you grant"),
        ("part", {"granted_extra_gpus": "half"}, "Enter a whole number"),
        ("perhaps", {}, "Select a valid choice"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_decided(
    world: World,
    aiko: User,
    ben: User,
    signed_in: SignedIn,
    decision: str,
    values: dict[str, str],
    sentence: str,
) -> None:
    asked = reviewed(world, aiko, ben)
    address = reverse("requests:decide", args=[asked.pk])
    said = {"decision": decision, "seen": rules.mark(asked)} | values

    page = signed_in(ben).post(address, said)

    assert page.status_code == 422
    assert sentence in page.content.decode()
    asked.refresh_from_db()
    assert asked.state == RequestState.IN_REVIEW


def test_the_second_of_two_decisions_is_told_clearly(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    client = signed_in(ben)
    post(client, asked, "approve")
    address = reverse("requests:decide", args=[asked.pk])

    page = client.post(address, {"decision": "deny", "reason": "no", "seen": rules.mark(asked)})

    assert page.status_code == 409
    assert "This request is scheduled" in page.content.decode()


def test_a_page_that_was_left_open_decides_nothing(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    seen = rules.mark(asked)
    services.simulate(request=asked, by=aiko, now=NOW)

    assert post(signed_in(ben), asked, "approve", seen=seen) == 409
    assert nominal(world, SOON) == 24


def test_requester_admin_auditor_and_stranger_do_not_decide(
    world: World, aiko: User, ben: User, chidi: User, dana: User, emi: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    answers = [
        post(signed_in(user), asked, decision, reason="x")
        for user in (aiko, emi, dana, chidi)
        for decision in ("approve", "deny")
    ]
    assert answers == [403] * 6 + [404] * 2
    asked.refresh_from_db()
    assert asked.state == RequestState.IN_REVIEW
