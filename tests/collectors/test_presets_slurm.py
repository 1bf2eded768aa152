"""The presets for Slurm's exporters, against a real Prometheus with their series.

The right values are worked out by hand beside each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from collectors import catalogue
from collectors.source import Access, Source
from tests.collectors.presets import (
    HOUR,
    MIDNIGHT,
    Key,
    Value,
    at,
    cut,
    flat,
    gauge,
    grown,
    question,
)
from tests.prometheus import needed, openmetrics, running

pytestmark = needed

PRESETS = ("slurm", "slurm-vpenso", "slurm-rivosinc")


def started(when: datetime) -> float:
    """200 jobs at midnight, one more every five minutes; sdiag is reset at 01:00, at 212."""
    steps = (when - MIDNIGHT) // timedelta(minutes=5)
    return float(200 + steps) if steps < 12 else float(steps - 12)


def native(of: str) -> dict[str, Value]:
    series: dict[str, Value] = {
        # 27 wait, 5 of them are held; GPUs as a sensible partition has them
        f'slurm_partition_jobs_pending{{{of},partition="train"}}': flat(27.0),
        f'slurm_partition_jobs_hold{{{of},partition="train"}}': flat(5.0),
        f'slurm_partition_gpus{{{of},partition="train"}}': flat(512.0),
        f'slurm_partition_jobs_gpus_alloc{{{of},partition="train"}}': flat(448.0),
        # more held than wait, as when one was read before the other: nothing waits
        f'slurm_partition_jobs_pending{{{of},partition="debug"}}': flat(1.0),
        f'slurm_partition_jobs_hold{{{of},partition="debug"}}': flat(2.0),
        # 65,600 GPUs asked of 64: a count that wrapped, or counts what cannot be
        f'slurm_partition_gpus{{{of},partition="debug"}}': flat(64.0),
        f'slurm_partition_jobs_gpus_alloc{{{of},partition="debug"}}': flat(65_600.0),
        # a partition without GPUs
        f'slurm_partition_gpus{{{of},partition="cpu"}}': flat(0.0),
        f'slurm_partition_jobs_gpus_alloc{{{of},partition="cpu"}}': flat(0.0),
        # 16 bits hold 4,464 of 70,000 CPUs: not asked for by any query
        f'slurm_partition_jobs_cpus_alloc{{{of},partition="train"}}': flat(4_464.0),
        f"slurm_sdiag_jobs_started{{{of}}}": started,
    }
    return series


def history() -> dict[str, Value]:
    series: dict[str, Value] = {}
    for replica in ("a", "b"):  # two Prometheus servers saw the same controller
        series |= native(f'region="tokyo",prometheus_replica="{replica}"')
    vpenso = 'region="tokyo",job="vpenso"'
    series |= {
        # The exporter is away from 02:00 to 03:00; nobody waits in train from 01:00 on.
        f'slurm_partition_cpus_total{{{vpenso},partition="v-train"}}': lambda when: (
            None if at("02:00") <= when < at("03:00") else 2_048.0
        ),
        f'slurm_partition_cpus_total{{{vpenso},partition="v-debug"}}': flat(128.0),
        f'slurm_partition_jobs_pending{{{vpenso},partition="v-train"}}': cut(6, until="01:00"),
        f"slurm_gpus_total{{{vpenso}}}": lambda when: 64.0 if when < at("01:00") else 0.0,
        f"slurm_gpus_alloc{{{vpenso}}}": lambda when: 40.0 if when < at("01:00") else 0.0,
        f"slurm_gpus_utilization{{{vpenso}}}": flat(float("nan")),
    }
    rivosinc = 'region="tokyo",job="rivosinc"'
    series |= {
        f'slurm_partition_total_cpus{{{rivosinc},partition="r-train"}}': flat(2_048.0),
        f'slurm_partition_total_cpus{{{rivosinc},partition="r-debug"}}': flat(128.0),
        f'slurm_partition_job_state_total{{{rivosinc},partition="r-train",state="PENDING"}}': (
            cut(9, until="01:00")
        ),
        f'slurm_partition_job_state_total{{{rivosinc},partition="r-train",state="RUNNING"}}': flat(
            31.0
        ),
    }
    return series


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    text = openmetrics(
        history(), start=MIDNIGHT, end=MIDNIGHT + 4 * HOUR, every=timedelta(minutes=1)
    )
    with running(text) as url:
        made = Source(Access(url=url))
        yield made
        made.close()


def ask(source: Source, preset: str, signal: str, clock: str) -> dict[Key, float]:
    return gauge(source, question(preset, signal), at(clock))


def test_jobs_that_are_held_do_not_wait(source: Source) -> None:
    # 27 - 5; 1 - 2 is nobody. Two replicas of Prometheus are one answer.
    found = ask(source, "slurm", "pending_jobs", "00:30")
    assert (found["train",], found["debug",]) == (22.0, 0.0)


def test_more_gpus_held_than_there_are_is_no_measurement(source: Source) -> None:
    assert ask(source, "slurm", "gpu_installed_gpus", "00:30") == {
        ("train",): 512.0, ("debug",): 64.0,
    }  # fmt: skip
    # debug says 65,600 of 64: left out, not cut to 64. cpu has none, and holds none.
    assert ask(source, "slurm", "quota_used_gpus", "00:30") == {("train",): 448.0, ("cpu",): 0.0}


def test_starts_are_counted_over_the_daily_reset(source: Source) -> None:
    # 00:00 to 02:00 is 24 steps. At 01:00 the gauge falls from 211 to 0: the start of that step is
    # lost with the reset, the 23 others are counted.
    found = grown(source, question("slurm", "admitted_jobs"), MIDNIGHT, MIDNIGHT + 2 * HOUR)
    assert found == {(): pytest.approx(23.0)}


def test_what_vpenso_leaves_out_at_zero_is_zero_while_it_answers(source: Source) -> None:
    def pending(clock: str) -> dict[Key, float]:
        found = ask(source, "slurm-vpenso", "pending_jobs", clock)
        return {key: value for key, value in found.items() if key[0].startswith("v-")}

    assert pending("00:30") == {("v-train",): 6.0, ("v-debug",): 0.0}
    assert pending("01:30") == {("v-train",): 0.0, ("v-debug",): 0.0}
    # From 02:00 on its sibling is away as well: unknown, not 0 (a sample lives for five minutes).
    assert pending("02:30") == {("v-debug",): 0.0}
    assert pending("03:30") == {("v-train",): 0.0, ("v-debug",): 0.0}


def test_no_gpus_at_all_is_no_answer_of_vpenso(source: Source) -> None:
    assert ask(source, "slurm-vpenso", "gpu_installed_gpus", "00:30") == {(): 64.0}
    assert ask(source, "slurm-vpenso", "quota_used_gpus", "00:30") == {(): 40.0}
    # With typed GRES it says 0 of 0, and a use of NaN.
    assert ask(source, "slurm-vpenso", "gpu_installed_gpus", "01:30") == {}
    assert ask(source, "slurm-vpenso", "quota_used_gpus", "01:30") == {}


def test_states_of_rivosinc_are_gauges_whose_zeros_are_missing(source: Source) -> None:
    assert ask(source, "slurm-rivosinc", "pending_jobs", "00:30") == {
        ("r-train",): 9.0, ("r-debug",): 0.0,
    }  # fmt: skip
    assert ask(source, "slurm-rivosinc", "pending_jobs", "01:30") == {
        ("r-train",): 0.0, ("r-debug",): 0.0,
    }  # fmt: skip
    for signal, asked in catalogue.read().of_preset("slurm-rivosinc").items():
        assert "increase" not in asked.query, signal
        assert "rate" not in asked.query, signal


@pytest.mark.parametrize("preset", PRESETS)
def test_no_query_asks_for_a_wait_or_for_what_wraps(preset: str) -> None:
    asked = catalogue.read().of_preset(preset)
    assert "wait_seconds" not in asked
    assert not [signal for signal, one in asked.items() if "cpus_alloc" in one.query]
