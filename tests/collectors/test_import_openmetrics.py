"""Signals by hand: read line by line, every problem with its line, stored as one, undone as one."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from collectors import catalogue, openmetrics
from collectors.openmetrics import Bounds, Text
from portal.telemetry import histograms, selectors
from portal.telemetry.condition import SignalCondition, condition
from portal.telemetry.models import (
    DayRollup,
    HourCoverage,
    HourRollup,
    ImportBatch,
    Series,
    StepRollup,
    Watermark,
)
from tests import worlds
from tests.portal.telemetry.rows import gauge_hour, series

HOUR = timedelta(hours=1)
# A whole day in Tokyo that is over, some days ago: it begins at 15:00 UTC.
DAY = (timezone.now() - timedelta(days=4)).replace(hour=15, minute=0, second=0, microsecond=0)


def at(hours: float) -> int:
    return int((DAY + hours * HOUR).timestamp())


def read(*lines: str, rows: int = 1_000, ended: bool = True) -> Text:
    bounds = Bounds(rows=rows, oldest=DAY - timedelta(days=30), newest=timezone.now())
    text = Text(catalogue.read(), bounds)
    text.read(f"{line}\n".encode() for line in [*lines, *(["# EOF"] if ended else [])])
    return text


def run(*args: str, file: Path | None = None) -> str:
    out = StringIO()
    given = [str(file), "--region", "tokyo"] if file else []
    call_command("import_openmetrics", *given, *args, stdout=out, stderr=out)
    return out.getvalue()


ENGINE = 'sekisho_gpu_resident_gpus{pool="tokyo-a-h100"}'


def a_day() -> list[str]:
    """A gauge every five minutes: 10 in the first half of each hour, 20 in the second."""
    return [f"{ENGINE} {10 if step % 12 < 6 else 20} {at(step / 12)}" for step in range(24 * 12)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "day.om"
    path.write_text("\n".join(["# HELP of ours", *a_day(), "# EOF", ""]))
    return path


def test_a_day_becomes_hours_and_a_day_with_its_figures(world: worlds.World, file: Path) -> None:
    said = run(file=file)
    batch = ImportBatch.objects.get()
    assert (batch.kind, batch.version) == ("rollups", f"import-{batch.pk}")
    assert f"Undo it with --undo {batch.pk}" in said
    hours = HourRollup.objects.filter(version=batch.version).order_by("hour")
    assert len(hours) == 24
    first = hours[0]
    # 6 x 10 + 6 x 20
    assert (first.sum_value, first.count, first.observed, first.expected) == (180, 12, 12, 12)
    assert (first.min_value, first.max_value, first.last_value) == (10, 20, 20)
    day = DayRollup.objects.get()
    assert (day.day, day.sum_value, day.observed) == (DAY, 24 * 180, 288)
    # Steps of days ago are not kept: hours stand for them.
    assert not StepRollup.objects.exists()
    assert selectors.coverage(region="tokyo", start=DAY, end=DAY + 24 * HOUR) == 1.0


def test_recent_samples_are_kept_as_steps(world: worlds.World, tmp_path: Path) -> None:
    now = timezone.now()
    path = tmp_path / "new.om"
    path.write_text(f"{ENGINE} 4 {(now - HOUR).timestamp():.0f}\n# EOF\n")
    run(file=path)
    assert StepRollup.objects.get().sum_value == 4


def test_a_packed_file_is_unpacked_and_a_broken_one_is_refused(
    world: worlds.World, file: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "day.om.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    run(file=packed)
    assert HourRollup.objects.count() == 24
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(CommandError, match=r"day\.om\.gz cannot be read"):
        run(file=packed)


def test_counts_rise_by_what_is_seen_and_start_anew_where_they_fall() -> None:
    counter = 'sekisho_admitted_jobs_total{project="speech",lane="primary"}'
    text = read(
        f"{counter} 100 {at(0)}",  # only says from where it counts
        f"{counter} 103 {at(0.05)}",  # + 3, seen at 00:03: in the step from 00:00
        f"{counter} 104 {at(5 / 60)}",  # + 1, at 00:05 sharp: still in the step from 00:00
        f"{counter} 2 {at(0.2)}",  # anew: + 2, in the step from 00:10
        f"{counter} 2 {at(0.9)}",
    )
    assert text.problems == []
    steps = text.steps("admitted_jobs")
    found = {
        (row["at"] - DAY) / timedelta(minutes=1): row["sum_value"] for _, row in steps.iterrows()
    }
    assert found == {0: 4, 10: 2, 50: 0}


def test_a_histogram_keeps_its_buckets_and_its_sum() -> None:
    wait = "sekisho_wait_seconds"
    of = 'project="speech",lane="primary"'
    lines = []
    for hour, small, everything, total in ((0, 5, 8, 100.0), (0.5, 7, 12, 190.0)):
        lines += [
            f'{wait}_bucket{{{of},le="10"}} {small} {at(hour)}',
            f'{wait}_bucket{{{of},le="+Inf"}} {everything} {at(hour)}',
            f"{wait}_sum{{{of}}} {total} {at(hour)}",
            f"{wait}_count{{{of}}} {everything} {at(hour)}",
        ]
    text = read(*lines)
    assert text.problems == []
    (row,) = text.steps("wait_seconds").to_dict("records")
    assert row["buckets"] == {"10": 2, "+Inf": 4}
    assert (row["sum_value"], row["count"]) == (90, 4)
    assert list(text.lines("wait_seconds").iloc[row["line"]][["project", "lane"]]) == [
        "speech", "primary",
    ]  # fmt: skip


BAD: list[tuple[str, str, str]] = [
    (f"{ENGINE} five {at(1)}", "is no sample", "NAME{LABELS} VALUE SECONDS"),
    (f"{ENGINE} 5", "has no timestamp", "seconds since 1970"),
    (f"{ENGINE} NaN {at(1)}", "the value is nan", "a finite number"),
    (f"{ENGINE} 5 {at(1)}000", "lies outside", "a time from"),  # milliseconds
    (f"{ENGINE} 5 NaN", "is no sample", "NAME{LABELS} VALUE SECONDS"),
    (f'{ENGINE[:-1]},host="n1"}} 5 {at(1)}', "has no label 'host'", "labels among pool"),
    (f"sekisho_gpu_usage 5 {at(1)}", "sekisho_gpu_usage is unknown", "a signal of the catalogue"),
    (f"gpu_resident_gpus 5 {at(1)}", "gpu_resident_gpus is unknown", "sekisho_gpu_resident_gpus"),
    (f"sekisho_admitted_jobs 5 {at(1)}", "is a counter", "sekisho_admitted_jobs_total"),
    (f"sekisho_admitted_jobs_total -1 {at(1)}", "the value is -1", "a count of 0 or more"),
    (f'sekisho_wait_seconds_bucket{{le="x"}} 1 {at(1)}', "le is 'x'", "upper bound"),
    (f'sekisho_wait_seconds_bucket{{le="-Inf"}} 1 {at(1)}', "le is '-Inf'", "upper bound"),
    (f'sekisho_wait_seconds_bucket{{le="NaN"}} 1 {at(1)}', "le is 'NaN'", "upper bound"),
    (f"{ENGINE} 3 {at(0)}", "3 at", "one sample of a series at an instant"),
    (f"{ENGINE} 3 {at(-1)}", "lies before the sample above it", "in the order of time"),
    (
        f'sekisho_gpu_resident_gpus{{pool="{"p" * 64}"}} 5 {at(1)}',
        "has 64 characters",
        "at most 63",
    ),
    (f"{ENGINE} {'5' * 5000} {at(1)}", "characters", "at most 4096"),
    (f"{ENGINE} 1_0 {at(1)}", "1_0", "NAME{LABELS} VALUE SECONDS"),
    (f"{ENGINE} 1.2.3 {at(1)}", "1.2.3", "NAME{LABELS} VALUE SECONDS"),
]


@pytest.mark.parametrize(("line", "what", "expected"), BAD, ids=[row[1] for row in BAD])
def test_a_bad_line_is_named_and_costs_no_other(line: str, what: str, expected: str) -> None:
    text = read(f"{ENGINE} 1 {at(0)}", line, f"{ENGINE} 2 {at(1)}")
    (problem,) = text.problems
    assert problem.line == 2
    assert what in problem.what
    assert expected in problem.expected
    assert list(text.steps("gpu_resident_gpus")["sum_value"]) == [1, 2]


def test_bytes_that_are_no_text_are_named() -> None:
    bounds = Bounds(rows=10, oldest=DAY - timedelta(days=30), newest=timezone.now())
    text = Text(catalogue.read(), bounds)
    text.read([b"\xff\xfe\n", f"{ENGINE} 1 {at(0)}\n".encode(), b"# EOF\n"])
    assert str(text.problems[0]) == "line 1: byte 1 is no UTF-8; expected UTF-8 text"
    assert text.rows == 1


def test_every_problem_is_listed_and_the_batch_keeps_the_first_twenty(
    world: worlds.World, tmp_path: Path
) -> None:
    path = tmp_path / "bad.om"
    path.write_text("\n".join(["nonsense"] * 30 + [f"{ENGINE} 1 {at(0)}", "# EOF", ""]))
    for how in (["--dry-run"], []):
        out = StringIO()
        given = [str(path), "--region", "tokyo", *how]
        with pytest.raises(SystemExit) as ended:
            call_command("import_openmetrics", *given, stdout=out, stderr=out)
        assert ended.value.code == 1
        assert out.getvalue().count("is no sample") == 30
    batch = ImportBatch.objects.get()
    assert (len(batch.problems), batch.problems_count) == (20, 30)
    assert HourRollup.objects.get().sum_value == 1


def test_problems_beyond_those_that_are_listed_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openmetrics, "MOST_LISTED", 3)
    text = read(*["nonsense"] * 5)
    assert (len(text.problems), text.problems_count) == (3, 5)


def test_a_count_written_twice_by_a_pair_of_exporters_is_no_reset() -> None:
    count = "sekisho_admitted_jobs_total"
    values = [(0.0, 1000), (0.1, 1010), (0.1, 1010), (0.2, 1015), (0.2, 1014), (0.3, 1020)]
    text = read(*(f"{count} {value} {at(hours)}" for hours, value in values))
    # Of the pair's figures that differ, the first stays; of those that are equal nothing is said.
    (problem,) = text.problems
    assert (problem.line, "1014 at" in problem.what) == (5, True)
    assert text.steps("admitted_jobs")["sum_value"].sum() == 1020 - 1000


def test_what_stands_behind_the_end_is_counted_line_by_line() -> None:
    text = read(f"{ENGINE} 1 {at(0)}", "# EOF", f"{ENGINE} 2 {at(1)}", f"{ENGINE} 3 {at(2)}")
    assert "3 lines stand behind # EOF" in text.problems[0].what
    assert text.problems_count == 3


def test_bounds_are_spelled_as_collected_ones_are() -> None:
    bounds = ("10485760", "0.5", "5.0", "+Inf")
    lines = [
        f'sekisho_wait_seconds_bucket{{le="{bound}"}} {value} {at(hours)}'
        for bound in bounds
        for hours, value in ((0.0, 0), (0.1, 4))
    ]
    (buckets,) = read(*lines).steps("wait_seconds")["buckets"]
    assert set(buckets) == {histograms.bound(one) for one in bounds}


def test_an_import_makes_nothing_look_fresh_and_its_undoing_forgets_nothing_collected(
    world: worlds.World, tmp_path: Path
) -> None:
    now = timezone.now()
    tokyo, signal = world.regions["tokyo"], "gpu_resident_gpus"
    Watermark.objects.create(
        region=tokyo, signal=signal, version="v1", collected_until=now - 2 * HOUR,
        last_sample_at=now - 2 * HOUR,
    )  # fmt: skip
    # It was asked for, and no sample came.
    hour = now.replace(minute=0, second=0, microsecond=0) - HOUR
    nothing = HourCoverage.objects.create(
        region=tokyo, signal=signal, hour=hour, observed=0, expected=12, series=0
    )
    path = tmp_path / "new.om"
    path.write_text(
        f"{ENGINE} 4 {hour.timestamp():.0f}\nsekisho_pending_gpus 4 {hour.timestamp():.0f}\n# EOF\n"
    )
    run(file=path)

    def seen() -> dict[str, SignalCondition]:
        found = condition(now=now, since=now - 24 * HOUR)["tokyo"]
        return {one.signal: one for one in found.signals}

    assert (seen()[signal].state, seen()[signal].lag_seconds) == ("stale", 7200)
    by_hand = seen()["pending_gpus"]
    assert (by_hand.state, by_hand.age_seconds, by_hand.lag_seconds) == ("imported", None, None)
    assert by_hand.imported_until == hour + timedelta(minutes=5)
    (fresh,) = selectors.freshness(region="tokyo", now=now).to_dict("records")
    assert (fresh["signal"], fresh["state"]) == (signal, "stale")
    run("--undo", str(ImportBatch.objects.get().pk))
    assert list(HourCoverage.objects.all()) == [nothing]


def test_a_file_is_bounded_in_size_rows_and_time(
    world: worlds.World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_MAX_SAMPLES", "100")
    with pytest.raises(CommandError, match="does not end with # EOF"):
        run(file=file)
    monkeypatch.setenv("IMPORT_MAX_SAMPLES", "1000")
    monkeypatch.setenv("IMPORT_MAX_DAYS", "1")
    with pytest.raises(CommandError, match="holds no usable sample"):
        run(file=file)
    monkeypatch.setenv("IMPORT_MAX_DAYS", "30")
    monkeypatch.setenv("IMPORT_MAX_MB", "1")
    file.write_text("# padding\n" * 200_000 + file.read_text())
    with pytest.raises(CommandError, match="is larger than 1 MB"):
        run(file=file)
    assert not ImportBatch.objects.exists()
    assert not Series.objects.exists()


def test_nothing_is_stored_of_a_file_that_is_cut_short(world: worlds.World, file: Path) -> None:
    file.write_text(file.read_text().removesuffix("# EOF\n"))
    with pytest.raises(CommandError, match="may be cut short, so nothing was stored"):
        run(file=file)
    assert not HourRollup.objects.exists()
    with pytest.raises(SystemExit):
        run("--partial", file=file)
    assert HourRollup.objects.count() == 24


def test_a_dry_run_tells_and_stores_nothing(world: worlds.World, file: Path) -> None:
    said = run("--dry-run", file=file)
    assert "gpu_resident_gpus" in said
    assert "288 steps" in said
    assert not ImportBatch.objects.exists()


def test_the_same_file_is_not_stored_twice(world: worlds.World, file: Path) -> None:
    run(file=file)
    batch = ImportBatch.objects.get()
    with pytest.raises(CommandError, match=f"imported as batch {batch.pk}"):
        run(file=file)
    run("--again", file=file)
    assert ImportBatch.objects.count() == 2
    # Two imports of an hour: the newer is shown, they are not added up.
    shown = selectors.hours(signal="gpu_resident_gpus", start=DAY, end=DAY + HOUR)
    assert list(shown["sum_value"]) == [180]


def test_what_was_collected_is_shown_before_what_was_imported(
    world: worlds.World, file: Path
) -> None:
    line = series(world.regions["tokyo"], "gpu_resident_gpus", pool="tokyo-a-h100")
    gauge_hour(line, DAY, 3)
    Watermark.objects.create(
        region=line.region, signal=line.signal, version="v1", collected_until=DAY + HOUR
    )
    run(file=file)
    shown = selectors.hours(signal="gpu_resident_gpus", start=DAY, end=DAY + 2 * HOUR)
    assert list(shown["sum_value"]) == [36, 180]


def everything() -> dict[str, Any]:
    """All rows that an import may touch."""
    return {
        model.__name__: list(model.objects.order_by("pk").values())
        for model in (Series, StepRollup, HourRollup, DayRollup, HourCoverage, Watermark)
    }


def test_an_undone_import_leaves_everything_as_it_was(world: worlds.World, file: Path) -> None:
    line = series(world.regions["tokyo"], "gpu_resident_gpus", pool="tokyo-a-h100")
    gauge_hour(line, DAY, 3)
    before = everything()
    run(file=file)
    assert everything() != before
    batch = ImportBatch.objects.get()
    assert f"{24 + 1} rows are gone" in run("--undo", str(batch.pk))
    assert everything() == before
    batch.refresh_from_db()
    assert batch.undone_at is not None
    with pytest.raises(CommandError, match=f"Import {batch.pk} was undone at"):
        run("--undo", str(batch.pk))
    run(file=file)  # and it may be imported once more


def test_an_import_of_jobs_is_not_undone_as_one_of_signals(world: worlds.World) -> None:
    worlds.job("a")
    batch = ImportBatch.objects.get()
    with pytest.raises(CommandError, match="brought job records, no signals"):
        run("--undo", str(batch.pk))
    with pytest.raises(CommandError, match="There is no import 999"):
        run("--undo", "999")


def test_an_import_of_signals_says_nothing_about_until_when_jobs_are_known(
    world: worlds.World, file: Path
) -> None:
    run(file=file)
    assert selectors.known_until() is None


def test_the_example_of_the_reference_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "openmetrics-import.md").read_text()
    example = page.partition("```text\n")[2].partition("```")[0]
    bounds = Bounds(
        rows=100, oldest=datetime(2026, 1, 1, tzinfo=UTC), newest=datetime(2027, 1, 1, tzinfo=UTC)
    )
    text = Text(catalogue.read(), bounds)
    text.read(line.encode() for line in example.splitlines(keepends=True))
    assert text.problems == []
    assert text.signals() == ["gpu_reporting_gpus", "pending_jobs", "admitted_jobs", "wait_seconds"]
