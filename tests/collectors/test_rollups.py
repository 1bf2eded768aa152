from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from collectors import rollups
from collectors.catalogue import Kind
from collectors.rollups import UnusableAnswerError

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEP = timedelta(minutes=5)


def _frame(values: list[tuple[int, float]], **labels: str) -> pd.DataFrame:
    """(steps after noon, value)."""
    rows = [{"at": NOON + n * STEP, "value": value, **labels} for n, value in values]
    frame = pd.DataFrame(rows, columns=["at", "value", *labels])
    frame["at"] = pd.to_datetime(frame["at"], utc=True)
    return frame


def _hours(kind: Kind, frame: pd.DataFrame, keys: list[str], *sums: Any, **more: Any) -> Any:
    return rollups.into_hours(rollups.steps(kind, frame, keys, *sums, **more), keys)


def test_a_gauge_keeps_sum_count_extremes_and_its_newest_value() -> None:
    frame = _frame([(0, 4), (1, 8), (11, 6), (12, 100)], pool="a")
    first, second = _hours(Kind.GAUGE, frame, ["pool"]).to_dict("records")
    assert (first["sum_value"], first["count"], first["observed"]) == (18, 3, 3)
    assert (first["min_value"], first["max_value"], first["last_value"]) == (4, 8, 6)
    assert first["last_at"] == NOON + 11 * STEP
    assert (second["hour"], second["sum_value"]) == (NOON + timedelta(hours=1), 100)


def test_an_increase_belongs_to_the_step_before_it() -> None:
    frame = _frame([(1, 2), (12, 3), (13, 5)], project="p")
    first, second = _hours(Kind.COUNTER, frame, ["project"]).to_dict("records")
    assert (first["hour"], first["sum_value"], first["observed"]) == (NOON, 5, 2)
    assert second["sum_value"] == 5
    assert pd.isna(first["min_value"])
    assert pd.isna(first["last_value"])


def test_buckets_are_added_bound_by_bound_in_their_order() -> None:
    frame = pd.concat(
        [
            _frame([(1, 3), (2, 4)], lane="l", bound="+Inf"),
            _frame([(1, 1), (2, 1)], lane="l", bound="10"),
            _frame([(1, 2)], lane="l", bound="2.5"),
        ]
    )
    sums = _frame([(1, 50), (2, 60)], lane="l")
    (row,) = _hours(Kind.HISTOGRAM, frame, ["lane"], sums).to_dict("records")
    # At or below 2.5 nobody knows of the second step.
    assert list(row["buckets"].items()) == [("10", 2.0), ("+Inf", 7.0)]
    assert (row["count"], row["sum_value"], row["observed"]) == (7, 110, 2)


def test_a_histogram_without_sums_or_total_is_not_guessed() -> None:
    frame = _frame([(1, 3)], lane="l", bound="+Inf")
    (row,) = _hours(Kind.HISTOGRAM, frame, ["lane"]).to_dict("records")
    assert pd.isna(row["sum_value"])
    assert _hours(Kind.HISTOGRAM, _frame([(1, 3)], lane="l", bound="10"), ["lane"]).empty


def test_nothing_makes_no_hours() -> None:
    frame, refused = rollups.tidy(_frame([]), {"pool": "pool"})
    made = _hours(Kind.GAUGE, frame, ["pool"])
    assert made.empty
    assert refused == 0
    assert {"pool", "hour", "sum_value", "buckets"} <= set(made.columns)


def test_an_absent_label_is_empty_and_labels_become_columns() -> None:
    frame = pd.concat([_frame([(0, 1)], cluster_queue="q"), _frame([(0, 2)])])
    kept, _refused = rollups.tidy(frame, {"cluster_queue": "project", "priority_class": "lane"})
    assert kept[["project", "lane"]].values.tolist() == [["q", ""], ["", ""]]


def test_two_series_for_one_line_are_refused() -> None:
    frame = pd.concat([_frame([(0, 1)], q="a", pod="x"), _frame([(0, 2)], q="a", pod="y")])
    with pytest.raises(UnusableAnswerError, match="project 'a'; the query must aggregate"):
        rollups.tidy(frame, {"q": "project"})


def test_buckets_without_a_bound_are_refused() -> None:
    with pytest.raises(UnusableAnswerError, match="no buckets"):
        _hours(Kind.HISTOGRAM, _frame([(1, 1)], lane="l"), ["lane"])
    with pytest.raises(UnusableAnswerError, match="no upper bound"):
        rollups.tidy(_frame([(1, 1)], bound="many"), {})


def test_a_name_too_long_to_keep_is_counted_and_not_cut() -> None:
    frame = pd.concat([_frame([(0, 1)], q="a" * 64), _frame([(0, 2)], q="b")])
    kept, refused = rollups.tidy(frame, {"q": "project"})
    assert list(kept["project"]) == ["b"]
    assert refused == 1


def test_a_step_of_an_hour_stands_for_its_twelve() -> None:
    frame = _frame([(12, 7), (24, 1)], project="p")
    made = _hours(Kind.COUNTER, frame, ["project"], step=timedelta(hours=1))
    first, second = made.to_dict("records")
    assert (first["hour"], first["sum_value"], first["observed"]) == (NOON, 7, 12)
    assert second["hour"] == NOON + timedelta(hours=1)
