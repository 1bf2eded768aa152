"""The demo's story: what the planner's own engine makes of the demo world's work.

Everything the demo shows comes from here, so that waits, use, evictions and latencies agree with
one another. The story is the same for everybody up to its first day; told further, its beginning
does not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd

from planner import simulate
from planner.fleet import Outage
from planner.scenario import Scenario, read
from planner.trace import Trace
from planner.work import Job
from portal.demo import workload

JST = ZoneInfo("Asia/Tokyo")
WORLD = Path(__file__).with_name("world.toml")
WARM_UP = timedelta(weeks=1)
HISTORY = timedelta(weeks=8)
AHEAD = timedelta(days=2)
FAILED_DOMAIN, FAILED_FOR = "tokyo-b", timedelta(hours=6)
STALLED_STORAGE, STALLED_FOR, STALL_FACTOR = "tokyo-ckpt", timedelta(minutes=80), 4.0
# A stalled write is given up now and then: every so many of them fails.
STALL_FAILS_EVERY = 6
SOURCE = "demo"


@dataclass(frozen=True, eq=False)
class Story:
    """What happens in the demo world: a trace, and two events that people will look for."""

    first_day: date
    trace: Trace
    stall: tuple[datetime, datetime]
    outage: tuple[datetime, datetime]

    @property
    def start(self) -> datetime:
        """Second 0 of the trace."""
        return self.trace.scenario.start

    @property
    def history_start(self) -> datetime:
        """From here on the story is shown: the queues have filled by then."""
        return self.start + WARM_UP

    @property
    def end(self) -> datetime:
        """Where the story breaks off for now."""
        return self.start + timedelta(seconds=self.trace.end_seconds)

    def seconds(self, instant: datetime) -> int:
        """Whole seconds of the trace up to an instant."""
        return int((instant - self.start).total_seconds())


def at_jst(day: date, hour: int, minute: int = 0) -> datetime:
    """An instant of a day in Japan, in UTC."""
    return datetime.combine(day, time(hour, minute), tzinfo=JST).astimezone(UTC)


def start_of(first_day: date) -> datetime:
    """Second 0: the Monday nine weeks before the week of the demo's first day, 00:00 in Japan."""
    monday = first_day - timedelta(days=first_day.weekday())
    return at_jst(monday - WARM_UP - HISTORY, 0)


def told_until(now: datetime) -> datetime:
    """How far a story told at `now` reaches: whole days, so that it is not told anew too often."""
    return at_jst(now.astimezone(JST).date() + AHEAD, 0)


def _working_day(day: date) -> date:
    """The day itself, or the Friday before a weekend."""
    return day - timedelta(days=max(0, day.weekday() - 4))


def regions() -> list[str]:
    """The names of the demo's regions."""
    return [region.name for region in read(WORLD).regions]


def tell(*, first_day: date, now: datetime) -> Story:
    """The story of a demo that was first started on `first_day`, and some way past `now`."""
    return _told(first_day, told_until(now))


@lru_cache(maxsize=2)
def _told(first_day: date, until: datetime) -> Story:
    start = start_of(first_day)
    world = read(WORLD)
    fails_at = at_jst(_working_day(first_day - timedelta(days=8)), 10)
    stalls_at = at_jst(_working_day(first_day - timedelta(days=2)), 19, 20)
    scenario = replace(
        world,
        start=start,
        horizon_seconds=int((until - start).total_seconds()),
        jobs=workload.jobs(days=math.ceil((until - start) / timedelta(days=1)), seed=world.seed),
        outages=(
            Outage(
                domain=FAILED_DOMAIN,
                start_seconds=int((fails_at - start).total_seconds()),
                duration_seconds=int(FAILED_FOR.total_seconds()),
            ),
        ),
    )
    return Story(
        first_day=first_day,
        trace=simulate(scenario),
        stall=(stalls_at, stalls_at + STALLED_FOR),
        outage=(fails_at, fails_at + FAILED_FOR),
    )


