"""Every address, asked by everybody: who gets in, who is refused, for whom it does not exist."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from tests.house.access_table import CAST, SIGN_IN, Row, rows
from tests.house.conftest import Things, ask
from tests.house.urlconf import own_addresses

ROWS = rows()
PUBLIC = {"healthz", "readyz", "metrics", "theme:scheme"}


def _name(row: Row) -> str:
    return row.label


def test_the_table_knows_every_address_and_no_other() -> None:
    addresses = {address.name: address for address in own_addresses()}

    assert {row.url for row in ROWS} == set(addresses)
    for row in ROWS:
        assert set(row.args) == addresses[row.url].arguments, row.url


def test_only_known_addresses_are_open_to_everybody() -> None:
    assert {row.url for row in ROWS if row.anonymous != SIGN_IN} == PUBLIC


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_everybody_gets_what_the_table_says(
    row: Row, cast_by_role: dict[str, User], things: Things
) -> None:
    got: dict[str, int | str] = {}
    for who in CAST:
        client = Client()
        with transaction.atomic():  # each of the cast finds the things untouched
            if who != "anonymous":
                client.force_login(cast_by_role[who])
            status, target = ask(client, row, things)
            transaction.set_rollback(True)
        to_sign_in = status == 302 and target.startswith(reverse("account_login"))
        got[who] = SIGN_IN if to_sign_in else status

    assert got == {who: row.expected(who) for who in CAST}


def test_a_post_without_the_forms_token_is_refused(aiko: User, things: Things) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(aiko)

    statuses = {row.url: ask(client, row, things)[0] for row in ROWS if row.method == "POST"}

    assert set(statuses.values()) == {403}, statuses
