"""The charts of the weekly report, drawn from the frame that the page and the file show.

Pure: a DataFrame in, a Plotly figure as plain JSON out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from portal.exhibits import Figure, points
from portal.reports.fairness import LANES


def delivered_chart(frame: pd.DataFrame, *, axis: str) -> Figure | None:
    """Delivered ÷ entitled of each project that is entitled, least served on top, a mark at 1."""
    rows = frame[(frame["scope"] == "project") & frame["delivered_entitled_ratio"].notna()]
    rows = rows.sort_values("delivered_entitled_ratio", ascending=False, kind="stable")
    if rows.empty:
        return None
    ratios = points(rows["delivered_entitled_ratio"])
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": ratios,
        "y": list(rows["name"]),
        "marker": {"color": "@accent"},
        "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
    }
    mark = {
        "type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"color": "@ink", "width": 1.5},
    }  # fmt: skip
    layout = _layout(axis=axis, rows=len(rows)) | {"shapes": [mark]}
    layout["xaxis"] |= {
        "tickformat": ".0%",
        "range": [0, 1.05 * max(1.0, *(x or 0 for x in ratios))],
    }
    return {"data": [bars], "layout": layout}


def waits_chart(frame: pd.DataFrame, *, axis: str, names: Mapping[str, str]) -> Figure | None:
    """First waits by lane, in hours: median solid, p90 pale, a mark at the longest.

    `names` gives the words for p50, p90 and longest.
    """
    rows = frame[(frame["scope"] == "lane") & frame["first_wait_p50_minutes"].notna()].iloc[::-1]
    if rows.empty:
        return None
    lanes = list(rows["name"])

    def hours(quantile: str) -> list[float | None]:
        return points(rows[f"first_wait_{quantile}_minutes"].astype(float) / 60)

    def bars(quantile: str, alpha: str) -> dict[str, Any]:
        return {
            "type": "bar",
            "orientation": "h",
            "name": names[quantile],
            "x": hours(quantile),
            "y": lanes,
            "marker": {"color": [f"@{_lane_token(lane)}{alpha}" for lane in lanes]},
            "hovertemplate": f"%{{y}}, {names[quantile]}: %{{x:.1f}} h<extra></extra>",
        }

    longest = {
        "type": "scatter",
        "mode": "markers",
        "name": names["longest"],
        "x": hours("longest"),
        "y": lanes,
        "marker": {"color": "@ink", "symbol": "line-ns-open", "size": 14},
        "hovertemplate": f"%{{y}}, {names['longest']}: %{{x:.1f}} h<extra></extra>",
    }
    layout = _layout(axis=axis, rows=len(rows)) | {"barmode": "overlay"}
    layout["xaxis"] |= {"rangemode": "tozero"}
    return {"data": [bars("p90", "/0.4"), bars("p50", ""), longest], "layout": layout}


def _lane_token(lane: str) -> str:
    return lane if lane in LANES else "other"


def _layout(*, axis: str, rows: int) -> dict[str, Any]:
    return {
        "height": 70 + 26 * rows,
        "margin": {"l": 8, "r": 12, "t": 6, "b": 40},
        "showlegend": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "bargap": 0.35 if rows > 4 else 0.7,
        "dragmode": False,
        "font": {"color": "@soft"},
        "xaxis": {
            "title": {"text": axis},
            "gridcolor": "@hair",
            "zerolinecolor": "@hair",
            "fixedrange": True,
        },
        "yaxis": {
            "automargin": True,
            "type": "category",
            "fixedrange": True,
            "ticklabelstandoff": 6,
        },
    }
