"""Quota: how much a project may hold. It never decides who goes first.

The algebra is Kueue's for one flat cohort (kubernetes-sigs/kueue, resource_node.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Quota:
    """What a project may hold in a pool. None: no limit to borrowing, or to lending."""

    project: str
    pool: str
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A lane a project may use: where (None: wherever it has quota) and up to how many GPUs."""

    project: str
    lane: str
    pools: tuple[str, ...] | None = None
    max_gpus: int | None = None


class Accounts:
    """What every project holds in one pool, and what it may still take (in GPUs)."""

    __slots__ = (
        "borrowers",
        "capacity",
        "ceiling",
        "cohort_of",
        "guaranteed",
        "nominal",
        "shared_use",
        "usage",
    )

    def __init__(self, cohort_of: Sequence[int], rows: Iterable[tuple[int, Quota]]) -> None:
        """Open the accounts. `rows` pairs a project's number with its row for this pool."""
        projects = len(cohort_of)
        self.cohort_of = cohort_of
        self.nominal = [-1] * projects
        self.guaranteed = [0] * projects
        self.ceiling = [0] * projects
        self.usage = [0] * projects
        self.capacity = [0] * (max(cohort_of, default=-1) + 1)
        self.shared_use = [0] * len(self.capacity)
        self.borrowers = 0
        for project, row in rows:
            self.nominal[project] = row.nominal
            if row.lending_limit is not None:
                self.guaranteed[project] = max(0, row.nominal - row.lending_limit)
            limit = row.borrowing_limit
            self.ceiling[project] = UNLIMITED if limit is None else row.nominal + limit
            self.capacity[cohort_of[project]] += row.nominal - self.guaranteed[project]

    def copy(self) -> Accounts:
        """Copy what changes, so that an eviction can be tried without happening."""
        other = object.__new__(Accounts)
        other.cohort_of, other.nominal = self.cohort_of, self.nominal
        other.guaranteed, other.ceiling = self.guaranteed, self.ceiling
        other.capacity = self.capacity
        other.usage = self.usage[:]
        other.shared_use = self.shared_use[:]
        other.borrowers = self.borrowers
        return other

    def has_row(self, project: int) -> bool:
        """Say whether the project may use this pool at all."""
        return self.nominal[project] >= 0

    def capacity_for(self, project: int) -> int:
        """Return what the project's cohort has to lend and to borrow here."""
        return self.capacity[self.cohort_of[project]]

    def most(self, project: int) -> int:
        """Return the most the project could ever hold here, with nobody else around."""
        return min(self.guaranteed[project] + self.capacity_for(project), self.ceiling[project])

    def available(self, project: int) -> int:
        """Return what is left for the project: its own guarantee and the cohort's idle quota."""
        cohort = self.cohort_of[project]
        own = self.guaranteed[project] - self.usage[project]
        return (own if own > 0 else 0) + self.capacity[cohort] - self.shared_use[cohort]

    def below_ceiling(self, project: int, gpus: int) -> bool:
        """Say whether the borrowing limit leaves room for `gpus` more."""
        return self.usage[project] + gpus <= self.ceiling[project]

    def fits(self, project: int, gpus: int) -> bool:
        """Say whether quota lets the project hold `gpus` more."""
        return self.below_ceiling(project, gpus) and gpus <= self.available(project)

    def within_nominal(self, project: int, gpus: int) -> bool:
        """Say whether the project would hold no more than its own with `gpus` more."""
        return self.usage[project] + gpus <= self.nominal[project]

    def borrowed(self, project: int) -> int:
        """Return how much the project holds beyond its nominal quota (negative: it has room)."""
        return self.usage[project] - self.nominal[project]

    def borrows(self, project: int) -> bool:
        """Say whether the project holds more than its nominal quota."""
        return self.usage[project] > self.nominal[project]

    def add(self, project: int, gpus: int) -> None:
        """Book `gpus` to the project; a negative number gives them back."""
        before = self.usage[project]
        after = before + gpus
        self.usage[project] = after
        guaranteed, nominal = self.guaranteed[project], self.nominal[project]
        self.shared_use[self.cohort_of[project]] += max(0, after - guaranteed) - max(
            0, before - guaranteed
        )
        self.borrowers += (after > nominal) - (before > nominal)
