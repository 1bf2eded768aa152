"""Figures are plain JSON that Plotly accepts; a gap stays a gap; times are the region's own."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import plotly.graph_objects as go

from portal.dashboards import figures, measures
from portal.dashboards.exhibits import words
from portal.dashboards.figures import Mark
from portal.exhibits.exhibit import MOST_POINTS, MOST_TRACES

TOKYO = ZoneInfo("Asia/Tokyo")
END = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)


def one_axis(hours: int, step: int = 1) -> dict[str, Any]:
    start = END - timedelta(hours=hours)
    index = measures.grid(start, END)
    known = pd.Series(10.0, index=index)
    known.iloc[5:8] = None
    frame = pd.DataFrame(dict.fromkeys(("in_use", "idle", "free", "held", "total"), known))
    lanes = pd.DataFrame(dict.fromkeys(figures.LANES, known))
    return figures.one_axis(
        compute=measures.stepped(frame, hours=step),
        waiting=measures.stepped(lanes, hours=step),
        write_p95=measures.stepped(frame, hours=step)["held"],
        usual=(5.0, 15.0),
        marks=[
            Mark(start + timedelta(hours=9), start + timedelta(hours=11), "stall", "warn"),
            Mark(start + timedelta(hours=10), None, "quota 48 → 64", "accent"),
        ],
        start=start, end=END, now=END, hours=step, zone=TOKYO, words=words(),
    )  # fmt: skip


def test_unknown_hours_are_none_and_boxed_and_times_are_local() -> None:
    figure = json.loads(json.dumps(one_axis(48), allow_nan=False))
    first = figure["data"][0]
    assert first["x"][0] == "2026-11-28 12:00"
    assert first["y"][4:9] == [10, None, None, None, 10]
    boxes = [shape for shape in figure["layout"]["shapes"] if shape["line"].get("dash") == "dot"]
    assert any(shape["x0"] == "2026-11-28 17:00" for shape in boxes)
    assert "JST" in [note["text"] for note in figure["layout"]["annotations"]]


def test_plotly_accepts_every_property() -> None:
    text = re.sub(r'"@[a-z-]+(/[\d.]+)?"', '"#123456"', json.dumps(one_axis(48)))
    go.Figure(json.loads(text))


def test_four_weeks_stay_small_enough_for_a_browser() -> None:
    figure = one_axis(28 * 24, step=3)
    assert len(figure["data"]) <= MOST_TRACES
    assert sum(len(trace["y"]) for trace in figure["data"]) <= MOST_POINTS


def test_labels_that_would_meet_are_set_one_under_the_other() -> None:
    notes = {note["text"]: note for note in one_axis(48)["layout"]["annotations"]}
    assert notes["stall"]["yshift"] != notes["quota 48 → 64"]["yshift"]
