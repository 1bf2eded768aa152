"""Kueue's own test rows, read from the files beside this module and told as scenarios of ours.

A queue becomes a project, a flavor (or a resource) a pool of one-GPU nodes, a unit of CPU a GPU, a
priority a lane of its own with every lower one to preempt where the newcomer's queue says so
(`within`); `reclaim` is the newcomer's queue's too. Pools have room for everybody at once, so that
quota alone decides, as it does there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.scenario import Scenario, parse

AT_SECONDS = 100  # when the newcomer comes; the run stops there
RECLAIM = {"never": "never", "lower-priority": "lower-lane", "any": "any"}


@dataclass(frozen=True)
class Row:
    """One row of a Go test, with what its file shares among rows filled in."""

    file: str
    test: str
    source: str
    data: dict[str, Any]
    order: str

    @property
    def expect(self) -> dict[str, Any]:
        expect: dict[str, Any] = self.data.get("expect", {})
        return expect

    @property
    def not_expressible(self) -> str | None:
        reason: str | None = self.data.get("not_expressible")
        return reason

    @property
    def queues(self) -> dict[str, dict[str, Any]]:
        queues: dict[str, dict[str, Any]] = self.data["queues"]
        return queues

    def cohort_of(self, queue: str) -> str:
        """A queue without a cohort is a cohort of one."""
        return str(self.queues[queue].get("cohort", f"{queue} alone"))

    def quotas(self) -> list[tuple[str, str, str, dict[str, int]]]:
        """List (project, cohort, pool, quota). A cohort's own quota is that of an idle project."""
        own: dict[str, dict[str, dict[str, int]]] = self.data.get("cohort_quota", {})
        return [
            (queue, self.cohort_of(queue), pool, quota)
            for queue, described in self.queues.items()
            for pool, quota in described["quota"].items()
        ] + [
            (f"{cohort} itself", cohort, pool, quota)
            for cohort, quotas in own.items()
            for pool, quota in quotas.items()
        ]


@dataclass(frozen=True)
class Table:
    """One file of Kueue's: where it comes from, how many rows were found in it, and the rows."""

    file: str
    origin: dict[str, str]
    found: dict[str, int]
    without_named_rows: dict[str, str]
    rows: list[Row]


def tables() -> list[Table]:
    """Read every file, by name."""
    return [_table(path) for path in sorted(Path(__file__).parent.glob("*.json"))]


def _table(path: Path) -> Table:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    file = path.stem + ".go"
    return Table(
        file,
        data["origin"],
        data["found"],
        data["without_named_rows"],
        [
            Row(file, row["test"], row["source"], _filled(row, data), data.get("order", "fifo"))
            for row in data["rows"]
        ],
    )


def _filled(row: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Put what the row only names in its place."""
    return row | {
        key: {name: shared[key][name] for name in row[key]}
        for key in ("queues", "workloads")
        if isinstance(row.get(key), list)
    }


def scenario(row: Row, gpus: int | None = None) -> Scenario:
    """Tell the row as a scenario of ours; `gpus`: what the newcomer asks for instead.

    All who run start at their second, and none waits for another. Equal ones are told apart there
    by their names, the first one going first, and here by their place in the file, the last one
    going first: so they are written down from the last name to the first.
    """
    newcomer = row.data["incoming"] | ({"gpus": gpus} if gpus else {})
    mine = row.queues[newcomer["queue"]]
    workloads = [*reversed(row.data["running"]), newcomer]
    quotas = row.quotas()
    lanes = sorted({work.get("priority", 0) for work in workloads})
    room = sum(work["gpus"] for work in workloads)
    return parse(
        {
            "format": 1,
            "name": f"{row.file}: {row.source}",
            "start": "2026-11-30T00:00:00+09:00",
            "horizon_seconds": AT_SECONDS,
            "policy": {
                "order": row.order,
                "placement": "listed",
                "victims": "youngest",
                "reclaim": RECLAIM[mine.get("reclaim", "never")],
            },
            "region": [{"name": "tokyo", "timezone": "Asia/Tokyo"}],
            "domain": [{"name": "tokyo-a", "region": "tokyo"}],
            "pool": [
                {
                    "name": pool,
                    "domain": "tokyo-a",
                    "accelerator": "any",
                    "nodes": room,
                    "gpus_per_node": 1,
                }
                for pool in dict.fromkeys(pool for _, _, pool, _ in quotas)
            ],
            "lane": [
                {
                    "name": f"priority {priority}",
                    "rank": priority - lanes[0],
                    "preempts": (
                        [f"priority {lower}" for lower in lanes if lower < priority]
                        if mine.get("within", "never") != "never"
                        else []
                    ),
                }
                for priority in lanes
            ],
            "tenant": [{"name": "all"}],
            "project": [
                {
                    "name": project,
                    "tenant": "all",
                    "cohort": cohort,
                    "weight": float(row.queues.get(project, {}).get("weight", 1)),
                }
                for project, cohort in dict.fromkeys(
                    (name, cohort) for name, cohort, _, _ in quotas
                )
            ],
            "quota": [
                {"project": project, "pool": pool, "nominal": quota["nominal"]}
                | {
                    f"{limit}_limit": quota[limit]
                    for limit in ("borrowing", "lending")
                    if limit in quota
                }
                for project, _, pool, quota in quotas
            ],
            "job": [
                {
                    "id": work["name"],
                    "submit_seconds": AT_SECONDS if work is newcomer else work.get("since", 0),
                    "project": work["queue"],
                    "lane": f"priority {work.get('priority', 0)}",
                    "gpus": work["gpus"],
                    "work_seconds": 10 * AT_SECONDS,
                    "pools": [work.get("flavor", "default")],
                }
                for work in workloads
            ],
        }
    )
