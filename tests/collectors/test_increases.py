"""What running counts grew by, where scrapes do not lie on the borders of steps, as in real life.

Scrapes come at 37 s of each minute. The right values are worked out by hand beside each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from collectors.rollups import STEP
from collectors.source import Access, Source
from tests.collectors.presets import HOUR, MIDNIGHT, SERVERS, Value, at, cut, flat, grown, question
from tests.prometheus import needed, openmetrics

pytestmark = needed


def _minutes(when: datetime, since: str) -> int:
    return (when - at(since)) // timedelta(minutes=1)


def _restarted(when: datetime) -> float:
    """100 until 01:00; the process starts anew between two scrapes; then one event a minute."""
    return 100.0 if when < at("01:00") else float(_minutes(when, "01:00"))


def _past_its_peak(when: datetime) -> float:
    """10 until 01:10, 12 until 01:20, then 0 and one event every three minutes up to 11."""
    if when < at("01:20"):
        return 10.0 if when < at("01:10") else 12.0
    return float(min(_minutes(when, "01:20") // 3, 11))


def _twice(when: datetime) -> float:
    """One event a minute; starts anew at 01:20 and at 01:40."""
    start = "00:00" if when < at("01:20") else "01:20" if when < at("01:40") else "01:40"
    return float(_minutes(when, start))


SERIES: dict[str, Value] = {
    "restarted": _restarted,
    "past": _past_its_peak,
    "twice": _twice,
    "born": cut(flat(3.0), since="01:12"),
    "gone": cut(lambda when: float(_minutes(when, "00:00")), until="01:12"),
    "still": flat(7.0),
}


def _old(when: datetime) -> float:
    """A count with a past: 5,000 at midnight and one event a minute."""
    return 5_000.0 + _minutes(when, "00:00")


def _from_zero(when: datetime) -> float:
    """One event a minute since the process started anew at 01:22."""
    return float(_minutes(when, "01:22"))


# Each region is a case of its own: names change at 01:22, between two scrapes.
RENAMED: dict[str, dict[str, Value]] = {
    # Somebody adds a label to the target: the process goes on.
    "relabelled": {"a": cut(_old, until="01:22"), "b": cut(_old, since="01:22")},
    # Its pod is a new one: the process starts anew.
    "restarted": {"a": cut(_old, until="01:22"), "b": cut(_from_zero, since="01:22")},
    # The same, and it was away for half an hour.
    "away": {"a": cut(_old, until="01:22"), "b": cut(_old, since="01:52")},
}


@pytest.fixture(scope="module", params=SERVERS)
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    name = 'kueue_admitted_workloads_total{priority_class="p",cluster_queue='
    text = openmetrics(
        {f'{name}"{queue}",region="tokyo"}}': value for queue, value in SERIES.items()}
        | {
            f'{name}"q",region="{region}",pod="{pod}"}}': value
            for region, pods in RENAMED.items()
            for pod, value in pods.items()
        },
        start=MIDNIGHT + timedelta(seconds=37), end=MIDNIGHT + 2 * HOUR,
        every=timedelta(minutes=1),
    )  # fmt: skip
    with request.param(text) as url:
        made = Source(Access(url=url, connect_seconds=2, read_seconds=20))
        yield made
        made.close()


def _from_one_to_two(source: Source, step: timedelta) -> dict[str, float]:
    asked = question("kueue", "admitted_jobs")
    found = grown(source, asked, at("01:00"), at("02:00"), step=step)
    return {key[0]: value for key, value in found.items()}


def test_steps_count_every_event_that_a_scrape_saw(source: Source) -> None:
    assert _from_one_to_two(source, STEP) == {
        # 100 at 00:59:37, 0 at 01:00:37, 59 at 01:59:37.
        "restarted": 59.0,
        # 10 → 12: 2. Then 0 → 11: 11.
        "past": 13.0,
        # 59 at 00:59:37 → 79 at 01:19:37: 20. Then 0 → 19: 19, and 0 → 19 again.
        "twice": 58.0,
        "born": 3.0,
        # 59 → 71 at 01:11:37.
        "gone": 12.0,
        "still": 0.0,
    }


def test_a_whole_hour_loses_only_what_lies_between_two_restarts(source: Source) -> None:
    # Of `twice` the first and the last stretch are known, 20 and 19; the one between is not.
    assert _from_one_to_two(source, HOUR) == {
        "restarted": 59.0, "past": 13.0, "twice": 39.0, "born": 3.0, "gone": 12.0, "still": 0.0,
    }  # fmt: skip


def test_a_count_under_a_new_name_is_no_news(source: Source) -> None:
    """Sixty events happen from 01:00 to 02:00; of two names in a step the larger counts."""

    def found(region: str, step: timedelta) -> float:
        asked = question("kueue", "admitted_jobs", region=region)
        return grown(source, asked, at("01:00"), at("02:00"), step=step)["q", "p"]

    # Up to 01:20 it is 20: from 00:59:37 to 01:19:37. Of the step from 01:20 the old name saw 2, up
    # to 01:21:37, and the new one 2, from 01:22:37 to 01:24:37. Then 35, up to 01:59:37.
    assert found("relabelled", STEP) == 20 + 2 + 35
    # Of the whole hour the old name saw 22, the new one 37.
    assert found("relabelled", HOUR) == 37
    # The new name began at 0: its first step counts as a whole, and is the same here.
    assert found("restarted", STEP) == 20 + 2 + 35
    assert found("restarted", HOUR) == 37
    # 22 up to 01:21:37; from 01:52:37 to 01:59:37 it is 7.
    assert found("away", STEP) == 22 + 7
    assert found("away", HOUR) == 22
