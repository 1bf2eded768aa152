"""Presets for GPUs, against real servers with their exporters' series.

The right values are worked out by hand beside each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from collectors import catalogue
from collectors.source import Access, Source
from tests.collectors.presets import (
    HOUR,
    MIDNIGHT,
    SERVERS,
    TOKYO,
    Value,
    accepted,
    at,
    cut,
    flat,
    gauge,
    question,
)
from tests.prometheus import needed, openmetrics, running

pytestmark = needed

SENTINEL = 9223372036854775794.0
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
# As the chart has it (honorLabels: false): namespace and pod are the exporter's own.
SCRAPED = f'{TOKYO},job="dcgm",instance="n1:9400",namespace="gpu-operator",pod="dcgm-x"'


def _device(
    name: str,
    labels: str,
    *,
    pool: str = "train",
    scraped: str = SCRAPED,
    since: str = "00:00",
    until: str = "99:00",
    **metrics: Value | float,
) -> dict[str, Value]:
    """The series of one device; metrics by the names above, `used` and `free` in MiB."""
    names = {"util": UTIL, "engine": ENGINE, "used": USED, "free": FREE}
    given = {"used": 30_000.0, "free": 51_000.0} | metrics
    labels = ",".join(filter(None, [scraped, f'pool="{pool}"', f'UUID="GPU-{name}"', labels]))
    return {
        f"{names[metric]}{{{labels}}}": cut(value, since=since, until=until)
        for metric, value in given.items()
    }


def _faults() -> dict[str, Value]:
    """The last XID of three GPUs: its label changes with it."""
    name = f'DCGM_FI_DEV_XID_ERRORS{{{SCRAPED},pool="faulty",UUID="GPU-'
    replica = ',prometheus_replica="{}"'
    series: dict[str, Value] = {
        # Healthy, then 79 from 02:07 on; 31 from 03:01 on, told once more at 03:30, unseen.
        f'{name}x1",err_code="0"}}': cut(0.0, until="02:07"),
        f'{name}x1",err_code="79"}}': cut(79.0, since="02:07", until="03:01"),
        f'{name}x1",err_code="31"}}': cut(31.0, since="03:01"),
        # Fallen before anybody looked.
        f'{name}x2",err_code="48"}}': flat(48.0),
        f'{name}x3",err_code="0"}}': flat(SENTINEL),
    }
    return {
        line.replace(",err_code", f"{replica.format(which)},err_code"): value
        for line, value in series.items()
        for which in "ab"
    }


def _with_a_hole(value: float) -> Value:
    """Not scraped from 01:15 (inclusive) to 01:30."""
    return lambda when: None if at("01:15") <= when < at("01:30") else value


def _dcgm() -> dict[str, Value]:
    speech = 'exported_namespace="speech",exported_pod="run-1"'
    robots = 'exported_namespace="robotics",exported_pod="run-2"'
    slice_1, slice_2 = (
        f'GPU_I_PROFILE="{profile}",GPU_I_ID="{number}"'
        for profile, number in (("1g.10gb", 1), ("4g.40gb", 2))
    )
    copies = 'prometheus_replica="{}"'
    whose = 'exported_namespace="{}"'
    return {
        # a: the host's label is renamed at 01:00; its pod ends at 02:00.
        **_device("a", f'Hostname="n1",{speech}', until="01:00", engine=0.5, util=90),
        **_device(
            "a", f'hostname="n1",{speech}', since="01:00", until="02:00", engine=0.5, util=90
        ),
        **_device("a", 'hostname="n1"', since="02:00", engine=0.5, util=90),
        # b: seen by two replicas of Prometheus.
        **_device("b", f"{robots},{copies.format('a')}", engine=1.0, util=100.0),
        **_device("b", f"{robots},{copies.format('b')}", engine=1.0, util=100.0),
        # c: two Slurm jobs share it, each with a copy of the series.
        **_device("c", 'hpc_job="71001"', engine=0.25, util=97.0),
        **_device("c", 'hpc_job="71002"', engine=0.25, util=97.0),
        # d: idle.
        **_device("d", "", engine=0.0, util=0.0),
        # e: an old version without the profiling module: a sentinel, from 01:00 on NaN.
        **_device("e", "", util=lambda when: SENTINEL if when < at("01:00") else float("nan")),
        # f: no profiling module; two pods share the GPU and each has the whole reading.
        **_device("f", speech, util=80.0),
        **_device("f", robots, util=80.0),
        # g: more than 100 % is no reading.
        **_device("g", "", engine=1.7, util=150.0),
        # m: two MIG slices of 10 and 40 GiB; old versions say 0 for their utilisation.
        **_device("m", f"{slice_1},{robots}", engine=1.0, util=0.0, used=240.0, free=10_000.0),
        **_device("m", f"{slice_2},{speech}", engine=0.5, util=0.0, used=20_000.0, free=20_960.0),
        # r: the exporter watches the GPU and its two slices, of which robotics has one.
        **_device("r", "", pool="both", engine=0.5, util=60.0),
        **_device("r", f"{slice_1},{robots}", pool="both", engine=1.0),
        **_device("r", slice_2, pool="both", engine=0.0),
        # q: MIG of an old version without the profiling module: its zeros are no reading.
        **_device("q", slice_1, pool="blind", util=0.0),
        **_device("q", slice_2, pool="blind", util=0.0),
        # h: its pod ends at 02:00, its exporter at 02:20. i: its pod ends at 02:00, it stays.
        **_device("h", whose.format("night"), pool="old", until="02:00", util=50),
        **_device("h", "", pool="old", since="02:00", until="02:20", util=0),
        **_device("i", whose.format("day"), pool="old", until="02:00", util=50),
        **_device("i", "", pool="old", since="02:00", util=0),
        **_device(
            "n", "", pool="gap", engine=_with_a_hole(0.5), used=_with_a_hole(30_000.0),
            free=_with_a_hole(51_000.0),
        ),
        # Another region at the same address.
        f'{ENGINE}{{region="osaka",pool="train",UUID="GPU-z"}}': flat(1.0),
    }  # fmt: skip


def _dcgm_with_honoured_labels() -> dict[str, Value]:
    """honorLabels: true: namespace and pod are the work's, or the exporter's where none runs."""
    target = f'{TOKYO},job="dcgm-2",instance="n9:9400"'
    own = 'namespace="gpu-operator",pod="dcgm-y"'
    return {
        **_device(
            "j",
            'namespace="speech",pod="run-3"',
            pool="honour",
            scraped=target,
            util=10.0,
            until="02:00",
        ),
        **_device("j", own, pool="honour", scraped=target, util=0.0, since="02:00"),
        **_device("k", own, pool="honour", scraped=target, util=0.0),
    }


def _amd() -> dict[str, Value]:
    host = f'{TOKYO},pool="mi300",hostname="amd-1"'
    series: dict[str, Value] = {
        # s1: whole, shared by two jobs. s2: eight partitions, of which the first speaks for all.
        f'gpu_gfx_activity{{{host},gpu_id="0",serial_number="s1",gpu_partition_id="0",job_id="1"}}':
        flat(60.0),
        f'gpu_gfx_activity{{{host},gpu_id="0",serial_number="s1",gpu_partition_id="0",job_id="2"}}':
        flat(60.0),
        # Guests do not see serial numbers.
        f'gpu_gfx_activity{{{TOKYO},pool="mi300",hostname="vm-1",gpu_id="0"}}': flat(40.0),
        f'gpu_gfx_activity{{{TOKYO},pool="mi300",hostname="vm-2",gpu_id="0"}}': flat(20.0),
        f'gpu_gfx_activity{{{TOKYO},pool="mi300",hostname="vm-2",gpu_id="1",gpu_partition_id="1"}}':
        flat(0.0),
        # "Not available", as a 16-bit number.
        f'gpu_gfx_activity{{{host},gpu_id="9",serial_number="s3",gpu_partition_id="0"}}':
        flat(65535.0),
    }  # fmt: skip
    for part in range(8):
        labels = f'{host},gpu_id="{part + 1}",serial_number="s2",gpu_partition_id="{part}"'
        series[f"gpu_gfx_activity{{{labels}}}"] = flat(80.0 if part == 0 else 0.0)
    return series


def _nvidia_smi() -> dict[str, Value]:
    ratio = f'nvidia_smi_utilization_gpu_ratio{{{TOKYO},pool="l40s"'
    return {
        f'{ratio},uuid="f",replica="a"}}': flat(0.87),
        f'{ratio},uuid="f",replica="b"}}': flat(0.87),
        f'{ratio},uuid="0"}}': flat(0.13),
        f'{ratio},uuid="1"}}': flat(1.5),
    }


def _history() -> str:
    series = {
        **_dcgm(), **_dcgm_with_honoured_labels(), **_amd(), **_nvidia_smi(), **_faults(),
    }  # fmt: skip
    return openmetrics(series, start=MIDNIGHT, end=MIDNIGHT + 4 * HOUR, every=timedelta(minutes=1))


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    with request.param(_history()) as url:
        made = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        yield made
        made.close()


def _of(pool: str, found: dict[tuple[str, ...], float]) -> dict[str, float]:
    """The other column's values in one pool."""
    return {key[1]: value for key, value in found.items() if key[0] == pool}


