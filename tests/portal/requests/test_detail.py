"""One request as its readers see it."""

from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.policy.services import change_quota
from portal.requests import clock, services
from portal.requests.models import QuotaRequest, RequestState
from tests.portal.requests.asking import ask, reviewed
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]


def url(request: QuotaRequest) -> str:
    return reverse("requests:detail", args=[request.pk])


def test_ops_see_what_will_happen_when_and_when_it_reverts(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)

    text = signed_in(ben).get(url(asked)).content.decode()

    assert "16 more H100 for speech" in text
    assert "from 24 to 40 on <b>1 Dec 12:00 JST</b>" in text
    assert "back to 24 on <b>29 Dec 12:00 JST</b>" in text
    assert "64 → <b>80 of 64 GPUs, oversubscribed</b>" in text
    asked.refresh_from_db()
    assert asked.state == RequestState.IN_REVIEW


def test_the_lead_sees_who_decided_and_why(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW, granted_extra_gpus=8, reason="Half for now.")

    text = signed_in(aiko).get(url(asked)).content.decode()

    assert "approved in part (+8 of +16 GPUs) by Ben" in text
    assert "Half for now." in text
    assert "becomes 32 on <b>1 Dec 12:00 JST</b>" in text
    assert reverse("requests:undo", args=[asked.pk]) not in text


def test_the_requester_may_change_and_withdraw_but_not_decide(
    world: World, aiko: User, emi: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)
    for user in (aiko, emi):
        text = signed_in(user).get(url(asked)).content.decode()
        assert reverse("requests:edit", args=[asked.pk]) in text
        assert reverse("requests:withdraw", args=[asked.pk]) in text
        assert reverse("requests:decide", args=[asked.pk]) not in text
    asked.refresh_from_db()
    assert asked.state == RequestState.SUBMITTED


def test_chidi_does_not_find_it(world: World, aiko: User, chidi: User, signed_in: SignedIn) -> None:
    assert signed_in(chidi).get(url(ask(world, aiko))).status_code == 404


def test_an_auditor_reads_without_buttons_and_opens_no_review(
    world: World, aiko: User, dana: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko)

    page = signed_in(dana).get(url(asked))

    assert page.status_code == 200
    assert not any(page.context["may"].values())
    text = page.content.decode()
    for word in ("decide", "comment", "edit", "withdraw", "simulate", "undo", "revoke"):
        assert reverse(f"requests:{word}", args=[asked.pk]) not in text
    asked.refresh_from_db()
    assert asked.state == RequestState.SUBMITTED


def test_a_moved_base_is_said_and_approval_is_barred(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = reviewed(world, aiko, ben)
    change_quota(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], nominal_gpus=20,
        starts_at=NOW, by=ben, because="incident", now=NOW,
    )  # fmt: skip

    text = signed_in(ben).get(url(asked)).content.decode()

    assert "simulated against 24 GPUs; the quota in force is 20 by now" in text
    assert reverse("requests:simulate", args=[asked.pk]) in text
    assert 'value="approve" disabled' in text


def test_text_that_looks_like_markup_is_shown_as_text(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    asked = ask(world, aiko, justification="<img src=x onerror=alert(1)>\n=1+1")
    services.comment(request=asked, text="<script>alert(2)</script>", by=aiko, now=NOW)
    asked = services.open_review(request=asked, by=ben, now=NOW)
    services.deny(request=asked, reason="<b>no</b>{{ 1 }}", by=ben, now=NOW)

    for user in (aiko, ben):
        for address in (url(asked), reverse("requests:index")):
            text = signed_in(user).get(address).content.decode()
            assert "<img" not in text
            assert "<script>alert" not in text
            assert "<b>no" not in text
            assert "&lt;b&gt;no&lt;/b&gt;{{ 1 }}" in text


def test_every_state_has_a_page(world: World, aiko: User, ben: User, signed_in: SignedIn) -> None:
    asked = reviewed(world, aiko, ben)
    services.approve(request=asked, by=ben, now=NOW)
    client = signed_in(aiko)
    for state in RequestState:
        if state != RequestState.DENIED:  # a denial has a reason: tested above
            QuotaRequest.objects.update(state=state)
            page = client.get(url(asked))
            assert page.status_code == 200
            assert asked.project.name in page.content.decode()


def test_ops_may_undo_until_it_is_in_force_and_revoke_afterwards(
    world: World, aiko: User, ben: User, signed_in: SignedIn
) -> None:
    planned = reviewed(world, aiko, ben)
    services.approve(request=planned, by=ben, now=NOW)
    text = signed_in(ben).get(url(planned)).content.decode()
    assert reverse("requests:undo", args=[planned.pk]) in text
    assert reverse("requests:revoke", args=[planned.pk]) not in text

    clock.advance(now=NOW + timedelta(days=1))
    text = signed_in(ben).get(url(planned)).content.decode()
    assert reverse("requests:undo", args=[planned.pk]) not in text
    assert reverse("requests:revoke", args=[planned.pk]) in text
