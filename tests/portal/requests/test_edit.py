"""Changing a request that was not decided yet."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests import services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import ask, form, nominal, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:edit", args=[request.pk])


def test_a_pending_request_is_changed_simulated_again_and_the_old_terms_stay_on_the_trail(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    before = asked.plan_id

    answer = signed_in(aiko).post(url(asked), form(world, extra_gpus=8, justification="Less."))

    asked.refresh_from_db()
    assert answer.status_code == 302
    assert (asked.extra_gpus, asked.justification) == (8, "Less.")
    assert asked.state == RequestState.SUBMITTED
    assert asked.plan_id != before
    last = asked.events.last()
    assert last is not None
    assert "+16 GPUs" in last.comment


def test_the_form_opens_with_what_was_asked(world: World, aiko: User, signed_in: SignedIn) -> None:
    asked = ask(world, aiko)

    shown = signed_in(aiko).get(url(asked)).context["form"]

    assert shown["extra_gpus"].value() == 16
    assert str(shown["starts_on"].value()) == "2026-12-01"
    assert shown["how_long"].value() == "4"


def test_a_draft_is_submitted_from_here(world: World, aiko: User, signed_in: SignedIn) -> None:
    client = signed_in(aiko)
    client.post(reverse("requests:draft"), form(world, keep="1"))
    draft = QuotaRequest.objects.get()

    client.post(url(draft), form(world, extra_gpus=4, submit="1"))

    draft.refresh_from_db()
    assert (draft.state, draft.extra_gpus) == (RequestState.SUBMITTED, 4)


def test_what_is_decided_is_changed_no_more(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW)

    answer = signed_in(aiko).post(url(asked), form(world, extra_gpus=40), follow=True)

    assert "can no longer be changed" in answer.content.decode()
    assert nominal(world, asked.starts_at) == 40


def test_only_those_who_may_ask_change_it(
    world: World, aiko: User, ben: User, chidi: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    answers = [signed_in(user).post(url(asked), form(world)) for user in (ben, dana, chidi)]
    assert [answer.status_code for answer in answers] == [403, 403, 404]
