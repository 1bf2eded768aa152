"""What needs attention is found from frames alone."""

from datetime import UTC, datetime, timedelta

import pandas as pd

from portal.dashboards import attention
from portal.dashboards.attention import Kind

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
QUOTAS = pd.DataFrame(
    {
        "pool": ["a", "a"],
        "project": ["speech", "robotics"],
        "nominal_gpus": [24, 24],
        "borrowing_limit_gpus": pd.array([None, None], dtype="Int64"),
    }
)
HELD = pd.DataFrame({"pool": ["a", "a"], "project": ["speech", "robotics"], "value": [8.0, 40.0]})


def waiting(*, hours: float, lane: str = "primary", gpus: int = 8) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "project": ["speech"],
            "lane": [lane],
            "gpus": [gpus],
            "submit_at": [pd.Timestamp(NOW - timedelta(hours=hours))],
        }
    )


def starved(jobs: pd.DataFrame, held: pd.DataFrame = HELD) -> list[attention.Attention]:
    return attention.starvation(region="tokyo", waiting=jobs, held=held, quotas=QUOTAS, now=NOW)


def test_a_long_wait_inside_the_own_quota_beside_a_borrower_is_starvation() -> None:
    [found] = starved(waiting(hours=3))
    assert (found.kind, found.pool, found.projects) == (
        Kind.STARVATION, "a", ("robotics", "speech"),
    )  # fmt: skip
    assert found.values["gpus"] == 16
    assert found.values["seconds"] == 3 * 3600


def test_it_is_none_when_young_unimportant_beyond_the_quota_or_nobody_borrows() -> None:
    assert starved(waiting(hours=1)) == []
    assert starved(waiting(hours=3, lane="background")) == []
    assert starved(waiting(hours=3, gpus=24)) == []
    assert starved(waiting(hours=3), HELD.assign(value=[8.0, 24.0])) == []


def test_a_long_wait_at_a_quota_that_may_not_borrow_beside_a_borrower_is_a_warning() -> None:
    full = HELD.assign(value=[24.0, 40.0])
    strict = QUOTAS.assign(borrowing_limit_gpus=pd.array([0, None], dtype="Int64"))
    [found] = attention.starvation(
        region="tokyo", waiting=waiting(hours=3), held=full, quotas=strict, now=NOW
    )
    assert (found.kind, found.level) == (Kind.MAY_NOT_BORROW, "warn")
    assert (found.values["jobs"], found.values["gpus"]) == (1, 16)
    assert starved(waiting(hours=3), full) == []


def test_marking_everything_emergency_is_said_from_ten_jobs_on() -> None:
    jobs = pd.DataFrame(
        {
            "project": ["loud"] * 10 + ["calm"] * 10,
            "lane": ["emergency"] * 6 + ["primary"] * 4 + ["primary"] * 10,
            "submit_at": pd.Timestamp(NOW),
        }
    )
    [found] = attention.all_urgent(region="tokyo", jobs=jobs)
    assert (found.projects, found.values["share"]) == (("loud",), 0.6)
    assert attention.all_urgent(region="tokyo", jobs=jobs.iloc[1:10]) == []


def test_a_storage_stall_is_told_from_compute() -> None:
    hours = pd.date_range(NOW - timedelta(hours=12), periods=12, freq="h")
    write = pd.Series([60.0] * 8 + [240.0, 250.0] + [60.0] * 2, index=hours)
    in_use = pd.Series([100.0] * 8 + [60.0, 55.0] + [100.0] * 2, index=hours)
    [found] = attention.storage_stalls(
        region="tokyo", write_p95=write, usual_high=75, in_use=in_use,
        evictions=pd.Series(dtype="float64", index=pd.DatetimeIndex([], tz="UTC")),
    )  # fmt: skip
    assert found.since == hours[8].to_pydatetime()
    assert found.until == hours[10].to_pydatetime()
    assert found.values["evictions"] == 0
    assert abs(float(found.values["fall"] or 0) - 0.45) < 1e-9


def test_all_signals_stale_is_worse_than_one() -> None:
    frame = pd.DataFrame(
        {"signal": ["a", "b"], "state": ["stale", "live"], "age_seconds": [7200.0, 60.0]}
    )
    one = attention.data_quality(region="tokyo", freshness=frame, coverage=0.99, now=NOW)
    assert [(item.kind, item.level) for item in one] == [(Kind.STALE, "warn")]
    every = attention.data_quality(
        region="tokyo", freshness=frame.assign(state="stale"), coverage=0.5, now=NOW
    )
    assert [(item.kind, item.level) for item in every] == [
        (Kind.STALE, "bad"), (Kind.COVERAGE, "warn"),
    ]  # fmt: skip
    never = attention.data_quality(region="tokyo", freshness=frame.iloc[:0], coverage=None, now=NOW)
    assert [item.kind for item in never] == [Kind.NEVER]
