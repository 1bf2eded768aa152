"""Asking and answering on the trail."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests.models import QuotaRequest
from tests.portal.requests.asking import ask
from tests.worlds import World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:comment", args=[request.pk])


def test_ops_ask_and_the_lead_answers(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    signed_in(ben).post(url(asked), {"text": "Is February enough?"})

    page = signed_in(aiko).post(url(asked), {"text": "No."}, follow=True)

    text = page.content.decode()
    assert text.index("Is February enough?") < text.index("No.")


def test_a_comment_that_is_too_long_is_refused_with_its_limit(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)

    page = signed_in(aiko).post(url(asked), {"text": "x" * 2001}, follow=True)

    assert "at most 2000 characters" in page.content.decode()
    assert not asked.events.filter(verb="comment").exists()


def test_auditors_and_strangers_do_not_comment(
    world: World, aiko: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    for text in ("x", ""):
        posts = [signed_in(user).post(url(asked), {"text": text}) for user in (dana, chidi)]
        assert [answer.status_code for answer in posts] == [403, 404]
