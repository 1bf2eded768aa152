"""Light or dark is kept, and nobody is sent elsewhere by it."""

import pytest
from django.test import Client


@pytest.mark.django_db
def test_the_scheme_is_kept_and_the_person_comes_back() -> None:
    client = Client()
    answer = client.post("/theme/scheme/", {"scheme": "dark", "next": "/accounts/login/"})
    assert answer.status_code == 302
    assert answer["Location"] == "/accounts/login/"
    assert client.cookies["scheme"].value == "dark"
    assert 'data-scheme="dark"' in client.get("/accounts/login/").content.decode()


@pytest.mark.django_db
def test_the_empty_choice_goes_back_to_the_systems_own() -> None:
    client = Client()
    client.post("/theme/scheme/", {"scheme": "dark"})
    client.post("/theme/scheme/", {"scheme": ""})
    assert "data-scheme" not in client.get("/accounts/login/").content.decode()


@pytest.mark.django_db
def test_another_site_is_never_the_target() -> None:
    answer = Client().post("/theme/scheme/", {"scheme": "dark", "next": "https://example.com/"})
    assert answer["Location"] == "/"


@pytest.mark.django_db
def test_it_cannot_be_changed_by_a_link() -> None:
    assert Client().get("/theme/scheme/?scheme=dark").status_code == 405
