"""The week's page: everybody for ops, only one's own for others, and what to do without data."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from portal.accounts.models import User
from portal.policy.models import Quota
from portal.telemetry.models import ImportBatch, JobRecord
from tests import worlds
from tests.portal.reports.weeks import at

SignIn = Callable[[User], Client]


def text_of(response: Any) -> str:
    """What a reader sees, without markup and with single spaces."""
    bare = re.sub(r"<script.*?</script>|<[^>]+>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", bare)


def cells(response: Any, table: str) -> dict[str, list[str]]:
    """The machine values of a table, by name."""
    html = response.content.decode()
    body = html[html.index(f'id="{table}"') :].split("</table>")[0]
    rows = {}
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, flags=re.S)[1:]:
        head = re.sub(r"<div.*?</div>|<[^>]+>", "", row.split("</th>")[0]).strip()
        rows[head] = re.findall(r'<data value="([^"]*)">', row)
    return rows


@pytest.mark.usefixtures("fortnight")
class TestAWeekWithRecords:
    def test_ops_see_every_project_with_its_figures(self, ben: User, signed_in: SignIn) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/")

        assert page.status_code == 200
        rows = cells(page, "project-delivery")
        # entitled 24 × 168, delivered 8 × 10, their quotient, 80 of 400, useful, idle
        assert rows["speech"] == ["4032.0", "80.0", "0.02", "0.2", "80.0", "3952.0"]
        # 24 × 168 in Tokyo and 32 × 168 in Osaka; 16 × 20 delivered
        assert rows["robotics"] == ["9408.0", "320.0", "0.034", "0.8", "320.0", "9088.0"]
        assert rows["vision"][:3] == ["2688.0", "0.0", "0.0"]
        assert cells(page, "tenant-delivery")["kaguya"][:2] == ["6720.0", "80.0"]
        assert cells(page, "lane-queue")["exploratory"][:2] == ["1", "30"]

    def test_a_job_that_still_waits_is_counted_and_marked(
        self, ben: User, signed_in: SignIn
    ) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/")

        started, p50, p90, longest, waiting, waited = cells(page, "project-queue")["speech"][:6]
        # waits of 1 h and, so far, 8 h
        assert (started, p50, p90, longest) == ("1", "270", "438", "480")
        assert (waiting, waited) == ("1", "9.0")
        assert "≥ 7 h 18 min" in text_of(page)
        assert "1 job still waited when the week ended." in text_of(page)

    def test_the_change_against_the_week_before_is_shown(
        self, ben: User, signed_in: SignIn
    ) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/").content.decode()
        speech = page[page.index('id="project-delivery"') :].split('data-name="speech"')[1]

        assert "−80.0" in speech.split("</tr>")[0]  # 80 after 160
        assert "−2.0 pt" in speech.split("</tr>")[0]

    def test_week_zone_and_what_is_known_are_printed(self, ben: User, signed_in: SignIn) -> None:
        said = text_of(signed_in(ben).get("/weeks/2026-W48/"))

        assert "Week 2026-W48" in said
        assert "23 Nov 2026 – 29 Nov 2026" in said
        assert "Asia/Tokyo JST" in said
        assert "closed" in said
        assert "Job records are known until 30 Nov 12:00 JST; the whole week is known." in said
        assert "Monitoring data of Tokyo: – observed." in said

    def test_the_weeks_beside_it_are_one_click_away(self, ben: User, signed_in: SignIn) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/").content.decode()

        assert 'href="/weeks/2026-W47/" rel="prev"' in page
        assert 'href="/weeks/2026-W49/" rel="next"' in page

    def test_every_column_is_defined_under_the_tables(self, ben: User, signed_in: SignIn) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/").content.decode()
        meanings = page[page.index('id="definitions"') :]

        assert "<code>idle_entitlement_gpu_hours</code>" in meanings
        assert "halves up" in meanings

    def test_an_open_week_says_so_and_counts_entitlement_only_so_far(
        self, ben: User, signed_in: SignIn
    ) -> None:
        page = signed_in(ben).get("/weeks/2026-W49/")

        assert "open week: figures so far" in text_of(page)
        assert "30 Nov 00:00 JST to 30 Nov 12:00 JST" in text_of(page)
        assert cells(page, "project-delivery")["speech"][0] == str(24.0 * 12)
        assert 'rel="next"' not in page.content.decode()

    def test_a_week_whose_records_end_early_is_only_partly_known(
        self, ben: User, signed_in: SignIn
    ) -> None:
        ImportBatch.objects.update(known_until=at(84))
        page = signed_in(ben).get("/weeks/2026-W48/")

        assert "partly known" in text_of(page)
        assert cells(page, "project-delivery")["speech"][0] == str(24.0 * 84)

    def test_what_lies_before_the_first_record_is_not_counted_as_idle(
        self, ben: User, signed_in: SignIn
    ) -> None:
        JobRecord.objects.filter(job_id__in=["old", "last"]).delete()
        page = signed_in(ben).get("/weeks/2026-W48/")

        assert cells(page, "project-delivery")["speech"][0] == str(24.0 * 167)
        assert "partly known" in text_of(page)

    def test_a_quota_changed_in_mid_week_counts_each_part(
        self, world: worlds.World, ben: User, signed_in: SignIn
    ) -> None:
        Quota.objects.create(
            project=world.projects["speech"],
            pool=world.pools["tokyo-a-h100"],
            nominal_gpus=40,
            starts_at=at(84),
        )
        page = signed_in(ben).get("/weeks/2026-W48/")

        assert cells(page, "project-delivery")["speech"][0] == str(24.0 * 84 + 40.0 * 84)

    def test_the_week_is_cut_in_the_zone_of_the_settings(
        self, ben: User, signed_in: SignIn, settings: Settings
    ) -> None:
        settings.REPORT_TIMEZONE = "UTC"
        said = text_of(signed_in(ben).get("/weeks/2026-W48/"))

        assert "UTC UTC" in said
        assert "23 Nov 2026 – 29 Nov 2026" in said

    def test_a_name_that_is_markup_is_shown_as_text(self, ben: User, signed_in: SignIn) -> None:
        JobRecord.objects.filter(job_id="one").update(project="<img src=x onerror=alert(1)>")
        page = signed_in(ben).get("/weeks/2026-W48/").content.decode()

        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.usefixtures("fortnight")
class TestWhoSeesWhat:
    def test_chidi_sees_nothing_of_aikos(self, chidi: User, signed_in: SignIn) -> None:
        page = signed_in(chidi).get("/weeks/2026-W48/").content.decode().lower()

        assert "robotics" in page
        for name in ("speech", "vision", "kaguya"):
            assert name not in page

    def test_a_lead_sees_the_fleet_in_sums_only(self, aiko: User, signed_in: SignIn) -> None:
        page = signed_in(aiko).get("/weeks/2026-W48/")

        assert list(cells(page, "project-delivery")) == ["speech", "whole fleet"]
        assert cells(page, "project-delivery")["whole fleet"][1] == "400.0"
        assert set(cells(page, "lane-delivery")) >= {"primary", "exploratory"}
        assert 'id="tenant-delivery"' not in page.content.decode()
        # No quota of hers and no run of hers is in Osaka.
        assert "osaka-a-a100" not in page.content.decode()

    def test_an_admin_sees_the_whole_tenant_and_no_other(
        self, emi: User, signed_in: SignIn
    ) -> None:
        page = signed_in(emi).get("/weeks/2026-W48/")

        assert list(cells(page, "project-delivery")) == ["speech", "vision", "whole fleet"]
        assert list(cells(page, "tenant-delivery")) == ["kaguya", "whole fleet"]
        assert "raijin" not in page.content.decode().lower()

    def test_an_auditor_sees_everybody(self, dana: User, signed_in: SignIn) -> None:
        rows = cells(signed_in(dana).get("/weeks/2026-W48/"), "project-delivery")

        assert set(rows) == {"speech", "vision", "robotics", "whole fleet"}

    def test_a_stranger_signs_in_first(self) -> None:
        assert Client().get("/weeks/2026-W48/").status_code == 302


@pytest.mark.usefixtures("clock")
class TestWithoutRecords:
    def test_before_any_import_the_page_says_what_to_do(self, ben: User, signed_in: SignIn) -> None:
        page = signed_in(ben).get("/weeks/2026-W48/")

        assert page.status_code == 200
        assert "There are no job records yet." in text_of(page)
        assert "no figures" in text_of(page)

    def test_a_lead_reads_the_same_before_any_import(self, aiko: User, signed_in: SignIn) -> None:
        assert "There are no job records yet." in text_of(signed_in(aiko).get("/weeks/2026-W48/"))

    @pytest.mark.usefixtures("fortnight")
    def test_a_week_before_the_records_names_where_they_begin(
        self, ben: User, signed_in: SignIn
    ) -> None:
        said = text_of(signed_in(ben).get("/weeks/2026-W40/"))

        assert "Nothing is known about this week." in said
        assert "Job records reach from 10 Nov 2026 to 30 Nov 2026." in said

    @pytest.mark.usefixtures("fortnight")
    def test_a_week_to_come_has_not_begun(self, ben: User, signed_in: SignIn) -> None:
        said = text_of(signed_in(ben).get("/weeks/2026-W53/"))

        assert "This week has not begun." in said

    @pytest.mark.parametrize("name", ["2025-W53", "2026-W00", "2026-48", "week", "0001-W01", "=1"])
    def test_a_name_that_is_no_week_is_not_found(
        self, ben: User, signed_in: SignIn, name: str
    ) -> None:
        page = signed_in(ben).get(f"/weeks/{name}/")

        assert page.status_code == 404
        assert "names no week" in text_of(page)


@pytest.mark.usefixtures("fortnight")
def test_more_jobs_take_no_more_queries(
    ben: User, signed_in: SignIn, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in(ben)
    client.get("/weeks/2026-W48/")
    for number in range(20):
        worlds.job(f"more-{number}", submit_at=at(number), wait=timedelta(minutes=number))
    with django_assert_max_num_queries(30):
        client.get("/weeks/2026-W48/")


def test_the_fortnight_lies_where_the_tests_say(fortnight: None) -> None:
    assert at(0) == datetime(2026, 11, 23, tzinfo=UTC) - timedelta(hours=9)