def test_prometheus_itself_parses_every_query_of_every_preset() -> None:
    whole = catalogue.read()
    with running("# EOF") as address:
        for preset in whole.presets:
            for signal in whole.of_preset(preset):
                for query in question(preset, signal, whole=whole).queries(step_seconds=300):
                    assert accepted(address, query)


def test_dcgm_counts_each_gpu_with_a_plausible_reading_once(source: Source) -> None:
    found = gauge(source, question("dcgm-exporter", "gpu_reporting_gpus"), at("00:30"))
    # train: a b c d f m; e says only a sentinel, g more than 100 %. old: h i. honour: j k.
    assert found == {
        ("train",): 6.0, ("old",): 2.0, ("gap",): 1.0, ("honour",): 2.0, ("both",): 1.0,
    }  # fmt: skip
    later = gauge(source, question("dcgm-exporter", "gpu_reporting_gpus"), at("01:02"))
    assert later[("train",)] == 6.0  # e says NaN; both spellings of a's host are in sight


def test_dcgm_adds_up_engines_and_lets_residency_stand_in_by_name(source: Source) -> None:
    found = gauge(source, question("dcgm-exporter", "gpu_engine_active_gpus"), at("01:02"))
    # a 0.5 + b 1 + c 0.25 + d 0 + m (1 x 10,240 + 0.5 x 40,960) / 51,200 = 0.6
    # f has no engine's reading: its 80 % of residency stand in.
    assert _of("train", found) == pytest.approx({"engine": 2.35, "resident": 0.8})
    # A pool without the profiling module says so with a 0 and not with silence.
    assert _of("old", found) == pytest.approx({"engine": 0.0, "resident": 1.0})