def records(
    story: Story, *, now: datetime, since: datetime | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Job and attempt records as a scheduler knew them at `now`, in the shape of record_jobs.

    What lies ahead of `now` is left out. With `since`, only jobs that were not over by then.
    """
    cut = min(story.seconds(now), story.trace.end_seconds)
    over_before = story.seconds(since if since else story.history_start)
    known = story.trace.jobs
    known = known[(known["submit_seconds"] <= cut)]
    known = known[known["end_seconds"].isna() | (known["end_seconds"] > over_before)]
    attempts = _attempts_at(story, known, cut)
    return _jobs_at(story, known, attempts, cut), _as_records(story, attempts)


def write_seconds(scenario: Scenario) -> pd.DataFrame:
    """How long a checkpoint of each job takes in each pool, undisturbed: job × pool, in seconds."""
    rates = {storage.name: storage.write_gb_per_second for storage in scenario.storages}
    return pd.DataFrame(
        {
            pool.name: [
                math.ceil(job.checkpoint_gb / rates[pool.storage]) if pool.storage else 0
                for job in scenario.jobs
            ]
            for pool in scenario.pools
        },
        index=[job.id for job in scenario.jobs],
    )


def _instants(story: Story, seconds: pd.Series) -> pd.Series:
    return pd.Timestamp(story.start) + pd.to_timedelta(seconds.astype("Int64"), unit="s")


def _asked(scenario: Scenario) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": job.id,
            "work_seconds": job.work_seconds,
            "limit_seconds": job.limit_seconds,
            "accelerator": job.accelerator or "",
            "data_region": job.data_region or "",
            "data_gb": job.data_gb,
            "checkpoint_interval_seconds": job.checkpoint_interval_seconds,
            "checkpoint_gb": job.checkpoint_gb,
            "restart_seconds": job.restart_seconds,
        }
        for job in scenario.jobs
    )


def _attempts_at(story: Story, known: pd.DataFrame, cut: int) -> pd.DataFrame:
    """The attempts begun by `cut`; those still under way are split as if the run ended there."""
    trace = story.trace
    attempts = trace.attempts[trace.attempts["start_seconds"] <= cut]
    attempts = attempts.merge(
        known[["id", "project", "lane", "gpus"]].rename(columns={"id": "job"}), on="job"
    )
    running = attempts["end_seconds"].isna() | (attempts["end_seconds"] > cut)
    attempts.loc[running, ["end_seconds", "ground", "by_job"]] = pd.NA
    attempts.loc[running, "ended"] = "running"
    asked = {job.id: job for job in trace.scenario.jobs}
    write = write_seconds(trace.scenario)
    splits = [
        _split_at(
            asked[row["job"]],
            held=cut - row["start_seconds"],
            staging=row["staging_seconds"],
            restart=row["restart_seconds"],
            pause=int(write.loc[row["job"], row["pool"]]),
        )
        for row in attempts[running].to_dict("records")
    ]
    for part in ("staging", "restart", "useful", "checkpoint", "lost"):
        column = f"{part}_gpu_seconds"
        attempts.loc[running, column] = [split.get(part, 0) for split in splits]
    return attempts


def _split_at(job: Job, *, held: int, staging: int, restart: int, pause: int) -> dict[str, int]:
    """What an attempt under way has spent its GPU-seconds on, as the planner's contract says."""
    staged = min(held, staging)
    restarted = min(held - staged, restart)
    useful = working = held - staged - restarted
    cycle = job.checkpoint_interval_seconds
    if cycle:
        whole, rest = divmod(working, cycle + pause)
        useful = whole * cycle + min(cycle, rest)
    seconds = {
        "staging": staged,
        "restart": restarted,
        "useful": useful,
        "checkpoint": working - useful,
    }
    return {part: spent * job.gpus for part, spent in seconds.items()}


def _jobs_at(story: Story, known: pd.DataFrame, attempts: pd.DataFrame, cut: int) -> pd.DataFrame:
    trace = story.trace
    jobs = known.merge(_asked(trace.scenario), on="id").set_index("id")
    begun = attempts.groupby("job")
    jobs["attempts_count"] = begun.size().reindex(jobs.index, fill_value=0)
    jobs["pool"] = begun["pool"].last().reindex(jobs.index).fillna("")
    jobs.loc[jobs["first_start_seconds"] > cut, "first_start_seconds"] = pd.NA
    spells = trace.spells[trace.spells["start_seconds"] < cut]
    waited = (spells["end_seconds"].clip(upper=cut) - spells["start_seconds"]).groupby(
        spells["job"]
    )
    jobs["total_wait_seconds"] = waited.sum().reindex(jobs.index, fill_value=0)
    evicted = trace.evictions[
        (trace.evictions["at_seconds"] <= cut) & (trace.evictions["ground"] != "outage")
    ]
    jobs["preemptions"] = evicted.groupby("victim").size().reindex(jobs.index, fill_value=0)
    # Where each stands at the cut: over, holding GPUs, or in the spell of waiting that covers it.
    running = set(attempts.loc[attempts["ended"] == "running", "job"])
    over = jobs["end_seconds"].notna() & (jobs["end_seconds"] <= cut)
    jobs.loc[~over, "end_seconds"] = pd.NA
    jobs["state"] = [
        state if is_over or state == "unschedulable" else "running" if job in running else "waiting"
        for job, state, is_over in zip(jobs.index, jobs["state"], over, strict=True)
    ]
    still = trace.spells[
        (trace.spells["start_seconds"] <= cut) & (trace.spells["end_seconds"] >= cut)
    ]
    reasons = still.groupby("job")["reason"].last().reindex(jobs.index)
    jobs["reason"] = [
        reason if state == "waiting" and isinstance(reason, str) else ""
        for state, reason in zip(jobs["state"], reasons, strict=True)
    ]
    return (
        jobs.rename_axis("job_id")
        .reset_index()
        .assign(
            submit_at=lambda rows: _instants(story, rows["submit_seconds"]),
            first_start_at=lambda rows: _instants(story, rows["first_start_seconds"]),
            end_at=lambda rows: _instants(story, rows["end_seconds"]),
        )
    )


def _as_records(story: Story, attempts: pd.DataFrame) -> pd.DataFrame:
    asked = {job.id: job for job in story.trace.scenario.jobs}
    by = [asked.get(job) if isinstance(job, str) else None for job in attempts["by_job"]]
    return attempts.assign(
        job_id=attempts["job"],
        number=attempts["attempt"],
        start_at=_instants(story, attempts["start_seconds"]),
        end_at=_instants(story, attempts["end_seconds"]),
        evicted_by_job=[job.id if job else "" for job in by],
        evicted_by_project=[job.project if job else "" for job in by],
        evicted_by_lane=[job.lane if job else "" for job in by],
    )
