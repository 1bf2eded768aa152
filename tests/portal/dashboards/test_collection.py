"""How good the data is, and what to do."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import translation

from portal.accounts.models import User
from portal.dashboards import collecting
from portal.telemetry.models import (
    CollectionRun,
    Doubt,
    DoubtKind,
    HourCoverage,
    RunState,
    SignalFetch,
    Watermark,
)
from tests.worlds import World

SignedIn = Callable[[User], Client]
HOUR = timedelta(hours=1)


@pytest.mark.usefixtures("busy")
def test_it_says_what_is_live_and_where_nothing_ever_came(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/collection/").content.decode()
    assert "quota_used_gpus" in page
    assert "Nothing was ever collected here" in page
    assert "manage.py collect osaka" in page


def came(world: World, hour: datetime, observed: int) -> None:
    HourCoverage.objects.create(
        region=world.regions["tokyo"], signal="pending_jobs", hour=hour, observed=observed,
        expected=12, series=3,
    )  # fmt: skip


@pytest.fixture
def gappy(world: World, now: datetime) -> datetime:
    """Five hours ago all came, then half, then nothing, then it was not collected, then all."""
    newest = now.replace(minute=0, second=0) - HOUR
    for ago, observed in ((4, 12), (3, 6), (2, 0), (0, 12)):
        came(world, newest - ago * HOUR, observed)
    return newest


def test_the_strip_is_cut_into_stretches_that_went_alike(
    world: World, now: datetime, gappy: datetime
) -> None:
    row = collecting.page(now=now, most=3)[0].signals[0]
    assert [(bar.came, bar.width) for bar in row.bars] == [
        # 167 hours are over; the one under way is no gap, though nothing of it came yet.
        ("not-collected", 167 - 5), ("all", 1), ("part", 1), ("nothing", 1), ("not-collected", 1),
        ("all", 1),
    ]  # fmt: skip
    assert sum(bar.width for bar in row.bars) == 167
    assert [bar.x for bar in row.bars] == [0, 162, 163, 164, 165, 166]
    assert row.now.coverage_ratio == pytest.approx((12 + 6 + 0 + 12) / 60)


def test_gaps_are_told_in_words_the_newest_first(
    world: World, now: datetime, gappy: datetime
) -> None:
    row = collecting.page(now=now, most=3)[0].signals[0]
    # What lies before the first collection is no gap.
    assert row.summary == "3 gaps, 3 h"
    what = [text.rpartition(": ")[2] for text in row.gaps]
    assert what == ["not collected", "no sample came", "some samples are missing"]
    assert all("JST for 1 h" in text for text in row.gaps)


def test_a_contradiction_is_told_with_both_figures(
    world: World, now: datetime, ben: User, signed_in: SignedIn
) -> None:
    Doubt.objects.create(
        region=world.regions["tokyo"], kind=DoubtKind.HELD_OVER_INSTALLED, found=70, against=64,
        subject="tokyo-a-h100", since=now - 3 * HOUR,
    )  # fmt: skip
    page = signed_in(ben).get("/collection/").content.decode()
    assert "In tokyo-a-h100 70 GPUs are held, but only 64 are entered here." in page


@pytest.mark.parametrize("kind", DoubtKind)
@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_contradiction_has_a_sentence(
    world: World, now: datetime, kind: DoubtKind, language: str
) -> None:
    Doubt.objects.create(
        region=world.regions["tokyo"], kind=kind, found=3.5, against=1, subject="some", since=now
    )
    with translation.override(language):
        (sentence,) = collecting.page(now=now, most=3)[0].doubts
    assert "3.5" in sentence
    assert "%(" not in sentence


def test_an_error_says_what_to_do_by_its_kind(
    world: World, now: datetime, ben: User, aiko: User, signed_in: SignedIn
) -> None:
    for minutes in (6, 1):
        run = CollectionRun.objects.create(
            region=world.regions["tokyo"], asked_by="schedule", source="http://p",
            state=RunState.FAILED, started_at=now - timedelta(minutes=minutes), finished_at=now,
        )  # fmt: skip
        SignalFetch.objects.create(
            run=run, signal="pending_jobs", version="v", query="q", asked_from=now - HOUR,
            asked_to=now, state=RunState.FAILED, error_kind="unauthorised", duration_seconds=1,
            error="http://p does not let us in (401): (no text)",
        )  # fmt: skip
    page = signed_in(ben).get("/collection/").content.decode()
    assert "The last 2 collections failed." in page
    assert "the token may have run out" in page
    assert "does not let us in (401)" in page
    # A project lead reads what it means, not the addresses of the machinery.
    assert "(401)" not in signed_in(aiko).get("/collection/").content.decode()


def test_what_stops_a_region_is_said_once_and_not_at_each_signal(
    world: World, now: datetime, ben: User, signed_in: SignedIn
) -> None:
    """A server that hangs: two questions run out of time, and no other is asked."""
    came(world, now.replace(minute=0, second=0) - HOUR, 12)
    for minutes in (6, 1):
        run = CollectionRun.objects.create(
            region=world.regions["tokyo"], asked_by="schedule", source="http://p",
            state=RunState.FAILED, started_at=now - timedelta(minutes=minutes), finished_at=now,
            error_kind="timed-out", error="http://p did not answer within 30 s.",
        )  # fmt: skip
        for signal in ("pending_jobs", "pending_gpus", "never_came"):
            SignalFetch.objects.create(
                run=run, signal=signal, version="v", query="q", asked_from=now - HOUR,
                asked_to=now, state=RunState.FAILED, error_kind="timed-out",
                error="http://p did not answer within 30 s.", duration_seconds=1,
            )  # fmt: skip
    place = collecting.page(now=now, most=3)[0]
    assert [(row.now.signal, row.todo) for row in place.signals] == [("pending_jobs", "")]
    # What never came stays in its fold: its answer is not known.
    assert place.silent == ["never_came", "pending_gpus"]
    page = signed_in(ben).get("/collection/").content.decode()
    assert page.count("the server hangs") == 1
    assert page.count("did not answer within 30 s") == 1


def test_more_failures_than_are_looked_at_are_at_least_so_many(world: World, now: datetime) -> None:
    for minutes in range(20):
        CollectionRun.objects.create(
            region=world.regions["tokyo"], asked_by="schedule", source="http://p",
            state=RunState.FAILED, started_at=now - timedelta(minutes=5 * minutes), finished_at=now,
        )  # fmt: skip
    assert collecting.page(now=now, most=3)[0].failed == "At least the last 12 collections failed."


def test_an_answer_in_part_is_told_with_what_the_server_said(
    world: World, now: datetime, ben: User, signed_in: SignedIn
) -> None:
    newest = now.replace(minute=0, second=0) - HOUR
    came(world, newest - HOUR, 12)
    came(world, newest, 12)
    HourCoverage.objects.filter(hour=newest).update(partial=True)
    Watermark.objects.create(
        region=world.regions["tokyo"], signal="pending_jobs", version="v", collected_until=now,
        last_sample_at=now,
    )  # fmt: skip
    run = CollectionRun.objects.create(
        region=world.regions["tokyo"], asked_by="schedule", source="http://p",
        state=RunState.PARTIAL, started_at=now, finished_at=now,
    )  # fmt: skip
    SignalFetch.objects.create(
        run=run, signal="pending_jobs", version="v", query="q", asked_from=now - HOUR, asked_to=now,
        state=RunState.PARTIAL, warnings=["store <b> is away"], duration_seconds=1,
    )  # fmt: skip
    (row,) = collecting.page(now=now, most=3)[0].signals
    assert [bar.came for bar in row.bars] == ["not-collected", "all", "unsure"]
    assert row.summary == "1 gap, 1 h"
    page = signed_in(ben).get("/collection/").content.decode()
    assert "figures may be too low" in page
    assert "a store or a region is away" in page
    assert "store &lt;b&gt; is away" in page


def test_a_gauge_of_which_many_lines_fell_silent_says_so(world: World, now: datetime) -> None:
    """Ten pools answered hour by hour; of the last hour there is one."""
    newest = now.replace(minute=0, second=0) - HOUR
    for ago in range(8):
        came(world, newest - ago * HOUR, 12)
    HourCoverage.objects.update(series=10)
    (row,) = collecting.page(now=now, most=3)[0].signals
    assert row.notes == []
    HourCoverage.objects.filter(hour=newest).update(series=1)
    (row,) = collecting.page(now=now, most=3)[0].signals
    assert row.notes == ["1 of usually 10 lines have samples"]


def test_every_kind_of_error_that_a_source_raises_has_its_own_sentence() -> None:
    text = (collecting.todo("live", kind) for kind in collecting.FAILED)
    assert len({*text, collecting.todo("live", "something new")}) == len(collecting.FAILED) + 1
    assert collecting.todo("live", "") == ""


@pytest.mark.usefixtures("gappy")
def test_the_strip_has_no_inline_style(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/collection/").content.decode()
    assert 'aria-label="3 gaps, 3 h"' in page
    assert not re.search(r"<(svg|rect)[^>]* style=", page)


def test_signals_that_never_came_are_named_apart(
    world: World, now: datetime, ben: User, signed_in: SignedIn
) -> None:
    newest = now.replace(minute=0, second=0) - HOUR
    came(world, newest, 0)
    HourCoverage.objects.create(
        region=world.regions["tokyo"], signal="wait_seconds", hour=newest, observed=12,
        expected=12, series=3,
    )  # fmt: skip
    Watermark.objects.create(
        region=world.regions["tokyo"], signal="wait_seconds", version="v", collected_until=now,
        last_sample_at=now,
    )  # fmt: skip
    place = collecting.page(now=now, most=3)[0]
    assert [row.now.signal for row in place.signals] == ["wait_seconds"]
    assert place.silent == ["pending_jobs"]
    page = signed_in(ben).get("/collection/").content.decode()
    assert "1 signal never came" in page
    assert "manage.py probe tokyo" in page
