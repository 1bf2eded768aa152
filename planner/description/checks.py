"""What no single row can know: whether names exist, differ, and agree with each other."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from planner.description.problems import Problem, Problems, shown
from planner.description.record import Scenario
from planner.policy.multifactor import Multifactor
from planner.vocabulary import Backfill, Order
from planner.work import Kind, Numbers, Texts

_SLICE = 1_000_000


class _Named(Protocol):
    @property
    def name(self) -> str: ...


# How the place of a job is written: `job[3].lane`, or line and column of the jobs table.
JobPath = Callable[[int, str], tuple[str, str]]  # (number, column) -> (path, source)


class Checks:
    """One look through a scenario that collects everything that does not agree."""

    def __init__(self, scenario: Scenario, source: str, job_path: JobPath) -> None:
        self.scenario = scenario
        self.source = source
        self.job_path = job_path
        self.problems = Problems()
        self.regions = _names(scenario.regions)
        self.domains = {domain.name: domain for domain in scenario.domains}
        self.storages = _names(scenario.storages)
        self.pools = _names(scenario.pools)
        self.lanes = {lane.name: lane for lane in scenario.lanes}
        self.tenants = _names(scenario.tenants)
        self.projects = _names(scenario.projects)

    def all(self) -> Problems:
        """Return the problems, in the order of the file."""
        self._unique_names()
        self._policy()
        self._fleet()
        self._lanes()
        self._tenancy()
        self._quota()
        self._outages()
        self._jobs()
        return self.problems

    def _report(self, path: str, value: object, expected: str, source: str | None = None) -> None:
        self.problems.append(Problem(path, shown(value), expected, source or self.source))

    def _known(self, path: str, value: str | None, names: Iterable[str], kind: str) -> None:
        if value is not None and value not in names:
            self._report(path, value, _one_of(kind, names))

    def _once(self, path: str, values: Sequence[str]) -> None:
        for place in _repeated(values):
            self._report(f"{path}[{place}]", values[place], "expected each name once")

    def _unique_names(self) -> None:
        scenario = self.scenario
        tables: dict[str, Sequence[_Named]] = {
            "region": scenario.regions,
            "domain": scenario.domains,
            "storage": scenario.storages,
            "pool": scenario.pools,
            "lane": scenario.lanes,
            "tenant": scenario.tenants,
            "project": scenario.projects,
        }
        for table, rows in tables.items():
            for place in _repeated([row.name for row in rows]):
                self._report(
                    f"{table}[{place}].name", rows[place].name, f"expected a {table} of its own"
                )

    def _policy(self) -> None:
        policy = self.scenario.policy
        if policy.backfill is Backfill.EASY and policy.order is not Order.FIFO:
            expected = f'expected "none" with order "{policy.order}"; "easy" goes with "fifo" only'
            self._report("policy.backfill", policy.backfill, expected)
        if policy.multifactor != Multifactor() and policy.order is not Order.MULTIFACTOR:
            expected = f'expected no such table with order "{policy.order}"'
            self._report("policy.multifactor", "", expected)

    def _fleet(self) -> None:
        scenario = self.scenario
        for i, region in enumerate(scenario.regions):
            if not _is_timezone(region.timezone):
                expected = "expected a time zone like Asia/Tokyo"
                self._report(f"region[{i}].timezone", region.timezone, expected)
        for i, link in enumerate(scenario.links):
            for side, name in enumerate(link.between):
                self._known(f"link[{i}].between[{side}]", name, self.regions, "region")
            if link.between[0] == link.between[1]:
                self._report(f"link[{i}].between", link.between, "expected two different regions")
        for place in _repeated([frozenset(link.between) for link in scenario.links]):
            between = scenario.links[place].between
            self._report(f"link[{place}].between", between, "expected one link for each pair")
        for i, domain in enumerate(scenario.domains):
            self._known(f"domain[{i}].region", domain.region, self.regions, "region")
        for i, storage in enumerate(scenario.storages):
            self._known(f"storage[{i}].region", storage.region, self.regions, "region")
            self._known(f"storage[{i}].domain", storage.domain, self.domains, "domain")
            home = self.domains.get(storage.domain or "")
            if home and storage.region is not None and storage.region != home.region:
                expected = f"expected {shown(home.region)}, the region of its domain"
                self._report(f"storage[{i}].region", storage.region, expected)
        for i, pool in enumerate(scenario.pools):
            self._known(f"pool[{i}].domain", pool.domain, self.domains, "domain")
            self._known(f"pool[{i}].storage", pool.storage, self.storages, "storage")

    def _lanes(self) -> None:
        for i, lane in enumerate(self.scenario.lanes):
            path = f"lane[{i}].preempts"
            self._once(path, lane.preempts)
            for place, name in enumerate(lane.preempts):
                self._known(f"{path}[{place}]", name, self.lanes, "lane")
                other = self.lanes.get(name)
                if other is not None and other.rank >= lane.rank:
                    expected = (
                        f"expected a lane of lower rank than {lane.rank}, "
                        f"but {shown(name)} has rank {other.rank}"
                    )
                    self._report(f"{path}[{place}]", name, expected)

    def _tenancy(self) -> None:
        for i, project in enumerate(self.scenario.projects):
            self._known(f"project[{i}].tenant", project.tenant, self.tenants, "tenant")

    def _quota(self) -> None:
        scenario = self.scenario
        for i, quota in enumerate(scenario.quotas):
            self._known(f"quota[{i}].project", quota.project, self.projects, "project")
            self._known(f"quota[{i}].pool", quota.pool, self.pools, "pool")
        for place in _repeated([(row.project, row.pool) for row in scenario.quotas]):
            pair = (scenario.quotas[place].project, scenario.quotas[place].pool)
            self._report(f"quota[{place}]", pair, "expected one row for each project and pool")
        for i, row in enumerate(scenario.assignments):
            path = f"assignment[{i}]"
            self._known(f"{path}.project", row.project, self.projects, "project")
            self._known(f"{path}.lane", row.lane, self.lanes, "lane")
            self._once(f"{path}.pools", row.pools or ())
            for place, name in enumerate(row.pools or ()):
                self._known(f"{path}.pools[{place}]", name, self.pools, "pool")
        for place in _repeated([(row.project, row.lane) for row in scenario.assignments]):
            twin = scenario.assignments[place]
            expected = "expected one row for each project and lane"
            self._report(f"assignment[{place}]", (twin.project, twin.lane), expected)

    def _outages(self) -> None:
        for i, outage in enumerate(self.scenario.outages):
            path = f"outage[{i}]"
            named = [name for name in (outage.domain, outage.pool, outage.region) if name]
            if len(named) != 1:
                self._report(path, named, "expected exactly one of domain, pool, region")
            self._known(f"{path}.domain", outage.domain, self.domains, "domain")
            self._known(f"{path}.pool", outage.pool, self.pools, "pool")
            self._known(f"{path}.region", outage.region, self.regions, "region")

    def _jobs(self) -> None:
        def report(number: int, column: str, value: object, expected: str) -> None:
            path, source = self.job_path(number, column)
            self._report(path, value, expected, source)

        table = self.scenario.table
        again = _again(table.ids)
        suspects = (
            again
            | _those_not(table.project_names, self.projects)[table.project]
            | _those_not(table.lane_names, self.lanes)[table.lane]
            | np.array([not self._agrees(kind) for kind in table.kinds], dtype=bool)[table.kind]
        )
        for i in np.flatnonzero(suspects).tolist():
            job = table[i]
            if again[i]:
                report(i, "id", job.id, "expected an id of its own")
            if job.project not in self.projects:
                report(i, "project", job.project, _one_of("project", self.projects))
            if job.lane not in self.lanes:
                report(i, "lane", job.lane, _one_of("lane", self.lanes))
            for column, names in (("pools", job.pools), ("regions", job.regions)):
                if names is not None and len(set(names)) < len(names):
                    report(i, column, names, "expected each name once")
            for name in job.pools or ():
                if name not in self.pools:
                    report(i, "pools", name, _one_of("pool", self.pools))
            for name in job.regions or ():
                if name not in self.regions:
                    report(i, "regions", name, _one_of("region", self.regions))
            if job.data_region is not None and job.data_region not in self.regions:
                report(i, "data_region", job.data_region, _one_of("region", self.regions))

    def _agrees(self, kind: Kind) -> bool:
        return (
            all(len(set(names)) == len(names) for names in (kind.pools or (), kind.regions or ()))
            and all(name in self.pools for name in kind.pools or ())
            and all(name in self.regions for name in kind.regions or ())
            and (kind.data_region is None or kind.data_region in self.regions)
        )


def _those_not(names: Sequence[str], known: Container[str]) -> Numbers:
    return np.array([name not in known for name in names], dtype=bool)


def _again(ids: Texts) -> Numbers:
    """Say which ids stand further up already."""
    again = np.zeros(len(ids), dtype=bool)
    hashes = np.empty(len(ids), dtype=np.uint64)
    for first in range(0, len(ids), _SLICE):  # as objects they take four times the room
        part = ids[first : first + _SLICE].astype(object)
        hashes[first : first + _SLICE] = pd.util.hash_array(part, categorize=False)
    ordered = np.sort(hashes)
    twins = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if len(twins):  # the same hash is not yet the same id
        seen: set[str] = set()
        for place in np.flatnonzero(np.isin(hashes, twins)).tolist():
            again[place] = ids[place] in seen
            seen.add(ids[place])
    return again


def _names(rows: Iterable[_Named]) -> dict[str, None]:
    return {row.name: None for row in rows}


def _repeated(values: Sequence[object]) -> Iterator[int]:
    seen: set[object] = set()
    for place, value in enumerate(values):
        if value in seen:
            yield place
        seen.add(value)


def _one_of(kind: str, names: Iterable[str]) -> str:
    known = list(names)
    if not known:
        return f"expected the name of a {kind}, but the file has none"
    text = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"expected the name of a {kind}: {text}"


def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
