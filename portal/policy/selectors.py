"""What is in force, what was, and what will be: quotas, entitlements, changes, oversubscription."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any, cast

import pandas as pd
from django.db.models import Field
from django.utils.translation import gettext as _

from portal.fleet.models import Pool
from portal.policy import guarantees
from portal.policy import models as policy
from portal.policy.models import Quota
from portal.policy.models.in_force import InForce
from portal.tenants.models import Project

_QUOTA_COLUMNS = {
    "project": "str",
    "tenant": "str",
    "pool": "str",
    "region": "str",
    "domain": "str",
    "nominal_gpus": "Int64",
    "borrowing_limit_gpus": "Int64",
    "lending_limit_gpus": "Int64",
}

# Which dimension each field of an effective-dated table belongs to, in the order of the screens.
_DIMENSIONS: tuple[tuple[type[InForce], Mapping[str, str]], ...] = (
    (policy.LaneRank, {"rank": "priority", "queueing": "priority"}),
    (policy.QueueOrder, {"order": "priority", "backfill": "priority"}),
    (policy.TenantWeight, {"weight": "priority"}),
    (policy.ProjectWeight, {"weight": "priority", "cohort": "quota"}),
    (
        Quota,
        {"nominal_gpus": "quota", "borrowing_limit_gpus": "quota", "lending_limit_gpus": "quota"},
    ),
    (policy.LaneAssignment, {"max_gpus": "quota"}),
    (policy.PlacementRule, {"placement": "placement"}),
    (policy.EvictionRule, {"victims": "preemption", "reclaim": "preemption"}),
    (policy.PreemptionRight, {}),
    (policy.LaneProtection, {"protect_seconds": "preemption"}),
    (
        policy.LaneRecovery,
        {
            "recovery": "checkpoint",
            "backoff_seconds": "checkpoint",
            "backoff_limit_seconds": "checkpoint",
            "max_requeues": "checkpoint",
        },
    ),
    (
        policy.CheckpointRule,
        {
            "interval_seconds": "checkpoint",
            "checkpoint_gb": "checkpoint",
            "restart_seconds": "checkpoint",
        },
    ),
)
# A rule without fields of its own, or one that comes or goes as a whole, counts as this dimension.
_WHOLE = {policy.LaneAssignment: "quota", policy.PreemptionRight: "preemption"}
_CHANGE_COLUMNS = ["at", "dimension", "what", "before", "after", "because", "by"]


def quotas_in_force(
    *,
    at: datetime,
    projects: Iterable[str] | None = None,
    pools: Iterable[str] | None = None,
) -> pd.DataFrame:
    """Every quota in force at an instant, one row per project and pool; no limit is <NA>.

    Columns: project, tenant, pool, region, domain (names), nominal_gpus, borrowing_limit_gpus,
    lending_limit_gpus (Int64), starts_at (UTC). `projects` and `pools` narrow by name.
    """
    rows = Quota.objects.at(at)
    if projects is not None:
        rows = rows.filter(project__name__in=list(projects))
    if pools is not None:
        rows = rows.filter(pool__name__in=list(pools))
    values = rows.order_by("project__name", "pool__pk").values_list(
        "project__name",
        "project__tenant__name",
        "pool__name",
        "pool__domain__region__name",
        "pool__domain__name",
        "nominal_gpus",
        "borrowing_limit_gpus",
        "lending_limit_gpus",
        "starts_at",
    )
    frame = pd.DataFrame(list(values), columns=[*_QUOTA_COLUMNS, "starts_at"])
    return frame.astype({**_QUOTA_COLUMNS, "starts_at": "datetime64[us, UTC]"})


def quota_of(*, project: Project | str, pool: Pool | str, at: datetime) -> Quota | None:
    """The quota of a project in a pool at an instant, or None where it may not use the pool."""
    return (
        Quota.objects.at(at)
        .filter(project__name=_name(project), pool__name=_name(pool))
        .select_related("project__tenant", "pool__domain__region")
        .first()
    )


def upcoming(*, project: Project | str, pool: Pool | str, after: datetime) -> list[Quota]:
    """The quota rows of a project in a pool that start after an instant, oldest first."""
    rows = Quota.objects.standing().filter(
        project__name=_name(project), pool__name=_name(pool), starts_at__gt=after
    )
    return list(rows.select_related("project", "pool").order_by("starts_at"))


def entitled(
    *, start: datetime, end: datetime, projects: Iterable[str] | None = None
) -> pd.DataFrame:
    """What each project was entitled to in [start, end): nominal GPUs × the seconds they held.

    A row that starts inside the window counts from its start; the one before it until then.
    Columns: project, tenant, pool, nominal_gpu_seconds (int). A project that had no quota in a pool
    at any time of the window has no row there.
    """
    rows = Quota.objects.standing().filter(starts_at__lt=end)
    if projects is not None:
        rows = rows.filter(project__name__in=list(projects))
    values = rows.order_by("project__name", "pool__pk", "starts_at").values_list(
        "project__name",
        "project__tenant__name",
        "pool__name",
        "starts_at",
        "nominal_gpus",
        "withdrawn",
    )
    found = []
    for key, of_key in groupby(values, key=lambda row: row[:3]):
        held = [
            (max(starts_at, start), gpus, withdrawn)
            for _project, _tenant, _pool, starts_at, gpus, withdrawn in of_key
        ]
        ends = [since for since, _gpus, _withdrawn in held[1:]] + [end]
        spans = [
            (int((until - since).total_seconds()), nominal)
            for (since, nominal, withdrawn), until in zip(held, ends, strict=True)
            if until > since and not withdrawn
        ]
        if spans:
            found.append((*key, sum(seconds * nominal for seconds, nominal in spans)))
    frame = pd.DataFrame(found, columns=["project", "tenant", "pool", "nominal_gpu_seconds"])
    return frame.astype(
        {"project": "str", "tenant": "str", "pool": "str", "nominal_gpu_seconds": "int64"}
    )


def changes(
    *,
    start: datetime,
    end: datetime,
    project: Project | str | None = None,
    pool: Pool | str | None = None,
    dimension: str | None = None,
) -> pd.DataFrame:
    """What changed in [start, end), oldest first, one row per changed field, by dimension.

    Columns: at, dimension, what (a phrase), before, after (text; None = there was or is no such
    rule; "no limit" where a limit is open), because, by. `project` and `pool` narrow to the rules
    that name them, `dimension` to one of the five.
    """
    found = [
        change
        for model, fields in _DIMENSIONS
        if (project is None or "project" in model.KEY) and (pool is None or "pool" in model.KEY)
        if dimension is None or dimension in {*fields.values(), _WHOLE.get(model)}
        for change in _changes_of(model, fields, start, end, project, pool)
        if dimension is None or change[1] == dimension
    ]
    frame = pd.DataFrame(found, columns=_CHANGE_COLUMNS, dtype=object)
    frame["at"] = frame["at"].astype("datetime64[us, UTC]")
    return frame.sort_values("at", kind="stable", ignore_index=True)


def oversubscription(
    *, at: datetime, override: Mapping[tuple[str, str], int] | None = None
) -> pd.DataFrame:
    """Whether the guarantees in force in each pool can be kept, also with one failure domain down.

    `override` puts other nominal quotas, by (project, pool), in place of those in force.
    Definitions and columns: `portal.policy.guarantees`.
    """
    nominal = {
        (project, pool): gpus
        for project, pool, gpus in Quota.objects.at(at).values_list(
            "project__name", "pool__name", "nominal_gpus"
        )
    }
    pools = pd.DataFrame(
        [
            (pool.name, pool.domain.region.name, pool.domain.name, pool.accelerator, pool.gpus)
            for pool in Pool.objects.select_related("domain__region")
        ],
        columns=["pool", "region", "domain", "accelerator", "gpus"],
    )
    return guarantees.oversubscription(pools, nominal | dict(override or {}))


def _name(thing: Project | Pool | str) -> str:
    return thing if isinstance(thing, str) else thing.name


def _changes_of(
    model: type[InForce],
    fields: Mapping[str, str],
    start: datetime,
    end: datetime,
    project: Project | str | None,
    pool: Pool | str | None,
) -> Iterator[tuple[Any, ...]]:
    rows = model.objects.standing().filter(starts_at__lt=end)
    if project is not None:
        rows = rows.filter(project__name=_name(project))
    if pool is not None:
        rows = rows.filter(pool__name=_name(pool))
    rows = rows.select_related("recorded_by", *model.KEY).order_by(*model.KEY, "starts_at")
    key_of = [f"{name}_id" for name in model.KEY]
    for _key, of_key in groupby(rows, key=lambda row: [getattr(row, name) for name in key_of]):
        before: InForce | None = None
        for row in of_key:
            after = None if row.withdrawn else row
            if row.starts_at >= start:
                who = row.recorded_by
                by = (who.get_full_name() or who.get_username()) if who else ""
                for dimension, what, old, new in _difference(row, fields, before, after):
                    yield row.starts_at, dimension, what, old, new, row.because, by
            before = after


def _difference(
    row: InForce, fields: Mapping[str, str], before: InForce | None, after: InForce | None
) -> Iterator[tuple[str, str, str | None, str | None]]:
    model = type(row)
    names = ", ".join(str(getattr(row, name)) for name in model.KEY)
    whole = _WHOLE.get(model)
    if whole and (before is None) != (after is None):
        what = f"{model._meta.verbose_name}: {names}"  # noqa: SLF001 -- Django's public _meta
        old, new = (None if rule is None else str(rule) for rule in (before, after))
        yield whole, what, old, new
        return
    for field, dimension in fields.items():
        old, new = _shown(before, field), _shown(after, field)
        if old != new:
            column = cast("Field[Any, Any]", model._meta.get_field(field))  # noqa: SLF001
            label = str(column.verbose_name)
            yield dimension, f"{label}: {names}" if names else label, old, new


def _shown(row: InForce | None, field: str) -> str | None:
    if row is None:
        return None
    value = getattr(row, field)
    return _("no limit") if value is None else f"{value}"
