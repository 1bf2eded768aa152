from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from tests.portal.plans.conftest import Make

SignIn = Callable[[User], Client]


def titles(client: Client) -> str:
    response = client.get(reverse("plans:index"))
    assert response.status_code == 200
    return response.content.decode()


def test_the_plans_of_ones_projects_are_listed_newest_first(
    make: Make, aiko: User, emi: User, ben: User, signed_in: SignIn
) -> None:
    make(aiko, extra_gpus=8)
    make(aiko, extra_gpus=16)

    for person in (aiko, emi, ben):
        html = titles(signed_in(person))
        assert html.index("+16 GPU") < html.index("+8 GPU")
        assert "queued" in html


def test_another_tenants_lead_sees_only_their_own(
    make: Make, aiko: User, chidi: User, signed_in: SignIn
) -> None:
    make(aiko)
    make(chidi, project="robotics", extra_gpus=8)

    html = titles(signed_in(chidi))

    assert "robotics · tokyo-a-h100" in html
    assert "speech" not in html


def test_an_empty_list_says_how_a_plan_is_made(aiko: User, signed_in: SignIn) -> None:
    assert "No plan yet." in titles(signed_in(aiko))


def test_the_list_costs_the_same_however_many_plans_there_are(
    make: Make, aiko: User, signed_in: SignIn, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for extra in range(1, 6):
        make(aiko, extra_gpus=extra)
    client = signed_in(aiko)
    with django_assert_max_num_queries(12):  # type: ignore[attr-defined]
        titles(client)
