"""The story in Prometheus's words: the names and labels that real exporters use.

The same lines come out as one scrape (text format) or as a week of samples (OpenMetrics), so that
back-filled counters go on without a seam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from portal.demo import signals
from portal.demo.signals import Floats, Histogram, Signals, Steps
from portal.demo.story import Story

# The jobs of the scrape configuration, one endpoint a region each.
JOBS = ("dcgm-exporter", "kueue", "trainer-checkpoint")
GPU = ("nvidia.com/gpu",)
MODELS = {"H100": "NVIDIA H100 80GB HBM3", "A100": "NVIDIA A100-SXM4-80GB", "L40S": "NVIDIA L40S"}

# Region, sample name, labels as text, which of the asked instants, and the values there.
Sample = tuple[str, str, str, Sequence[int] | None, Floats]
Samples = Iterator[Sample]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, kind and meaning, which job tells it, and its samples."""

    name: str
    kind: str
    meaning: str
    job: str
    samples: Callable[[Story, Floats], Samples]


def instance(region: str, job: str) -> str:
    """The target's name, the same in the back-fill and in the scrape configuration."""
    return f"{region}-{job}"


def labels(**values: str) -> str:
    """Labels as text, without braces."""
    return ",".join(f'{name}="{value}"' for name, value in values.items() if value)


def scrape(story: Story, *, region: str, job: str, second: int) -> str:
    """What an exporter of a region answers at one instant, in Prometheus's text format."""
    at = np.array([second], dtype=float)
    lines: list[str] = []
    for family in FAMILIES:
        if family.job != job:
            continue
        lines.append(f"# HELP {family.name} {family.meaning}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [
            f"{name}{{{text}}} {_number(float(values[0]))}"
            for of, name, text, which, values in family.samples(story, at)
            if of == region and (which is None or len(which))
        ]
    return "\n".join(lines) + "\n"


def openmetrics(story: Story, *, instants: Floats) -> Iterator[str]:
    """Samples of all regions at many instants (seconds of the story), as OpenMetrics, in pieces."""
    start = int(story.start.timestamp())
    stamps = [str(start + int(second)) for second in instants]
    regions = [region.name for region in story.trace.scenario.regions]
    yield "# TYPE up gauge\n"
    for job in JOBS:
        for region in regions:
            target = labels(region=region, job=job, instance=instance(region, job))
            yield "".join(f"up{{{target}}} 1 {stamp}\n" for stamp in stamps)
    for family in FAMILIES:
        # In OpenMetrics a counter's family goes without the suffix of its samples.
        yield f"# TYPE {family.name.removesuffix('_total')} {family.kind}\n"
        for region, name, text, which, values in family.samples(story, instants):
            target = labels(region=region, job=family.job, instance=instance(region, family.job))
            head = f"{name}{{{text},{target}}} "
            when = stamps if which is None else [stamps[n] for n in which]
            yield "".join(
                [
                    f"{head}{_number(value)} {stamp}\n"
                    for value, stamp in zip(values.tolist(), when, strict=True)
                ]
            )
    yield "# EOF\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _devices(name: str, of: Callable[[signals.Devices], Floats]) -> Callable[..., Samples]:
    def samples(story: Story, instants: Floats) -> Samples:
        world, where = story.trace.scenario, signals.places(story)
        seen = signals.devices(story, instants)
        for pool in world.pools:
            found = seen[pool.name]
            values = of(found)
            for device in range(pool.gpus):
                fixed = labels(
                    UUID=f"GPU-{pool.name}-{device:03d}",
                    gpu=str(device % pool.gpus_per_node),
                    modelName=MODELS[pool.accelerator],
                    Hostname=f"{pool.name}-{device // pool.gpus_per_node:02d}",
                    pool=pool.name,
                )
                reports = ~np.isnan(values[device])
                for owner in np.unique(found.owner[device]):
                    which = np.nonzero((found.owner[device] == owner) & reports)[0]
                    namespace = "" if owner < 0 else found.projects[owner]
                    text = fixed + (f',exported_namespace="{namespace}"' if namespace else "")
                    yield (
                        where.region_of_pool[pool.name],
                        name,
                        text,
                        which.tolist(),
                        values[device, which],
                    )

    return samples


def _steps(
    name: str,
    of: Callable[[Signals], dict[tuple[str, ...], Steps]],
    keys: Sequence[str],
    **more: str,
) -> Callable[..., Samples]:
    """Samples of step series whose labels after the region are `keys`."""

    def samples(story: Story, instants: Floats) -> Samples:
        for (region, *values), series in of(signals.signals(story)).items():
            text = labels(**dict(zip(keys, values, strict=True)), **more)
            yield region, name, text, None, series.at(instants)

    return samples


