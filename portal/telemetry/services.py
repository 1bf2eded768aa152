"""Writes what was imported: job records, whose only way in this is, and the undoing of signals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypedDict

import pandas as pd
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, Field, Model, OuterRef

from portal.telemetry.models import (
    AttemptRecord,
    DayRollup,
    HourCoverage,
    HourRollup,
    ImportBatch,
    ImportKind,
    JobRecord,
    Series,
    StepRollup,
    Watermark,
)

CHUNK = 500
LEVELS: tuple[type[StepRollup | HourRollup | DayRollup], ...] = (StepRollup, HourRollup, DayRollup)
EMPTY: tuple[object, ...] = (None, "", [])


def _fields(model: type[Model], *, but: set[str]) -> list[Field[Any, Any]]:
    return [field for field in model._meta.concrete_fields if field.name not in {"id", *but}]  # noqa: SLF001


_JOB_FIELDS = _fields(JobRecord, but={"source", "batch"})
_ATTEMPT_FIELDS = _fields(AttemptRecord, but={"job"})


class Problem(TypedDict):
    """What is wrong with one row: which frame and row (from 0), which job, and a sentence."""

    frame: str
    row: int
    job: str
    problem: str


def record_jobs(
    *,
    source: str,
    jobs: pd.DataFrame,
    attempts: pd.DataFrame,
    known_until: datetime,
    now: datetime,
    note: str = "",
) -> ImportBatch:
    """Records jobs and their attempts; the same job again takes the newer account of it.

    `jobs` has one row a job, its columns named like the fields of JobRecord (instants with a time
    zone; absent values null; columns with a default may be left out). `attempts` has one row an
    attempt, its columns named like the fields of AttemptRecord, with `job_id` for the job.

    A row that cannot be true is left out and listed in the batch's `problems`, with its number and
    a sentence; it never costs the others. `known_until` is the instant up to which the source tells
    the truth: what still waited or ran then may have gone on since.
    """
    problems: list[Problem] = []
    with transaction.atomic():
        batch = ImportBatch.objects.create(
            source=source, note=note, imported_at=now, known_until=known_until
        )
        records = list(_sound_jobs(jobs, batch=batch, problems=problems))
        JobRecord.objects.bulk_create(
            records,
            batch_size=CHUNK,
            update_conflicts=True,
            unique_fields=["source", "job_id"],
            update_fields=[
                "batch",
                *(field.name for field in _JOB_FIELDS if field.name != "job_id"),
            ],
        )
        AttemptRecord.objects.bulk_create(
            list(_sound_attempts(attempts, source=source, recorded=records, problems=problems)),
            batch_size=CHUNK,
            update_conflicts=True,
            unique_fields=["job", "number"],
            update_fields=[field.name for field in _ATTEMPT_FIELDS if field.name != "number"],
        )
        batch.rows = len(records)
        batch.problems = problems
        batch.save(update_fields=["rows", "problems"])
    return batch


def undo_rollups(batch: ImportBatch, *, now: datetime) -> int:
    """Takes back the signals that one import brought, as if it had never been; gives the rows.

    What was collected, or imported otherwise, stays as it is. The batch stays too, and says when it
    was undone. Raises ValueError when it brought no signals, or was undone before.
    """
    if batch.kind != ImportKind.ROLLUPS:
        raise ValueError(f"Import {batch.pk} brought {batch.get_kind_display()}, no signals.")
    with transaction.atomic():
        held = ImportBatch.objects.select_for_update().get(pk=batch.pk)
        if held.undone_at is not None:
            raise ValueError(
                f"Import {batch.pk} was undone at {held.undone_at:%Y-%m-%d %H:%M} UTC."
            )
        mine = {"series__region": held.region, "version": held.version}
        hours = HourRollup.objects.filter(**mine)
        touched = set(hours.values_list("series__signal", "hour").distinct())
        lines = set(hours.values_list("series_id", flat=True))
        gone = sum(level.objects.filter(**mine).delete()[0] for level in LEVELS)
        _forget_coverage(held, touched)
        unused = Series.objects.filter(pk__in=lines)
        for level in LEVELS:
            unused = unused.filter(~Exists(level.objects.filter(series=OuterRef("pk"))))
        unused.delete()
        Watermark.objects.filter(region=held.region, version=held.version).delete()
        held.undone_at = now
        held.save(update_fields=["undone_at"])
    return gone


def _forget_coverage(batch: ImportBatch, touched: set[tuple[str, datetime]]) -> None:
    """Hours that only imports brought, and of which nothing is left, are as they were before."""
    for signal in sorted({signal for signal, _hour in touched}):
        hours = {hour for name, hour in touched if name == signal}
        left = set(
            HourRollup.objects.filter(
                series__region=batch.region, series__signal=signal, hour__in=hours
            ).values_list("hour", flat=True)
        )
        HourCoverage.objects.filter(
            region=batch.region, signal=signal, hour__in=hours - left, imported=True
        ).delete()


def _sound_jobs(
    frame: pd.DataFrame, *, batch: ImportBatch, problems: list[Problem]
) -> Iterator[JobRecord]:
    seen: set[str] = set()
    for number, row in enumerate(_rows(frame)):
        job_id = str(row.get("job_id") or "")
        given = _given(row, _JOB_FIELDS)
        record = JobRecord(source=batch.source, batch=batch, **given)
        wrong = _wrong_fields(record, given, _JOB_FIELDS) or _wrong_job(record)
        if not wrong and job_id in seen:
            wrong = ["This job is already in the rows above."]
        if wrong:
            problems.append(Problem(frame="jobs", row=number, job=job_id, problem=" ".join(wrong)))
            continue
        seen.add(job_id)
        yield record


def _sound_attempts(
    frame: pd.DataFrame,
    *,
    source: str,
    recorded: Iterable[JobRecord],
    problems: list[Problem],
) -> Iterator[AttemptRecord]:
    jobs = {record.job_id: record for record in recorded}
    rows = list(_rows(frame))
    # An attempt may belong to a job that an earlier import brought.
    elsewhere = sorted({str(row.get("job_id") or "") for row in rows} - jobs.keys())
    for first in range(0, len(elsewhere), CHUNK):
        found = JobRecord.objects.filter(source=source, job_id__in=elsewhere[first : first + CHUNK])
        jobs.update({record.job_id: record for record in found})
    seen: set[tuple[str, int]] = set()
    for number, row in enumerate(rows):
        job_id = str(row.get("job_id") or "")
        job = jobs.get(job_id)
        if job is None:
            wrong = ["No such job was recorded."]
        else:
            given = _given(row, _ATTEMPT_FIELDS)
            record = AttemptRecord(job=job, **given)
            wrong = _wrong_fields(record, given, _ATTEMPT_FIELDS) or _wrong_attempt(record)
            if not wrong and (job_id, record.number) in seen:
                wrong = ["This attempt is already in the rows above."]
        if wrong:
            problems.append(
                Problem(frame="attempts", row=number, job=job_id, problem=" ".join(wrong))
            )
            continue
        seen.add((job_id, record.number))
        yield record


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The frame's rows as plain Python values; absent ones are None."""
    values = frame.astype(object).where(frame.notna(), None)
    for row in values.to_dict("records"):
        yield {
            str(name): value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
            for name, value in row.items()
        }


