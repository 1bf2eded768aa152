"""Draws whole scenarios: small, crowded, and with every rule of the contract in play."""

import random
from typing import Any

from hypothesis import strategies as st

REGIONS = ("tokyo", "osaka", "fukuoka")
LANES = ("emergency", "primary", "exploratory", "background")


def _maybe(draw: random.Random, row: dict[str, Any], chance: float, **values: Any) -> None:
    row.update({key: value for key, value in values.items() if draw.random() < chance})


def scenario_mapping(draw: random.Random) -> dict[str, Any]:
    """Draw a scenario of at most 40 jobs in at most 4 pools."""
    regions = list(REGIONS[: draw.randint(1, 3)])
    domains = [
        {"name": f"{region}-{letter}", "region": region}
        for region in regions
        for letter in "ab"[: draw.randint(1, 2)]
    ]
    links = [
        {"between": [a, b], "gbps": draw.choice([1, 2.5, 40])}
        for i, a in enumerate(regions)
        for b in regions[i + 1 :]
        if draw.random() < 0.7
    ]
    storages: list[dict[str, Any]] = []
    for domain in domains:
        storage: dict[str, Any] = {
            "name": f"{domain['name']}-ckpt",
            "write_gb_per_second": draw.choice([0.5, 1, 10]),
        }
        _maybe(draw, storage, 0.6, region=domain["region"])
        _maybe(draw, storage, 0.6, domain=domain["name"])
        storages.append(storage)
    pools: list[dict[str, Any]] = []
    for number in range(draw.randint(1, 4)):
        domain = draw.choice(domains)
        pool: dict[str, Any] = {
            "name": f"pool-{number}",
            "domain": domain["name"],
            "accelerator": draw.choice(["H100", "H100", "H100", "A100"]),
            "nodes": draw.randint(1, 4),
            "gpus_per_node": draw.choice([1, 4, 8, 8]),
        }
        _maybe(draw, pool, 0.7, storage=f"{domain['name']}-ckpt")
        pools.append(pool)
    lanes = _lanes(draw)
    projects = [
        {
            "name": f"q{i}",
            "tenant": draw.choice(["t0", "t1"]),
            "weight": draw.choice([0, 0.1, 1, 1, 3]),
            "cohort": draw.choice(["all", "all", "other"]),
        }
        for i in range(draw.randint(1, 5))
    ]
    quotas: list[dict[str, Any]] = []
    for project in projects:
        for pool in pools:
            if draw.random() < 0.9:
                size = pool["nodes"] * pool["gpus_per_node"]
                quota: dict[str, Any] = {
                    "project": project["name"],
                    "pool": pool["name"],
                    "nominal": draw.choice([0, size // 2, size, draw.randint(0, size)]),
                }
                _maybe(draw, quota, 0.3, borrowing_limit=draw.randint(0, size))
                _maybe(draw, quota, 0.3, lending_limit=draw.randint(0, size))
                quotas.append(quota)
    mapping: dict[str, Any] = {
        "format": 1,
        "name": "drawn",
        "start": "2026-11-30T00:00:00+09:00",
        "policy": _policy(draw),
        "region": [{"name": name, "timezone": "Asia/Tokyo"} for name in regions],
        "link": links,
        "domain": domains,
        "storage": storages,
        "pool": pools,
        "lane": lanes,
        "tenant": [{"name": "t0", "weight": 2}, {"name": "t1"}],
        "project": projects,
        "quota": quotas,
        "assignment": _assignments(draw, projects, lanes, pools),
        "outage": _outages(draw, regions, domains, pools),
        "job": [_job(draw, i, projects, lanes, pools, regions) for i in range(draw.randint(5, 40))],
    }
    _maybe(draw, mapping, 0.5, horizon_seconds=draw.randint(500, 5000))
    return mapping


def _policy(draw: random.Random) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "order": draw.choice(["fifo", "fifo", "fair-share", "fair-share", "multifactor"]),
        "placement": draw.choice(["listed", "locality", "pack", "spread"]),
        "victims": draw.choice(["youngest", "least-lost-work"]),
        "reclaim": draw.choice(["never", "lower-lane", "any", "any"]),
    }
    if policy["order"] == "fifo" and draw.random() < 0.5:
        policy["backfill"] = "easy"
    if policy["order"] == "multifactor":
        weights = ("age_weight", "fair_share_weight", "size_weight", "lane_weight")
        policy["multifactor"] = {name: draw.choice([0, 1, 1000]) for name in weights}
        policy["multifactor"]["max_age_seconds"] = draw.choice([1, 300, 604_800])
        policy["multifactor"]["half_life_seconds"] = draw.choice([1, 600, 604_800])
    return policy


def _lanes(draw: random.Random) -> list[dict[str, Any]]:
    names = LANES[: draw.randint(1, 4)]
    lanes: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        lane: dict[str, Any] = {
            "name": name,
            "rank": 100 - 10 * i,
            "preempts": [lower for lower in names[i + 1 :] if draw.random() < 0.6],
            "recovery": draw.choice(["requeue", "requeue", "suspend", "cancel"]),
            "queueing": draw.choice(["best-effort", "best-effort", "strict"]),
        }
        _maybe(draw, lane, 0.3, protect_seconds=draw.choice([60, 600]))
        _maybe(draw, lane, 0.4, backoff_seconds=draw.choice([10, 60]))
        _maybe(draw, lane, 0.4, backoff_limit_seconds=100)
        _maybe(draw, lane, 0.2, max_requeues=draw.randint(0, 2))
        lanes.append(lane)
    return lanes


def _assignments(
    draw: random.Random,
    projects: list[dict[str, Any]],
    lanes: list[dict[str, Any]],
    pools: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    if draw.random() < 0.5:
        return []
    rows: list[dict[str, Any]] = []
    for project in projects:
        for lane in lanes:
            if draw.random() < 0.95:
                row: dict[str, Any] = {"project": project["name"], "lane": lane["name"]}
                names = [pool["name"] for pool in pools]
                draw.shuffle(names)
                _maybe(draw, row, 0.4, pools=names, max_gpus=draw.randint(1, 16))
                rows.append(row)
    return rows


def _outages(
    draw: random.Random,
    regions: list[str],
    domains: list[dict[str, Any]],
    pools: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    rows = []
    for _ in range(draw.choice([0, 0, 1, 2])):
        where = draw.choice(["pool", "domain", "region"])
        names = {
            "pool": [pool["name"] for pool in pools],
            "domain": [domain["name"] for domain in domains],
            "region": regions,
        }
        rows.append(
            {
                where: draw.choice(names[where]),
                "start_seconds": draw.randint(0, 3000),
                "duration_seconds": draw.randint(1, 1000),
            }
        )
    return rows


def _job(
    draw: random.Random,
    number: int,
    projects: list[dict[str, Any]],
    lanes: list[dict[str, Any]],
    pools: list[dict[str, Any]],
    regions: list[str],
) -> dict[str, Any]:
    job: dict[str, Any] = {
        "id": f"j{number}",
        "submit_seconds": draw.choice([draw.randint(0, 1200), 100 * draw.randint(0, 12)]),
        "project": draw.choice(projects)["name"],
        "lane": draw.choice(lanes)["name"],
        "gpus": draw.choice([1, 1, 2, 3, 4, 4, 8, 12]),
        "work_seconds": draw.choice([0, draw.randint(1, 1500), 100 * draw.randint(1, 15)]),
    }
    _maybe(draw, job, 0.4, limit_seconds=draw.choice([0, 100, draw.randint(1, 2000)]))
    _maybe(draw, job, 0.5, checkpoint_interval_seconds=draw.choice([60, 300]))
    _maybe(draw, job, 0.5, checkpoint_gb=draw.choice([0.5, 7, 33.3]))
    _maybe(draw, job, 0.5, restart_seconds=draw.choice([5, 120]))
    if draw.random() < 0.4:
        job["data_region"] = draw.choice(regions)
        job["data_gb"] = draw.choice([0, 1.5, 20])
    _maybe(draw, job, 0.1, accelerator="A100", regions=[draw.choice(regions)])
    _maybe(draw, job, 0.1, pools=[draw.choice(pools)["name"]])
    return job


def scenario_mappings() -> st.SearchStrategy[dict[str, Any]]:
    return st.randoms(use_true_random=True).map(scenario_mapping)
