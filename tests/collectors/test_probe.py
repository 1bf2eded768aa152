"""`manage.py probe`: what a real Prometheus can give, what is absent, and what else could help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from collectors import catalogue, probing
from tests import worlds
from tests.prometheus import needed, openmetrics, running

pytestmark = needed

MINUTE = timedelta(minutes=1)


def _history() -> str:
    """Kueue 0.18 without cluster queue resources; DCGM without profiling, and of another region."""
    queue = 'region="tokyo",cluster_queue="speech"'
    series = {
        'up{region="tokyo",job="kueue",instance="k1"}': 1.0,
        f'kueue_pending_workloads{{{queue},status="active",replica_role="leader"}}': 3.0,
        f'kueue_admitted_workloads_total{{{queue},priority_class="primary"}}': 5.0,
        'DCGM_FI_DEV_GPU_UTIL{region="tokyo",pool="a",UUID="g1"}': 50.0,
        'trainer_checkpoint_bytes_total{region="osaka",pool="a",storage="s",lane="primary"}': 1e9,
        'node_timex_offset_seconds{region="tokyo",instance="n1"}': 0.001,
    }
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    return openmetrics(
        {line: (lambda _at, value=value: value) for line, value in series.items()},  # type: ignore[misc]
        start=end - 30 * MINUTE, end=end, every=MINUTE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(_history()) as url:
        yield url


@pytest.fixture
def probed(
    address: str, world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[str, Any]]:
    monkeypatch.setenv("PROMETHEUS_URL", address)
    out = StringIO()
    call_command("probe", "tokyo", "--json", stdout=out)
    return {one["signal"]: one for one in json.loads(out.getvalue())["signals"]}


def test_it_tells_what_is_given_what_is_absent_and_what_has_other_labels(
    probed: dict[str, dict[str, Any]],
) -> None:
    states = {signal: one["state"] for signal, one in probed.items()}
    assert states["source_up_ratio"] == "given"
    assert states["pending_jobs"] == "given"
    assert states["admitted_jobs"] == "given"
    assert states["gpu_resident_gpus"] == "given"
    # The engine's activity is not measured: residency stands in, and the signal answers by it.
    assert states["gpu_engine_active_gpus"] == "given"
    assert states["quota_used_gpus"] == "absent"
    assert "metrics.enableClusterQueueResources" in probed["quota_used_gpus"]["fallback"]
    # There, but of osaka: tokyo's matchers do not let it pass.
    assert states["checkpoint_written_bytes"] == "other-labels"
    assert probed["checkpoint_written_bytes"]["metrics"] == [
        {"name": "trainer_checkpoint_bytes_total", "here": 0, "anywhere": 1}
    ]


def test_the_absent_metrics_are_named(probed: dict[str, dict[str, Any]]) -> None:
    absent = {
        metric["name"]: metric["here"] for metric in probed["gpu_engine_active_gpus"]["metrics"]
    }
    assert absent["DCGM_FI_PROF_GR_ENGINE_ACTIVE"] == 0
    assert absent["DCGM_FI_DEV_GPU_UTIL"] == 1


def test_people_read_lines_with_what_to_do(
    address: str, world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_URL", address)
    out = StringIO()
    call_command("probe", "tokyo", stdout=out)
    text = out.getvalue()
    assert f"tokyo from {address}: " in text
    assert "absent: kueue_cluster_queue_resource_usage" in text
    assert "    Nothing: set metrics.enableClusterQueueResources" in text
    assert "trainer_checkpoint_bytes_total: there, but not with this region's labels" in text
    more = text.partition("Not asked for, but this Prometheus could give:")[2]
    assert "clock_offset_seconds" in more
    assert "by the preset clock" in more


def test_another_preset_that_could_answer_is_named() -> None:
    whole = catalogue.read()
    names = ["slurm_partition_jobs_pending", "slurm_partition_cpus_total"]
    found = {
        one.signal: one
        for one in probing.judge(
            whole, "tokyo", here=dict.fromkeys(names, 2), anywhere=dict.fromkeys(names, 2),
            answers={},
        )
    }  # fmt: skip
    assert found["pending_jobs"].state == "absent"
    assert found["pending_jobs"].missing == ["kueue_pending_workloads"]
    assert found["pending_jobs"].others == ("slurm-vpenso",)


def test_nothing_that_answers_ends_with_one(
    address: str, world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_URL_OSAKA", address)
    monkeypatch.setenv("PROMETHEUS_URL_TOKYO", "http://127.0.0.1:1")
    with pytest.raises(CommandError, match="unreachable: Nothing answers at") as caught:
        call_command("probe", "tokyo", stdout=StringIO())
    assert caught.value.returncode == 1
    with pytest.raises(CommandError, match=r"'kyoto' is no region; expected one of osaka, tokyo"):
        call_command("probe", "kyoto", stdout=StringIO())
    with running("# EOF\n") as empty:
        monkeypatch.setenv("PROMETHEUS_URL_OSAKA", empty)
        with pytest.raises(SystemExit) as ended:
            call_command("probe", "osaka", stdout=StringIO())
    assert ended.value.code == 1


def test_every_query_of_the_catalogue_names_its_metrics() -> None:
    whole = catalogue.read()
    for preset in whole.presets:
        for signal, asked in whole.of_preset(preset).items():
            question = catalogue.Question(signal, whole.signals[signal], asked, {})
            names = probing.of_question(question)
            assert names, (preset, signal)
            assert all(name in asked.query + (asked.sum_query or "") for name in names)
