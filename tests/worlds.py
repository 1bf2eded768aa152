"""Small worlds for tests: a fleet, tenants and a policy, all in force since EPOCH."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from portal.fleet.models import Domain, Link, Pool, Region, Storage
from portal.policy.models import (
    CheckpointRule,
    EvictionRule,
    Lane,
    LaneAssignment,
    LaneProtection,
    LaneRank,
    LaneRecovery,
    PlacementRule,
    PreemptionRight,
    ProjectWeight,
    QueueOrder,
    Quota,
    TenantWeight,
)
from portal.telemetry.models import AttemptRecord, ImportBatch, JobRecord, JobState
from portal.tenants.models import Project, Tenant

EPOCH = datetime(2026, 9, 28, 0, 0, tzinfo=UTC)
NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)  # a Monday, 12:00 in Tokyo, ISO week 2026-W49


@dataclass(frozen=True, slots=True)
class World:
    """The rows that tests name."""

    regions: dict[str, Region]
    pools: dict[str, Pool]
    projects: dict[str, Project]
    lanes: dict[str, Lane]


def small() -> World:
    """Two regions, three domains, three pools, two tenants, three projects, the four lanes."""
    tokyo = Region.objects.create(name="tokyo", label="Tokyo", label_ja="東京")
    osaka = Region.objects.create(name="osaka", label="Osaka", label_ja="大阪")
    Link.objects.create(region=tokyo, other_region=osaka, gbps=40)
    tokyo_a = Domain.objects.create(name="tokyo-a", region=tokyo)
    tokyo_b = Domain.objects.create(name="tokyo-b", region=tokyo)
    osaka_a = Domain.objects.create(name="osaka-a", region=osaka)
    tokyo_ckpt = Storage.objects.create(
        name="tokyo-ckpt", region=tokyo, domain=tokyo_a, write_gb_per_second=Decimal("12")
    )
    osaka_ckpt = Storage.objects.create(
        name="osaka-ckpt", region=osaka, write_gb_per_second=Decimal("6")
    )
    pools = {
        pool.name: pool
        for pool in [
            Pool.objects.create(
                name="tokyo-a-h100", domain=tokyo_a, accelerator="H100", nodes=8, gpus_per_node=8,
                storage=tokyo_ckpt, premium=True,
            ),
            Pool.objects.create(
                name="tokyo-b-serve", domain=tokyo_b, accelerator="L40S", nodes=4, gpus_per_node=4,
                storage=tokyo_ckpt, purpose="serving",
            ),
            Pool.objects.create(
                name="osaka-a-a100", domain=osaka_a, accelerator="A100", nodes=4, gpus_per_node=8,
                storage=osaka_ckpt,
            ),
        ]
    }  # fmt: skip
    kaguya = Tenant.objects.create(name="kaguya", label="Kaguya")
    raijin = Tenant.objects.create(name="raijin", label="Raijin")
    projects = {
        name: Project.objects.create(name=name, label=name.title(), tenant=tenant)
        for name, tenant in [("speech", kaguya), ("vision", kaguya), ("robotics", raijin)]
    }
    for tenant in (kaguya, raijin):
        TenantWeight.objects.create(tenant=tenant, weight=1, starts_at=EPOCH)
    lanes = {}
    for name, label_ja, rank in [
        ("emergency", "緊急", 100),
        ("primary", "主要", 80),
        ("exploratory", "探索", 50),
        ("background", "背景", 10),
    ]:
        lane = lanes[name] = Lane.objects.create(name=name, label_ja=label_ja)
        LaneRank.objects.create(lane=lane, rank=rank, starts_at=EPOCH)
        LaneProtection.objects.create(lane=lane, protect_seconds=300, starts_at=EPOCH)
        LaneRecovery.objects.create(lane=lane, recovery="requeue", starts_at=EPOCH)
    for over in ("exploratory", "background"):
        PreemptionRight.objects.create(lane=lanes["emergency"], over=lanes[over], starts_at=EPOCH)
    QueueOrder.objects.create(order="fair-share", starts_at=EPOCH)
    PlacementRule.objects.create(placement="locality", starts_at=EPOCH)
    EvictionRule.objects.create(victims="youngest", reclaim="any", starts_at=EPOCH)
    for project in projects.values():
        ProjectWeight.objects.create(project=project, weight=1, starts_at=EPOCH)
        CheckpointRule.objects.create(
            project=project, interval_seconds=1800, checkpoint_gb=Decimal("200"),
            restart_seconds=120, starts_at=EPOCH,
        )  # fmt: skip
        for name in ("primary", "exploratory", "background"):
            LaneAssignment.objects.create(project=project, lane=lanes[name], starts_at=EPOCH)
    for owner, pool, nominal, borrowing, lending in [
        ("speech", "tokyo-a-h100", 24, 16, None),
        ("vision", "tokyo-a-h100", 16, None, 8),
        ("robotics", "tokyo-a-h100", 24, 24, None),
        ("robotics", "osaka-a-a100", 32, None, None),
    ]:
        Quota.objects.create(
            project=projects[owner], pool=pools[pool], nominal_gpus=nominal,
            borrowing_limit_gpus=borrowing, lending_limit_gpus=lending, starts_at=EPOCH,
        )  # fmt: skip
    return World({"tokyo": tokyo, "osaka": osaka}, pools, projects, lanes)


def job(
    job_id: str,
    *,
    project: str = "speech",
    lane: str = "primary",
    pool: str = "tokyo-a-h100",
    gpus: int = 8,
    submit_at: datetime = NOW - timedelta(days=3),
    wait: timedelta | None = timedelta(minutes=10),
    run: timedelta | None = timedelta(hours=2),
) -> JobRecord:
    """A job with one attempt. `wait=None`: still waiting; `run=None`: still running."""
    batch, _made = ImportBatch.objects.get_or_create(
        source="test", defaults={"imported_at": NOW, "known_until": NOW}
    )
    start_at = None if wait is None else submit_at + wait
    end_at = None if start_at is None or run is None else start_at + run
    state = (
        JobState.WAITING
        if start_at is None
        else JobState.RUNNING
        if end_at is None
        else JobState.FINISHED
    )
    held_until = end_at or NOW
    total_wait = (NOW - submit_at) if wait is None else wait
    record = JobRecord.objects.create(
        source="test", job_id=job_id, batch=batch, project=project, lane=lane,
        pool=pool if start_at else "", gpus=gpus, submit_at=submit_at, first_start_at=start_at,
        end_at=end_at, state=state, reason="" if start_at else "WaitingForCapacity",
        total_wait_seconds=int(total_wait.total_seconds()),
        work_seconds=int((run or timedelta(hours=8)).total_seconds()),
        attempts_count=0 if start_at is None else 1,
    )  # fmt: skip
    if start_at:
        held = int((held_until - start_at).total_seconds()) * gpus
        AttemptRecord.objects.create(
            job=record, number=1, pool=pool, start_at=start_at, end_at=end_at,
            ended="finished" if end_at else "running", useful_gpu_seconds=held,
        )  # fmt: skip
    return record
