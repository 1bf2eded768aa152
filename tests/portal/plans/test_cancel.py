from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from tests.portal.plans.conftest import Make

SignIn = Callable[[User], Client]


def test_whoever_asked_may_call_a_plan_off(make: Make, aiko: User, signed_in: SignIn) -> None:
    plan = make(aiko)

    response = signed_in(aiko).post(reverse("plans:cancel", args=[plan.pk]))

    assert response.status_code == 302
    assert response["Location"] == reverse("plans:detail", args=[plan.pk])
    plan.refresh_from_db()
    assert plan.state == "cancelled"


def test_a_press_in_the_page_gets_the_fragment_back(
    make: Make, aiko: User, ben: User, signed_in: SignIn
) -> None:
    plan = make(aiko)
    response = signed_in(ben).post(
        reverse("plans:cancel", args=[plan.pk]), headers={"HX-Request": "true"}
    )
    assert "Called off after 0 of 20" in response.content.decode()
    assert "<html" not in response.content.decode()


def test_an_auditor_changes_nothing(make: Make, aiko: User, dana: User, signed_in: SignIn) -> None:
    plan = make(aiko)

    assert signed_in(dana).post(reverse("plans:cancel", args=[plan.pk])).status_code == 403
    plan.refresh_from_db()
    assert plan.state == "queued"


def test_another_tenants_lead_finds_nothing(
    make: Make, aiko: User, chidi: User, signed_in: SignIn
) -> None:
    plan = make(aiko)
    assert signed_in(chidi).post(reverse("plans:cancel", args=[plan.pk])).status_code == 404


def test_a_link_cannot_call_a_plan_off(make: Make, aiko: User, signed_in: SignIn) -> None:
    plan = make(aiko)
    assert signed_in(aiko).get(reverse("plans:cancel", args=[plan.pk])).status_code == 405
