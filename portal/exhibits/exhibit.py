"""An exhibit: a figure, the table behind it, and where both come from.

Pure: knows frames and plain dicts, neither Django nor Plotly. A figure is a Plotly figure as plain
JSON (lists and None, never arrays); colours are tokens such as "@primary" or "@primary/0.4", which
the browser replaces from the stylesheet, so that one figure serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas as pd

ROWS_SHOWN = 200
MOST_POINTS = 2000
MOST_TRACES = 12

Figure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where figures come from: the signal, the query that was asked, the window, how fresh."""

    signal: str
    query: str = ""
    window: str = ""
    last_sample_at: datetime | None = None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: the class that colours it and its label."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A chart with its table, its CSV and its sources. `figure=None`: there is nothing to draw.

    `note` says window and resolution; `summary` is what somebody who does not see the chart hears;
    `why_empty` is shown when there is neither figure nor table.
    """

    slug: str
    title: str
    figure: Figure | None
    table: pd.DataFrame
    sources: list[Source] = field(default_factory=list)
    csv_url: str = ""
    note: str = ""
    summary: str = ""
    keys: list[Key] = field(default_factory=list)
    why_empty: str = ""

    @property
    def figure_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"{self.slug}-figure"

    @property
    def columns(self) -> list[str]:
        """The headings of the table."""
        return [str(column) for column in self.table.columns]

    @property
    def rows(self) -> Iterator[list[str]]:
        """The newest rows of the table as text; the CSV has them all."""
        for row in self.table.tail(ROWS_SHOWN).itertuples(index=False, name=None):
            yield [_text(value) for value in row]

    @property
    def rows_left_out(self) -> int:
        """How many rows only the CSV has."""
        return max(0, len(self.table) - ROWS_SHOWN)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or pd.isna(value):  # type: ignore[call-overload]
        return "–"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float):
        return f"{value:,.1f}" if value != int(value) else f"{int(value):,}"
    return str(value)


def points(values: Any, digits: int = 3) -> list[float | None]:
    """A column as JSON numbers: None where the value is unknown, so that a gap stays a gap."""
    return [
        None
        if value is None or pd.isna(value) or math.isinf(value)
        else round(float(value), digits)
        for value in values
    ]


def local_times(instants: Any, zone: Any) -> list[str]:
    """Instants as the wall clock of a zone: plotly.js draws text, it knows no zones."""
    return [f"{at:%Y-%m-%d %H:%M}" for at in pd.DatetimeIndex(instants).tz_convert(zone)]
