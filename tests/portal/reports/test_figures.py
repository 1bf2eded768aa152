"""The report's charts: plain JSON from the report's frame, a gap where a figure is unknown."""

import json
from typing import Any

import pandas as pd

from portal.reports import fairness, figures
from tests.portal.reports.weeks import TENANTS, WEEK, attempt, frames, job, level

WORDS = {"p50": "median", "p90": "p90", "longest": "longest"}


def week() -> pd.DataFrame:
    jobs = [
        job("a", 0, 1, 169),
        job("b", 0, 3, 10, project="robotics", lane="night"),
        job("c", 0, 0, 10, project="vision"),
    ]
    attempts = [
        attempt("a", 1, 169),
        attempt("b", 3, 10, project="robotics", lane="night"),
        attempt("c", 0, 10, project="vision"),
    ]
    levels = [level(8), level(8, project="robotics")]
    return fairness.week(**frames(jobs, attempts, levels), span=WEEK, tenants=TENANTS)


def test_the_least_served_project_is_on_top_and_one_without_entitlement_is_not_drawn() -> None:
    figure: Any = figures.delivered_chart(week(), axis="delivered ÷ entitled")

    # Plotly draws the first category at the bottom.
    assert figure["data"][0]["y"] == ["speech", "robotics"]
    assert figure["data"][0]["x"] == [0.994, 0.042]
    assert figure["layout"]["xaxis"]["range"] == [0, 1.05]
    json.dumps(figure)


def test_lanes_have_their_own_colour_and_an_unknown_lane_another() -> None:
    figure: Any = figures.waits_chart(week(), axis="hours", names=WORDS)
    p90, median, longest = figure["data"]

    assert median["y"] == ["night", "primary"]
    assert median["marker"]["color"] == ["@other", "@primary"]
    assert (median["x"], longest["x"]) == ([3.0, 0.5], [3.0, 1.0])
    assert p90["marker"]["color"] == ["@other/0.4", "@primary/0.4"]
    json.dumps(figure)


def test_without_rows_there_is_nothing_to_draw() -> None:
    nothing = pd.DataFrame(columns=fairness.COLUMNS)

    assert figures.delivered_chart(nothing, axis="") is None
    assert figures.waits_chart(nothing, axis="", names=WORDS) is None
