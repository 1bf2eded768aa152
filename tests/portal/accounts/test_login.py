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


def test_the_sixth_guess_of_a_password_is_refused_from_wherever_it_says_it_comes(
    client: Client, aiko: User
) -> None:
    def guess(number: int, password: str) -> tuple[int, str]:
        answer = client.post(
            "/accounts/login/",
            {"login": aiko.email, "password": password},
            headers={"X-Forwarded-For": f"10.0.0.{number}"},
        )
        return answer.status_code, answer.content.decode()

    for number in range(5):
        assert "Too many failed login attempts" not in guess(number, f"wrong-{number}")[1]

    status, page = guess(6, PASSWORD)
    assert status == 200
    assert "Too many failed login attempts" in page
    assert client.get("/").status_code == 302


def test_the_administration_has_no_door_of_its_own(client: Client, ben: User, chidi: User) -> None:
    ben.is_staff = ben.is_superuser = True
    ben.save()

    answer = client.post("/admin/login/", {"username": ben.username, "password": PASSWORD})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/?next=")
    assert client.get("/admin/").status_code == 302

    client.post("/accounts/login/?next=/admin/", {"login": ben.email, "password": PASSWORD})
    assert client.get("/admin/").status_code == 200
    client.force_login(chidi)
    assert client.get("/admin/", follow=True).status_code == 403


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_signing_in_leads_nowhere_else(client: Client, aiko: User, target: str) -> None:
    terms = {"login": aiko.email, "password": PASSWORD, "next": target}
    assert client.post("/accounts/login/", terms)["Location"] == "/"


def test_a_session_from_before_is_not_the_one_signed_in(client: Client, aiko: User) -> None:
    client.cookies["sessionid"] = "planted-by-somebody-else-000000"
    client.post("/accounts/login/", {"login": aiko.email, "password": PASSWORD})
    assert client.get("/").status_code == 200
    assert client.cookies["sessionid"].value != "planted-by-somebody-else-000000"


def test_a_link_signs_nobody_out(client: Client, aiko: User) -> None:
    client.force_login(aiko)
    client.get("/accounts/logout/")
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("address", ["/accounts/password/reset/", "/accounts/signup/"])
def test_forgotten_passwords_and_new_people_are_the_administrators(
    client: Client, aiko: User, capfd: pytest.CaptureFixture[str], address: str
) -> None:
    page = client.get(address).content.decode()
    assert 'type="email"' not in page

    client.post(address, {"email": aiko.email, "password1": PASSWORD})
    assert "/reset/key/" not in "".join(capfd.readouterr())
    assert User.objects.count() == 1


def test_nobody_takes_another_address(client: Client, aiko: User) -> None:
    client.force_login(aiko)
    terms = {"email": "ben@example.org", "action_add": ""}
    assert client.get("/accounts/email/").status_code == 404
    assert client.post("/accounts/email/", terms).status_code == 404
