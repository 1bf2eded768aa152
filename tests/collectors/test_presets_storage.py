"""The presets for storage, against a real Prometheus with their series.

The right values are worked out by hand beside each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from collectors.source import Access, Source
from tests.collectors.presets import HOUR, MIDNIGHT, Value, at, cut, flat, gauge, grown, question
from tests.prometheus import needed, openmetrics, running

pytestmark = needed

MINUTE = timedelta(minutes=1)
REPLICAS = ("a", "b")


def each_minute(step: float, *, first: float = 0.0, reset: str | None = None) -> Value:
    """A count that rises by `step` a minute, from `first` at midnight; from 0 again at `reset`."""

    def value(when: datetime) -> float:
        if reset is not None and when >= at(reset):
            return step * ((when - at(reset)) / MINUTE)
        return first + step * ((when - MIDNIGHT) / MINUTE)

    return value


def history() -> dict[str, Value]:
    series: dict[str, Value] = {}
    nfs = "node_mountstats_nfs_operations"
    for replica in REPLICAS:
        for node, reset in (("n1", None), ("n2", "00:30")):  # n2 mounts anew at 00:30
            of = (
                f'region="tokyo",prometheus_replica="{replica}",instance="{node}",'
                'export="nas-tyo:/ckpt",protocol="tcp",mountaddr="192.0.2.10"'
            )
            for operation, requests, seconds in (
                ("WRITE", 60.0, 1.2), ("COMMIT", 6.0, 3.0), ("GETATTR", 600.0, 0.6),
            ):  # fmt: skip
                key = f'{of},operation="{operation}"'
                series[f"{nfs}_requests_total{{{key}}}"] = each_minute(requests, reset=reset)
                series[f"{nfs}_request_time_seconds_total{{{key}}}"] = each_minute(
                    seconds, reset=reset
                )
    for osd in range(3):
        of = f'region="tokyo",cluster="ceph-tyo",ceph_daemon="osd.{osd}"'
        # osd.2 has no scrape from 00:10 to 00:40: its counts go on behind the gap.
        count, total = each_minute(100.0, first=5_000.0), each_minute(0.5, first=40.0)
        series[f"ceph_osd_op_w_latency_count{{{of}}}"] = gap(count) if osd == 2 else count
        series[f"ceph_osd_op_w_latency_sum{{{of}}}"] = gap(total) if osd == 2 else total
    # In Osaka the exporters are named anew and the counts go on: a new pod of node-exporter on n1,
    # another manager of Ceph.
    for node, pod, times in (
        ("n1", "a", {"until": "00:30"}), ("n1", "b", {"since": "00:31"}), ("n2", "c", {}),
    ):  # fmt: skip
        key = f'region="osaka",instance="{node}",pod="{pod}",export="nas:/ckpt",operation="WRITE"'
        series[f"{nfs}_requests_total{{{key}}}"] = cut(each_minute(60.0, first=1e6), **times)
    for osd in range(3):
        for manager, times in (("a", {"until": "00:40"}), ("b", {"since": "00:41"})):
            key = f'region="osaka",cluster="ceph",ceph_daemon="osd.{osd}",instance="{manager}"'
            series[f"ceph_osd_op_w_latency_count{{{key}}}"] = cut(
                each_minute(100.0, first=5e6), **times
            )
    put = 'region="tokyo",cluster="s3-tyo",server="s1:9000",pool_index="0",type="s3"'
    ttfb = "minio_api_requests_ttfb_seconds_distribution"
    for name in ("PutObject", "GetObject"):
        for bound, per_minute in (("0.05", 10.0), ("10", 19.0), ("+Inf", 20.0)):
            series[f'{ttfb}{{{put},name="{name}",le="{bound}"}}'] = each_minute(per_minute)
    jfs = 'region="tokyo",vol_name="ckpt",mp="/jfs",instance="n1"'
    objects = "juicefs_object_request_durations_histogram_seconds"
    # A client that was there before and puts nothing: so what is new is not Prometheus's memory.
    idle = 'region="tokyo",vol_name="ckpt",mp="/jfs",instance="n0",method="PUT"'
    for bound in ("0.1", "+Inf"):
        series[f'{objects}_bucket{{{idle},le="{bound}"}}'] = flat(0.0)
    series[f"{objects}_sum{{{idle}}}"] = flat(0.0)
    for method in ("PUT", "GET"):
        for bound, per_minute in (("0.1", 4.0), ("+Inf", 5.0)):
            series[f'{objects}_bucket{{{jfs},method="{method}",le="{bound}"}}'] = cut(
                # The client mounts at 00:20: its first put is there from its first scrape on.
                lambda when, per_minute=per_minute: (  # type: ignore[misc]
                    per_minute * ((when - at("00:20")) / MINUTE + 1)
                ),
                since="00:20",
            )
        series[f'{objects}_sum{{{jfs},method="{method}"}}'] = cut(
            lambda when: 0.6 * ((when - at("00:20")) / MINUTE + 1), since="00:20"
        )
    for target in ("ckpt-OST0000", "ckpt-OST0001"):
        of = f'region="tokyo",target="{target}",component="ost"'
        for operation, factor in (("write", 1.0), ("read", 7.0)):
            key = f'{of},operation="{operation}"'
            series[f"lustre_stats_total{{{key}}}"] = each_minute(30 * factor)
            series[f"lustre_stats_time_total{{{key}}}"] = each_minute(90_000 * factor)
        job = f'{of},jobid="71001"'
        series[f"lustre_job_write_bytes_total{{{job}}}"] = cut(each_minute(1e9), until="00:31")
    for node, microseconds in (("w1", 800.0), ("w2", 1_200.0), ("w3", float("nan"))):
        of = f'region="tokyo",category="ops",cluster="weka-tyo",host_name="{node}",node_id="1"'
        for stat, factor in (("WRITE_LATENCY", 1.0), ("READ_LATENCY", 5.0)):
            series[f'weka_stats{{{of},stat="{stat}",unit="microsecs"}}'] = flat(
                microseconds * factor
            )
    of = 'region="tokyo",instance='
    series[f'node_timex_offset_seconds{{{of}"n1"}}'] = flat(0.002)
    series[f'node_timex_offset_seconds{{{of}"n2"}}'] = flat(-1.5)
    return series


def gap(value: Value) -> Value:
    return lambda when: None if at("00:10") <= when < at("00:40") else value(when)


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    text = openmetrics(history(), start=MIDNIGHT, end=MIDNIGHT + 2 * HOUR, every=MINUTE)
    with running(text) as url:
        made = Source(Access(url=url))
        yield made
        made.close()


def counted(
    source: Source, preset: str, signal: str, *, sums: bool = False
) -> dict[tuple[str, ...], float]:
    """What grew from 00:00 to 01:00."""
    return grown(source, question(preset, signal), MIDNIGHT, MIDNIGHT + HOUR, sums=sums)


def test_nfs_writes_and_commits_are_added_up_over_nodes_and_a_new_mount(source: Source) -> None:
    # n1: 60 minutes. n2 counts 29 minutes to its last sample before 00:30, then 30 from 0: what it
    # did in the minute of the new mount nobody saw. Two replicas are one; GETATTR is no write.
    assert counted(source, "nfs-mountstats", "storage_write_ops") == {
        ("nas-tyo:/ckpt", "WRITE"): pytest.approx(60 * (60 + 29 + 30)),
        ("nas-tyo:/ckpt", "COMMIT"): pytest.approx(6 * (60 + 29 + 30)),
    }
    assert counted(source, "nfs-mountstats", "storage_write_op_seconds") == {
        ("nas-tyo:/ckpt", "WRITE"): pytest.approx(1.2 * 119),
        ("nas-tyo:/ckpt", "COMMIT"): pytest.approx(3.0 * 119),
    }


def test_ceph_counts_go_on_behind_a_gap_in_the_scrapes(source: Source) -> None:
    # Three OSDs, 60 minutes each. What the third did between 00:09 and 00:40 is counted when it is
    # seen again: its counts went on, and nothing is lost.
    ops = counted(source, "ceph", "storage_write_ops")["ceph-tyo",]
    seconds = counted(source, "ceph", "storage_write_op_seconds")["ceph-tyo",]
    assert ops == pytest.approx(100 * 60 * 3)
    assert seconds == pytest.approx(0.5 * 60 * 3)


def test_counts_that_outlive_their_exporter_go_on_under_a_new_name(source: Source) -> None:
    asked = question("nfs-mountstats", "storage_write_ops", region="osaka")
    # 60 a minute from 00:20 to 01:00: n2 40 minutes; n1 9 up to 00:29 and 29 from 00:31 on. The
    # million before midnight is no news, and the two minutes between are not known.
    assert grown(source, asked, at("00:20"), at("01:00")) == {
        ("nas:/ckpt", "WRITE"): pytest.approx(60 * (40 + 9 + 29))
    }
    # Three OSDs, 100 a minute: 19 minutes up to 00:39, 19 from 00:41 on.
    asked = question("ceph", "storage_write_ops", region="osaka")
    assert grown(source, asked, at("00:20"), at("01:00")) == {
        ("ceph",): pytest.approx(3 * 100 * (19 + 19))
    }


def test_minio_tells_buckets_under_another_name_and_no_sum(source: Source) -> None:
    assert counted(source, "minio", "storage_write_seconds") == {
        ("s3-tyo", "PutObject", "0.05"): pytest.approx(600),
        ("s3-tyo", "PutObject", "10"): pytest.approx(1_140),
        ("s3-tyo", "PutObject", "+Inf"): pytest.approx(1_200),
    }
    assert counted(source, "minio", "storage_write_seconds", sums=True) == {}


def test_juicefs_puts_count_from_the_first_on(source: Source) -> None:
    # Born at 00:20 with 5 puts, 5 more a minute: 5 x 41 at 01:00, all of them since midnight.
    assert counted(source, "juicefs", "storage_write_seconds") == {
        ("ckpt", "PUT", "0.1"): pytest.approx(4 * 41),
        ("ckpt", "PUT", "+Inf"): pytest.approx(5 * 41),
    }
    total = counted(source, "juicefs", "storage_write_seconds", sums=True)
    assert total == {("ckpt", "PUT"): pytest.approx(0.6 * 41)}


def test_lustre_microseconds_become_seconds_and_only_writes_count(source: Source) -> None:
    for target in ("ckpt-OST0000", "ckpt-OST0001"):
        assert counted(source, "lustre", "storage_write_ops")[target,] == pytest.approx(1_800)
        # 90,000 µs a minute for 60 minutes
        seconds = counted(source, "lustre", "storage_write_op_seconds")[target,]
        assert seconds == pytest.approx(5.4)
        # The job's series ends after 00:30.
        written = counted(source, "lustre", "storage_written_bytes")[target,]
        assert written == pytest.approx(30e9)


def test_weka_averages_over_its_nodes_without_those_that_say_nothing(source: Source) -> None:
    found = gauge(source, question("weka", "storage_write_mean_seconds"), at("00:30"))
    assert found == {("weka-tyo",): pytest.approx((800e-6 + 1_200e-6) / 2)}


def test_the_worst_clock_counts_either_way(source: Source) -> None:
    found = gauge(source, question("clock", "clock_offset_seconds"), at("00:30"))
    assert found == {(): 1.5}
