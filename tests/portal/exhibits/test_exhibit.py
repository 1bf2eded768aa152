"""An exhibit brings its table, its sources, and nothing that a reader could take for zero."""

import pandas as pd
from django.template.loader import render_to_string

from portal.exhibits import Exhibit, Source, points


def page(**changed: object) -> str:
    parts: dict[str, object] = {
        "slug": "use",
        "title": "Use <b>now</b>",
        "figure": {"data": [{"y": [1, None], "name": "</script><script>alert(1)</script>"}]},
        "table": pd.DataFrame({"hour": ["a", "b"], "gpus": [1.5, None]}),
        "sources": [Source("pending_gpus", "sum(x) by (lane)", "last week")],
        "csv_url": "/x.csv",
    }
    return render_to_string("_exhibit.html", {"exhibit": Exhibit(**(parts | changed))})  # type: ignore[arg-type]


def test_the_table_and_the_query_are_there_without_javascript() -> None:
    text = page()
    assert "<td>1.5</td>" in text
    assert "<td>–</td>" in text
    assert "sum(x) by (lane)" in text
    assert 'href="/x.csv"' in text
    assert "<noscript>" in text


def test_names_from_outside_cannot_leave_their_place() -> None:
    text = page()
    assert "<script>alert" not in text
    assert "&lt;b&gt;now" in text


def test_nothing_to_draw_says_why() -> None:
    text = page(figure=None, why_empty="Nothing was collected.")
    assert "Nothing was collected." in text
    assert "data-figure" not in text


def test_a_long_table_says_what_only_the_csv_has() -> None:
    text = page(table=pd.DataFrame({"n": range(250)}))
    assert "50 older rows are in the CSV" in text
    assert "<td>249</td>" in text
    assert "<td>49</td>" not in text


def test_numbers_that_are_none_stay_none() -> None:
    assert points([1, None, float("nan"), float("inf"), 2.00049]) == [1, None, None, None, 2.0]
