"""The fleet as the kernel's records: pools, nodes, outages, and how long what takes where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from planner.description.record import Scenario
from planner.engine.columns import Columns
from planner.engine.kernel import layout as k
from planner.engine.kernel.lines import rows_of
from planner.policy.checkpoint import staging_seconds, write_seconds
from planner.work import Kind

_NO_END = 1 << 53  # longer than any run


def nodes(scenario: Scenario, columns: Columns) -> dict[str, Any]:
    """Lay out the pools and their nodes, all of them free."""
    region_number = {region.name: i for i, region in enumerate(scenario.regions)}
    storage_number = {storage.name: i for i, storage in enumerate(scenario.storages)}
    pools = rows_of(len(scenario.pools), k.POOL)
    word_lo = count_lo = node_lo = 0
    for p, pool in enumerate(scenario.pools):
        row = pools[p]
        row["gpus"] = row["free"] = pool.gpus
        row["per_node"], row["nodes"] = pool.gpus_per_node, pool.nodes
        row["words"] = words = -(-pool.nodes // 64)
        row["word_lo"], row["count_lo"], row["node_lo"] = word_lo, count_lo, node_lo
        row["domain"] = columns.domain_of_pool[p]
        row["region"] = region_number[columns.region_of_pool[p]]
        row["storage"] = -1 if pool.storage is None else storage_number[pool.storage]
        row["running"] = -1
        if pool.gpus_per_node > 1:  # else a count is enough
            word_lo += words * (pool.gpus_per_node + 1)
            count_lo += pool.gpus_per_node + 1
            node_lo += pool.nodes
    bits = np.zeros(word_lo, np.uint64)
    counts, free = np.zeros(count_lo, np.int64), np.zeros(node_lo, np.int64)
    for p, pool in enumerate(scenario.pools):
        row, level = pools[p], pool.gpus_per_node
        if level == 1:
            continue
        first = int(row["word_lo"]) + level * int(row["words"])
        whole, rest = divmod(pool.nodes, 64)
        bits[first : first + whole] = np.uint64(2**64 - 1)
        if rest:
            bits[first + whole] = np.uint64(2**rest - 1)
        counts[int(row["count_lo"]) + level] = pool.nodes
        free[int(row["node_lo"]) : int(row["node_lo"]) + pool.nodes] = level
    return {
        "pools": pools,
        "words": bits,
        "counts": counts,
        "node_free": free,
        "node_next": np.full(node_lo, -1, np.int64),
    }


def outages(scenario: Scenario, columns: Columns) -> dict[str, Any]:
    """Lay out when which pools are struck, and whether what they have saved is lost with them."""
    struck: list[tuple[int, bool]] = []
    lo, events = [0], []
    for number, outage in enumerate(scenario.outages):
        for p, pool in enumerate(scenario.pools):
            region = columns.region_of_pool[p]
            if outage.pool == pool.name or outage.domain == pool.domain or outage.region == region:
                storage = columns.storage_of_pool[p]
                lost = storage is not None and storage.lost_with(outage, columns.region_of_domain)
                struck.append((p, lost))
        lo.append(len(struck))
        begin = outage.start_seconds
        events.append((begin, 1, number))
        events.append((begin + outage.duration_seconds, 0, number))
    events.sort()  # by second; those that end before those that begin
    rows = rows_of(len(events), k.OUTAGE_EVENT)
    for row, (time, begins, number) in zip(rows, events, strict=True):
        row["time"], row["begins"], row["outage"] = time, begins, number
    table = rows_of(len(struck), k.STRUCK)
    for row, (p, lost) in zip(table, struck, strict=True):
        row["pool"], row["storage_lost"] = p, lost
    return {
        "outage_events": rows,
        "struck": table,
        "struck_lo": np.array(lo, dtype=np.int64),
    }


def durations(scenario: Scenario, kinds: Sequence[Kind]) -> dict[str, Any]:
    """Tabulate, for each kind of job, how long staging and one write take where."""
    gbps = {link.between: link.gbps for link in scenario.links}
    gbps |= {(b, a): speed for (a, b), speed in gbps.items()}
    regions = [region.name for region in scenario.regions]
    staging = np.zeros((len(kinds), len(regions)), np.int64)
    home = np.ones((len(kinds), len(regions)), np.int8)
    writing = np.zeros((len(kinds), len(scenario.storages)), np.int64)
    speeds = [storage.write_gb_per_second for storage in scenario.storages]
    by_data: dict[object, tuple[list[int], list[int]]] = {}
    by_size: dict[object, list[int]] = {}
    for row, kind in enumerate(kinds):
        if kind.data_region is not None:
            key = (kind.data_region, kind.data_gb)
            if key not in by_data:
                by_data[key] = _away(kind, regions, gbps)
            staging[row], home[row] = by_data[key]
        if kind.checkpoint_gb and speeds:
            if kind.checkpoint_gb not in by_size:
                by_size[kind.checkpoint_gb] = [
                    min(_NO_END, write_seconds(kind.checkpoint_gb, speed)) for speed in speeds
                ]
            writing[row] = by_size[kind.checkpoint_gb]
    return {"staging_seconds": staging, "write_seconds": writing, "at_home": home}


def _away(
    kind: Kind, regions: Iterable[str], gbps: dict[tuple[str, str], Any]
) -> tuple[list[int], list[int]]:
    seconds, home = [], []
    for region in regions:
        home.append(int(kind.data_region == region))
        speed = gbps.get((str(kind.data_region), region))
        if home[-1] or speed is None:
            seconds.append(0)
        else:
            seconds.append(min(_NO_END, staging_seconds(kind.data_gb, speed)))
    return seconds, home
