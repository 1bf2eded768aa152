"""How those who wait are lined up: queues, shapes, kin, and the lists that a pass looks into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from planner.description.record import Scenario
from planner.engine.columns import Columns
from planner.engine.kernel import layout as k
from planner.policy.quota import UNLIMITED
from planner.vocabulary import Order, Queueing

Key = tuple[int, int, int, tuple[int, ...]]  # of a shape: project, lane, GPUs, pools


def rows_of(number: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return so many empty records."""
    return np.zeros(number, kind)


def starts(sizes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where each list begins when lists of these sizes follow one another."""
    return np.concatenate(([0], np.cumsum(sizes)))[:-1]


def line_up(
    scenario: Scenario,
    columns: Columns,
    keys: Sequence[Key],
    rows: Any,
    row_number: Mapping[tuple[int, int], int],
) -> dict[str, Any]:
    """Lay out queues, shapes and their places in pools, and the lists a pass finds them by."""
    pools, lanes = scenario.pools, len(scenario.lanes)
    pairs = sorted({(project, lane) for project, lane, _, _ in keys})
    queue_number = {pair: number for number, pair in enumerate(pairs)}
    queues = rows_of(len(pairs), k.QUEUE)
    by_score = scenario.policy.order is Order.MULTIFACTOR
    for number, (project, lane) in enumerate(pairs):
        row = queues[number]
        row["project"], row["lane"] = project, lane
        row["limit"] = columns.lane_limit(project, lane)
        row["strict"] = scenario.lanes[lane].queueing is Queueing.STRICT
        row["line"] = row["strict"] and not by_score
    for name in ("line_first", "line_last", "head", "noted_head", "lane_at"):
        queues[name] = -1
    queues["first"] = 0x7FFFFFFF
    shapes = rows_of(len(keys), k.SHAPE)
    sps = rows_of(sum(len(where) for *_, where in keys), k.SP)
    if keys:
        owners, lane_of = [key[0] for key in keys], [key[1] for key in keys]
        gpus, wheres = [key[2] for key in keys], [key[3] for key in keys]
        widths = np.array([len(where) for where in wheres])
        sizes = [pool.gpus for pool in pools]
        shapes["project"], shapes["lane"], shapes["gpus"] = owners, lane_of, gpus
        shapes["queue"] = [queue_number[pair] for pair in zip(owners, lane_of, strict=True)]
        shapes["size_ratio"] = [
            own / max(sizes[p] for p in where) for own, where in zip(gpus, wheres, strict=True)
        ]
        shapes["sp_lo"] = starts(widths)
        shapes["sp_hi"] = shapes["sp_lo"] + widths
        sps["pool"] = [p for where in wheres for p in where]
        sps["shape_id"] = np.repeat(np.arange(len(keys)), widths)
        sps["row"] = [
            row_number[owner, p] for owner, where in zip(owners, wheres, strict=True) for p in where
        ]
    for name in ("first", "last", "active_at"):
        shapes[name] = -1
    for name in ("member_at", "version"):
        sps[name] = -1
    queues["active_lo"] = starts(np.bincount(shapes["queue"], minlength=len(queues)))
    buckets, pls, members = _buckets(shapes, sps, len(pools), lanes)
    lane_rows = np.bincount(queues["lane"], minlength=lanes) if lanes else np.zeros(0, int)
    return {
        "queues": queues,
        "shapes": shapes,
        "sps": sps,
        "buckets": buckets,
        "pls": pls,
        "members": members,
        "active_buckets": np.zeros(len(buckets), np.int64),
        "active_shapes": np.zeros(len(shapes), np.int64),
        "lane_queues": np.zeros(len(queues), np.int64),
        "_queue_lo": starts(lane_rows),
        **_kin(columns, shapes, sps, queues, rows),
    }


def _kin(columns: Columns, shapes: Any, sps: Any, queues: Any, rows: Any) -> dict[str, Any]:
    """Find the shapes that wait for the same reason whatever happens."""
    own = (rows["guaranteed"] > 0) | (rows["ceiling"] < UNLIMITED)
    numbers: dict[object, int] = {}
    found: list[tuple[int, list[tuple[int, int, int]]]] = []  # gpus; pool, row, queue
    pool_of, row_of = sps["pool"].tolist(), sps["row"].tolist()
    limited = own[sps["row"]].tolist()
    by_lane = (queues["limit"] < UNLIMITED)[shapes["queue"]].tolist()
    kin_of: list[int] = []
    described = zip(
        shapes["gpus"].tolist(),
        shapes["project"].tolist(),
        shapes["queue"].tolist(),
        shapes["sp_lo"].tolist(),
        shapes["sp_hi"].tolist(),
        strict=True,
    )
    for number, (gpus, project, queue, lo, hi) in enumerate(described):
        alone = by_lane[number] or any(limited[lo:hi])
        key = (
            gpus,
            tuple(pool_of[lo:hi]),
            columns.cohort_of[project],
            project if alone else -1,
            queue if by_lane[number] else -1,
        )
        if key not in numbers:
            numbers[key] = len(found)
            here = zip(pool_of[lo:hi], row_of[lo:hi], strict=True)
            found.append((gpus, [(pool, row, key[4]) for pool, row in here]))
        kin_of.append(numbers[key])
    shapes["kin"] = kin_of
    kins, kps = rows_of(len(found), k.KIN), rows_of(sum(len(w) for _, w in found), k.KP)
    kins["log"] = np.arange(len(kins))
    kins["asked"] = -1
    at = 0
    for number, (gpus, where) in enumerate(found):
        kins[number]["gpus"] = gpus
        kins[number]["kp_lo"], kins[number]["kp_hi"] = at, at + len(where)
        for pool, row, queue in where:
            kps[at]["pool"], kps[at]["row"], kps[at]["queue"] = pool, row, queue
            kps[at]["kin"] = number
            at += 1
    kps["member_at"] = kps["stage"] = -1
    sizes = _sizes(kins, kps)
    by_row, in_rows = _grouped(kps["row"], own[kps["row"]], len(rows), 0)
    by_queue, in_queues = _grouped(kps["queue"], kps["queue"] >= 0, len(queues), len(in_rows))
    return {
        "kins": kins,
        "kps": kps,
        "sizes": sizes,
        "size_members": np.zeros(len(kps), np.int64),
        "active_sizes": np.zeros(len(sizes), np.int64),
        "limited_rows": by_row,
        "limited_queues": by_queue,
        "limited": np.concatenate([in_rows, in_queues]).astype(np.int64),
    }


def _sizes(kins: Any, kps: Any) -> np.ndarray[Any, Any]:
    """Sort kin by pool and size; a pool keeps where its sizes begin and end."""
    gpus = kins["gpus"][kps["kin"]]
    values = np.unique(gpus)
    key = kps["pool"] * max(1, len(values)) + np.searchsorted(values, gpus)
    uniques, number = np.unique(key, return_inverse=True)
    kps["size_at"] = number
    sizes = rows_of(len(uniques), k.SIZED)
    if len(uniques):
        sizes["gpus"], sizes["pool"] = values[uniques % len(values)], uniques // len(values)
        sizes["lo"] = starts(np.bincount(number, minlength=len(uniques)))
    return sizes


def _grouped(
    owner: np.ndarray[Any, Any], counts: np.ndarray[Any, Any], owners: int, base: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """List, owner by owner, the places that count; the list begins at `base`."""
    places = np.flatnonzero(counts)
    places = places[np.argsort(owner[places], kind="stable")]
    bounds = rows_of(owners, k.LIMITED)
    numbers = np.arange(owners)
    bounds["kp_lo"] = base + np.searchsorted(owner[places], numbers, side="left")
    bounds["kp_hi"] = base + np.searchsorted(owner[places], numbers, side="right")
    return bounds, places


def _buckets(
    shapes: Any, sps: Any, pools: int, lanes: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Sort the places of all shapes into buckets: one for each pool, lane and size."""
    gpus = shapes["gpus"][sps["shape_id"]]
    pl = sps["pool"].astype(np.int64) * lanes + shapes["lane"][sps["shape_id"]]
    sizes = np.unique(gpus)
    key = pl * max(1, len(sizes)) + np.searchsorted(sizes, gpus)
    uniques, number = np.unique(key, return_inverse=True)
    sps["bucket"] = number
    buckets = rows_of(len(uniques), k.BUCKET)
    if len(uniques):
        buckets["pl"], buckets["gpus"] = uniques // len(sizes), sizes[uniques % len(sizes)]
        buckets["lo"] = starts(np.bincount(number, minlength=len(uniques)))
    pls = rows_of(pools * lanes, k.PL)
    pls["lo"] = starts(np.bincount(buckets["pl"], minlength=len(pls))) if len(pls) else 0
    return buckets, pls, np.zeros(len(sps), np.int64)
