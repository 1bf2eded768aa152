"""Job records come in once, however often they are told, and a bad row costs only itself."""

from datetime import timedelta
from typing import Any

import pandas as pd
import pytest

from portal.telemetry import services
from portal.telemetry.models import AttemptRecord, ImportBatch, JobRecord, JobState
from tests.worlds import NOW

SUBMIT = NOW - timedelta(hours=5)
START = NOW - timedelta(hours=4)

pytestmark = pytest.mark.django_db


def job(job_id: str = "a1", **changes: Any) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "project": "speech",
        "lane": "primary",
        "pool": "tokyo-a-h100",
        "gpus": 8,
        "submit_at": SUBMIT,
        "first_start_at": START,
        "end_at": None,
        "state": "running",
        "work_seconds": 7200,
        "total_wait_seconds": 3600,
        "attempts_count": 1,
        **changes,
    }


def attempt(job_id: str = "a1", **changes: Any) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "number": 1,
        "pool": "tokyo-a-h100",
        "start_at": START,
        "end_at": None,
        "ended": "running",
        "useful_gpu_seconds": 100,
        **changes,
    }


def record(jobs: list[dict[str, Any]], attempts: list[dict[str, Any]]) -> ImportBatch:
    return services.record_jobs(
        source="slurm-tokyo",
        jobs=pd.DataFrame(jobs),
        attempts=pd.DataFrame(attempts),
        known_until=NOW,
        now=NOW,
    )


def test_a_job_and_its_attempt_are_recorded() -> None:
    batch = record([job()], [attempt()])

    assert (batch.rows, batch.problems) == (1, [])
    kept = JobRecord.objects.get(source="slurm-tokyo", job_id="a1")
    assert (kept.gpus, kept.submit_at, kept.end_at) == (8, SUBMIT, None)
    assert kept.attempts.get().useful_gpu_seconds == 100


def test_the_same_records_again_change_nothing() -> None:
    record([job(), job("a2")], [attempt(), attempt("a2")])
    before = list(JobRecord.objects.values("pk", "job_id", "state", "end_at", "gpus"))
    record([job(), job("a2")], [attempt(), attempt("a2")])

    assert list(JobRecord.objects.values("pk", "job_id", "state", "end_at", "gpus")) == before
    assert AttemptRecord.objects.count() == 2


def test_a_later_account_of_a_job_takes_the_place_of_the_earlier() -> None:
    record([job()], [attempt()])
    end = NOW - timedelta(hours=1)
    record(
        [job(state="finished", end_at=end)],
        [attempt(end_at=end, ended="finished", useful_gpu_seconds=57600)],
    )

    kept = JobRecord.objects.get()
    assert (kept.state, kept.end_at) == (JobState.FINISHED, end)
    assert kept.attempts.get().useful_gpu_seconds == 57600


def test_an_attempt_may_belong_to_a_job_of_an_earlier_import() -> None:
    record([job()], [])
    batch = record([], [attempt()])

    assert batch.problems == []
    assert AttemptRecord.objects.get().job.job_id == "a1"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gpus": 0}, "gpus"),
        ({"gpus": None}, "gpus"),
        ({"state": "lost"}, "state"),
        ({"first_start_at": SUBMIT - timedelta(seconds=1)}, "first_start_at"),
        ({"end_at": START - timedelta(seconds=1)}, "end_at"),
        ({"project": "x" * 64}, "project"),
        ({"submit_at": None}, "submit_at"),
        ({"job_id": None}, "job_id"),
        ({"work_seconds": "soon"}, "work_seconds"),
    ],
)
def test_a_bad_row_is_listed_and_the_rest_is_kept(changes: dict[str, Any], said: str) -> None:
    batch = record([job("good"), {**job("bad"), **changes}, job("also-good")], [attempt("good")])

    assert sorted(JobRecord.objects.values_list("job_id", flat=True)) == ["also-good", "good"]
    (problem,) = batch.problems
    assert (problem["frame"], problem["row"]) == ("jobs", 1)
    assert said in problem["problem"]
    assert batch.rows == 2


def test_a_job_told_twice_in_one_import_is_kept_once_and_listed() -> None:
    batch = record([job(), job(gpus=16)], [attempt(), attempt()])

    assert JobRecord.objects.get().gpus == 8
    assert [(p["frame"], p["row"]) for p in batch.problems] == [("jobs", 1), ("attempts", 1)]


def test_an_attempt_without_its_job_is_listed() -> None:
    batch = record([job()], [attempt("nobody"), attempt(start_at=SUBMIT - timedelta(hours=1))])

    assert AttemptRecord.objects.count() == 0
    assert [p["job"] for p in batch.problems] == ["nobody", "a1"]
