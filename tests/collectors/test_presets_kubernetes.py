"""Presets for GPUs that pods ask for and nodes offer, against real servers with their series.

The right values are worked out by hand beside the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from collectors.source import Access, Source
from tests.collectors.presets import (
    HOUR,
    MIDNIGHT,
    SERVERS,
    Value,
    at,
    cut,
    gauge,
    question,
)
from tests.prometheus import needed, openmetrics

pytestmark = needed


def _kubernetes(region: str, *, by_node: bool = False) -> dict[str, Value]:
    """With the label `pool` on each series, or `by_node` with it as a label of the node only."""
    series: dict[str, Value] = {}
    pools = {"n1": "train", "n2": "serve"}

    def line(name: str, value: Value | float, **labels: str) -> None:
        if not by_node and labels.get("node") in pools:
            labels["pool"] = pools[labels["node"]]
        # Two replicas of kube-state-metrics are scraped, until 02:30.
        for instance in ("k1", "k2"):
            said = {"region": region, "instance": instance, **labels}
            text = ",".join(f'{label}="{value}"' for label, value in said.items())
            series[f"{name}{{{text}}}"] = cut(value, until="02:30")

    def pod(
        cluster: str, namespace: str, name: str, node: str, gpus: float, phase: str,
        *, until: str = "99:00", resource: str = "nvidia_com_gpu",
    ) -> None:  # fmt: skip
        of = {"cluster": cluster, "namespace": namespace, "pod": name}
        line(
            "kube_pod_container_resource_requests", cut(gpus, until=until),
            container="main", resource=resource, unit="integer", node=node, **of,
        )  # fmt: skip
        for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            line("kube_pod_status_phase", cut(float(one == phase), until=until), phase=one, **of)

    pod("c1", "speech", "a", "n1", 8, "Running")
    pod("c1", "speech", "starts", "n1", 4, "Pending")
    pod("c1", "speech", "unplaced", "", 8, "Pending")
    for number in range(3):
        pod("c1", "speech", f"done-{number}", "n1", 8, "Succeeded")
    pod("c1", "robotics", "amd", "n2", 2, "Running", resource="amd_com_gpu")
    pod("c1", "robotics", "cpu", "n2", 64, "Running", resource="cpu")
    # The same name in another cluster of the region, where it has failed.
    pod("c2", "speech", "a", "n1", 8, "Failed")
    pod("c1", "night", "b", "n1", 2, "Running", until="02:00")
    for cluster, node, gpus, resource in (
        ("c1", "n1", 16.0, "nvidia_com_gpu"), ("c2", "n1", 8.0, "nvidia_com_gpu"),
        ("c1", "n2", 8.0, "amd_com_gpu"), ("c1", "n2", 512.0, "cpu"),
    ):  # fmt: skip
        where = {"cluster": cluster, "node": node}
        line("kube_node_status_allocatable", gpus, resource=resource, unit="integer", **where)
        if by_node:
            line("kube_node_labels", 1.0, label_pool=pools[node], **where)
    return series


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    series = {**_kubernetes("tokyo"), **_kubernetes("nodes", by_node=True)}
    text = openmetrics(series, start=MIDNIGHT, end=MIDNIGHT + 3 * HOUR, every=timedelta(minutes=1))
    with request.param(text) as url:
        made = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        yield made
        made.close()


@pytest.mark.parametrize(
    ("preset", "region"),
    [("kube-state-metrics", "tokyo"), ("kube-state-metrics-node-label", "nodes")],
)
def test_requests_count_what_is_placed_and_not_over(
    source: Source, preset: str, region: str
) -> None:
    def ask(signal: str, clock: str) -> dict[tuple[str, ...], float]:
        return gauge(source, question(preset, signal, region=region), at(clock))

    # n1 16 in c1 + 8 in c2; n2 8 of AMD
    assert ask("gpu_installed_gpus", "00:30") == {("train",): 24.0, ("serve",): 8.0}
    # speech: a 8 + starts 4; not: without a node, done, failed in c2. robotics: 2 of AMD.
    wanted = {("train", "speech"): 12.0, ("serve", "robotics"): 2.0, ("train", "night"): 2.0}
    assert ask("gpu_requested_gpus", "00:30") == wanted
    # night's pod is gone since 02:00: it has none, and is not unknown.
    assert ask("gpu_requested_gpus", "02:10") == {**wanted, ("train", "night"): 0.0}
    # kube-state-metrics is silent since 02:30: nothing is known, and nothing is 0.
    assert ask("gpu_requested_gpus", "02:40") == {}
    assert ask("gpu_installed_gpus", "02:40") == {}
