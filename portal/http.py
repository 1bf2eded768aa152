"""What several views share: weeks, time windows in the URL, and tables as CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from django.http import HttpResponse
from django.utils.http import content_disposition_header

_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
# Far from the ends of the calendar, so that a week's neighbours and its instants always exist.
_FIRST_YEAR, _LAST_YEAR = 1970, 2999
# Full-width signs are formulas too where Japanese is typed; some programs trim before they look.
_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """An ISO week, cut in one zone: Monday 00:00 to the next Monday 00:00 there.

    `parse("2026-W53")` refuses weeks that the year does not have.
    """

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Week:
        """The week named by text such as 2026-W48; ValueError when there is none."""
        found = _WEEK.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not an ISO week; expected a form such as 2026-W48")
        week = cls(int(found[1]), int(found[2]))
        if not _FIRST_YEAR <= week.year <= _LAST_YEAR:
            raise ValueError(f"{text!r} is not between {_FIRST_YEAR} and {_LAST_YEAR}")
        date.fromisocalendar(week.year, week.number, 1)
        return week

    @classmethod
    def of(cls, instant: datetime, zone: ZoneInfo) -> Week:
        """The week in which an instant lies, seen from a zone."""
        year, number, _day = instant.astimezone(zone).date().isocalendar()
        return cls(year, number)

    def __str__(self) -> str:
        return f"{self.year}-W{self.number:02d}"

    def monday(self) -> date:
        """The first day."""
        return date.fromisocalendar(self.year, self.number, 1)

    def window(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """[start, end) as instants in UTC."""
        start = datetime.combine(self.monday(), time(), zone)
        end = datetime.combine(self.monday() + timedelta(days=7), time(), zone)
        return start.astimezone(UTC), end.astimezone(UTC)

    def shifted(self, weeks: int) -> Week:
        """The week so many weeks later."""
        year, number, _day = (self.monday() + timedelta(weeks=weeks)).isocalendar()
        return Week(year, number)


def safe_text(value: str) -> str:
    """Text that no spreadsheet runs as a formula."""
    return f"'{value}" if _FORMULA.match(value) else value


def _cell(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return ""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV: unknown is empty, numbers stay numbers, formula-like text is quoted."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([safe_text(str(column)) for column in frame.columns])
    for row in frame.itertuples(index=False, name=None):
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def csv_response(frame: pd.DataFrame, filename: str) -> HttpResponse:
    """A frame as a download that Excel opens with its characters right (UTF-8 with BOM)."""
    body = csv_text(frame).encode("utf-8-sig")
    response = HttpResponse(body, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = content_disposition_header(True, filename)  # noqa: FBT003
    return response
