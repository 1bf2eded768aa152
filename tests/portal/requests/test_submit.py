"""Submitting the form."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import ask, form
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]

URL = reverse("requests:submit")


def test_it_is_submitted_simulated_and_shown(world: World, aiko: User, signed_in: SignedIn) -> None:
    client = signed_in(aiko)
    answer = client.post(URL, form(world))

    asked = QuotaRequest.objects.get()
    assert asked.state == RequestState.SUBMITTED
    assert (asked.base_nominal_gpus, asked.asked_gpus, asked.starts_at) == (24, 40, NOW)
    assert asked.ends_at == NOW + timedelta(weeks=4)
    assert asked.plan is not None
    assert answer["Location"] == reverse("requests:detail", args=[asked.pk])


def test_days_are_cut_where_the_pool_stands(world: World, aiko: User, signed_in: SignedIn) -> None:
    signed_in(aiko).post(
        URL, form(world, starts_on="2026-12-10", how_long="until", until="2027-01-05")
    )

    asked = QuotaRequest.objects.get()
    assert asked.starts_at == datetime(2026, 12, 9, 15, tzinfo=UTC)
    assert asked.ends_at == datetime(2027, 1, 4, 15, tzinfo=UTC)


def test_for_good_has_no_end(world: World, aiko: User, signed_in: SignedIn) -> None:
    signed_in(aiko).post(URL, form(world, how_long="good", until="2027-01-05"))

    assert QuotaRequest.objects.get().ends_at is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"justification": "x" * 2001}, "at most 2000 characters"),
        ({"justification": " "}, "This field is required"),
        ({"extra_gpus": "0"}, "at least one GPU"),
        ({"extra_gpus": "99999999999999999999"}, "less than or equal to 100000"),
        ({"extra_gpus": "41"}, "can never fit"),
        ({"extra_gpus": "-25"}, "no more can be given back"),
        ({"how_long": "until"}, "Name the day"),
        ({"how_long": "until", "until": "2026-11-30"}, "after the start"),
        ({"starts_on": "2026-11-29"}, "This day is over"),
        ({"starts_on": "tomorrow"}, "Enter a valid date"),
        ({"how_long": "ever"}, "Select a valid choice"),
        ({"pool": "999"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_beside_the_form_and_nothing_is_kept(
    world: World, aiko: User, signed_in: SignedIn, wrong: dict[str, str], sentence: str
) -> None:
    page = signed_in(aiko).post(URL, form(world, **wrong))

    assert page.status_code == 422
    assert sentence in page.content.decode()
    assert not QuotaRequest.objects.exists()


def test_a_second_pending_request_is_refused_with_a_link_to_the_first(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    first = ask(world, aiko)

    page = signed_in(aiko).post(URL, form(world))

    assert page.status_code == 422
    assert f'href="{reverse("requests:detail", args=[first.pk])}"' in page.content.decode()
    assert QuotaRequest.objects.count() == 1


def test_others_cannot_submit(
    world: World, ben: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    assert signed_in(chidi).post(URL, form(world)).status_code == 422
    assert signed_in(ben).post(URL, form(world)).status_code == 403
    assert signed_in(dana).post(URL, form(world)).status_code == 403
    assert not QuotaRequest.objects.exists()
