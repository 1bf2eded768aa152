"""Weeks are the ISO's, cut in a zone; files open in Excel with characters and numbers right."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http import Week, csv_response, csv_text, safe_text

TOKYO = ZoneInfo("Asia/Tokyo")


def test_a_week_reads_back_what_it_writes() -> None:
    assert str(Week.parse("2026-W48")) == "2026-W48"
    assert Week.parse("2026-W05") == Week(2026, 5)


def test_the_year_2026_has_53_weeks_and_2025_has_not() -> None:
    assert Week.parse("2026-W53").monday() == date(2026, 12, 28)
    with pytest.raises(ValueError, match="week"):
        Week.parse("2025-W53")


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-48", "2026-W8", "2026-W00", "2026-W54", "26-W48", "2026-w48", "2026-W48 ",
        "2026-W48\n", "٢٠٢٦-W48", "0001-W01", "9999-W52", "2026-W48-1", "-026-W48", "=1+1",
    ],
)  # fmt: skip
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Week.parse(text)


def test_the_first_of_january_lies_in_the_iso_year_of_its_thursday() -> None:
    assert str(Week.of(datetime(2027, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))) == "2026-W53"
    assert str(Week.of(datetime(2016, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))) == "2015-W53"
    assert str(Week.of(datetime(2024, 12, 30, tzinfo=UTC), ZoneInfo("UTC"))) == "2025-W01"


def test_a_sunday_evening_in_utc_is_next_week_in_tokyo() -> None:
    instant = datetime(2027, 1, 3, 16, tzinfo=UTC)

    assert str(Week.of(instant, ZoneInfo("UTC"))) == "2026-W53"
    assert str(Week.of(instant, TOKYO)) == "2027-W01"


def test_a_week_starts_on_monday_at_midnight_of_its_zone() -> None:
    assert Week(2026, 48).window(TOKYO) == (
        datetime(2026, 11, 22, 15, tzinfo=UTC),
        datetime(2026, 11, 29, 15, tzinfo=UTC),
    )


def test_the_week_of_a_clock_change_is_an_hour_shorter_or_longer() -> None:
    amsterdam = ZoneInfo("Europe/Amsterdam")

    def hours(week: Week) -> float:
        start, end = week.window(amsterdam)
        return (end - start) / timedelta(hours=1)

    assert hours(Week(2026, 13)) == 167
    assert hours(Week(2026, 43)) == 169


def test_weeks_are_counted_over_the_edge_of_a_year() -> None:
    assert Week(2026, 53).shifted(1) == Week(2027, 1)
    assert Week(2027, 1).shifted(-1) == Week(2026, 53)
    assert Week(2026, 1).shifted(-1) == Week(2025, 52)


def test_weeks_sort_in_time() -> None:
    assert sorted([Week(2027, 1), Week(2026, 53), Week(2026, 9)]) == [
        Week(2026, 9), Week(2026, 53), Week(2027, 1),
    ]  # fmt: skip


@given(
    second=st.integers(10**6, 32 * 10**9),  # 1970 to 2984
    zone=st.sampled_from([TOKYO, ZoneInfo("UTC"), ZoneInfo("Europe/Amsterdam")]),
)
def test_every_instant_lies_in_the_window_of_its_week(second: int, zone: ZoneInfo) -> None:
    instant = datetime.fromtimestamp(second, UTC)
    week = Week.of(instant, zone)
    start, end = week.window(zone)

    assert start <= instant < end
    assert week.shifted(1).window(zone)[0] == end
    assert Week.parse(str(week)) == week


@pytest.mark.parametrize(
    "text",
    ["=1+1", "@x", "+81-3", "-5", "\tx", "\rx", "=cmd|' /C calc'!A0", "\n=1", "＝1+1", "  =1"],
)
def test_text_that_looks_like_a_formula_is_quoted(text: str) -> None:
    assert safe_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "speech", "a=1", "東京", "1-2", "'=1"])
def test_other_text_is_left_alone(text: str) -> None:
    assert safe_text(text) == text


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_numbers_stay_numbers_also_when_negative() -> None:
    frame = pd.DataFrame(
        {
            "name": ["-5"],
            "whole": pd.array([-5], dtype="Int64"),
            "hours": pd.array([-1.5], dtype="Float64"),
            "plain": [-0.1],
            "count": [-7],
        }
    )
    assert read(csv_text(frame))[1] == ["'-5", "-5", "-1.5", "-0.1", "-7"]


def test_unknown_is_empty_whatever_it_is_called() -> None:
    frame = pd.DataFrame(
        {
            "none": pd.Series([None], dtype="object"),
            "nan": [float("nan")],
            "na": pd.array([pd.NA], dtype="Int64"),
            "nat": pd.to_datetime(pd.Series([None]), utc=True),
            "zero": [0],
        }
    )
    assert read(csv_text(frame))[1] == ["", "", "", "", "0"]


def test_an_instant_keeps_its_offset() -> None:
    frame = pd.DataFrame({"at": [pd.Timestamp("2026-11-23T00:00:00+09:00")]})

    assert read(csv_text(frame))[1] == ["2026-11-23T00:00:00+09:00"]


def test_separators_quotes_and_line_ends_in_text_survive() -> None:
    frame = pd.DataFrame({"na,me": ['a "b", c\nd']})

    assert read(csv_text(frame)) == [["na,me"], ['a "b", c\nd']]


def test_headings_are_text_too() -> None:
    assert read(csv_text(pd.DataFrame({"=1+1": [1]})))[0] == ["'=1+1"]


def test_the_download_opens_in_excel_with_japanese_right() -> None:
    response = csv_response(pd.DataFrame({"name": ["東京, 𠮷"]}), "週報 2026.csv")

    assert response.content.startswith("\ufeff".encode())
    assert response.content.decode("utf-8-sig") == 'name\r\n"東京, 𠮷"\r\n'
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "filename*=utf-8''" in response["Content-Disposition"]


def test_pandas_reads_the_download_without_being_told_anything() -> None:
    frame = pd.DataFrame({"name": ["speech", "東京"], "hours": [1.5, None]})
    response = csv_response(frame, "a.csv")

    assert response["Content-Disposition"] == 'attachment; filename="a.csv"'
    pd.testing.assert_frame_equal(
        pd.read_csv(io.BytesIO(response.content)), frame, check_dtype=False
    )
