"""The fleet as the kernel's records: pools, which node has how much free, and outages."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.description.record import Scenario
from planner.engine.columns import Columns
from planner.engine.kernel import layout as k
from planner.engine.kernel.lines import rows_of


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
