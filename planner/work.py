"""Who wants GPUs, and for what: tenants, their projects, and the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


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
