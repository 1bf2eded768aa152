"""The story as numbers over time: what exporters would have shown, at any instant.

Nearly everything is a sum of steps: GPUs held go up and down, counters and histogram buckets only
up. Steps are asked at any instant, so back-filled history and live samples join without a seam.
The devices' activity is worked out from who holds them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from portal.demo.story import STALL_FACTOR, STALL_FAILS_EVERY, STALLED_STORAGE, Story, write_seconds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = tuple[str, ...]

WAIT_BOUNDS = (1, 2.5, *(5 * 2**n for n in range(14)))  # Kueue's, 1 s to 40,960 s
WRITE_BOUNDS = (0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280)
BYTES = 10**9


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A value that changes by steps: the sum of all weights up to an instant."""

    times: Ints
    sums: Floats

    def at(self, instants: ArrayLike) -> Floats:
        """The value at each instant (seconds of the story), what happens then included."""
        found: Floats = self.sums[np.searchsorted(self.times, np.asarray(instants), side="right")]
        return found


def steps(times: ArrayLike, weights: ArrayLike = 1.0) -> Steps:
    """Steps of one series, from events in any order."""
    at = np.asarray(times, dtype=np.int64)
    order = np.argsort(at, kind="stable")
    by = np.broadcast_to(np.asarray(weights, dtype=float), at.shape)[order]
    return Steps(at[order], np.concatenate([[0.0], np.cumsum(by)]))


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Events with a size each, counted at or below each bound; `bounds` ends with infinity."""

    bounds: tuple[float, ...]
    buckets: tuple[Steps, ...]
    total: Steps

    @property
    def count(self) -> Steps:
        """All events."""
        return self.buckets[-1]


def histogram(times: ArrayLike, sizes: ArrayLike, bounds: Iterable[float]) -> Histogram:
    """A histogram of one series, from events in any order."""
    at, of = np.asarray(times, dtype=np.int64), np.asarray(sizes, dtype=float)
    upper = (*bounds, np.inf)
    return Histogram(upper, tuple(steps(at[of <= bound]) for bound in upper), steps(at, of))


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """Every series of the story by its labels; times in seconds of the story.

    Keys: `held`, `nominal`: (region, pool, project). `pending`, `pending_gpus`, `admitted`,
    `waits`: (region, project, lane). `evicted`: (region, project, lane, reason).
    `writes`, `written_bytes`, `write_failures`: (region, pool, tenant, lane, storage).
    """

    held: Mapping[Labels, Steps]
    nominal: Mapping[Labels, Steps]
    pending: Mapping[Labels, Steps]
    pending_gpus: Mapping[Labels, Steps]
    admitted: Mapping[Labels, Steps]
    evicted: Mapping[Labels, Steps]
    waits: Mapping[Labels, Histogram]
    writes: Mapping[Labels, Histogram]
    written_bytes: Mapping[Labels, Steps]
    write_failures: Mapping[Labels, Steps]


EVICTED_FOR = {"preemption": "Preempted", "reclaim": "Preempted", "outage": "NodeFailures"}


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are: the lookups that every signal needs."""

    region_of_pool: dict[str, str]
    storage_of_pool: dict[str, str | None]
    tenant_of: dict[str, str]
    home_of: dict[str, str] = field(default_factory=dict)


def places(story: Story) -> Places:
    """The lookups of a story's world. A project's home is the region of its first quota."""
    world = story.trace.scenario
    region_of_domain = {domain.name: domain.region for domain in world.domains}
    region_of_pool = {pool.name: region_of_domain[pool.domain] for pool in world.pools}
    home_of: dict[str, str] = {}
    for quota in world.quotas:
        home_of.setdefault(quota.project, region_of_pool[quota.pool])
    return Places(
        region_of_pool=region_of_pool,
        storage_of_pool={pool.name: pool.storage for pool in world.pools},
        tenant_of={project.name: project.tenant for project in world.projects},
        home_of=home_of,
    )