def test_dcgm_never_calls_a_mig_gpu_idle_that_nobody_can_read(source: Source) -> None:
    for signal in ("gpu_reporting_gpus", "gpu_engine_active_gpus", "gpu_resident_gpus"):
        found = gauge(source, question("dcgm-exporter", signal), at("00:30"))
        assert [key for key in found if key[0] == "blind"] == []
    held = gauge(source, question("dcgm-exporter", "gpu_attributed_gpus"), at("00:30"))
    assert _of("blind", held) == {"": 1.0}  # two slices, one GPU
    active = gauge(source, question("dcgm-exporter", "gpu_attributed_active_gpus"), at("00:30"))
    assert _of("blind", active) == {}


def test_dcgm_residency_leaves_mig_out(source: Source) -> None:
    found = gauge(source, question("dcgm-exporter", "gpu_resident_gpus"), at("00:30"))
    # a 0.9 + b 1 + c 0.97 + d 0 + f 0.8; m's zeros are no reading
    assert found[("train",)] == pytest.approx(3.67)


def test_dcgm_gives_each_gpu_to_its_project_and_the_rest_to_nobody(source: Source) -> None:
    held = question("dcgm-exporter", "gpu_attributed_gpus")
    # speech: a 1 + f 1/2 + m's slice 40,960 / 51,200 = 0.8; robotics: b 1 + f 1/2 + m 0.2
    # nobody: c (Slurm) d e g
    wanted = {"speech": 2.3, "robotics": 1.7, "": 4.0}
    assert _of("train", gauge(source, held, at("00:30"))) == pytest.approx(wanted)
    # 02:02: a is in sight with its pod and without: for some minutes it is half speech's, or no
    # more, as the server remembers. It is never two GPUs.
    moved = _of("train", gauge(source, held, at("02:02")))
    assert sum(moved.values()) == pytest.approx(8.0)
    assert moved["speech"] in (pytest.approx(1.8), pytest.approx(1.3))
    assert _of("train", gauge(source, held, at("02:10"))) == pytest.approx(
        {"speech": 1.3, "robotics": 1.7, "": 5.0}
    )
    active = question("dcgm-exporter", "gpu_attributed_active_gpus")
    # speech: a 0.5 + f 0.8 / 2 + m 0.8 x 0.5; robotics: b 1 + f 0.4 + m 0.2 x 1; nobody: c 0.25
    assert _of("train", gauge(source, active, at("00:30"))) == pytest.approx(
        {"speech": 1.3, "robotics": 1.6, "": 0.25}
    )


def test_dcgm_counts_a_gpu_once_that_is_watched_whole_and_in_slices(source: Source) -> None:
    def ask(signal: str) -> dict[tuple[str, ...], float]:
        return gauge(source, question("dcgm-exporter", signal), at("00:30"))

    assert ask("gpu_reporting_gpus")[("both",)] == 1.0
    assert _of("both", ask("gpu_engine_active_gpus"))["engine"] == 0.5  # the GPU's own reading
    # Two slices of the same memory: half a GPU each.
    assert _of("both", ask("gpu_attributed_gpus")) == {"robotics": 0.5, "": 0.5}
    assert _of("both", ask("gpu_attributed_active_gpus")) == {"robotics": 0.5, "": 0.0}


