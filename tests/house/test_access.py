"""Every address, asked by everybody: who gets in, who is refused, for whom it does not exist."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from tests.house.access_table import CAST, SIGN_IN, Row, rows
from tests.house.conftest import Things, ask
from tests.house.urlconf import own_addresses

ROWS = rows()
PUBLIC = {"healthz", "readyz", "theme:scheme"}


def _name(row: Row) -> str:
    return row.label


def test_the_table_knows_every_address_and_no_other() -> None:
    addresses = {address.name: address for address in own_addresses()}

    assert {row.url for row in ROWS} == set(addresses)
    for row in ROWS:
        assert set(row.args) == addresses[row.url].arguments, row.url


def test_only_known_addresses_are_open_to_everybody() -> None:
    assert {row.url for row in ROWS if row.anonymous != SIGN_IN} == PUBLIC


@pytest.mark.parametrize("who", CAST)
@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_everybody_gets_what_the_table_says(
    row: Row, who: str, cast_by_role: dict[str, User], things: Things
) -> None:
    client = Client()
    if who != "anonymous":
        client.force_login(cast_by_role[who])

    status, target = ask(client, row, things)

    if row.expected(who) == SIGN_IN:
        assert status == 302
        assert target.startswith(reverse("account_login"))
    else:
        assert status == row.expected(who)
        assert not target.startswith(reverse("account_login"))


def test_a_post_without_the_forms_token_is_refused(aiko: User, things: Things) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(aiko)

    statuses = {row.url: ask(client, row, things)[0] for row in ROWS if row.method == "POST"}

    assert set(statuses.values()) == {403}, statuses
