"""The scenario itself: fleet, policy, work and outages in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from planner.fleet import Domain, Link, Outage, Pool, Region, Storage
from planner.policy import PolicySettings
from planner.policy.priority import Lane
from planner.policy.quota import Assignment, Quota
from planner.work import Job, Project, Tenant


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a run depends on. Second 0 is `start`; without a horizon it runs to the end."""

    name: str
    start: datetime
    horizon_seconds: int | None = None
    seed: int = 0
    policy: PolicySettings = field(default_factory=PolicySettings)
    regions: tuple[Region, ...] = ()
    links: tuple[Link, ...] = ()
    domains: tuple[Domain, ...] = ()
    storages: tuple[Storage, ...] = ()
    pools: tuple[Pool, ...] = ()
    lanes: tuple[Lane, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    projects: tuple[Project, ...] = ()
    quotas: tuple[Quota, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    outages: tuple[Outage, ...] = ()
    jobs: tuple[Job, ...] = ()
