"""A made-up fleet with made-up work: what the engine's speed is measured on.

2,000 GPUs in 8 pools of two regions, 200 projects of 20 tenants, 4 lanes; sizes of 1 to 64 GPUs,
heavy-tailed run times, arrivals by the time of day, and a few projects that send most of the jobs.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np

from planner.description.record import Scenario
from planner.fleet import Domain, Link, Pool, Region
from planner.policy import PolicySettings
from planner.policy.priority import Lane
from planner.policy.quota import Quota
from planner.vocabulary import Backfill, Order, Queueing
from planner.work import Job, JobTable, Kind, Project, Tenant, texts

DAY = 86_400
PROJECTS, TENANTS = 200, 20
NODES = (32, 32, 32, 32, 32, 30, 30, 30)  # of 8 GPUs
SIZES = (1, 2, 4, 8, 16, 32, 64)
SIZE_RATIOS = (0.5, 0.14, 0.12, 0.14, 0.06, 0.03, 0.01)
LANES = (
    Lane("emergency", 100, preempts=("exploratory", "background"), protect_seconds=600),
    Lane("primary", 80),
    Lane("exploratory", 60),
    Lane("background", 40),
)
LANE_RATIOS = (0.03, 0.37, 0.4, 0.2)
KINDS = (
    Kind(accelerator="H100"),
    Kind(accelerator="A100"),
    Kind(),
    Kind(data_region="tokyo", data_gb=Decimal(500)),
)
KIND_RATIOS = (0.4, 0.2, 0.2, 0.2)


def busy_fleet(jobs: int, *, load: float = 0.9, seed: int = 7) -> Scenario:
    """Make a scenario of so many jobs; `load` is the part of the fleet that they ask for."""
    dice = np.random.default_rng(seed)
    regions = ("tokyo", "osaka")
    pools = tuple(
        Pool(f"pool-{i}", f"domain-{i // 2}", ("H100", "A100")[i % 2], nodes, 8)
        for i, nodes in enumerate(NODES)
    )
    gpus = dice.choice(SIZES, size=jobs, p=SIZE_RATIOS).astype(np.int64)
    work = np.maximum(60, dice.lognormal(8.0, 1.5, jobs)).astype(np.int64)
    span = float((gpus * work).sum()) / (sum(pool.gpus for pool in pools) * load)
    at = np.sort(dice.random(jobs)) * span
    at += 0.3 * DAY / (2 * np.pi) * np.sin(2 * np.pi * at / DAY)  # busier by day
    activity = 1 / np.arange(1, PROJECTS + 1) ** 0.8
    activity /= activity.sum()
    absent = np.full(jobs, -1, np.int64)
    table = JobTable(
        ids=texts([str(number) for number in range(jobs)]),
        submit_seconds=np.sort(np.maximum(0, at)).astype(np.int64),
        gpus=gpus,
        work_seconds=work,
        limit_seconds=absent,
        checkpoint_interval_seconds=np.full(jobs, 1800, np.int64),
        restart_seconds=np.full(jobs, 120, np.int64),
        project=dice.choice(PROJECTS, size=jobs, p=activity).astype(np.int32),
        lane=dice.choice(len(LANES), size=jobs, p=LANE_RATIOS).astype(np.int32),
        kind=dice.choice(len(KINDS), size=jobs, p=KIND_RATIOS).astype(np.int32),
        project_names=tuple(f"project-{i}" for i in range(PROJECTS)),
        lane_names=tuple(lane.name for lane in LANES),
        kinds=KINDS,
    )
    return Scenario(
        name=f"{jobs} jobs at a load of {load}",
        start=datetime(2026, 11, 30, tzinfo=UTC),
        regions=tuple(Region(name, "Asia/Tokyo") for name in regions),
        links=(Link(regions, Decimal(40)),),
        domains=tuple(Domain(f"domain-{i}", regions[i // 2]) for i in range(4)),
        pools=pools,
        lanes=LANES,
        tenants=tuple(Tenant(f"tenant-{i}") for i in range(TENANTS)),
        projects=tuple(Project(f"project-{i}", f"tenant-{i % TENANTS}") for i in range(PROJECTS)),
        quotas=tuple(
            Quota(f"project-{i}", pool.name, max(1, round(pool.gpus * activity[i])))
            for i in range(PROJECTS)
            for pool in pools
        ),
        jobs=table,
    )


def one_pool(rows: list[tuple[int, int, int, int]], *, easy: bool) -> Scenario:
    """Make a scenario of (submit, GPUs, work, limit) in one pool of 100 one-GPU nodes.

    First come, first served in one line, or with EASY backfill.
    """
    return Scenario(
        name="one pool, " + ("EASY backfill" if easy else "first come, first served"),
        start=datetime(2026, 11, 30, tzinfo=UTC),
        policy=PolicySettings(order=Order.FIFO, backfill=Backfill.EASY if easy else Backfill.NONE),
        regions=(Region("site", "UTC"),),
        domains=(Domain("site-a", "site"),),
        pools=(Pool("pool", "site-a", "any", 100, 1),),
        lanes=(Lane("batch", 1, queueing=Queueing.BEST_EFFORT if easy else Queueing.STRICT),),
        tenants=(Tenant("all"),),
        projects=(Project("all", "all"),),
        quotas=(Quota("all", "pool", 200),),
        jobs=[
            Job(str(i), submit, "all", "batch", gpus, work, limit_seconds=limit)
            for i, (submit, gpus, work, limit) in enumerate(rows)
        ],
    )
