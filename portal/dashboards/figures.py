"""Figures of the dashboards as plain JSON. Pure: frames and words in, a figure out.

Bars rather than filled lines: a stack of bars leaves a gap where nothing is known, a stack of
filled lines draws across it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import pandas as pd

from portal.dashboards.measures import Stretch, gaps
from portal.exhibits.exhibit import Figure, local_times, points

LANES = ("emergency", "primary", "exploratory", "background")
HOURS_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Mark:
    """A label on the axis of time: an outage, a stall, a quota change."""

    start: datetime
    end: datetime | None
    text: str
    tone: str


def _when(instant: datetime, zone: ZoneInfo) -> str:
    return local_times([pd.Timestamp(instant)], zone)[0]


def bars(
    frame: pd.DataFrame,
    column: str,
    *,
    name: str,
    colour: str,
    axis: str,
    zone: ZoneInfo,
    hours: int,
    group: str,
    unit: str = "GPU",
) -> Figure:
    """One layer of a stack over time. Each bar covers its whole step."""
    return {
        "type": "bar",
        "name": name,
        "x": local_times(frame.index, zone),
        "y": points(frame[column], 1),
        "yaxis": axis,
        "offsetgroup": group,
        "alignmentgroup": group,
        "width": hours * HOURS_MS,
        "offset": 0,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": f"%{{y:,.0f}} {unit}",
        "showlegend": False,
    }


def line(
    values: pd.Series[float],
    *,
    name: str,
    colour: str,
    axis: str,
    zone: ZoneInfo,
    unit: str,
    shape: str = "linear",
    dash: str = "solid",
) -> Figure:
    """A line that breaks where nothing is known."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": local_times(values.index, zone),
        "y": points(values, 1),
        "yaxis": axis,
        "connectgaps": False,
        "line": {"color": colour, "width": 1.5, "shape": shape, "dash": dash},
        "hovertemplate": f"%{{y:,.0f}} {unit}",
        "showlegend": False,
    }


def _axis(domain: tuple[float, float], top: float | None, ticks: int = 3) -> Figure:
    axis: Figure = {
        "domain": list(domain),
        "nticks": ticks,
        "rangemode": "tozero",
        "fixedrange": True,
        "gridcolor": "@hair",
        "zerolinecolor": "@hair",
        "tickfont": {"color": "@soft"},
        "ticklabelstandoff": 4,
        "automargin": False,
    }
    if top:
        axis["range"] = [0, top]
    return axis


def layout(*, start: datetime, end: datetime, zone: ZoneInfo, height: int, bottom: str) -> Figure:
    """What all figures over time share: the region's own clock, its zone named."""
    return {
        "height": height,
        "margin": {"l": 46, "r": 8, "t": 18, "b": 44},
        "barmode": "stack",
        "bargap": 0,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@ink"},
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "hoverlabel": {
            "bgcolor": "@card", "bordercolor": "@edge", "font": {"color": "@ink", "size": 12},
        },
        "xaxis": {
            "type": "date",
            "range": [_when(start, zone), _when(end, zone)],
            "anchor": bottom,
            "fixedrange": True,
            "showgrid": False,
            "tickfont": {"color": "@soft"},
            "tickcolor": "@hair",
            "linecolor": "@hair",
            "showline": True,
            "hoverformat": f"%a %-d %b %H:%M {_zone_name(start, zone)}",
            "tickformatstops": [
                {"dtickrange": [None, 43_200_000], "value": "%H:%M\n%a %-d %b"},
                {"dtickrange": [43_200_000, None], "value": "%a %-d\n%b"},
            ],
            "nticks": 8,
            "tickangle": 0,
        },
        "annotations": [
            {
                "xref": "paper", "yref": "paper", "x": 1, "y": 0, "xanchor": "right",
                "yanchor": "top", "yshift": -26, "showarrow": False,
                "text": _zone_name(start, zone), "font": {"color": "@soft", "size": 11},
            }
        ],
        "shapes": [],
    }  # fmt: skip


def _zone_name(at: datetime, zone: ZoneInfo) -> str:
    return at.astimezone(zone).tzname() or str(zone)


