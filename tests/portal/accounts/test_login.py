"""The door: who may come in, and what the demo shows."""

import pytest
from django.test import Client

from portal.accounts.models import User
from tests.cast import PASSWORD


def test_somebody_signs_in_with_their_email(client: Client, aiko: User) -> None:
    answer = client.post("/accounts/login/", {"login": aiko.email, "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/")


def test_a_wrong_password_says_so_and_lets_nobody_in(client: Client, aiko: User) -> None:
    answer = client.post("/accounts/login/", {"login": aiko.email, "password": "wrong"})
    assert "errorlist" in answer.content.decode()
    assert client.get("/").status_code == 302


@pytest.mark.django_db
def test_only_the_demo_shows_its_sign_ins(client: Client, settings: object) -> None:
    settings.DEMO = False  # type: ignore[attr-defined]
    assert "aiko@example.org" not in client.get("/accounts/login/").content.decode()
    settings.DEMO = True  # type: ignore[attr-defined]
    page = client.get("/accounts/login/").content.decode()
    assert "aiko@example.org" in page
    assert "demo-sekisho" in page


def test_a_refusal_and_a_missing_page_keep_the_look(client: Client, aiko: User) -> None:
    client.force_login(aiko)
    answer = client.get("/nowhere/at/all/")
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()
    assert 'class="rail"' in answer.content.decode()
