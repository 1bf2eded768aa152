"""The health addresses tell the truth about the process, its database and its broker."""

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from pytest_django import Settings

from tests.services import free_port


def test_the_process_says_that_it_is_up_without_asking_the_database() -> None:
    answer = Client().get("/healthz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "up"}
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
def test_ready_when_database_and_broker_answer() -> None:
    answer = Client().get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "database": "reachable", "broker": "reachable"}


@pytest.mark.django_db
def test_not_ready_while_the_broker_is_away(settings: Settings) -> None:
    settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{free_port()}/0"

    answer = Client().get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["broker"] == "unreachable"
    assert answer.json()["database"] == "reachable"


@pytest.mark.django_db
def test_not_ready_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(connection, "cursor", refuse)

    answer = Client().get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["database"] == "unreachable"


def test_health_is_asked_over_plain_http_even_when_the_site_is_https(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True

    assert Client().get("/healthz").status_code == 200
    assert Client().get("/accounts/login/").status_code == 301
