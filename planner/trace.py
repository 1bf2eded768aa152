"""What a run leaves behind: flat records of jobs, attempts, spells of waiting, and evictions.

The records are columns of numbers (`Records`), the same from every engine; the frames that people
and measures read are made of them when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from planner.description.record import Scenario
from planner.vocabulary import AttemptEnd, Ground, JobState, Reason

Numbers = np.ndarray[Any, np.dtype[Any]]

PARTS = ("useful", "lost", "checkpoint", "restart", "staging")
SCORE_TERMS = ("age", "fair_share", "size", "lane")
# The codes that stand in the records are places in these.
STATES, ENDS, GROUNDS, REASONS = tuple(JobState), tuple(AttemptEnd), tuple(Ground), tuple(Reason)

_Word = TypeVar("_Word", bound=str)


class JobRecords(NamedTuple):
    """One row per job submitted by the end, in file order; -1 stands for what is absent."""

    position: Numbers  # in the file
    state: Numbers
    first_start: Numbers
    end: Numbers
    preemptions: Numbers
    reason: Numbers  # why it can never run
    waiting_reason: Numbers  # why it still waits at the end


class AttemptRecords(NamedTuple):
    """One row per attempt, by job and number; -1 stands for what is absent."""

    job: Numbers  # position in the file, as in all records
    number: Numbers
    pool: Numbers
    start: Numbers
    end: Numbers
    ended: Numbers
    by: Numbers
    ground: Numbers
    staging: Numbers
    restart: Numbers
    split: Numbers  # GPU-seconds, a column for each of PARTS
    staged: Numbers  # whether the staging was finished
    scores: Numbers | None  # with order = "multifactor": a column for each of SCORE_TERMS


class SpellRecords(NamedTuple):
    """One row per spell of waiting for one reason, by job and time."""

    job: Numbers
    start: Numbers
    end: Numbers
    reason: Numbers


class EvictionRecords(NamedTuple):
    """One row per eviction, in the order in which they happened."""

    at: Numbers
    victim: Numbers
    preemptor: Numbers
    ground: Numbers
    pool: Numbers
    lost: Numbers


class Records(NamedTuple):
    """All that an engine has to say. Spells are many, so they are spelled out on demand."""

    jobs: JobRecords
    attempts: AttemptRecords
    evictions: EvictionRecords
    total_wait: Numbers  # by job, like `jobs`
    spells: Callable[[], SpellRecords]


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The records of one run. Times are seconds from the start; absent values are null.

    `jobs`: one row per job, in file order (jobs submitted after the horizon are left out);
    `reason` says why a job can never run, `waiting_reason` why it still waits at the end.
    `attempts`: one row per attempt. `spells`: waiting by reason; they add up to a job's total
    wait. `evictions`: one row each. `end_seconds` is the horizon, or the last event's instant.
    """

    scenario: Scenario
    end_seconds: int
    records: Records

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Return one row per job, in file order."""
        return _jobs(self.scenario, self.records)

    @cached_property
    def attempts(self) -> pd.DataFrame:
        """Return one row per attempt, by job and number."""
        return _attempts(self.scenario, self.records.attempts)

    @cached_property
    def spells(self) -> pd.DataFrame:
        """Return one row per spell of waiting for one reason, by job and time."""
        rows = self.records.spells()
        return pd.DataFrame(
            {
                "job": _texts(_ids(self.scenario), rows.job),
                "start_seconds": rows.start.astype("int64"),
                "end_seconds": rows.end.astype("int64"),
                "reason": _words(REASONS, rows.reason),
            }
        )

    @cached_property
    def evictions(self) -> pd.DataFrame:
        """Return one row per eviction, by time."""
        return _evictions(self.scenario, self.records.evictions)

    def __getstate__(self) -> dict[str, object]:
        """Pickle the spells spelled out, not the engine's way of telling them."""
        spells = self.records.spells()
        return {
            "scenario": self.scenario,
            "end_seconds": self.end_seconds,
            "records": self.records._replace(spells=_Told(spells)),
        }


@dataclass(frozen=True)
class _Told:
    rows: SpellRecords

    def __call__(self) -> SpellRecords:
        return self.rows


# --- Frames --------------------------------------------------------------------------------------


def _ids(scenario: Scenario) -> Numbers:
    return np.asarray(scenario.table.ids, dtype=object)


def _texts(names: Numbers | Sequence[str | None], codes: Numbers) -> pd.Series[Any]:
    """Return the names that stand at these places; a place of -1 is null."""
    known = np.empty(len(names) + 1, dtype=object)
    known[:-1], known[-1] = names, None
    return pd.Series(known[codes], dtype="str")


def _words(words: Sequence[_Word], codes: Numbers) -> pd.Series[Any]:
    return _texts([str(word) for word in words], codes)


def _whole(values: Numbers, *, absent: Numbers | None = None) -> pd.Series[Any]:
    """Return whole numbers of which some are absent: the negative ones, or those marked."""
    missing = values < 0 if absent is None else absent
    return pd.Series(pd.arrays.IntegerArray(values.astype("int64"), missing))


