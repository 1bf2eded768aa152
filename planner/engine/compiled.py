"""The compiled engine: the reference's schedule, to the second, a hundred times as fast.

A scenario becomes records of whole numbers, the kernel runs over them, and what it leaves behind
becomes the same records that the reference engine writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.description.record import Scenario
from planner.engine.columns import Beyond
from planner.engine.kernel import layout as k
from planner.engine.kernel.build import REASONS as BUILT_REASONS
from planner.engine.kernel.build import TooFine, build
from planner.engine.kernel.handle import handle
from planner.engine.kernel.run import steps
from planner.engine.kernel.spells import spell_out
from planner.trace import (
    ENDS,
    GROUNDS,
    PARTS,
    REASONS,
    STATES,
    AttemptRecords,
    EvictionRecords,
    JobRecords,
    Numbers,
    Records,
    SpellRecords,
    Trace,
)
from planner.vocabulary import AttemptEnd, Ground, JobState, Order

__all__ = ["TooFine", "build", "run_state", "simulate", "tell"]

_STATES = np.array(
    [
        STATES.index(state)
        for state in (
            JobState.WAITING,
            JobState.RUNNING,
            JobState.FINISHED,
            JobState.CANCELLED,
            JobState.UNSCHEDULABLE,
            JobState.SUSPENDED,
        )
    ],
    dtype=np.int8,
)
_ENDS = np.array(
    [ENDS.index(end) for end in (AttemptEnd.EVICTED, AttemptEnd.RUNNING, AttemptEnd.FINISHED)],
    dtype=np.int8,
)
_GROUNDS = np.array(
    [
        *(GROUNDS.index(ground) for ground in (Ground.PREEMPTION, Ground.RECLAIM, Ground.OUTAGE)),
        -1,
    ],
    dtype=np.int8,
)
_REASONS = np.array([*(REASONS.index(reason) for reason in BUILT_REASONS), -1], dtype=np.int8)


def simulate(scenario: Scenario) -> Trace:
    """Run a scenario; raises `TooFine` where 64 bits are too few to compare its weights."""
    state = run_state(build(scenario))
    return tell(scenario, state)


def run_state(state: k.State) -> k.State:
    """Run to the end, and return the state: with other arrays where more room was needed."""
    while (code := steps(handle(state))) == k.MORE_ROOM:
        state = _with_more_room(state)
    if code == k.TOO_LONG:
        raise Beyond(int(state.rule[k.LAST_SECOND]))
    return state


def _with_more_room(state: k.State) -> k.State:
    st, jobs = state.st, len(state.jobs)
    waiting, running = int(st[k.WAITERS]), int(st[k.RUNNERS])
    needed = waiting + 2 * running + int(st[k.BACK_OFFS]) + 2 * len(state.queues) + 1024
    # As many again as there are jobs still to come, in proportion to what it took so far.
    ahead = 1.0 + (jobs - int(st[k.ARRIVED])) / max(1, int(st[k.ARRIVED]))

    def grown(rows: Any, used: int, step: int) -> Any:
        if used + step <= len(rows):
            return rows
        more = np.zeros(max(int(used * min(ahead, 2.0) * 1.1), len(rows)) + step, rows.dtype)
        more[:used] = rows[:used]
        return more

    attempts = grown(state.attempts, int(st[k.ATTEMPTS]), needed)
    scores = state.scores
    if len(scores) > 1:
        scores = np.zeros((len(attempts), scores.shape[1]))
        scores[: len(state.scores)] = state.scores
    return state._replace(
        attempts=attempts,
        scores=scores,
        spells=grown(state.spells, int(st[k.SPELLS]), needed),
        log=grown(state.log, int(st[k.LOG]), len(state.kins) + 1024),
        evictions=grown(state.evictions, int(st[k.EVICTIONS]), needed),
    )


# --- What is left behind --------------------------------------------------------------------------


def tell(scenario: Scenario, state: k.State) -> Trace:
    """Turn the state of a run that has ended into its records."""
    horizon = scenario.horizon_seconds
    end = int(state.st[k.NOW]) if horizon is None else horizon
    jobs = state.jobs
    position = np.sort(state.order).astype(np.int64)
    rows = jobs[position]
    codes = rows["state"].astype(np.int64)
    waits_for, open_spells = _still_waiting(state, end)
    spells = np.concatenate([state.spells[: int(state.st[k.SPELLS])], open_spells])
    total = np.bincount(
        spells["job"], weights=spells["end"] - spells["start"], minlength=len(jobs)
    ).astype(np.int64)
    attempts, by_time = _attempts(scenario, state, end)
    records = Records(
        jobs=JobRecords(
            position=position,
            state=_STATES[codes],
            first_start=rows["first_start"],
            end=rows["end"],
            preemptions=rows["preemptions"],
            reason=np.where(codes == k.UNSCHEDULABLE, _REASONS[rows["reason"]], -1),
            waiting_reason=_REASONS[waits_for[position]],
        ),
        attempts=attempts,
        evictions=_evictions(state, by_time),
        total_wait=total[position],
        spells=_Spells(spells, state.log[: int(state.st[k.LOG])], by_time),
    )
    return Trace(scenario, end, records)


def _still_waiting(state: k.State, end: int) -> tuple[Numbers, Numbers]:
    """Return why each job still waits (-1: it does not), and its spell that is still open."""
    jobs = state.jobs
    waits_for = np.full(len(jobs), -1, np.int64)
    waiting = np.isin(jobs["state"], (k.WAITING, k.SUSPENDED_STATE))
    backing_off = np.zeros(len(jobs), bool)
    backing_off[state.back_offs["what"][: int(state.st[k.BACK_OFFS])]] = True
    rows = np.flatnonzero(waiting)
    mine = jobs[rows]
    shapes = state.shapes[mine["shape_id"]]
    strict = state.queues["strict"][shapes["queue"]] != 0
    ref = mine["log"].astype(np.int64)
    reason = state.log["reason"][state.kins["log"][shapes["kin"]]].astype(np.int64)
    for where, code in (
        (strict & (mine["is_head"] == 0), k.BEHIND),
        (mine["state"] == k.SUSPENDED_STATE, k.SUSPENDED),
        (backing_off[rows], k.BACKING_OFF),
    ):
        reason[where], ref[where] = code, -1 - code
    waits_for[rows] = reason
    spells = np.zeros(len(rows), k.SPELL)
    spells["job"], spells["start"], spells["end"] = rows, mine["since"], end
    spells["ref"] = ref
    return waits_for, spells[spells["start"] < end]


def _attempts(scenario: Scenario, state: k.State, now: int) -> tuple[AttemptRecords, Numbers]:
    """Split the attempts' GPU-seconds; return them by job, and in the order they happened."""
    by_time = state.attempts[: int(state.st[k.ATTEMPTS])]
    sorting = np.argsort(by_time["job"], kind="stable")
    rows = by_time[sorting]
    job, ended = rows["job"], rows["ended"]
    running = ended == k.STILL_RUNNING
    restart = np.where(rows["pays_restart"] != 0, state.restart[job], 0)
    elapsed = np.where(running, now, rows["end"]) - rows["start"]
    staged = np.minimum(elapsed, rows["staging"])
    restarted = np.minimum(elapsed - staged, restart)
    at_work = elapsed - staged - restarted
    progress = _progress(state, rows, at_work)
    progress = np.where(ended == k.DONE, rows["kept"], progress)
    useful = np.where(running, progress, rows["kept"])  # nobody has interrupted it
    split = np.stack(
        [useful, progress - useful, at_work - progress, restarted, staged], axis=1
    ).astype(np.int64)
    split *= scenario.table.gpus[job][:, None]
    assert PARTS == ("useful", "lost", "checkpoint", "restart", "staging")  # noqa: S101
    complete = running & (rows["staging"] > 0) & (elapsed >= rows["staging"])
    by_score = scenario.policy.order is Order.MULTIFACTOR
    records = AttemptRecords(
        job=job.astype(np.int64),
        number=rows["number"],
        pool=rows["pool"],
        start=rows["start"],
        end=rows["end"],
        ended=_ENDS[ended],
        by=rows["by"],
        ground=_GROUNDS[rows["ground"]],
        staging=rows["staging"],
        restart=restart,
        split=split,
        staged=(rows["staged"] != 0) | complete,
        scores=state.scores[: len(rows)][sorting] if by_score else None,
    )
    return records, by_time