def _given(row: Mapping[str, Any], fields: Iterable[Field[Any, Any]]) -> dict[str, Any]:
    """The row's values for the model; an absent value leaves the field's default."""
    return {field.name: row[field.name] for field in fields if row.get(field.name) not in EMPTY}


def _wrong_fields(
    record: Model, given: Mapping[str, Any], fields: Iterable[Field[Any, Any]]
) -> list[str]:
    checked = {
        field.name
        for field in fields
        if field.name in given or not (field.null or field.blank or field.has_default())
    }
    every = {field.name for field in record._meta.fields}  # noqa: SLF001
    try:
        record.clean_fields(exclude=every - checked)
    except ValidationError as error:
        return [
            f"{field}: {message}"
            for field, messages in error.message_dict.items()
            for message in messages
        ]
    return []


def _wrong_job(record: JobRecord) -> list[str]:
    wrong = []
    if record.gpus < 1:
        wrong.append("gpus: a job holds at least 1 GPU.")
    if record.first_start_at and record.first_start_at < record.submit_at:
        wrong.append("first_start_at: the job starts before it was submitted.")
    if record.end_at and record.end_at < (record.first_start_at or record.submit_at):
        wrong.append("end_at: the job ends before it starts.")
    return wrong


def _wrong_attempt(record: AttemptRecord) -> list[str]:
    wrong = []
    if record.end_at and record.end_at < record.start_at:
        wrong.append("end_at: the attempt ends before it starts.")
    if record.start_at < record.job.submit_at:
        wrong.append("start_at: the attempt starts before the job was submitted.")
    return wrong
