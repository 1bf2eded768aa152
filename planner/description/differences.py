"""What differs between two scenarios, grouped by the dimension of policy it belongs to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.description.record import Scenario
from planner.description.writing import plain
from planner.policy.multifactor import Multifactor
from planner.vocabulary import Order

DIMENSIONS = (
    "priority",
    "quota",
    "placement",
    "preemption",
    "checkpoint",
    "fleet",
    "work",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs. None stands for absent; `path` names the row by what it is about.

    Example: `Change("quota", "quota[speech, tokyo-h100].nominal", 32, 48)`.
    """

    dimension: str
    path: str
    before: Any
    after: Any


_POLICY = {
    "order": "priority",
    "placement": "placement",
    "victims": "preemption",
    "reclaim": "preemption",
    "backfill": "priority",
}
_LANE = {
    "rank": "priority",
    "queueing": "priority",
    "preempts": "preemption",
    "protect_seconds": "preemption",
    "recovery": "checkpoint",
    "backoff_seconds": "checkpoint",
    "backoff_limit_seconds": "checkpoint",
    "max_requeues": "checkpoint",
}
_PROJECT = {"weight": "priority", "cohort": "quota", "tenant": "work"}
_ASSIGNMENT = {"pools": "placement", "max_gpus": "quota"}

Key = Callable[[Any], tuple[str, ...]]


def _name(row: Any) -> tuple[str, ...]:
    return (row.name,)


# table, field of the scenario, what identifies a row, columns that name it, dimension of a column
_Table = tuple[str, str, Key, tuple[str, ...], Mapping[str, str], str]
_TABLES: tuple[_Table, ...] = (
    ("lane", "lanes", _name, ("name",), _LANE, "priority"),
    ("tenant", "tenants", _name, ("name",), {"weight": "priority"}, "work"),
    ("project", "projects", _name, ("name",), _PROJECT, "work"),
    ("quota", "quotas", lambda row: (row.project, row.pool), ("project", "pool"), {}, "quota"),
    (
        "assignment",
        "assignments",
        lambda row: (row.project, row.lane),
        ("project", "lane"),
        _ASSIGNMENT,
        "placement",
    ),
    ("region", "regions", _name, ("name",), {}, "fleet"),
    ("link", "links", lambda row: tuple(sorted(row.between)), ("between",), {}, "fleet"),
    ("domain", "domains", _name, ("name",), {}, "fleet"),
    ("storage", "storages", _name, ("name",), {}, "checkpoint"),
    ("pool", "pools", _name, ("name",), {}, "fleet"),
    (
        "outage",
        "outages",
        lambda row: (row.domain or row.pool or row.region, f"{row.start_seconds} s"),
        ("domain", "pool", "region", "start_seconds"),
        {},
        "fleet",
    ),
    ("job", "jobs", lambda row: (row.id,), ("id",), {}, "work"),
)


def diff(before: Scenario, after: Scenario) -> list[Change]:
    """List what differs, dimension by dimension; the name of a scenario is not a difference."""
    changes: list[Change] = []
    for column in ("start", "horizon_seconds", "seed"):
        _compare(changes, "work", column, getattr(before, column), getattr(after, column))
    for column, dimension in _POLICY.items():
        old, new = getattr(before.policy, column), getattr(after.policy, column)
        _compare(changes, dimension, f"policy.{column}", old, new)
    if Order.MULTIFACTOR in (before.policy.order, after.policy.order):
        for weight in dataclasses.fields(Multifactor):
            pair = (getattr(s.policy.multifactor, weight.name) for s in (before, after))
            _compare(changes, "priority", f"policy.multifactor.{weight.name}", *pair)
    for table in _TABLES:
        field = table[1]
        _compare_rows(changes, table, getattr(before, field), getattr(after, field))
    return sorted(changes, key=lambda change: DIMENSIONS.index(change.dimension))


def _compare(changes: list[Change], dimension: str, path: str, old: Any, new: Any) -> None:
    if old != new:
        changes.append(Change(dimension, path, plain(old), plain(new)))


def _compare_rows(
    changes: list[Change], table: _Table, old_rows: Sequence[Any], new_rows: Sequence[Any]
) -> None:
    name, _, key, naming, dimensions, default = table
    old = _keyed(old_rows, key)
    new = _keyed(new_rows, key)
    for identity in dict.fromkeys([*old, *new]):
        path = f"{name}[{', '.join(str(part) for part in identity)}]"
        was, becomes = old.get(identity), new.get(identity)
        if was is None or becomes is None:
            change = Change(default, path, _whole(was), _whole(becomes))
            changes.append(change)
            continue
        if was is becomes:
            continue
        for field in dataclasses.fields(was):
            if field.name in naming:
                continue
            pair = getattr(was, field.name), getattr(becomes, field.name)
            dimension = dimensions.get(field.name, default)
            _compare(changes, dimension, f"{path}.{field.name}", *pair)
    # Order matters where it settles ties: pools among themselves, lanes of one rank, jobs.
    kept_old = [identity for identity in old if identity in new]
    kept_new = [identity for identity in new if identity in old]
    if kept_old != kept_new:
        text_old, text_new = (
            [", ".join(str(part) for part in identity) for identity in kept]
            for kept in (kept_old, kept_new)
        )
        changes.append(Change(default, f"{name} (order)", text_old, text_new))


def _keyed(rows: Sequence[Any], key: Key) -> dict[tuple[str, ...], Any]:
    """Index the rows; equal keys (two outages of one pool at one second) are told apart."""
    keyed: dict[tuple[str, ...], Any] = {}
    for row in rows:
        identity = key(row)
        number = 2
        while identity in keyed:
            identity = (*key(row), f"#{number}")
            number += 1
        keyed[identity] = row
    return keyed


def _whole(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        field.name: plain(getattr(row, field.name))
        for field in dataclasses.fields(row)
        if getattr(row, field.name) is not None
    }
