"""Job records, attempts and quota levels as the report's figures take them, one line each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from portal.reports.fairness import Span

MONDAY = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)  # 2026-W48 in Tokyo
END = MONDAY + timedelta(days=7)
WEEK = Span(start=MONDAY, until=END, known_until=END + timedelta(days=1))
TENANTS = {"speech": "kaguya", "vision": "kaguya", "robotics": "raijin"}


def at(hours: float) -> datetime:
    """So many hours into the week."""
    return MONDAY + timedelta(hours=hours)


def job(
    job_id: str, submit: float, start: float | None, end: float | None, **more: Any
) -> dict[str, Any]:
    """A job; instants are hours from the start of the week."""
    return {
        "source": "test",
        "job_id": job_id,
        "project": "speech",
        "lane": "primary",
        "pool": "" if start is None else "tokyo",
        "gpus": 8,
        "submit_at": at(submit),
        "first_start_at": None if start is None else at(start),
        "end_at": None if end is None else at(end),
        "state": "waiting" if start is None else "running" if end is None else "finished",
        "attempts_count": 0 if start is None else 1,
        **more,
    }


def attempt(job_id: str, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    """An attempt, useful from end to end unless said otherwise."""
    gpus = more.get("gpus", 8)
    seconds = 0 if end is None else (end - start) * 3600
    return {
        "source": "test",
        "job_id": job_id,
        "project": "speech",
        "lane": "primary",
        "gpus": 8,
        "number": 1,
        "pool": "tokyo",
        "start_at": at(start),
        "end_at": None if end is None else at(end),
        "ended": "running" if end is None else "finished",
        "ground": "",
        "evicted_by_project": "",
        "evicted_by_lane": "",
        "useful_gpu_seconds": int(seconds * gpus),
        "lost_gpu_seconds": 0,
        **more,
    }


def level(
    nominal_gpus: int,
    start: float = 0,
    end: float = 168,
    *,
    project: str = "speech",
    pool: str = "tokyo",
) -> dict[str, Any]:
    """A nominal quota in force between two hours of the week."""
    return {
        "project": project,
        "tenant": TENANTS[project],
        "pool": pool,
        "start_at": at(start),
        "end_at": at(end),
        "nominal_gpus": nominal_gpus,
    }


def frame_of(rows: list[dict[str, Any]], like: dict[str, Any]) -> pd.DataFrame:
    """Rows as a frame with the types that the selectors give, also when there is none."""
    frame = pd.DataFrame(rows, columns=list(like))
    for column in frame.columns:
        if column.endswith("_at"):
            frame[column] = pd.to_datetime(frame[column], utc=True)
    return frame


def frames(
    jobs: list[dict[str, Any]], attempts: list[dict[str, Any]], levels: list[dict[str, Any]]
) -> dict[str, pd.DataFrame]:
    """The three frames of `fairness.week`."""
    return {
        "jobs": frame_of(jobs, job("-", 0, None, None)),
        "attempts": frame_of(attempts, attempt("-", 0, 1)),
        "levels": frame_of(levels, level(1)),
    }
