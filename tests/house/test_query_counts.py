"""The number of queries of every page is pinned: an accidental query per row is noticed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from tests.house.access_table import SIGN_IN, Row, rows
from tests.house.conftest import Things, ask

PINNED: dict[str, dict[str, int]] = tomllib.loads(
    (Path(__file__).parent / "query_counts.toml").read_text(encoding="utf-8")
)
PAGES = [
    row
    for row in rows()
    if row.method == "GET" and row.anonymous == SIGN_IN and 200 in (row.lead, row.ops)
]


def _name(row: Row) -> str:
    return row.label


def test_every_page_is_pinned_and_nothing_else() -> None:
    assert set(PINNED) == {row.label for row in PAGES}


@pytest.mark.parametrize("row", PAGES, ids=_name)
def test_a_page_takes_the_queries_that_are_pinned(
    row: Row, cast_by_role: dict[str, User], things: Things
) -> None:
    taken = {}
    for who in ("lead", "ops"):
        client = Client()
        client.force_login(cast_by_role[who])
        cache.clear()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            status, _target = ask(client, row, things)
        if status == 200:
            taken[who] = len(queries)

    assert taken == PINNED.get(row.label), f'now "{row.label}" takes {taken}'