@lru_cache(maxsize=2)
def signals(story: Story) -> Signals:
    """All step series of a story. Those that never move are there too: they are 0, not unknown."""
    world, where = story.trace.scenario, places(story)
    attempts = attempts_of(story)
    jobs = story.trace.jobs
    lanes = sorted({(job.project, job.lane) for job in world.jobs})
    queues = [
        (region, project, lane)
        for project, lane in lanes
        for region in sorted(
            {where.region_of_pool[q.pool] for q in world.quotas if q.project == project}
        )
    ]
    quotas = {(where.region_of_pool[q.pool], q.pool, q.project): q for q in world.quotas}
    attempts["region"] = attempts["pool"].map(where.region_of_pool)
    ended = attempts[attempts["end"] < story.trace.end_seconds]
    held = pd.concat(
        [
            attempts.assign(at=attempts["start"], by=attempts["gpus"]),
            ended.assign(at=ended["end"], by=-ended["gpus"]),
        ]
    )
    spells = story.trace.spells.merge(
        jobs[["id", "project", "lane", "gpus"]].rename(columns={"id": "job"}), on="job"
    )
    spells["region"] = spells["project"].map(where.home_of)
    leaves = spells[spells["end_seconds"] < story.trace.end_seconds]
    waiting = pd.concat(
        [
            spells.assign(at=spells["start_seconds"], by=1),
            leaves.assign(at=leaves["end_seconds"], by=-1),
        ]
    )
    evicted = attempts[attempts["ended"] == "evicted"]
    evicted = evicted.assign(reason=evicted["ground"].map(EVICTED_FOR))
    first = attempts[attempts["number"] == 1]
    queue = ["region", "project", "lane"]
    writes = _writes(story, attempts, where)
    stores = ["region", "pool", "tenant", "lane", "storage"]
    store_keys = sorted(
        {
            (where.region_of_pool[q.pool], q.pool, where.tenant_of[q.project], lane, storage)
            for q in world.quotas
            for project, lane in lanes
            if project == q.project and (storage := where.storage_of_pool[q.pool])
        }
    )
    failed = writes[writes["failed"]]
    return Signals(
        held=_by(held, ["region", "pool", "project"], quotas, "at", "by"),
        nominal={key: steps([0], [quota.nominal]) for key, quota in quotas.items()},
        pending=_by(waiting, queue, queues, "at", "by"),
        pending_gpus=_by(
            waiting.assign(by=waiting["by"] * waiting["gpus"]), queue, queues, "at", "by"
        ),
        admitted=_by(attempts, queue, queues, "start"),
        evicted=_by(
            evicted,
            [*queue, "reason"],
            [(*key, reason) for key in queues for reason in sorted({*EVICTED_FOR.values()})],
            "end",
        ),
        waits={
            key: histogram(rows["start"], rows["start"] - rows["submit"], WAIT_BOUNDS)
            for key, rows in _groups(first, queue, queues)
        },
        writes={
            key: histogram(rows["at"], rows["seconds"], WRITE_BOUNDS)
            for key, rows in _groups(writes[~writes["failed"]], stores, store_keys)
        },
        written_bytes=_by(writes[~writes["failed"]], stores, store_keys, "at", "bytes"),
        write_failures=_by(failed, stores, store_keys, "at"),
    )


def attempts_of(story: Story) -> pd.DataFrame:
    """The trace's attempts with their jobs' columns; what still runs ends with the story."""
    attempts = story.trace.attempts.merge(
        story.trace.jobs[["id", "project", "tenant", "lane", "gpus", "submit_seconds"]],
        left_on="job",
        right_on="id",
    )
    return pd.DataFrame(
        {
            "job": attempts["job"],
            "number": attempts["attempt"],
            "pool": attempts["pool"],
            "project": attempts["project"],
            "tenant": attempts["tenant"],
            "lane": attempts["lane"],
            "gpus": attempts["gpus"],
            "submit": attempts["submit_seconds"],
            "start": attempts["start_seconds"],
            "end": attempts["end_seconds"].fillna(story.trace.end_seconds).astype("int64"),
            "works_from": attempts["start_seconds"]
            + attempts["staging_seconds"]
            + attempts["restart_seconds"],
            "ended": attempts["ended"],
            "ground": attempts["ground"],
        }
    )


def stalled(story: Story, seconds: ArrayLike) -> NDArray[np.bool_]:
    """Whether each instant lies in the evening on which the storage stalls."""
    start, end = (story.seconds(instant) for instant in story.stall)
    at = np.asarray(seconds)
    return (at >= start) & (at < end)


