"""A scenario as plain numbers, and the jobs that no pool can ever hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from planner.description.record import Scenario
from planner.policy.checkpoint import staging_seconds, write_seconds
from planner.policy.preemption import Rights
from planner.policy.quota import UNLIMITED, Accounts
from planner.vocabulary import Reason
from planner.work import Job

Narrowed = tuple[tuple[int, ...], Reason | None]  # pools, or why there are none


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def numbers(rows: Sequence[_Named]) -> dict[str, int]:
    """Number the rows by their place in the file."""
    return {row.name: number for number, row in enumerate(rows)}


class Columns:
    """Everything the engine asks of a scenario, by number instead of by name."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.pool_number = numbers(scenario.pools)
        self.lane_number = numbers(scenario.lanes)
        self.project_number = numbers(scenario.projects)
        domain_number = numbers(scenario.domains)
        self.region_of_domain = {domain.name: domain.region for domain in scenario.domains}
        self.domain_of_pool = [domain_number[pool.domain] for pool in scenario.pools]
        self.region_of_pool = [self.region_of_domain[pool.domain] for pool in scenario.pools]
        storages = {storage.name: storage for storage in scenario.storages}
        self.storage_of_pool = [
            None if pool.storage is None else storages[pool.storage] for pool in scenario.pools
        ]
        self._gbps = {frozenset(link.between): link.gbps for link in scenario.links}
        self._staging: dict[tuple[str, str, Decimal], int | None] = {}
        self._writing: dict[tuple[Decimal, int], int] = {}

        tenants = {tenant.name: tenant for tenant in scenario.tenants}
        self.weights = [
            Fraction(project.weight) * Fraction(tenants[project.tenant].weight)
            for project in scenario.projects
        ]
        cohorts: dict[str, int] = {}
        self.cohort_of = [
            cohorts.setdefault(project.cohort, len(cohorts)) for project in scenario.projects
        ]
        self.rights = [
            Rights(
                frozenset(self.lane_number[name] for name in lane.preempts),
                lane.rank,
                scenario.policy.reclaim,
            )
            for lane in scenario.lanes
        ]
        self._quota_pools: list[list[int]] = [[] for _ in scenario.projects]
        for quota in scenario.quotas:
            project = self.project_number[quota.project]
            self._quota_pools[project].append(self.pool_number[quota.pool])
        self._assigned = {
            (self.project_number[row.project], self.lane_number[row.lane]): row
            for row in scenario.assignments
        }
        self._allowed: dict[object, Narrowed] = {}
        self._eligible: dict[object, Narrowed] = {}

    def accounts(self) -> list[Accounts]:
        """Open the quota accounts of every pool."""
        return [
            Accounts(
                self.cohort_of,
                (
                    (self.project_number[row.project], row)
                    for row in self.scenario.quotas
                    if row.pool == pool.name
                ),
            )
            for pool in self.scenario.pools
        ]

    def lane_limit(self, project: int, lane: int) -> int:
        """Return the GPUs the project may hold in the lane at one time, over all pools."""
        row = self._assigned.get((project, lane))
        return UNLIMITED if row is None or row.max_gpus is None else row.max_gpus

    def staging(self, job: Job, pool: int) -> int | None:
        """Return the seconds the job's data take to this pool; None where no link leads."""
        source, target = job.data_region, self.region_of_pool[pool]
        if source is None or source == target:
            return 0
        key = (source, target, job.data_gb)
        if key not in self._staging:
            gbps = self._gbps.get(frozenset((source, target)))
            self._staging[key] = None if gbps is None else staging_seconds(job.data_gb, gbps)
        return self._staging[key]

    def writing(self, job: Job, pool: int) -> int:
        """Return the seconds the job takes to write one checkpoint from this pool."""
        if not job.checkpoint_gb:
            return 0
        key = (job.checkpoint_gb, pool)
        if key not in self._writing:
            storage = self.storage_of_pool[pool]
            speed = None if storage is None else storage.write_gb_per_second
            self._writing[key] = write_seconds(job.checkpoint_gb, speed)
        return self._writing[key]

    def eligible(self, job: Job, accounts: Sequence[Accounts]) -> Narrowed:
        """List the pools that could ever hold the job, in listed order, or say why none could."""
        where = (
            job.project,
            job.lane,
            job.accelerator,
            job.pools,
            job.regions,
            job.data_region,
        )
        found = self._eligible.get((where, job.gpus))
        if found is None:
            if where not in self._allowed:
                self._allowed[where] = self.allowed(job)
            found = self._size(job, accounts, *self._allowed[where])
            self._eligible[where, job.gpus] = found
        return found

    def allowed(self, job: Job) -> Narrowed:
        """Narrow the pools by what holds for a job of any size."""
        pools = self.scenario.pools
        project, lane = self.project_number[job.project], self.lane_number[job.lane]
        row = self._assigned.get((project, lane))
        if self._assigned and row is None:
            return (), Reason.LANE_NOT_ASSIGNED
        allowed = self._quota_pools[project]
        if row is not None and row.pools is not None:
            having_quota = set(allowed)
            listed = [self.pool_number[name] for name in row.pools]
            allowed = [pool for pool in listed if pool in having_quota]
        if job.pools is not None:
            allowed = [pool for pool in allowed if pools[pool].name in job.pools]
        return _narrow(
            allowed,
            (Reason.NO_QUOTA, lambda _pool: True),
            (
                Reason.NO_MATCHING_ACCELERATOR,
                lambda pool: job.accelerator in (None, pools[pool].accelerator),
            ),
            (
                Reason.RESIDENCY_FORBIDS,
                lambda pool: job.regions is None or self.region_of_pool[pool] in job.regions,
            ),
            (Reason.NO_LINK, lambda pool: self.staging(job, pool) is not None),
        )

    def _size(
        self,
        job: Job,
        accounts: Sequence[Accounts],
        allowed: Sequence[int],
        reason: Reason | None,
    ) -> Narrowed:
        """Narrow the pools further by the number of GPUs."""
        if reason is not None:
            return (), reason
        project, lane = self.project_number[job.project], self.lane_number[job.lane]
        limit = self.lane_limit(project, lane)
        return _narrow(
            allowed,
            (Reason.EXCEEDS_POOL, lambda pool: job.gpus <= self.scenario.pools[pool].gpus),
            (
                Reason.EXCEEDS_MAX_QUOTA,
                lambda pool: job.gpus <= min(limit, accounts[pool].most(project)),
            ),
        )


def _narrow(allowed: Sequence[int], *steps: tuple[Reason, Callable[[int], bool]]) -> Narrowed:
    """Narrow the pools step by step; the step that leaves none is the reason."""
    for reason, keeps in steps:
        allowed = [pool for pool in allowed if keeps(pool)]
        if not allowed:
            return (), reason
    return tuple(allowed), None


def last_second(scenario: Scenario) -> int:
    """Return the second no run goes beyond: up to it all GPU-seconds fit into 64 bits.

    It is 2^53, the largest whole number that JSON keeps, or sooner in very large pools.
    """
    largest = max((pool.gpus for pool in scenario.pools), default=1)
    return min(1 << 53, (1 << 62) // largest)


class Beyond(Exception):  # noqa: N818 - what happened; `simulate` makes an error of it
    """A run has gone beyond the last second."""

    def __init__(self, second: int) -> None:
        super().__init__(f"the run goes beyond second {second}")
        self.second = second