def _progress(state: k.State, rows: Numbers, at_work: Numbers) -> Numbers:
    """Return the useful seconds of attempts that were interrupted, or are still running."""
    job = rows["job"]
    interval = state.interval[job]
    storage = state.pools["storage"][rows["pool"]]
    write = np.zeros(len(rows), np.int64)
    has = storage >= 0
    write[has] = state.write_seconds[state.kind[job[has]], storage[has]]
    cycle = np.maximum(1, interval + write)
    cycles = at_work // cycle
    cut = cycles * interval + np.minimum(interval, at_work - cycles * cycle)
    return np.where(interval > 0, cut, at_work)


def _evictions(state: k.State, attempts: Numbers) -> EvictionRecords:
    rows = state.evictions[: int(state.st[k.EVICTIONS])]
    hit = attempts[rows["attempt"]]
    # Those of an outage are in the order of the file; they come before the pass of their second.
    within = np.where(rows["outage"] >= 0, hit["job"], np.arange(len(rows)))
    sorting = np.lexsort((within, rows["outage"], rows["outage"] < 0, hit["end"]))
    rows, hit = rows[sorting], hit[sorting]
    return EvictionRecords(
        at=hit["end"],
        victim=hit["job"].astype(np.int64),
        preemptor=hit["by"].astype(np.int64),
        ground=_GROUNDS[hit["ground"]],
        pool=hit["pool"],
        lost=rows["lost"],
    )


class _Spells:
    """The spells as the kernel keeps them: those of one shape share a log of reasons."""

    def __init__(self, spells: Numbers, log: Numbers, attempts: Numbers) -> None:
        self.spells, self.log, self.attempts = spells, log, attempts

    def __call__(self) -> SpellRecords:
        job, start, end, reason = spell_out(self.spells, self.log)
        sorting = np.lexsort((start, job))
        job, start, end = job[sorting], start[sorting], end[sorting]
        reason = _REASONS[reason[sorting]]
        # A spell goes on where the one before it ends for the same reason, unless an attempt of
        # no length lies between.
        goes_on = (job[1:] == job[:-1]) & (start[1:] == end[:-1]) & (reason[1:] == reason[:-1])
        at = np.flatnonzero(goes_on) + 1
        begun = self.attempts[np.isin(self.attempts["job"], job[at])]
        starts = set(zip(begun["job"].tolist(), begun["start"].tolist(), strict=True))
        for place in at.tolist():
            goes_on[place - 1] = (int(job[place]), int(start[place])) not in starts
        first = np.flatnonzero(np.concatenate(([True], ~goes_on)) if len(job) else [])
        last = np.concatenate((first[1:] - 1, [len(job) - 1])).astype(int)[: len(first)]
        return SpellRecords(job[first], start[first], end[last], reason[first])
