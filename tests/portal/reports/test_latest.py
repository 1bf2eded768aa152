"""The shortest address leads to the last week that is over and fully known."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.telemetry.models import ImportBatch
from tests.portal.reports.weeks import at

SignIn = Callable[[User], Client]


@pytest.mark.usefixtures("fortnight")
def test_on_monday_it_leads_to_the_week_that_ended_last_night(
    aiko: User, signed_in: SignIn
) -> None:
    response = signed_in(aiko).get("/weeks/")

    assert (response.status_code, response["Location"]) == (302, "/weeks/2026-W48/")


@pytest.mark.usefixtures("fortnight")
def test_a_week_that_is_not_fully_known_is_passed_over(aiko: User, signed_in: SignIn) -> None:
    ImportBatch.objects.update(known_until=at(100))

    assert signed_in(aiko).get("/weeks/")["Location"] == "/weeks/2026-W47/"


@pytest.mark.usefixtures("fortnight")
def test_records_that_reach_exactly_to_the_end_make_the_week_known(
    aiko: User, signed_in: SignIn
) -> None:
    ImportBatch.objects.update(known_until=at(168))
    assert signed_in(aiko).get("/weeks/")["Location"] == "/weeks/2026-W48/"

    ImportBatch.objects.update(known_until=at(168) - timedelta(seconds=1))
    assert signed_in(aiko).get("/weeks/")["Location"] == "/weeks/2026-W47/"


@pytest.mark.usefixtures("clock")
def test_without_records_it_still_leads_to_the_last_week(aiko: User, signed_in: SignIn) -> None:
    assert signed_in(aiko).get("/weeks/")["Location"] == "/weeks/2026-W48/"
