"""A small scenario to start from, and to bend."""

from typing import Any

from planner.scenario import Scenario, parse


def job(name: str, submit: int = 0, gpus: int = 1, work: int = 100, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "submit_seconds": submit,
        "project": "speech",
        "lane": "primary",
        "gpus": gpus,
        "work_seconds": work,
    } | more


def mapping(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One pool of two nodes of eight, two projects of eight GPUs each, two lanes."""
    return {
        "format": 1,
        "name": "small",
        "start": "2026-11-30T00:00:00+09:00",
        "policy": {"order": "fifo", "placement": "listed", "victims": "youngest"},
        "region": [
            {"name": "tokyo", "timezone": "Asia/Tokyo"},
            {"name": "osaka", "timezone": "Asia/Tokyo"},
        ],
        "link": [{"between": ["tokyo", "osaka"], "gbps": 40}],
        "domain": [
            {"name": "tokyo-a", "region": "tokyo"},
            {"name": "osaka-a", "region": "osaka"},
        ],
        "storage": [{"name": "ckpt", "region": "tokyo", "write_gb_per_second": 1.5}],
        "pool": [
            {
                "name": "h100",
                "domain": "tokyo-a",
                "accelerator": "H100",
                "nodes": 2,
                "gpus_per_node": 8,
                "storage": "ckpt",
            }
        ],
        "lane": [
            {"name": "emergency", "rank": 100, "preempts": ["primary"]},
            {"name": "primary", "rank": 50},
        ],
        "tenant": [{"name": "kaguya"}, {"name": "hikari", "weight": 0.5}],
        "project": [
            {"name": "speech", "tenant": "kaguya"},
            {"name": "vision", "tenant": "hikari"},
        ],
        "quota": [
            {"project": "speech", "pool": "h100", "nominal": 8},
            {"project": "vision", "pool": "h100", "nominal": 8},
        ],
        "job": list(jobs),
    } | more


def scenario(*jobs: dict[str, Any], **more: Any) -> Scenario:
    return parse(mapping(*jobs, **more))