def _title(text: str, top: float) -> Figure:
    return {
        "xref": "paper", "yref": "paper", "x": 0, "y": top, "xanchor": "left", "yanchor": "bottom",
        "xshift": -42, "yshift": 1, "showarrow": False, "text": text,
        "font": {"color": "@ink", "size": 11, "weight": 600},
    }  # fmt: skip


def _gap(stretch: Stretch, domain: tuple[float, float], text: str, zone: ZoneInfo) -> list[Figure]:
    start, end = _when(stretch.start, zone), _when(stretch.end, zone)
    shape = {
        "type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": end,
        "y0": domain[0], "y1": domain[1], "fillcolor": "@wash/0.5",
        "line": {"color": "@edge", "width": 1, "dash": "dot"},
    }  # fmt: skip
    label = {
        "xref": "x", "yref": "paper", "x": start, "y": (domain[0] + domain[1]) / 2,
        "xanchor": "left", "textangle": -90, "showarrow": False, "text": text,
        "font": {"color": "@soft", "size": 10}, "hovertext": text,
    }  # fmt: skip
    return [shape, label]


def _columns(text: str) -> int:
    """How wide a text is drawn, in Latin letters: a Japanese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def marked(
    figure: Figure, marks: Sequence[Mark], *, start: datetime, end: datetime, zone: ZoneInfo
) -> Figure:
    """Puts labels on the axis of time; neighbours are set one under the other, never over."""
    span = (end - start).total_seconds()
    rows: list[float] = []
    for mark in sorted(marks, key=lambda item: item.start):
        begin = max(mark.start, start)
        if mark.end and mark.end > begin and mark.end != mark.start:
            figure["layout"]["shapes"].append(
                {
                    "type": "rect", "xref": "x", "yref": "paper", "x0": _when(begin, zone),
                    "x1": _when(min(mark.end, end), zone), "y0": 0, "y1": 1, "layer": "above",
                    "fillcolor": f"@{mark.tone}/0.16", "line": {"width": 0},
                }
            )  # fmt: skip
        figure["layout"]["shapes"].append(
            {
                "type": "line", "xref": "x", "yref": "paper", "x0": _when(begin, zone),
                "x1": _when(begin, zone), "y0": 0, "y1": 1,
                "line": {"color": f"@{mark.tone}", "width": 1, "dash": "dot"},
            }
        )  # fmt: skip
        share = (begin - start).total_seconds() / span
        width = 0.0062 * _columns(mark.text) + 0.014
        right = share + width > 1
        left = share - width if right else share
        row = next((i for i, used in enumerate(rows) if used <= left), len(rows))
        rows[row : row + 1] = [left + width]
        figure["layout"]["annotations"].append(
            {
                "xref": "x", "yref": "paper", "x": _when(begin, zone), "y": 1,
                "yanchor": "top", "yshift": -3 - 20 * row, "xanchor": "right" if right else "left",
                "xshift": -3 if right else 3, "showarrow": False, "text": mark.text,
                "font": {"color": f"@{mark.tone}", "size": 11, "weight": 600}, "bgcolor": "@card",
                "bordercolor": f"@{mark.tone}", "borderpad": 2, "borderwidth": 1,
            }
        )  # fmt: skip
    return figure


def one_axis(
    *,
    compute: pd.DataFrame,
    waiting: pd.DataFrame,
    write_p95: pd.Series[float],
    usual: tuple[float, float] | None,
    marks: Sequence[Mark],
    start: datetime,
    end: datetime,
    now: datetime,
    hours: int,
    zone: ZoneInfo,
    words: Mapping[str, str],
) -> Figure:
    """Compute, queue and storage on one axis of time, so that the eye sees which came first.

    `compute`: in_use, idle, free per step; `waiting`: GPUs per lane per step; `write_p95`: seconds.
    """
    top, middle, low = (0.60, 1.0), (0.30, 0.53), (0.0, 0.22)
    data = [
        bars(compute, "in_use", name=words["in_use"], colour="@primary", axis="y", zone=zone,
             hours=hours, group="use"),
        bars(compute, "idle", name=words["idle"], colour="@idle", axis="y", zone=zone,
             hours=hours, group="use"),
        bars(compute, "free", name=words["free"], colour="@free", axis="y", zone=zone,
             hours=hours, group="use"),
    ]  # fmt: skip
    for lane in [*LANES, *sorted(set(waiting.columns) - set(LANES))]:
        if lane in waiting:
            colour = f"@{lane}" if lane in LANES else "@other"
            data.append(
                bars(waiting, lane, name=f"{words['waiting']}, {lane or words['no_lane']}",
                     colour=colour, axis="y2", zone=zone, hours=hours, group="wait")
            )  # fmt: skip
    data.append(
        line(write_p95, name=words["write_p95"], colour="@ink", axis="y3", zone=zone, unit="s")
    )
    figure: Figure = {
        "data": data,
        "layout": layout(start=start, end=end, zone=zone, height=440, bottom="y3"),
    }
    highest = _top(write_p95, usual)
    figure["layout"] |= {
        "yaxis": _axis(top, _top(compute[["in_use", "idle", "free"]].sum(axis=1))),
        "yaxis2": _axis(middle, _top(waiting.sum(axis=1)) if len(waiting.columns) else 1),
        "yaxis3": _axis(low, highest) | {"ticksuffix": " s"},
    }
    shapes, notes = figure["layout"]["shapes"], figure["layout"]["annotations"]
    for key, domain in (("use_title", top), ("waiting_title", middle), ("write_title", low)):
        notes.append(_title(words[key], domain[1]))
    if usual:
        shapes.append(
            {
                "type": "rect", "xref": "paper", "yref": "y3", "x0": 0, "x1": 1, "y0": usual[0],
                "y1": usual[1], "fillcolor": "@free", "line": {"width": 0}, "layer": "below",
            }
        )  # fmt: skip
        notes.append(
            {
                "xref": "paper", "yref": "y3", "x": 1, "y": usual[1], "xanchor": "right",
                "yanchor": "bottom", "showarrow": False, "text": words["usual"],
                "font": {"color": "@soft", "size": 10},
            }
        )  # fmt: skip
    for frame, domain in (
        (compute[["in_use", "total"]], top),
        (waiting, middle),
        (write_p95.to_frame(), low),
    ):
        if not len(frame.columns):
            continue
        for stretch in gaps(frame, until=now):
            shape, label = _gap(stretch, domain, words["no_data"], zone)
            shapes.append(shape)
            if (stretch.end - stretch.start) >= (end - start) / 84:
                notes.append(label)
    return marked(figure, marks, start=start, end=end, zone=zone)


def _top(values: pd.Series[float], usual: tuple[float, float] | None = None) -> float:
    highest = float(values.max()) if values.notna().any() else 0.0
    return max(highest, usual[1] if usual else 0.0) * 1.06 or 1.0


def held_by(
    *,
    held: pd.DataFrame,
    limit: pd.Series[float] | None,
    marks: Sequence[Mark],
    start: datetime,
    end: datetime,
    now: datetime,
    hours: int,
    zone: ZoneInfo,
    words: Mapping[str, str],
) -> Figure:
    """GPUs held over time, one layer per column, with the nominal quota as a line of steps."""
    colours = ("@primary", "@accent/0.55", "@other", "@edge", "@soft", "@idle")
    data = [
        bars(held, column, name=str(column), colour=colours[min(i, len(colours) - 1)], axis="y",
             zone=zone, hours=hours, group="held")
        for i, column in enumerate(held.columns)
    ]  # fmt: skip
    if limit is not None:
        data.append(
            line(limit, name=words["nominal"], colour="@ink", axis="y", zone=zone, unit="GPU",
                 shape="hv", dash="dot")
        )  # fmt: skip
    figure: Figure = {
        "data": data,
        "layout": layout(start=start, end=end, zone=zone, height=240, bottom="y"),
    }
    highest = max(
        _top(held.sum(axis=1)) if len(held.columns) else 1.0,
        _top(limit) if limit is not None else 0.0,
    )
    figure["layout"]["yaxis"] = _axis((0, 1), highest)
    for stretch in gaps(held, until=now) if len(held.columns) else []:
        shape, label = _gap(stretch, (0, 1), words["no_data"], zone)
        figure["layout"]["shapes"].append(shape)
        if (stretch.end - stretch.start) >= (end - start) / 84:
            figure["layout"]["annotations"].append(label)
    return marked(figure, marks, start=start, end=end, zone=zone)
