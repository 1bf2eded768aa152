"""Fixtures that every test may use: the cast, a small world, signed-in clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from portal.accounts.models import User
from tests import cast, worlds

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# Processes that tests start are web processes too, and those refuse to run without a key.
os.environ.setdefault("SEKISHO_SECRET_KEY", "only-for-tests-" * 4)


@pytest.fixture(autouse=True)
def own_cache_and_quick_passwords(settings: Settings) -> None:
    """Each test starts with an empty cache of its own, and hashes passwords in no time."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # for what was seeded before the test
    ]
    cache.clear()


@pytest.fixture(autouse=True)
def english_unless_asked_otherwise() -> Iterator[None]:
    """A page read in Japanese leaves its language with the thread; each test begins anew."""
    with translation.override("en"):
        yield


@pytest.fixture
def world(db: None) -> worlds.World:
    """The small world of worlds.py."""
    return worlds.small()


@pytest.fixture
def aiko(world: worlds.World) -> User:
    """Leads `speech`."""
    return cast.aiko()


@pytest.fixture
def ben(world: worlds.World) -> User:
    """Ops."""
    return cast.ben()


@pytest.fixture
def chidi(world: worlds.World) -> User:
    """Leads another tenant's project."""
    return cast.chidi()


@pytest.fixture
def dana(world: worlds.World) -> User:
    """An auditor."""
    return cast.dana()


@pytest.fixture
def emi(world: worlds.World) -> User:
    """Admin of Aiko's tenant."""
    return cast.emi()


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    """Makes a client signed in as somebody."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in
