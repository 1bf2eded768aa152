from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.plans.models import Plan
from tests.portal.plans.conftest import Make

SignIn = Callable[[User], Client]


def test_a_plan_shows_what_it_changes_and_what_came_out(
    done: Plan, aiko: User, signed_in: SignIn
) -> None:
    response = signed_in(aiko).get(reverse("plans:detail", args=[done.pk]))

    html = response.content.decode()
    assert "quota[speech, tokyo-a-h100].nominal" in html
    assert "runs wait about" in html
    assert "base unchanged" in html
    assert "100 jobs" in html
    assert "JST" in html
    assert "Simulate again" in html


def test_only_those_who_see_all_tenants_are_offered_the_files(
    make: Make, aiko: User, ben: User, signed_in: SignIn
) -> None:
    address = reverse("plans:detail", args=[make(aiko).pk])

    assert "download" not in signed_in(aiko).get(address).content.decode()
    assert "?scenario=proposal" in signed_in(ben).get(address).content.decode()


def test_a_plan_of_another_tenants_project_does_not_exist(
    make: Make, aiko: User, chidi: User, signed_in: SignIn
) -> None:
    response = signed_in(chidi).get(reverse("plans:detail", args=[make(aiko).pk]))
    assert response.status_code == 404


def test_who_left_a_project_left_its_plans(make: Make, aiko: User, signed_in: SignIn) -> None:
    plan = make(aiko)
    aiko.memberships.all().delete()

    for word in ("detail", "outcome"):
        assert signed_in(aiko).get(reverse(f"plans:{word}", args=[plan.pk])).status_code == 404
    assert signed_in(aiko).post(reverse("plans:cancel", args=[plan.pk])).status_code == 404
