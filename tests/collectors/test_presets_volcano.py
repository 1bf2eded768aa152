"""The preset for Volcano, against real servers with its series.

The right values are worked out by hand beside each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from collectors import catalogue
from collectors.source import Access, Source
from tests.collectors.presets import HOUR, MIDNIGHT, SERVERS, Key, Value, at, flat, gauge, question
from tests.prometheus import needed, openmetrics

pytestmark = needed


def _volcano() -> dict[str, Value]:
    series: dict[str, Value] = {}
    queues = {
        # allocated, deserved, asked for in milli-GPUs; pod groups pending, in the queue, running
        "robotics": (16_000.0, 24_000.0, 24_000.0, 3.0, 1.0, 2.0),
        "speech": (8_000.0, 8_000.0, 0.0, 0.0, 0.0, 0.0),  # its last job has ended
        "night": (0.0, 4_000.0, 0.0, 2.0, 0.0, 0.0),
    }
    for queue, (allocated, deserved, asked, pending, inqueue, runs) in queues.items():
        for instance in ("v1", "v2"):
            of = f'region="tokyo",instance="{instance}",queue_name="{queue}"'
            for name, value in (
                ("allocated", allocated),
                ("deserved", deserved),
                ("request", asked),
            ):
                gpus = f'{of},resource="nvidia.com/gpu"'
                series[f"volcano_queue_{name}_scalar_resources{{{gpus}}}"] = flat(value)
                other = f'{of},resource="rdma/hca"'
                series[f"volcano_queue_{name}_scalar_resources{{{other}}}"] = flat(64_000.0)
            for name, value in (
                ("pending", pending), ("inqueue", inqueue), ("running", runs), ("unknown", 0.0),
            ):  # fmt: skip
                series[f"volcano_queue_pod_group_{name}_count{{{of}}}"] = flat(value)
    # Of a job that ended long ago.
    leaked = 'region="tokyo",job_name="old",queue="speech",job_namespace="speech"'
    series[f"volcano_e2e_job_scheduling_duration{{{leaked}}}"] = flat(3.6e6)
    return series


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    text = openmetrics(_volcano(), start=MIDNIGHT, end=MIDNIGHT + HOUR, every=timedelta(minutes=1))
    with request.param(text) as url:
        made = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        yield made
        made.close()


def test_volcano_counts_milli_gpus_and_does_not_believe_a_queue_without_jobs(
    source: Source,
) -> None:
    def ask(signal: str) -> dict[Key, float]:
        return gauge(source, question("volcano", signal), at("00:30"))

    # speech still says 8 GPUs, but nothing of it runs: unknown. night says 0, and has 0.
    assert ask("quota_used_gpus") == {("robotics",): 16.0, ("night",): 0.0}
    assert ask("quota_nominal_gpus") == {("robotics",): 24.0, ("speech",): 8.0, ("night",): 4.0}
    # robotics 24 - 16; speech asks for nothing and says 8: not less than nothing
    assert ask("pending_gpus") == {("robotics",): 8.0, ("speech",): 0.0, ("night",): 0.0}
    assert ask("pending_jobs") == {
        ("robotics", "pending"): 3.0, ("robotics", "inqueue"): 1.0,
        ("speech", "pending"): 0.0, ("speech", "inqueue"): 0.0,
        ("night", "pending"): 2.0, ("night", "inqueue"): 0.0,
    }  # fmt: skip


def test_no_query_for_volcano_reads_the_series_of_single_jobs() -> None:
    for signal, asked in catalogue.read().of_preset("volcano").items():
        assert "e2e_job" not in asked.query, signal
        assert "unschedule_task" not in asked.query, signal