def _histogram(
    name: str,
    of: Callable[[Signals], dict[tuple[str, ...], Histogram]],
    keys: Sequence[str],
    **more: str,
) -> Callable[..., Samples]:
    def samples(story: Story, instants: Floats) -> Samples:
        for (region, *values), series in of(signals.signals(story)).items():
            text = labels(**dict(zip(keys, values, strict=True)), **more)
            for bound, bucket in zip(series.bounds, series.buckets, strict=True):
                upper = f"{bound:g}" if np.isfinite(bound) else "+Inf"
                yield region, f"{name}_bucket", f'{text},le="{upper}"', None, bucket.at(instants)
            yield region, f"{name}_sum", text, None, series.total.at(instants)
            yield region, f"{name}_count", text, None, series.count.at(instants)

    return samples


KUEUE = {"replica_role": "leader"}
OF_QUEUE = ("cluster_queue", "priority_class")
OF_STORE = ("pool", "tenant", "lane", "storage")

FAMILIES: tuple[Family, ...] = (
    Family(
        "DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", "dcgm-exporter",
        _devices("DCGM_FI_DEV_GPU_UTIL", lambda seen: seen.resident),
    ),
    Family(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge",
        "Ratio of time the graphics engine is active.", "dcgm-exporter",
        _devices("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda seen: seen.engine),
    ),
    Family(
        "kueue_cluster_queue_resource_usage", "gauge",
        "Reports the cluster_queue's total resource usage within all the flavors.", "kueue",
        _steps(
            "kueue_cluster_queue_resource_usage", lambda seen: dict(seen.held),
            ("flavor", "cluster_queue"), resource=GPU[0], cohort="all", **KUEUE,
        ),
    ),
    Family(
        "kueue_cluster_queue_nominal_quota", "gauge",
        "Reports the cluster_queue's resource nominal quota within all the flavors.", "kueue",
        _steps(
            "kueue_cluster_queue_nominal_quota", lambda seen: dict(seen.nominal),
            ("flavor", "cluster_queue"), resource=GPU[0], cohort="all", **KUEUE,
        ),
    ),
    Family(
        "kueue_pending_workloads", "gauge",
        "The number of pending workloads, per cluster_queue and status.", "kueue",
        _steps(
            "kueue_pending_workloads", lambda seen: dict(seen.pending),
            ("cluster_queue", "custom_lane"), status="active", **KUEUE,
        ),
    ),
    Family(
        "kueue_cluster_queue_resource_pending", "gauge",
        "Reports the cluster_queue's total pending resource usage.", "kueue",
        _steps(
            "kueue_cluster_queue_resource_pending", lambda seen: dict(seen.pending_gpus),
            ("cluster_queue", "custom_lane"), resource=GPU[0], **KUEUE,
        ),
    ),
    Family(
        "kueue_admitted_workloads_total", "counter",
        "The total number of admitted workloads per cluster_queue.", "kueue",
        _steps(
            "kueue_admitted_workloads_total", lambda seen: dict(seen.admitted), OF_QUEUE, **KUEUE
        ),
    ),
    Family(
        "kueue_evicted_workloads_total", "counter",
        "The number of evicted workloads per cluster_queue.", "kueue",
        _steps(
            "kueue_evicted_workloads_total", lambda seen: dict(seen.evicted),
            (*OF_QUEUE, "reason"), **KUEUE,
        ),
    ),
    Family(
        "kueue_admission_wait_time_seconds", "histogram",
        "The time between a workload was created and was admitted, per cluster_queue.", "kueue",
        _histogram(
            "kueue_admission_wait_time_seconds", lambda seen: dict(seen.waits), OF_QUEUE, **KUEUE
        ),
    ),
    Family(
        "trainer_checkpoint_write_duration_seconds", "histogram",
        "How long writing a checkpoint took.", "trainer-checkpoint",
        _histogram(
            "trainer_checkpoint_write_duration_seconds", lambda seen: dict(seen.writes), OF_STORE,
            phase="total",
        ),
    ),
    Family(
        "trainer_checkpoint_bytes_total", "counter", "Bytes of checkpoints written.",
        "trainer-checkpoint",
        _steps("trainer_checkpoint_bytes_total", lambda seen: dict(seen.written_bytes), OF_STORE),
    ),
    Family(
        "trainer_checkpoint_failures_total", "counter", "Checkpoints that could not be written.",
        "trainer-checkpoint",
        _steps(
            "trainer_checkpoint_failures_total", lambda seen: dict(seen.write_failures), OF_STORE
        ),
    ),
)  # fmt: skip
