"""What runs where, what is therefore free, and the order in which a job would try the pools."""

from __future__ import annotations

from collections.abc import Sequence

from planner.engine.columns import Columns
from planner.engine.courses import Course
from planner.policy.placement import Nodes, near_data, packed, spread_out
from planner.policy.priority import DominantShares
from planner.vocabulary import Placement


class Occupancy:
    """The state of all pools, kept up by the start and the end of every attempt."""

    def __init__(self, columns: Columns) -> None:
        scenario = columns.scenario
        self.columns = columns
        self.placement = scenario.policy.placement
        self.accounts = columns.accounts()
        self.nodes = [Nodes(pool.nodes, pool.gpus_per_node) for pool in scenario.pools]
        self.outages = [0] * len(scenario.pools)  # how many are on
        self.running: list[dict[Course, None]] = [{} for _ in scenario.pools]
        self.lane_use = [[0] * len(scenario.lanes) for _ in scenario.pools]
        self.project_lane_use = [[0] * len(scenario.lanes) for _ in scenario.projects]
        self.domain_use = [[0] * len(scenario.domains) for _ in scenario.projects]
        self.shares = DominantShares(self.accounts, columns.weights)
        self.changed_pools = 0  # a bit for each pool that has changed since the last look
        self.changed_lanes: set[tuple[int, int]] = set()  # (project, lane), likewise

    def start(self, course: Course) -> None:
        """Give the job's gang its nodes in its pool."""
        nodes = self.nodes[course.pool]
        course.shares = nodes.choose(course.gpus)
        nodes.take(course.shares)
        self.running[course.pool][course] = None
        self._book(course, course.gpus)

    def stop(self, course: Course) -> None:
        """Take the job's nodes back."""
        self.nodes[course.pool].give(course.shares)
        del self.running[course.pool][course]
        self._book(course, -course.gpus)

    def _book(self, course: Course, gpus: int) -> None:
        pool, project, lane = course.pool, course.project, course.lane
        self.accounts[pool].add(project, gpus)
        self.shares.forget(project)
        self.lane_use[pool][lane] += gpus
        self.project_lane_use[project][lane] += gpus
        self.domain_use[project][self.columns.domain_of_pool[pool]] += gpus
        self.changed_pools |= 1 << pool
        self.changed_lanes.add((project, lane))

    def outage(self, pool: int, change: int) -> None:
        """Note that an outage of the pool begins (1) or ends (-1)."""
        self.outages[pool] += change
        self.changed_pools |= 1 << pool

    def staging(self, course: Course, pool: int) -> int:
        """Return the seconds the job would spend on staging in this pool."""
        if self.columns.region_of_pool[pool] in course.staged_in:
            return 0
        return self.columns.staging(course.job, pool) or 0

    def in_order(self, course: Course, pools: Sequence[int]) -> Sequence[int]:
        """Put pools, given in listed order, into placement order."""
        if self.placement is Placement.LISTED or len(pools) < 2:
            return pools
        return [pool for _, pool in sorted((self._place(course, pool), pool) for pool in pools)]

    def _place(self, course: Course, pool: int) -> tuple[int, ...]:
        free = 0 if self.outages[pool] else self.nodes[pool].free_gpus
        if self.placement is Placement.LOCALITY:
            home = course.job.data_region
            at_home = home is None or home == self.columns.region_of_pool[pool]
            staging = self.staging(course, pool)
            return near_data(at_home=at_home, staging_seconds=staging, free_gpus=free)
        if self.placement is Placement.PACK:
            return packed(nodes_fit=self.nodes[pool].fits(course.gpus), free_gpus=free)
        held = self.domain_use[course.project][self.columns.domain_of_pool[pool]]
        return spread_out(held_in_domain=held, free_gpus=free)