def _sums_by_job(attempts: AttemptRecords, values: Numbers, jobs: int) -> Numbers:
    """Add up a column of the attempts, which are sorted by job, for every job in the file."""
    running = np.concatenate(([0], np.cumsum(values)))
    ends = np.searchsorted(attempts.job, np.arange(jobs + 1))
    return np.asarray(np.diff(running[ends]))


def _jobs(scenario: Scenario, records: Records) -> pd.DataFrame:
    table, jobs, attempts = scenario.table, records.jobs, records.attempts
    at, every = jobs.position, len(scenario.table)
    tenant_of = {project.name: project.tenant for project in scenario.projects}
    submit = table.submit_seconds[at]
    bounds = np.searchsorted(attempts.job, np.arange(every + 1))
    number = np.diff(bounds)[at]
    last = np.maximum(bounds[1:] - 1, 0)[at]
    pools = [pool.name for pool in scenario.pools]
    pool = np.full(len(at), -1) if not len(attempts.job) else attempts.pool[last]
    never = jobs.state == STATES.index(JobState.UNSCHEDULABLE)
    project = table.project[at]
    return pd.DataFrame(
        {
            "id": _texts(_ids(scenario), at),
            "project": _texts(table.project_names, project),
            "tenant": _texts([tenant_of.get(name) for name in table.project_names], project),
            "lane": _texts(table.lane_names, table.lane[at]),
            "gpus": table.gpus[at].astype("int64"),
            "submit_seconds": submit.astype("int64"),
            "state": _words(STATES, jobs.state),
            "first_start_seconds": _whole(jobs.first_start),
            "end_seconds": _whole(jobs.end),
            "wait_seconds": _whole(jobs.first_start - submit, absent=jobs.first_start < 0),
            "total_wait_seconds": _whole(records.total_wait, absent=never),
            "attempts": number.astype("int64"),
            "preemptions": jobs.preemptions.astype("int64"),
            "pool": _texts(pools, np.where(number > 0, pool, -1)),
            **{
                f"{part}_gpu_seconds": _sums_by_job(attempts, attempts.split[:, column], every)[
                    at
                ].astype("int64")
                for column, part in enumerate(PARTS)
            },
            "staged_gb": _staged_gb(scenario, attempts)[at],
            "reason": _words(REASONS, jobs.reason),
            "waiting_reason": _words(REASONS, jobs.waiting_reason),
        }
    )


def _staged_gb(scenario: Scenario, attempts: AttemptRecords) -> Numbers:
    """Return what each job has brought over a link, in GB: as a decimal, then as a float."""
    table = scenario.table
    gigabytes = np.zeros(len(table))
    times = np.bincount(attempts.job[attempts.staged != 0], minlength=len(table))
    for job in np.flatnonzero(times):
        gigabytes[job] = float(table.kinds[table.kind[job]].data_gb * int(times[job]))
    return gigabytes


def _attempts(scenario: Scenario, rows: AttemptRecords) -> pd.DataFrame:
    ids = _ids(scenario)
    scores = np.full((len(rows.job), 4), np.nan) if rows.scores is None else rows.scores
    return pd.DataFrame(
        {
            "job": _texts(ids, rows.job),
            "attempt": rows.number.astype("int64"),
            "pool": _texts([pool.name for pool in scenario.pools], rows.pool),
            "start_seconds": rows.start.astype("int64"),
            "end_seconds": _whole(rows.end),
            "ended": _words(ENDS, rows.ended),
            "by_job": _texts(ids, rows.by),
            "ground": _words(GROUNDS, rows.ground),
            "staging_seconds": rows.staging.astype("int64"),
            "restart_seconds": rows.restart.astype("int64"),
            **{
                f"{part}_gpu_seconds": rows.split[:, column].astype("int64")
                for column, part in enumerate(PARTS)
            },
            **{f"score_{term}": scores[:, column] for column, term in enumerate(SCORE_TERMS)},
            # Left to right, as the engines add them up.
            "score": scores[:, 0] + scores[:, 1] + scores[:, 2] + scores[:, 3],
        }
    )


def _evictions(scenario: Scenario, rows: EvictionRecords) -> pd.DataFrame:
    table, ids = scenario.table, _ids(scenario)
    preempts = rows.preemptor >= 0

    def of(codes: Numbers, jobs: Numbers) -> Numbers:
        return np.where(jobs >= 0, codes[jobs], -1) if len(codes) else np.full(len(jobs), -1)

    return pd.DataFrame(
        {
            "at_seconds": rows.at.astype("int64"),
            "victim": _texts(ids, rows.victim),
            "victim_project": _texts(table.project_names, of(table.project, rows.victim)),
            "victim_lane": _texts(table.lane_names, of(table.lane, rows.victim)),
            "preemptor": _texts(ids, np.where(preempts, rows.preemptor, -1)),
            "preemptor_project": _texts(table.project_names, of(table.project, rows.preemptor)),
            "preemptor_lane": _texts(table.lane_names, of(table.lane, rows.preemptor)),
            "ground": _words(GROUNDS, rows.ground),
            "pool": _texts([pool.name for pool in scenario.pools], rows.pool),
            "lost_gpu_seconds": rows.lost.astype("int64"),
        }
    )
