"""The only translator from the database to the planner: what is in force, and the observed work.

A scenario made here always passes the planner's own validation. What the planner would refuse and
has no effect anyway (a right to displace a lane that does not rank lower) is left out; jobs that
name something that is no longer there are left out and counted.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings

from planner import fleet as hardware
from planner import work
from planner.policy import PolicySettings, priority, quota
from planner.scenario import Scenario, parse, to_mapping
from planner.vocabulary import (
    Backfill,
    Order,
    Placement,
    Purpose,
    Queueing,
    Reclaim,
    Recovery,
    Victims,
)
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
from portal.policy.models.in_force import InForce
from portal.telemetry.models import ImportBatch, ImportKind, JobRecord
from portal.tenants.models import Project, Tenant

IN_FORCE = "What is in force"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ObservedWork:
    """Whole days of observed jobs, and how many jobs of those days had to be left out."""

    jobs: tuple[work.Job, ...]
    observed_from: datetime
    observed_to: datetime
    left_out: int


def in_force(
    *,
    at: datetime,
    start: datetime,
    jobs: Sequence[work.Job] = (),
    horizon_seconds: int | None = None,
    seed: int = 7,
    name: str = IN_FORCE,
) -> Scenario:
    """The fleet and the policy in force at an instant, with this work; second 0 is `start`.

    Outages are left out: a plan compares two policies on a fleet that works.
    """
    return Scenario(
        name=name,
        start=start,
        horizon_seconds=horizon_seconds,
        seed=seed,
        policy=_policy(at),
        regions=tuple(hardware.Region(row.name, row.timezone) for row in Region.objects.all()),
        links=tuple(
            hardware.Link((row.region.name, row.other_region.name), row.gbps.normalize())
            for row in Link.objects.select_related("region", "other_region").order_by("pk")
        ),
        domains=tuple(
            hardware.Domain(row.name, row.region.name)
            for row in Domain.objects.select_related("region")
        ),
        storages=tuple(
            hardware.Storage(
                row.name,
                row.write_gb_per_second.normalize(),
                row.region.name if row.region else None,
                row.domain.name if row.domain else None,
            )
            for row in Storage.objects.select_related("region", "domain")
        ),
        pools=tuple(
            hardware.Pool(
                name=row.name,
                domain=row.domain.name,
                accelerator=row.accelerator,
                nodes=row.nodes,
                gpus_per_node=row.gpus_per_node,
                storage=row.storage.name if row.storage else None,
                purpose=Purpose(row.purpose),
                premium=row.premium,
            )
            for row in Pool.objects.select_related("domain", "storage")
        ),
        lanes=_lanes(at),
        tenants=_tenants(at),
        projects=_projects(at),
        quotas=tuple(
            quota.Quota(
                row.project.name,
                row.pool.name,
                row.nominal_gpus,
                row.borrowing_limit_gpus,
                row.lending_limit_gpus,
            )
            for row in Quota.objects.at(at)
            .select_related("project", "pool")
            .order_by("project__name", "pool__pk")
        ),
        assignments=_assignments(at),
        jobs=tuple(jobs),
    )


def with_quota(
    scenario: Scenario, *, project: str, pool: str, nominal_gpus: int, name: str
) -> Scenario:
    """The same scenario with another nominal quota; limits stay, a first quota has none."""
    rows = list(scenario.quotas)
    for place, row in enumerate(rows):
        if (row.project, row.pool) == (project, pool):
            rows[place] = dataclasses.replace(row, nominal=nominal_gpus)
            break
    else:
        rows.append(quota.Quota(project, pool, nominal_gpus))
    return dataclasses.replace(scenario, name=name, quotas=tuple(rows))


def observed_work(*, until: datetime, days: int = 28) -> ObservedWork:
    """The jobs of the last whole days before an instant, as the planner plays them.

    Days are cut at midnight of the reports' time zone. They end with the last day that job records
    cover in full, and begin no earlier than the first record: a day nobody recorded is not a day
    without work. Where a job says nothing about checkpoints, its project's rule at `until` counts.
    Jobs of projects, lanes, pools or regions that are no longer there are left out and counted.
    """
    observed_from, observed_to = _observed_window(until, days)
    projects = set(Project.objects.values_list("name", flat=True))
    lanes = {lane.name for lane in _lanes(until)}
    pools = set(Pool.objects.values_list("name", flat=True))
    regions = set(Region.objects.values_list("name", flat=True))
    rules = {rule.project.name: rule for rule in _standing(CheckpointRule, until, "project")}
    jobs, left_out = [], 0
    records = JobRecord.objects.filter(
        submit_at__gte=observed_from, submit_at__lt=observed_to
    ).order_by("submit_at", "pk")
    for record in records.iterator():
        pools_there = tuple(name for name in record.pools if name in pools)
        regions_there = tuple(name for name in record.regions if name in regions)
        if (
            record.project not in projects
            or record.lane not in lanes
            or (record.pools and not pools_there)
            or (record.regions and not regions_there)
            or (record.data_region and record.data_region not in regions)
        ):
            left_out += 1
            continue
        rule = rules.get(record.project)
        jobs.append(
            work.Job(
                id=f"{record.source}/{record.job_id}",
                submit_seconds=int((record.submit_at - observed_from).total_seconds()),
                project=record.project,
                lane=record.lane,
                gpus=record.gpus,
                work_seconds=max(0, record.work_seconds),
                limit_seconds=record.limit_seconds,
                accelerator=record.accelerator or None,
                pools=pools_there or None,
                regions=regions_there or None,
                data_region=record.data_region or None,
                data_gb=record.data_gb.normalize(),
                checkpoint_interval_seconds=record.checkpoint_interval_seconds
                or (rule.interval_seconds if rule else 0),
                checkpoint_gb=(
                    record.checkpoint_gb or (rule.checkpoint_gb if rule else record.checkpoint_gb)
                ).normalize(),
                restart_seconds=record.restart_seconds or (rule.restart_seconds if rule else 0),
            )
        )
    return ObservedWork(tuple(jobs), observed_from, observed_to, left_out)


def freeze_jobs(jobs: Sequence[work.Job], *, start: datetime) -> bytes:
    """Jobs as gzipped JSON, the same bytes for the same jobs."""
    rows = to_mapping(Scenario(name="jobs", start=start, jobs=tuple(jobs))).get("job", [])
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), mtime=0)


def hash_of(frozen_jobs: bytes, observed: ObservedWork) -> str:
    """What tells one frozen workload from another: its jobs and its window."""
    window = f"{observed.observed_from.isoformat()}/{observed.observed_to.isoformat()}"
    return "sha256:" + hashlib.sha256(window.encode() + frozen_jobs).hexdigest()


def named(scenario: Scenario, name: str) -> Scenario:
    """The same scenario under another name."""
    return dataclasses.replace(scenario, name=name)


def thaw(mapping: dict[str, Any], frozen_jobs: bytes) -> Scenario:
    """The scenario of a frozen mapping and its frozen jobs. ScenarioError when it is not valid."""
    return parse(thaw_mapping(mapping, frozen_jobs))


def thaw_mapping(mapping: dict[str, Any], frozen_jobs: bytes) -> dict[str, Any]:
    """The whole scenario file, jobs inline, as `python -m planner` reads it."""
    return mapping | {"job": json.loads(gzip.decompress(frozen_jobs))}


def _observed_window(until: datetime, days: int) -> tuple[datetime, datetime]:
    zone = ZoneInfo(settings.REPORT_TIMEZONE)
    last = ImportBatch.objects.filter(kind=ImportKind.JOBS).order_by("-known_until").first()
    end = _midnight(min(until, last.known_until) if last else until, zone)
    start = _midnight(end - days * DAY + timedelta(hours=12), zone)
    first = JobRecord.objects.filter(submit_at__lt=end).order_by("submit_at").first()
    if first and first.submit_at >= start:
        start = _midnight(first.submit_at, zone)
    return start, end


def _midnight(instant: datetime, zone: ZoneInfo) -> datetime:
    return datetime.combine(instant.astimezone(zone).date(), time(), zone).astimezone(UTC)


def _standing(model: type[InForce], at: datetime, *related: str) -> Any:
    rows = model.objects.at(at).order_by("pk")
    return rows.select_related(*related) if related else rows


def _policy(at: datetime) -> PolicySettings:
    order = _standing(QueueOrder, at).first()
    placement = _standing(PlacementRule, at).first()
    eviction = _standing(EvictionRule, at).first()
    chosen: dict[str, Any] = {}
    if order:
        chosen |= {"order": Order(order.order), "backfill": Backfill(order.backfill)}
    if placement:
        chosen["placement"] = Placement(placement.placement)
    if eviction:
        chosen |= {"victims": Victims(eviction.victims), "reclaim": Reclaim(eviction.reclaim)}
    return PolicySettings(**chosen)


def _lanes(at: datetime) -> tuple[priority.Lane, ...]:
    ranks = {row.lane_id: row for row in _standing(LaneRank, at)}
    recoveries = {row.lane_id: row for row in _standing(LaneRecovery, at)}
    protections = {row.lane_id: row for row in _standing(LaneProtection, at)}
    over = defaultdict(list)
    for right in _standing(PreemptionRight, at, "over"):
        rank, other = ranks.get(right.lane_id), ranks.get(right.over_id)
        if rank and other and other.rank < rank.rank:
            over[right.lane_id].append(right.over.name)
    lanes = []
    for lane in Lane.objects.filter(pk__in=ranks):
        rank, recovery = ranks[lane.pk], recoveries.get(lane.pk)
        protection = protections.get(lane.pk)
        rules: dict[str, Any] = {}
        if recovery:
            rules = {
                "recovery": Recovery(recovery.recovery),
                "backoff_seconds": recovery.backoff_seconds,
                "backoff_limit_seconds": recovery.backoff_limit_seconds,
                "max_requeues": recovery.max_requeues,
            }
        lanes.append(
            priority.Lane(
                name=lane.name,
                rank=rank.rank,
                preempts=tuple(over[lane.pk]),
                protect_seconds=protection.protect_seconds if protection else 0,
                queueing=Queueing(rank.queueing),
                **rules,
            )
        )
    return tuple(lanes)


def _tenants(at: datetime) -> tuple[work.Tenant, ...]:
    weights = {row.tenant_id: row.weight.normalize() for row in _standing(TenantWeight, at)}
    return tuple(
        work.Tenant(row.name, **({"weight": weights[row.pk]} if row.pk in weights else {}))
        for row in Tenant.objects.all()
    )


def _projects(at: datetime) -> tuple[work.Project, ...]:
    weights = {row.project_id: row for row in _standing(ProjectWeight, at)}
    projects = []
    for row in Project.objects.select_related("tenant"):
        weight = weights.get(row.pk)
        terms = {"weight": weight.weight.normalize(), "cohort": weight.cohort} if weight else {}
        projects.append(work.Project(row.name, row.tenant.name, **terms))
    return tuple(projects)


def _assignments(at: datetime) -> tuple[quota.Assignment, ...]:
    rows = _standing(LaneAssignment, at, "project", "lane").prefetch_related("allowed_pools__pool")
    ranked = {lane.name for lane in _lanes(at)}
    return tuple(
        quota.Assignment(
            row.project.name,
            row.lane.name,
            tuple(allowed.pool.name for allowed in row.allowed_pools.all()) or None,
            row.max_gpus,
        )
        for row in rows
        if row.lane.name in ranked
    )
