"""What happens to one job: its attempts, what they cost, and why it waits in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from planner.policy.checkpoint import Spent, spent, writes_in
from planner.policy.placement import Share
from planner.vocabulary import AttemptEnd, Ground, JobState, Reason, Recovery
from planner.work import Job

Spell = tuple[int, int, Reason]  # from, to, why
History = Callable[[int, int], Iterable[Spell]]


class Score(NamedTuple):
    """The weighted terms of a multifactor score; their sum, left to right, is the score."""

    age: float
    fair_share: float
    size: float
    lane: float


@dataclass(slots=True)
class Attempt:
    """One attempt: seconds planned, then GPU-seconds spent."""

    job: int  # position in the file
    number: int
    pool: int
    start: int
    staging: int
    restart: int
    write: int
    end: int | None = None
    ended: AttemptEnd = AttemptEnd.RUNNING
    by: int | None = None
    ground: Ground | None = None
    staging_gpu: int = 0
    restart_gpu: int = 0
    checkpoint_gpu: int = 0
    useful_gpu: int = 0
    lost_gpu: int = 0
    staged: bool = False
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who was evicted when, for whom, on what ground, and what it cost."""

    at: int
    victim: Course
    preemptor: Course | None
    ground: Ground
    pool: int
    lost: int


class Course:
    """The course of one job through a run."""

    __slots__ = (
        "attempts",
        "end",
        "evictions",
        "first_start",
        "gpus",
        "history",
        "job",
        "lane",
        "pays_restart",
        "phase_reason",
        "phase_start",
        "pool",
        "position",
        "preemptions",
        "project",
        "reason",
        "region",
        "saved",
        "shares",
        "spelled_attempts",
        "spells",
        "staged_in",
        "state",
        "turn",
        "waits_for",
    )

    def __init__(self, job: Job, *, position: int, turn: int, project: int, lane: int) -> None:
        self.job = job
        self.gpus = job.gpus
        self.position = position  # place in the file
        self.turn = turn  # place by submit time, then by file
        self.project = project
        self.lane = lane
        self.state = JobState.WAITING
        self.reason: Reason | None = None  # why it can never run
        # Attempts
        self.attempts: list[Attempt] = []
        self.saved = 0  # seconds of useful work that are done and kept
        self.evictions = 0
        self.preemptions = 0
        self.pays_restart = False
        self.staged_in: tuple[str, ...] = ()
        self.first_start: int | None = None
        self.end: int | None = None
        self.pool = -1
        self.region = ""
        self.shares: list[Share] = []
        # Waiting
        self.spells: list[Spell] = []
        self.spelled_attempts = 0  # how many there had been when the last spell was written
        self.phase_start = 0
        self.phase_reason: Reason | None = None  # None: what the history of its shape says
        self.history: History
        self.waits_for: Reason | None = None  # why it still waits when the run ends

    # --- Waiting -----------------------------------------------------------------------------

    def wait_on(self, now: int, reason: Reason | None) -> None:
        """Begin a new phase of waiting."""
        self.phase_start, self.phase_reason = now, reason

    def end_phase(self, now: int) -> None:
        """Write down why the job has waited since the phase began."""
        if now > self.phase_start:
            if self.phase_reason is None:
                for spell in self.history(self.phase_start, now):
                    self._wrote(*spell)
            else:
                self._wrote(self.phase_start, now, self.phase_reason)
        self.phase_start = now

    def _wrote(self, start: int, end: int, reason: Reason) -> None:
        """Write down a spell; it goes on where one of the same wait ends for the same reason."""
        same_wait = self.spelled_attempts == len(self.attempts)
        if same_wait and self.spells and self.spells[-1][1:] == (start, reason):
            start = self.spells.pop()[0]
        self.spells.append((start, end, reason))
        self.spelled_attempts = len(self.attempts)

    # --- Attempts ----------------------------------------------------------------------------

    @property
    def attempt(self) -> Attempt:
        """Return the latest attempt."""
        return self.attempts[-1]

    def begin(self, now: int, pool: int, region: str, *, staging: int, write: int) -> int:
        """Begin an attempt; return the second at which it will end if nothing interrupts it."""
        self.end_phase(now)
        self.state = JobState.RUNNING
        self.pool, self.region = pool, region
        restart = self.job.restart_seconds if self.pays_restart else 0
        number = len(self.attempts) + 1
        self.attempts.append(Attempt(self.position, number, pool, now, staging, restart, write))
        if self.first_start is None:
            self.first_start = now
        left = self.job.work_seconds - self.saved
        writes = writes_in(left, self.job.checkpoint_interval_seconds)
        return now + staging + restart + left + writes * write

    def spent(self, now: int) -> Spent:
        """Split the time of the attempt so far."""
        attempt = self.attempts[-1]
        return spent(
            now - attempt.start,
            staging=attempt.staging,
            restart=attempt.restart,
            interval=self.job.checkpoint_interval_seconds,
            write=attempt.write,
        )

    def would_lose(self, now: int, recovery: Recovery) -> int:
        """Return the GPU-seconds of work that an eviction now would lose."""
        if recovery is Recovery.SUSPEND:
            return 0
        so_far = self.spent(now)
        if recovery is Recovery.CANCEL:
            return self.gpus * (self.saved + so_far.progress)
        return self.gpus * (so_far.progress - so_far.saved)

    def complete(self, now: int) -> None:
        """End the job: all its work is done."""
        attempt = self.attempts[-1]
        left = self.job.work_seconds - self.saved
        writing = now - attempt.start - attempt.staging - attempt.restart - left
        whole = Spent(attempt.staging, attempt.restart, writing, left, left)
        self._close(whole, useful=left, ended=AttemptEnd.FINISHED)
        attempt.end = self.end = now
        self.state = JobState.FINISHED

    def interrupt(
        self, now: int, recovery: Recovery, ground: Ground, *, by: Course | None, storage_lost: bool
    ) -> int:
        """End an attempt before its time; return the GPU-seconds of work that are lost by it."""
        attempt, so_far = self.attempts[-1], self.spent(now)
        self.evictions += 1
        self.preemptions += ground is not Ground.OUTAGE
        keeps = so_far.progress if recovery is Recovery.SUSPEND else so_far.saved
        loses_all = recovery is Recovery.CANCEL or storage_lost
        self._close(so_far, useful=0 if loses_all else keeps, ended=AttemptEnd.EVICTED)
        attempt.end, attempt.by, attempt.ground = now, by.position if by else None, ground
        lost = attempt.lost_gpu
        if loses_all:
            for earlier in self.attempts[:-1]:
                lost += earlier.useful_gpu
                earlier.lost_gpu += earlier.useful_gpu
                earlier.useful_gpu = 0
            self.saved = 0
        else:
            self.saved += keeps
        if recovery is Recovery.CANCEL:
            self.state, self.end = JobState.CANCELLED, now
        else:
            suspends = recovery is Recovery.SUSPEND
            self.state = JobState.SUSPENDED if suspends else JobState.WAITING
            self.pays_restart = not suspends
            self.phase_start = now
        return lost

    def stop(self, now: int) -> None:
        """Report the job as it stands when the run ends."""
        if self.state is JobState.RUNNING:
            so_far = self.spent(now)
            # Nobody has interrupted it, so nothing is lost.
            self._close(so_far, useful=so_far.progress, ended=AttemptEnd.RUNNING)
        elif self.state in (JobState.WAITING, JobState.SUSPENDED):
            self.waits_for = self.phase_reason
            if self.waits_for is None:
                *_, (_, _, self.waits_for) = self.history(now, now + 1)
            self.end_phase(now)

    def _close(self, so_far: Spent, *, useful: int, ended: AttemptEnd) -> None:
        """Split the attempt's GPU-seconds, and count what it has brought over a link."""
        attempt, gpus = self.attempts[-1], self.gpus
        attempt.ended = ended
        attempt.staging_gpu = gpus * so_far.staging
        attempt.restart_gpu = gpus * so_far.restart
        attempt.checkpoint_gpu = gpus * so_far.writing
        attempt.useful_gpu = gpus * useful
        attempt.lost_gpu = gpus * (so_far.progress - useful)
        if attempt.staging and so_far.staging == attempt.staging:
            attempt.staged = True
            self.staged_in += (self.region,)