def _writes(story: Story, attempts: pd.DataFrame, where: Places) -> pd.DataFrame:
    """Every checkpoint write: when it ended, how long it took, how much it wrote."""
    asked = {job.id: job for job in story.trace.scenario.jobs}
    pauses = write_seconds(story.trace.scenario)
    rows = attempts.assign(
        storage=attempts["pool"].map(where.storage_of_pool),
        cycle=[asked[job].checkpoint_interval_seconds for job in attempts["job"]],
        bytes=[float(asked[job].checkpoint_gb) * BYTES for job in attempts["job"]],
        pause=pauses.to_numpy()[
            pauses.index.get_indexer(pd.Index(attempts["job"])),
            pauses.columns.get_indexer(pd.Index(attempts["pool"])),
        ],
    )
    rows = rows[rows["storage"].notna() & (rows["cycle"] > 0)]
    times = ((rows["end"] - rows["works_from"]) // (rows["cycle"] + rows["pause"])).clip(lower=0)
    rows = rows.loc[rows.index.repeat(times)]
    nth = rows.groupby(level=0).cumcount().to_numpy() + 1
    began = (rows["works_from"] + nth * rows["cycle"] + (nth - 1) * rows["pause"]).to_numpy()
    slow = stalled(story, began) & (rows["storage"] == STALLED_STORAGE).to_numpy()
    # Writes differ a little from one to the next, the same way whenever the story is told.
    wobble = 0.9 + 0.45 * ((nth * 0.6180339887 + began * 0.7548776662) % 1) ** 3
    taken = rows["pause"].to_numpy() * wobble * np.where(slow, STALL_FACTOR, 1.0)
    return rows.assign(
        at=began + np.ceil(taken).astype(np.int64),
        seconds=taken,
        failed=slow & (np.cumsum(slow) % STALL_FAILS_EVERY == 0),
    )


def _groups(
    rows: pd.DataFrame, by: list[str], keys: Iterable[Labels]
) -> Iterator[tuple[Labels, pd.DataFrame]]:
    found: dict[Any, pd.DataFrame] = dict(iter(rows.groupby(by)))
    empty = rows.iloc[:0]
    for key in dict.fromkeys([*keys, *found]):
        yield key, found.get(key, empty)


def _by(
    rows: pd.DataFrame, by: list[str], keys: Iterable[Labels], at: str, weight: str | None = None
) -> dict[Labels, Steps]:
    return {
        key: steps(found[at], found[weight] if weight else 1.0)
        for key, found in _groups(rows, by, keys)
    }


@dataclass(frozen=True, slots=True, eq=False)
class Tenure:
    """One attempt's hold on some devices of a pool."""

    pool: str
    project: str
    devices: tuple[int, ...]
    start: int
    works_from: int
    end: int
    busy: float


@lru_cache(maxsize=2)
def tenures(story: Story) -> tuple[Tenure, ...]:
    """Who holds which devices when: lowest free numbers first, as a node-filling scheduler does."""
    attempts = attempts_of(story)
    free = {pool.name: list(range(pool.gpus)) for pool in story.trace.scenario.pools}
    rows: list[Any] = list(attempts.itertuples())
    events = sorted(
        event for n, row in enumerate(rows) for event in ((row.end, 0, n), (row.start, 1, n))
    )
    held: dict[int, tuple[int, ...]] = {}
    # An attempt that ends the second it starts gives nothing back: it never held anything.
    for _at, starts, n in events:
        row = rows[n]
        if starts:
            if row.end > row.start:
                held[n] = tuple(heapq.heappop(free[row.pool]) for _ in range(row.gpus))
        else:
            for device in held.get(n, ()):
                heapq.heappush(free[row.pool], device)
    return tuple(
        Tenure(
            row.pool,
            row.project,
            held[n],
            row.start,
            row.works_from,
            row.end,
            0.55 + 0.4 * ((n * 0.6180339887) % 1) if row.lane != "background" else 0.35,
        )
        for n, row in enumerate(rows)
        if n in held
    )


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """What a pool's devices show at some instants: arrays of devices × instants.

    `owner` is the number of the holding project in `projects`, -1 when idle; `engine` 0–1,
    `resident` 0–100. NaN where the device does not report.
    """

    projects: tuple[str, ...]
    owner: NDArray[np.int16]
    engine: Floats
    resident: Floats


def devices(story: Story, instants: ArrayLike) -> dict[str, Devices]:
    """What every device shows at the given instants (ascending seconds), by pool."""
    at = np.asarray(instants, dtype=np.int64)
    world, where = story.trace.scenario, places(story)
    names = tuple(project.name for project in world.projects)
    number = {name: n for n, name in enumerate(names)}
    seen = {
        pool.name: Devices(
            names,
            np.full((pool.gpus, at.size), -1, dtype=np.int16),
            np.zeros((pool.gpus, at.size)),
            np.zeros((pool.gpus, at.size)),
        )
        for pool in world.pools
    }
    slow = stalled(story, at)
    sway = 0.06 * np.sin(at / 700.0)
    for tenure in tenures(story):
        first, last = np.searchsorted(at, [tenure.start, tenure.end])
        if first == last:
            continue
        pool, span = seen[tenure.pool], slice(first, last)
        works = at[span] >= tenure.works_from
        engine = np.where(works, tenure.busy + sway[span], 0.02)
        resident = np.where(works, 98.0, 4.0)
        if where.storage_of_pool[tenure.pool] == STALLED_STORAGE:
            # Kernels wait for the write: still resident, hardly active. Nothing is preempted.
            engine = np.where(works & slow[span], engine * 0.3, engine)
            resident = np.where(works & slow[span], 71.0, resident)
        which = np.array(tenure.devices)
        pool.owner[which, span] = number[tenure.project]
        lag = 0.01 * (which % 5)[:, None]
        pool.engine[which, span] = np.round(np.clip(engine[None, :] - lag, 0, 1), 3)
        pool.resident[which, span] = resident[None, :] - (which % 3)[:, None]
    # Devices of a domain that is out say nothing at all.
    down = (at >= story.seconds(story.outage[0])) & (at < story.seconds(story.outage[1]))
    for pool_ in world.pools:
        if any(outage.domain == pool_.domain for outage in world.outages):
            seen[pool_.name].engine[:, down] = np.nan
            seen[pool_.name].resident[:, down] = np.nan
    return seen
