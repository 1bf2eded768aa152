"""The scenario itself: fleet, policy, work and outages in one frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from planner.fleet import Domain, Link, Outage, Pool, Region, Storage
from planner.policy import PolicySettings
from planner.policy.priority import Lane
from planner.policy.quota import Assignment, Quota
from planner.work import Job, JobTable, Project, Tenant


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
    jobs: Sequence[Job] = ()

    def __post_init__(self) -> None:
        """Keep the jobs as columns, whatever they were given as."""
        object.__setattr__(self, "jobs", JobTable.of(self.jobs))

    @property
    def table(self) -> JobTable:
        """Return the jobs as columns."""
        assert isinstance(self.jobs, JobTable)  # noqa: S101 - made so above
        return self.jobs
