"""Who wants GPUs, and for what: tenants, their projects, and the jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.dtypes import StringDType

Numbers = np.ndarray[Any, np.dtype[Any]]
Texts = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation that projects belong to."""

    name: str
    weight: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Project:
    """What holds quota. Projects of one cohort lend to each other."""

    name: str
    tenant: str
    weight: Decimal = Decimal(1)
    cohort: str = "all"


@dataclass(frozen=True, slots=True)
class Job:
    """One gang of GPUs wanted for `work_seconds` of useful work.

    Times are whole seconds from the scenario's start. `limit_seconds` is what the user asked for
    (None: the work itself). `pools` and `regions` are None where the job names none.
    """

    id: str
    submit_seconds: int
    project: str
    lane: str
    gpus: int
    work_seconds: int
    limit_seconds: int | None = None
    accelerator: str | None = None
    pools: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    data_region: str | None = None
    data_gb: Decimal = Decimal(0)
    checkpoint_interval_seconds: int = 0
    checkpoint_gb: Decimal = Decimal(0)
    restart_seconds: int = 0


class Kind(NamedTuple):
    """What many jobs have in common: where they may run, and what they bring along."""

    accelerator: str | None = None
    pools: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    data_region: str | None = None
    data_gb: Decimal = Decimal(0)
    checkpoint_gb: Decimal = Decimal(0)


_NUMBERS = (
    "submit_seconds",
    "gpus",
    "work_seconds",
    "limit_seconds",
    "checkpoint_interval_seconds",
    "restart_seconds",
)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class JobTable(Sequence[Job]):
    """Jobs as columns: a million of them in 76 MB, and a job made only when it is looked at.

    Times, GPUs and work are 64-bit whole numbers; `limit_seconds` is -1 where a job names none.
    `project`, `lane` and `kind` are places in `project_names`, `lane_names` and `kinds`. `ids` are
    NumPy's strings: 16 bytes each, more only for an id beyond 15 bytes.
    """

    ids: Texts
    submit_seconds: Numbers
    gpus: Numbers
    work_seconds: Numbers
    limit_seconds: Numbers
    checkpoint_interval_seconds: Numbers
    restart_seconds: Numbers
    project: Numbers
    lane: Numbers
    kind: Numbers
    project_names: tuple[str, ...]
    lane_names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> JobTable:
        """Put jobs into columns; a number beyond 64 bits is an OverflowError."""
        if isinstance(jobs, JobTable):
            return jobs
        rows = jobs if isinstance(jobs, Sequence) else tuple(jobs)
        project, project_names = _places(rows, lambda job: job.project)
        lane, lane_names = _places(rows, lambda job: job.lane)
        kind, kinds = _places(
            rows, lambda job: Kind(*(getattr(job, field) for field in Kind._fields))
        )
        return cls(
            ids=texts([job.id for job in rows]),
            **{name: _column(rows, name) for name in _NUMBERS},
            project=project,
            lane=lane,
            kind=kind,
            project_names=project_names,
            lane_names=lane_names,
            kinds=kinds,
        )

    def __len__(self) -> int:
        return len(self.submit_seconds)

    @overload
    def __getitem__(self, at: int) -> Job: ...

    @overload
    def __getitem__(self, at: slice) -> JobTable: ...

    def __getitem__(self, at: int | slice) -> Job | JobTable:
        if isinstance(at, slice):
            return self.take(np.arange(len(self))[at])
        limit = int(self.limit_seconds[at])
        return Job(
            id=str(self.ids[at]),
            submit_seconds=int(self.submit_seconds[at]),
            project=self.project_names[self.project[at]],
            lane=self.lane_names[self.lane[at]],
            gpus=int(self.gpus[at]),
            work_seconds=int(self.work_seconds[at]),
            limit_seconds=None if limit < 0 else limit,
            checkpoint_interval_seconds=int(self.checkpoint_interval_seconds[at]),
            restart_seconds=int(self.restart_seconds[at]),
            **self.kinds[self.kind[at]]._asdict(),
        )

    def __iter__(self) -> Iterator[Job]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobTable):
            return NotImplemented
        return self is other or (
            len(self) == len(other)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _NUMBERS)
            and np.array_equal(self.ids, other.ids)
            and _same(self.project, self.project_names, other.project, other.project_names)
            and _same(self.lane, self.lane_names, other.lane, other.lane_names)
            and _same(self.kind, self.kinds, other.kind, other.kinds)
        )

    def __hash__(self) -> int:
        return hash((len(self), self.submit_seconds.tobytes(), self.gpus.tobytes()))

    def take(self, rows: Numbers) -> JobTable:
        """Return the jobs of these places, in this order."""
        columns = ("ids", *_NUMBERS, "project", "lane", "kind")
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in columns})


def texts(values: Sequence[str]) -> Texts:
    """Return texts in their compact form."""
    return np.array(values, dtype=StringDType())


def _same(ours: Numbers, our_names: Sequence[Any], others: Numbers, names: Sequence[Any]) -> bool:
    """Say whether two columns name the same, whatever the places of the names are."""
    if our_names == names:
        return np.array_equal(ours, others)
    places: dict[Any, int] = {}
    first, second = (
        np.array([places.setdefault(name, len(places)) for name in each], dtype=np.int64)
        for each in (our_names, names)
    )
    return np.array_equal(first[ours], second[others])


def _column(rows: Sequence[Job], name: str) -> Numbers:
    values = (getattr(job, name) for job in rows)
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)


def _places(rows: Sequence[Job], of: Callable[[Job], Any]) -> tuple[Numbers, tuple[Any, ...]]:
    places: dict[Any, int] = {}
    numbers = [places.setdefault(of(job), len(places)) for job in rows]
    return np.array(numbers, dtype=np.int32), tuple(places)