def test_who_has_no_gpu_any_more_has_zero_and_where_nobody_looks_it_is_unknown(
    source: Source,
) -> None:
    for signal in ("gpu_attributed_gpus", "gpu_attributed_active_gpus"):
        asked = question("dcgm-exporter", signal)
        nobodys = 2.0 if signal == "gpu_attributed_gpus" else 0.0
        at_work = nobodys / 2 or 0.5
        assert _of("old", gauge(source, asked, at("01:30"))) == {"night": at_work, "day": at_work}
        assert _of("old", gauge(source, asked, at("02:10"))) == {
            "night": 0.0, "day": 0.0, "": nobodys,
        }  # fmt: skip
        # h's exporter is silent: whether night has h again, nobody knows.
        assert _of("old", gauge(source, asked, at("02:30"))) == {"day": 0.0, "": nobodys / 2}
        assert _of("old", gauge(source, asked, at("03:30"))) == {"": nobodys / 2}


def test_dcgm_with_honoured_labels_reads_the_work_s_own_namespace(source: Source) -> None:
    def ask(signal: str, clock: str) -> dict[str, float]:
        asked = question("dcgm-exporter-honor-labels", signal)
        return _of("honour", gauge(source, asked, at(clock)))

    # k has the exporter's own namespace: it is nobody's.
    assert ask("gpu_attributed_gpus", "00:30") == {"speech": 1.0, "": 1.0}
    assert ask("gpu_attributed_active_gpus", "00:30") == pytest.approx({"speech": 0.1, "": 0.0})
    assert ask("gpu_attributed_gpus", "02:10") == {"speech": 0.0, "": 2.0}


def test_a_fault_is_told_when_it_is_new_and_not_while_it_lasts(source: Source) -> None:
    asked = question("dcgm-exporter", "gpu_fault_gpus")
    told = {
        clock: _of("faulty", gauge(source, asked, at(clock)))
        for clock in ("02:05", "02:10", "02:15", "02:55", "03:35")
    }
    # 79 is new at 02:10 only, for two replicas of Prometheus too. x2's 48 is never new.
    assert told["02:10"] == {"79": 1.0, "": 0.0}
    for clock in ("02:05", "02:15", "02:55", "03:35"):
        assert told[clock] == {"": 0.0}
    # 31 comes at 03:01; Prometheus remembers the old code for five minutes more.
    events = [_of("faulty", gauge(source, asked, at(f"03:{minute:02}"))) for minute in (5, 10)]
    assert sum(event.get("31", 0.0) for event in events) == 1.0


def test_a_scrape_gap_is_no_zero(source: Source) -> None:
    for signal in catalogue.read().of_preset("dcgm-exporter"):
        asked = question("dcgm-exporter", signal)
        # The last sample is of 01:14; at 01:20 it is six minutes old.
        assert [key for key in gauge(source, asked, at("01:20")) if key[0] == "gap"] == []
        if signal not in ("gpu_resident_gpus", "gpu_fault_gpus"):  # n has no such reading
            before, after = (gauge(source, asked, at(clock)) for clock in ("01:15", "01:30"))
            assert _of("gap", {(*key, ""): value for key, value in before.items()})
            assert before == pytest.approx(after)


def test_amd_partitions_do_not_thin_out_the_activity(source: Source) -> None:
    # s1 0.6 + s2 0.8 (not 0.8 / 8) + two guests 0.4 + 0.2; s3 has no reading
    found = gauge(
        source, question("amd-device-metrics-exporter", "gpu_engine_active_gpus"), at("00:30")
    )
    assert found == pytest.approx({("mi300", "engine"): 2.0})
    count = gauge(
        source, question("amd-device-metrics-exporter", "gpu_reporting_gpus"), at("00:30")
    )
    assert count == {("mi300",): 4.0}


def test_nvidia_smi_is_residency_and_says_so(source: Source) -> None:
    # 0.87 once for two replicas + 0.13; 1.5 is no ratio
    preset = "nvidia-gpu-exporter"
    active = gauge(source, question(preset, "gpu_engine_active_gpus"), at("00:30"))
    assert active == pytest.approx({("l40s", "resident"): 1.0})
    assert gauge(source, question(preset, "gpu_resident_gpus"), at("00:30")) == pytest.approx(
        {("l40s",): 1.0}
    )
    assert gauge(source, question(preset, "gpu_reporting_gpus"), at("00:30")) == {("l40s",): 2.0}
