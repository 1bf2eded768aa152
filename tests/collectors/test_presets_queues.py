"""Presets for Kueue, against real servers with its series.

The right values are worked out by hand beside each test. Each version of Kueue is a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from collectors import catalogue
from collectors.source import Access, Source
from portal.telemetry import histograms
from portal.theme.templatetags.units import duration
from tests.collectors.presets import (
    HOUR,
    MIDNIGHT,
    SERVERS,
    Key,
    Value,
    at,
    cut,
    flat,
    gauge,
    grown,
    question,
)
from tests.prometheus import needed, openmetrics

pytestmark = needed

FIVE = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
REPLICAS = ('prometheus_replica="a"', 'prometheus_replica="b"')
NEW_BOUNDS = [1.0, *(2.5 * 2**n for n in range(15))]  # 1, 2.5, 5, 10 … 40,960: 16 of them
OLD_BOUNDS = NEW_BOUNDS[:14]  # … 10,240


def _every_five_minutes(*, since: str = "00:00", first: float = 0.0) -> Value:
    """One event every five minutes from `since` on, when the process starts with `first`."""
    return lambda when: None if when < at(since) else first + (when - at(since)) // FIVE


def _restarting(*starts: str) -> Value:
    """One event every five minutes; each start loses the count and the event of that minute."""

    def value(when: datetime) -> float:
        begun = max(at(start) for start in starts if at(start) <= when)
        return float((when - begun) // FIVE)

    return value


def _steps(**counts: float) -> Value:
    """A count that has each value from its time on, as in `at_0220=1`; not there before."""
    known = {at(f"{name[3:5]}:{name[5:]}"): value for name, value in counts.items()}

    def value(when: datetime) -> float | None:
        passed = [instant for instant in known if instant <= when]
        return known[max(passed)] if passed else None

    return value


def _with_a_hole(value: float) -> Value:
    """Not scraped from 01:15 (inclusive) to 01:30."""
    return lambda when: None if at("01:15") <= when < at("01:30") else value


def _waits(bound: float, *, long: float) -> Value:
    """A wait of 15 s every ten minutes, and at 01:05 one of `long` seconds."""

    def value(when: datetime) -> float:
        short = float((when - MIDNIGHT) // timedelta(minutes=10)) if bound >= 15 else 0.0
        return short + (1.0 if bound >= long and when >= at("01:05") else 0.0)

    return value


def _wait_series(labels: str, bounds: list[float], *, long: float) -> dict[str, Value]:
    name = "kueue_admission_wait_time_seconds"
    whole = _waits(float("inf"), long=long)
    short = _waits(float("inf"), long=float("nan"))
    series: dict[str, Value] = {
        f"{name}_count{{{labels}}}": whole,
        f"{name}_sum{{{labels}}}": lambda when: (
            15.0 * (short(when) or 0) + (long if when >= at("01:05") else 0.0)
        ),
        f'{name}_bucket{{{labels},le="+Inf"}}': whole,
    }
    for bound in bounds:
        of = _waits(bound, long=long)
        # Prometheus is brought from 2 to 3 at 03:00: bounds are spelled otherwise.
        series[f'{name}_bucket{{{labels},le="{bound:g}"}}'] = cut(of, until="03:00")
        spelled = f"{bound:g}" if bound != int(bound) else f"{bound:.1f}"
        if spelled == f"{bound:g}":
            series[f'{name}_bucket{{{labels},le="{bound:g}"}}'] = of
        else:
            series[f'{name}_bucket{{{labels},le="{spelled}"}}'] = cut(of, since="03:00")
    return series


def _kueue() -> dict[str, Value]:
    """0.18 to 0.20, with two processes m1 and m2 and two replicas of Prometheus."""
    region = 'region="tokyo"'
    leader, follower = (
        f'{region},instance="{name}:8443",replica_role="{role}"'
        for name, role in (("m1", "leader"), ("m2", "follower"))
    )
    series: dict[str, Value] = {}

    def quota(metric: str, queue: str, value: float, *, of: str = leader, more: str = "") -> None:
        where = 'flavor="a-h100",resource="nvidia.com/gpu",cohort="all"' + more
        for replica in REPLICAS:
            name = f"kueue_cluster_queue_{metric}"
            series[f'{name}{{{of},cluster_queue="{queue}",{where},{replica}}}'] = flat(value)

    quota("resource_usage", "robotics", 16)
    quota("resource_usage", "robotics", 20, of=follower)  # an old figure
    quota("resource_usage", "robotics", 4, more=',cluster="c2"')
    quota("resource_usage", "speech", 8, of=follower)  # no leader speaks for it
    quota("nominal_quota", "robotics", 24)
    quota("nominal_quota", "odd", float("inf"))
    # Unset, or overflowed in old versions: none. 8 and 0 are limits.
    for queue, limit in (
        ("robotics", float("inf")), ("vision", 9.223372036854775e15), ("speech", 8), ("night", 0),
    ):  # fmt: skip
        quota("borrowing_limit", queue, limit)
    quota("lending_limit", "robotics", 4)
    quota("lending_limit", "speech", float("inf"))
    for queue, status, count, of in (
        ("robotics", "active", 7.0, leader), ("robotics", "active", 9.0, follower),
        ("robotics", "inadmissible", 3.0, leader), ("speech", "active", 5.0, follower),
    ):  # fmt: skip
        labels = f'{of},cluster_queue="{queue}",status="{status}",custom_lane="primary"'
        series[f"kueue_pending_workloads{{{labels}}}"] = _with_a_hole(count)
    asks = f'{leader},cluster_queue="robotics",custom_lane="primary"'
    for resource, count in (("nvidia.com/gpu", 24.0), ("amd.com/gpu", 8.0), ("cpu", 960.0)):
        name = "kueue_cluster_queue_resource_pending"
        series[f'{name}{{{asks},resource="{resource}"}}'] = flat(count)

    def counted(metric: str, value: Value, labels: str, *, of: str = leader) -> None:
        for replica in REPLICAS:
            series[f"kueue_{metric}_total{{{of},{labels},{replica}}}"] = value

    robots = 'cluster_queue="robotics",priority_class="primary"'
    counted("admitted_workloads", _restarting("00:00", "01:30", "02:10", "02:40"), robots)
    # m1 leads until 01:20; m2 is elected and admits the first at 01:25.
    speech = 'cluster_queue="speech",priority_class="primary"'
    counted("admitted_workloads", cut(_every_five_minutes(first=40.0), until="01:21"), speech)
    counted(
        "admitted_workloads", _every_five_minutes(since="01:25", first=1.0), speech,
        of=leader.replace("m1", "m2"),
    )  # fmt: skip
    # Not scraped from 01:50 to 02:20: the events in between are seen late, and seen.
    tools = 'cluster_queue="tools",priority_class="primary"'
    through = _every_five_minutes()
    counted(
        "admitted_workloads",
        lambda when: None if at("01:50") <= when < at("02:20") else through(when), tools,
    )  # fmt: skip
    counted("finished_workloads", _steps(at_0000=3, at_0210=5), robots)
    lost = f'{robots},reason="{{}}",underlying_cause="{{}}"'
    for metric, preempted, failed, given_up in (
        ("evicted_workloads", 9, 3, 6), ("evicted_workloads_once", 6, 2, 6),
    ):  # fmt: skip
        counted(metric, _steps(at_0000=5, at_0205=preempted), lost.format("Preempted", ""))
        # Born at 1, as most reasons are.
        counted(metric, _steps(at_0220=1, at_0310=failed), lost.format("NodeFailures", ""))
        counted(
            metric, _steps(at_0000=4, at_0230=given_up),
            lost.format("Deactivated", "RequeuingLimitExceeded"),
        )  # fmt: skip
    by = 'preempting_cluster_queue="robotics",reason="{}"'
    counted("preempted_workloads", _steps(at_0000=5, at_0205=9), by.format("InCohortReclamation"))
    counted("preempted_workloads", _steps(at_0240=1), by.format("InClusterQueue"))
    for replica in REPLICAS:
        series |= _wait_series(f"{leader},{robots},{replica}", NEW_BOUNDS, long=50_000.0)
    return series


def _older_kueue() -> dict[str, Value]:
    """0.17 (limits), 0.16 (14 bounds), 0.15 (no roles), 0.13 (no priority class)."""
    series: dict[str, Value] = {}
    for version, lane, role in (
        ("k17", ',priority_class="primary"', ',replica_role="leader"'),
        ("k16", ',priority_class="primary"', ',replica_role="leader"'),
        ("k15", ',priority_class="primary"', ""),
        ("k13", "", ""),
    ):
        base = f'region="{version}",instance="m1:8443"{role},cluster_queue="robotics"'
        for queue, limit in (("robotics", 0.0), ("speech", 8.0)):
            of = base.replace("robotics", queue)
            flavor = 'flavor="a-h100",resource="nvidia.com/gpu",cohort="all"'
            series[f"kueue_cluster_queue_borrowing_limit{{{of},{flavor}}}"] = flat(limit)
        series[f'kueue_pending_workloads{{{base},status="active"}}'] = flat(7.0)
        series[f"kueue_admitted_workloads_total{{{base}{lane}}}"] = _every_five_minutes()
        short = 'reason="Preempted"'
        cause = 'reason="DeactivatedDueToRequeuingLimitExceeded"'
        if version != "k13":
            short += ',underlying_cause=""'
            cause = 'reason="Deactivated",underlying_cause="RequeuingLimitExceeded"'
        for metric in ("evicted_workloads", "evicted_workloads_once"):
            if metric.endswith("once"):
                # 0.17 and before call it otherwise here, and only here.
                short, cause = (
                    text.replace("underlying_cause", "detailed_reason") for text in (short, cause)
                )
            name = f"kueue_{metric}_total"
            series[f"{name}{{{base}{lane},{short}}}"] = _steps(at_0000=5, at_0205=9)
            series[f"{name}{{{base}{lane},{cause}}}"] = _steps(at_0000=4, at_0230=6)
        series |= _wait_series(f"{base}{lane}", OLD_BOUNDS, long=50_000.0)
    return series


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    series = {**_kueue(), **_older_kueue()}
    text = openmetrics(series, start=MIDNIGHT, end=MIDNIGHT + 4 * HOUR, every=MINUTE)
    with request.param(text) as url:
        made = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        yield made
        made.close()


def _hour(source: Source, signal: str, hour: int, *, preset: str = "kueue", region: str = "tokyo",
          sums: bool = False) -> dict[Key, float]:  # fmt: skip
    """What grew in an hour of the day; what did not grow is left out."""
    asked = question(preset, signal, region=region)
    start = MIDNIGHT + hour * HOUR
    found = grown(source, asked, start, start + HOUR, sums=sums)
    return {key: value for key, value in found.items() if value}


def test_a_leader_counts_before_its_followers_and_clusters_are_added(source: Source) -> None:
    used = gauge(source, question("kueue", "quota_used_gpus"), at("00:30"))
    # robotics: leader 16 (its follower's 20 is old) + 4 in the other cluster
    assert used == {("a-h100", "robotics"): 20.0, ("a-h100", "speech"): 8.0}
    nominal = gauge(source, question("kueue", "quota_nominal_gpus"), at("00:30"))
    assert nominal == {("a-h100", "robotics"): 24.0}
    waiting = gauge(source, question("kueue", "pending_jobs"), at("00:30"))
    assert waiting == {
        ("robotics", "primary", "active"): 7.0,
        ("robotics", "primary", "inadmissible"): 3.0,
        ("speech", "primary", "active"): 5.0,
    }
    asked = gauge(source, question("kueue", "pending_gpus"), at("00:30"))
    assert asked == {("robotics", "primary"): 32.0}  # 24 + 8; CPUs are none


def test_a_scrape_gap_is_no_empty_queue(source: Source) -> None:
    # The last sample is of 01:14.
    assert gauge(source, question("kueue", "pending_jobs"), at("01:20")) == {}
    assert gauge(source, question("kueue", "pending_jobs"), at("01:30")) != {}


def test_an_unset_limit_is_unlimited_and_zero_is_a_limit(source: Source) -> None:
    assert gauge(source, question("kueue", "quota_borrowing_limit_gpus"), at("00:30")) == {
        ("a-h100", "speech"): 8.0,
        ("a-h100", "night"): 0.0,
    }
    assert gauge(source, question("kueue", "quota_lending_limit_gpus"), at("00:30")) == {
        ("a-h100", "robotics"): 4.0
    }
    unlimited = gauge(source, question("kueue", "quota_unlimited_ratio"), at("00:30"))
    assert unlimited == {
        ("a-h100", "robotics", "borrowing"): 1.0,
        ("a-h100", "vision", "borrowing"): 1.0,
        ("a-h100", "speech", "borrowing"): 0.0,
        ("a-h100", "night", "borrowing"): 0.0,
        ("a-h100", "robotics", "lending"): 0.0,
        ("a-h100", "speech", "lending"): 1.0,
    }


@pytest.mark.parametrize(("version", "region"), [("0-17", "k17"), ("0-16", "k16"), ("0-13", "k13")])
def test_a_zero_of_an_old_version_says_nothing(source: Source, version: str, region: str) -> None:
    def ask(signal: str) -> dict[Key, float]:
        asked = question(f"kueue-{version}", signal, region=region)
        return gauge(source, asked, at("00:30"))

    # robotics says 0: it may be unset.
    assert ask("quota_borrowing_limit_gpus") == {("a-h100", "speech"): 8.0}
    assert ask("quota_unlimited_ratio") == {("a-h100", "speech", "borrowing"): 0.0}


def test_admissions_over_restarts_are_counted_one_by_one(source: Source) -> None:
    of_robotics = [_hour(source, "admitted_jobs", n)[("robotics", "primary")] for n in range(4)]
    # 00: 00:05 … 01:00 = 12. 01: one restart, at 01:30, loses its own event: 5 + 6 = 11.
    # 02: restarts at 02:10 and 02:40: 02:05; 02:15 … 02:35 = 5; 02:45 … 03:00 = 4: 10.
    # 03: 03:05 … 04:00 = 12.
    assert of_robotics == [12.0, 11.0, 10.0, 12.0]


def test_admissions_of_two_leaders_in_one_hour_are_added(source: Source) -> None:
    # m1: 01:05 … 01:20 = 4. m2: born with 1 at 01:25, then 01:30 … 02:00 = 7.
    assert _hour(source, "admitted_jobs", 1)[("speech", "primary")] == 12.0
    assert _hour(source, "admitted_jobs", 2)[("speech", "primary")] == 12.0
    # Asked for the hour as a whole, as older ones are: the same.
    whole = grown(source, question("kueue", "admitted_jobs"), at("01:00"), at("02:00"), step=HOUR)
    assert whole[("speech", "primary")] == 12.0


def test_admissions_during_a_scrape_gap_are_counted_after_it(source: Source) -> None:
    # Seen until 01:49 (01:05 … 01:45: 9), then from 02:20 on, with what was missed:
    # 01:50 … 02:20 = 7, 02:25 … 03:00 = 8. Nothing is lost, some is late.
    assert _hour(source, "admitted_jobs", 1)[("tools", "primary")] == 9.0
    assert _hour(source, "admitted_jobs", 2)[("tools", "primary")] == 15.0


def test_evictions_say_reason_and_cause_and_births_count(source: Source) -> None:
    lane = ("robotics", "primary")
    assert _hour(source, "evicted_jobs", 2) == {
        (*lane, "Preempted"): 4.0,
        (*lane, "NodeFailures"): 1.0,  # born at 1
        (*lane, "Deactivated/RequeuingLimitExceeded"): 2.0,
    }
    assert _hour(source, "evicted_jobs", 3) == {(*lane, "NodeFailures"): 2.0}
    assert _hour(source, "evicted_once_jobs", 2) == {
        (*lane, "Preempted"): 1.0,  # 4 evictions of one job: a loop
        (*lane, "NodeFailures"): 1.0,
        (*lane, "Deactivated/RequeuingLimitExceeded"): 2.0,
    }
    assert _hour(source, "preempted_jobs", 2) == {
        ("robotics", "InCohortReclamation"): 4.0,
        ("robotics", "InClusterQueue"): 1.0,
    }
    assert _hour(source, "finished_jobs", 2) == {lane: 2.0}


@pytest.mark.parametrize(
    ("version", "region", "lane"),
    [("0-17", "k17", "primary"), ("0-16", "k16", "primary"), ("0-15", "k15", "primary"),
     ("0-13", "k13", "")],
)  # fmt: skip
def test_older_versions_say_the_same_in_other_words(
    source: Source, version: str, region: str, lane: str
) -> None:
    preset = f"kueue-{version}"

    def hour(signal: str) -> dict[Key, float]:
        return _hour(source, signal, 2, preset=preset, region=region)

    assert hour("admitted_jobs") == {("robotics", lane): 12.0}
    wanted = {
        ("robotics", lane, "Preempted"): 4.0,
        ("robotics", lane, "Deactivated/RequeuingLimitExceeded"): 2.0,
    }
    assert hour("evicted_jobs") == wanted
    assert hour("evicted_once_jobs") == wanted
    given = catalogue.read().of_preset(preset)
    assert "pending_gpus" not in given  # from 0.18 on
    assert ("finished_jobs" in given) == (version in ("0-17", "0-16"))
    waiting = gauge(source, question(preset, "pending_jobs", region=region), at("00:30"))
    assert list(waiting.values()) == [7.0]


@pytest.mark.parametrize(
    ("preset", "region", "bounds", "shown"),
    [
        ("kueue", "tokyo", NEW_BOUNDS, "11 h 23 min"),
        ("kueue-0-16", "k16", OLD_BOUNDS, "2 h 51 min"),
        ("kueue-0-13", "k13", OLD_BOUNDS, "2 h 51 min"),
    ],
)
def test_a_wait_above_the_highest_bound_is_known_as_more_than_it(
    source: Source, preset: str, region: str, bounds: list[float], shown: str
) -> None:
    buckets = {
        key[-1]: value
        for key, value in grown(
            source, question(preset, "wait_seconds", region=region), at("01:00"), at("02:00")
        ).items()
    }
    # Six waits of 15 s (at 01:10 … 02:00), one of 50,000 s (at 01:05).
    assert buckets == {f"{bound:g}": 6.0 if bound >= 15 else 0.0 for bound in bounds} | {
        "+Inf": 7.0
    }
    assert list(
        _hour(source, "wait_seconds", 1, preset=preset, region=region, sums=True).values()
    ) == [6 * 15.0 + 50_000.0]
    assert histograms.is_more_than(buckets, 0.95)
    assert duration(histograms.quantile(buckets, 0.95)) == shown
    # The median lies in the bucket from 10 to 20 s: 10 + 10 x 3.5 / 6.
    assert histograms.quantile(buckets, 0.5) == pytest.approx(10 + 10 * 3.5 / 6)
    # Bounds that are spelled anew at 03:00 are no births: 03:10 … 04:00 = 6.
    later = grown(source, question(preset, "wait_seconds", region=region), at("03:00"), at("04:00"))
    assert {key[-1]: value for key, value in later.items()} == {
        f"{bound:g}": 6.0 if bound >= 15 else 0.0 for bound in bounds
    } | {"+Inf": 6.0}
