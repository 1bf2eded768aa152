"""The form of a new request."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.requests.models import QuotaRequest
from tests.portal.requests.asking import form
from tests.worlds import World

SignedIn = Callable[[User], Client]

URL = reverse("requests:draft")


def test_the_form_offers_own_projects_and_pools_with_quota_first(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    page = signed_in(aiko).get(URL)

    fields = page.context["form"].fields
    assert list(fields["project"].queryset) == [world.projects["speech"]]
    groups = [
        (str(title), [name for _pk, name in pools]) for title, pools in fields["pool"].choices
    ]
    assert groups == [
        ("with quota", ["tokyo-a-h100 · 64 H100"]),
        ("other pools", ["osaka-a-a100 · 32 A100"]),
    ]


def test_a_link_can_name_the_project_and_the_pool(
    world: World, emi: User, signed_in: SignedIn
) -> None:
    page = signed_in(emi).get(URL, {"project": "vision", "pool": "osaka-a-a100"})

    assert page.context["form"]["project"].value() == world.projects["vision"].pk
    assert page.context["form"]["pool"].value() == world.pools["osaka-a-a100"].pk


def test_without_javascript_the_effect_is_shown_below_the_form(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    page = signed_in(aiko).post(URL, form(world, justification=""))

    assert page.status_code == 200
    assert page.context["fit"].asked_gpus == 40
    assert page.context["plan"].created_by == aiko
    assert not QuotaRequest.objects.exists()


def test_a_draft_is_kept_and_only_those_who_may_submit_it_see_it(
    world: World, aiko: User, ben: User, emi: User, signed_in: SignedIn
) -> None:
    answer = signed_in(aiko).post(URL, form(world, keep="1"))

    draft = QuotaRequest.objects.get()
    address = reverse("requests:detail", args=[draft.pk])
    assert answer["Location"] == address
    assert draft.state == "draft"
    assert signed_in(emi).get(address).status_code == 200
    assert signed_in(ben).get(address).status_code == 404


def test_nobody_asks_for_a_project_that_is_not_theirs(
    world: World, chidi: User, signed_in: SignedIn
) -> None:
    page = signed_in(chidi).post(URL, form(world, keep="1"))

    assert page.status_code == 422
    assert "project" in page.context["form"].errors
    assert not QuotaRequest.objects.exists()


def test_ops_and_auditors_do_not_ask(
    world: World, ben: User, dana: User, signed_in: SignedIn
) -> None:
    for user in (ben, dana):
        assert signed_in(user).get(URL).status_code == 403
        assert signed_in(user).post(URL, form(world, keep="1")).status_code == 403
