"""The file: the page's figures to the last digit, safe in a spreadsheet, nobody else's names."""

import io
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from django.test import Client

from portal.accounts.models import User
from portal.reports import definitions, fairness, tables
from portal.telemetry.models import AttemptRecord, JobRecord

SignIn = Callable[[User], Client]
pytestmark = pytest.mark.usefixtures("fortnight")


def read(response: Any) -> pd.DataFrame:
    """The file as a script reads it that was told nothing about it, all text."""
    return pd.read_csv(io.BytesIO(response.content), dtype=str, keep_default_na=False)


def test_ops_download_every_figure_of_the_week(ben: User, signed_in: SignIn) -> None:
    response = signed_in(ben).get("/weeks/2026-W48.csv")

    assert response.status_code == 200
    assert response["Content-Disposition"] == 'attachment; filename="sekisho-2026-W48.csv"'
    assert response.content.startswith("\ufeff".encode())
    file = read(response)
    assert list(file.columns) == [
        "week", *fairness.COLUMNS, "zone", "figures_from", "figures_until", "known_until",
        "generated_at", "definitions_version",
    ]  # fmt: skip
    speech = file[(file["scope"] == "project") & (file["name"] == "speech")].iloc[0]
    assert speech["delivered_gpu_hours"] == "80.0"
    assert speech["jain_index"] == ""
    assert speech["week"] == "2026-W48"
    assert speech["zone"] == "Asia/Tokyo"
    assert speech["figures_from"] == "2026-11-23T00:00:00+09:00"
    assert speech["figures_until"] == "2026-11-30T00:00:00+09:00"
    assert speech["known_until"] == "2026-11-30T12:00:00+09:00"
    assert speech["definitions_version"] == definitions.version()


@pytest.mark.parametrize("who", ["aiko", "ben", "chidi", "dana", "emi"])
def test_page_and_file_say_the_same_to_the_last_digit(
    who: str, request: pytest.FixtureRequest, signed_in: SignIn
) -> None:
    client = signed_in(request.getfixturevalue(who))
    page = client.get("/weeks/2026-W48/").content.decode()
    file = read(client.get("/weeks/2026-W48.csv"))

    compared = 0
    for scope in tables.SCOPES:
        for slug, columns in (("delivery", tables.DELIVERY), ("queue", tables.QUEUE)):
            rows = file[file["scope"] == scope]
            if rows.empty:
                assert f'id="{scope}-{slug}"' not in page
                continue
            table = page[page.index(f'id="{scope}-{slug}"') :].split("</table>")[0]
            body = table.split("<tbody>")[1].split("</tbody>")[0]
            shown = [re.findall(r'<data value="([^"]*)">', row) for row in body.split("</tr>")[:-1]]
            kept = [column for column in columns if column not in tables.NEVER.get(scope, ())]
            assert shown == rows[kept].to_numpy().tolist()
            compared += len(rows)
    assert compared == 2 * (len(file) - 1)  # all but the total, which is the foot of each table


def test_what_people_read_has_every_digit_of_the_file() -> None:
    assert tables.shown(1234.5, "delivered_gpu_hours") == "1,234.5"
    assert tables.shown(0.784, "delivered_entitled_ratio") == "78.4 %"
    assert tables.shown(0.6, "jain_index") == "0.600"
    assert tables.shown(4567, "first_wait_p90_minutes") == "76 h 07 min"
    assert tables.shown(7, "first_wait_p90_minutes") == "7 min"
    assert tables.shown(1200, "jobs_started") == "1,200"
    assert tables.shown(pd.NA, "jain_index") == "–"


def test_chidi_finds_nothing_of_aikos_in_the_file(chidi: User, signed_in: SignIn) -> None:
    text = signed_in(chidi).get("/weeks/2026-W48.csv").content.decode().lower()

    assert "robotics" in text
    for name in ("speech", "vision", "kaguya"):
        assert name not in text


def test_a_name_that_is_a_formula_is_quoted_and_numbers_are_not(
    ben: User, signed_in: SignIn
) -> None:
    JobRecord.objects.filter(job_id="one").update(project="=1+1", lane="@x")
    AttemptRecord.objects.filter(job__job_id="one").update(pool="+81-3")
    file = read(signed_in(ben).get("/weeks/2026-W48.csv"))

    assert "'=1+1" in set(file["name"])
    assert "'@x" in set(file["name"])
    assert "'+81-3" in set(file["name"])
    # Delivered fell: a negative number stays a number.
    assert file["delivered_change_gpu_hours"].str.startswith("-").any()


def test_japanese_names_come_through(ben: User, signed_in: SignIn) -> None:
    JobRecord.objects.filter(job_id="one").update(project="東京音声")

    assert "東京音声" in set(read(signed_in(ben).get("/weeks/2026-W48.csv"))["name"])


def test_the_columns_are_the_same_in_every_language(ben: User, signed_in: SignIn) -> None:
    client = signed_in(ben)
    english = read(client.get("/weeks/2026-W48.csv"))
    japanese = read(client.get("/weeks/2026-W48.csv", headers={"accept-language": "ja"}))

    pd.testing.assert_frame_equal(english, japanese)


def test_a_week_without_records_is_a_file_with_a_heading_only(ben: User, signed_in: SignIn) -> None:
    file = read(signed_in(ben).get("/weeks/2026-W40.csv"))

    assert file.empty
    assert "entitled_gpu_hours" in file.columns


def test_a_name_that_is_no_week_is_not_found(ben: User, signed_in: SignIn) -> None:
    assert signed_in(ben).get("/weeks/2025-W53.csv").status_code == 404
