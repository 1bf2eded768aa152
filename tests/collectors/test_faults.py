"""Prometheus down, slow, wrong, partial or unauthorised: the run says so and loses nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from django.db.models import Count
from django.utils import timezone

from collectors import catalogue, ingest, source
from collectors.claims import Claim
from collectors.rollups import STEP
from collectors.source import Access, Answer, Source, SourceError
from portal.telemetry import models
from portal.telemetry.models import (
    CollectionRun,
    Gap,
    HourRollup,
    Quality,
    RunState,
    StepRollup,
    Watermark,
)
from tests import worlds
from tests.collectors.servers import Reply, Request, answering
from tests.conftest import SHARED

NOW = datetime(2026, 11, 30, 4, 32, tzinfo=UTC)
START, END = NOW - timedelta(hours=1, minutes=2), NOW - timedelta(minutes=2)
SECRET = "s3cret-token"


def _matrix(*series: Mapping[str, object], **more: object) -> str:
    data = {"resultType": "matrix", "result": list(series)}
    return json.dumps({"status": "success", "data": data, **more})


def _error(kind: str, text: str) -> str:
    return json.dumps({"status": "error", "errorType": kind, "error": text})


def _source(url: str, *, read_seconds: float = 5, token: str = "", **more: Any) -> Source:
    return Source(
        Access(url=url, token=token, connect_seconds=0.5, read_seconds=read_seconds, **more)
    )


def _ask(url: str, **kwargs: object) -> Answer:
    return _source(url, **kwargs).fetch(  # type: ignore[arg-type]
        "x", start=START, end=END, step=STEP, max_points=100
    )


LIMIT = "exceeded maximum resolution of 11,000 points per timeseries."
REFUSALS: list[tuple[str, Reply, type[SourceError], str]] = [
    ("a sign-in page", Reply("<html><title>Sign in"), source.NotPrometheus, "something else"),
    ("another JSON", Reply('{"hello": 1}'), source.NotPrometheus, "not as Prometheus"),
    ("a vector", Reply(_matrix().replace("matrix", "vector")), source.NotPrometheus, "not as"),
    ("samples of text", Reply(_matrix({"metric": {}, "values": [[1, "x"]]})), source.NotPrometheus,
     "cannot be read"),
    ("a wrong path", Reply("404 page not found", 404), source.NotPrometheus, "no Prometheus at"),
    ("no token", Reply("no org id", 401), source.Unauthorised, "let us in"),
    ("a forbidden path", Reply("{}", 403), source.Unauthorised, "let us in"),
    ("a parse error", Reply(_error("bad_data", "1:16: parse error"), 400), source.BadQuery,
     "1:16: parse error"),
    ("VictoriaMetrics' parse error", Reply(_error("422", "unexpected token"), 422),
     source.BadQuery, "unexpected token"),
    ("an execution error", Reply(_error("execution", "many-to-many matching"), 422),
     source.BadQuery, "many-to-many"),
    ("too many points", Reply(_error("bad_data", LIMIT), 400), source.TooMuch, "11,000"),
    ("too many samples", Reply(_error("execution", "would load too many samples"), 422),
     source.TooMuch, "too many samples"),
    ("a query that timed out", Reply(_error("timeout", "query timed out"), 503), source.TimedOut,
     "query timed out"),
    ("a deadline", Reply(_error("execution", "expanding series: context deadline exceeded"), 422),
     source.TimedOut, "deadline"),
    ("a proxy without a server", Reply("upstream connect error", 503), source.Unreachable,
     "upstream connect error"),
    ("a gateway's timeout", Reply("", 504), source.TimedOut, "(no text)"),
    ("a crash", Reply("boom", 500), source.Unreachable, "boom"),
    ("truncated JSON", Reply(_matrix()[:-20]), source.BrokenOff, "broke off"),
    ("a body cut short", Reply(_matrix(), promise_more=9), source.BrokenOff, "broke off"),
    ("a redirect loop", Reply(status=302, headers={"Location": "/login"}), source.NotPrometheus,
     "sign-in"),
    ("native histograms", Reply(_matrix({"metric": {}, "histograms": []})), source.BadQuery,
     "native"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "kind", "said"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_each_refusal_has_its_name_and_a_sentence(
    reply: Reply, kind: type[SourceError], said: str
) -> None:
    with answering(lambda _request: reply) as (url, _seen), pytest.raises(kind, match=said) as got:
        _ask(url)
    assert url in str(got.value) or "native" in said
    assert str(got.value)[0].isupper() or str(got.value).startswith("http")


def test_a_dead_port_is_said_soon() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = monotonic()
    with pytest.raises(source.Unreachable, match="Nothing answers at"):
        _ask(f"http://127.0.0.1:{port}")
    assert monotonic() - began < 3  # the library alone: 6 s


def test_a_slow_server_is_asked_once() -> None:
    with answering(lambda _request: Reply(_matrix(), wait_seconds=1)) as (url, seen):
        with pytest.raises(source.TimedOut, match=r"did not answer within 0\.3 s"):
            _ask(url, read_seconds=0.3)
        assert len(seen) == 1  # the library alone: four times


def test_a_query_that_timed_out_is_not_run_again() -> None:
    reply = Reply(_error("timeout", "query timed out"), 503)
    with answering(lambda _request: reply) as (url, seen):
        with pytest.raises(source.TimedOut):
            _ask(url)
        assert len(seen) == 1


def test_a_token_is_sent_and_never_said() -> None:
    reply = Reply(f"token {SECRET} is unknown", 401)
    with answering(lambda _request: reply) as (url, seen):
        with pytest.raises(source.Unauthorised) as caught:
            _ask(url, token=SECRET)
        assert seen[0].headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(caught.value)


def test_a_password_in_the_address_is_not_shown() -> None:
    assert source.shown("https://me:pass@prom.example:9090/x/") == "https://prom.example:9090/x"
    assert source.shown("nonsense") == "(no address)"


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://prom:nine", "localhost:9090", "ftp://prom:21", "http://:9090"]
)
def test_an_address_that_is_none_fails_the_run_and_says_what_was_expected(
    world: worlds.World, url: str
) -> None:
    made = _source(url)
    run = ingest.collect(
        region=world.regions["tokyo"], catalogue=catalogue.read(), source=made,
        asked_by="test", now=NOW,
    )  # fmt: skip
    made.close()
    assert run.state == RunState.FAILED
    first = run.fetches.first()
    assert first is not None
    assert first.error_kind == "unreachable"
    assert "no usable address; expected one like http://prometheus:9090" in first.error


def test_chunks_lie_on_the_grid_and_no_point_stands_in_two() -> None:
    cut = list(source.chunks(start=START, end=END, step=STEP, max_points=5))
    points = [first + n * STEP for first, last in cut for n in range((last - first) // STEP + 1)]
    assert points == [START + n * STEP for n in range(13)]
    assert max((last - first) // STEP + 1 for first, last in cut) == 5
    with pytest.raises(ValueError, match="after end"):
        list(source.chunks(start=END, end=START, step=STEP, max_points=5))


def test_a_long_range_is_asked_in_pieces() -> None:
    with answering(lambda _request: Reply(_matrix())) as (url, seen):
        _source(url).fetch("x", start=START, end=END, step=STEP, max_points=5)
    assert [request.query["step"] for request in seen] == [["300"]] * 3
    assert float(seen[1].query["start"][0]) - float(seen[0].query["end"][0]) == 300


def test_values_that_are_no_numbers_are_counted_and_not_kept() -> None:
    values = [[0, "1"], [300, "NaN"], [600, "+Inf"], [900, "-Inf"], [1200, "2"]]
    series = {"metric": {"pool": "a", "value": "x"}, "values": values}
    with answering(lambda _request: Reply(_matrix(series))) as (url, _seen):
        answer = _ask(url)
    assert answer.rejected == 3
    assert list(answer.frame["value"]) == [1.0, 2.0]
    assert answer.frame["at"].iloc[1] == datetime(1970, 1, 1, 0, 20, tzinfo=UTC)


def test_warnings_make_an_answer_partial_and_advice_does_not() -> None:
    for text, partial in [("receive series from Addr: x: Unavailable", True),
                          ("PromQL warning: encountered a mix of histograms", False)]:  # fmt: skip
        body = _matrix({"metric": {}, "values": [[0, "1"]]}, warnings=[text], infos=["PromQL info"])
        with answering(lambda _request, body=body: Reply(body)) as (url, _seen):  # type: ignore[misc]
            answer = _ask(url)
        assert (answer.partial, answer.warnings) == (partial, [text])


def test_the_shared_payloads_are_told_apart() -> None:
    folder = SHARED / "cases" / "prometheus"
    if not folder.exists():
        pytest.skip(f"{folder} is not here")
    for name, status, kind in [
        ("err_400_parse.json", 400, source.BadQuery),
        ("err_400_too_many_points.json", 400, source.TooMuch),
        ("err_404_path.html", 404, source.NotPrometheus),
        ("err_422_many_to_many.json", 422, source.BadQuery),
        ("err_422_too_many_samples.json", 422, source.TooMuch),
        ("err_503_timeout.json", 503, source.TimedOut),
        ("hand_200_login_page.html", 200, source.NotPrometheus),
        ("hand_503_proxy_body.txt", 503, source.Unreachable),
        ("hand_mimir_401_body.txt", 401, source.Unauthorised),
        ("hand_victoriametrics_422_parse.json", 422, source.BadQuery),
    ]:
        reply = Reply((folder / name).read_text("utf-8"), status)
        with answering(lambda _r, reply=reply: reply) as (url, _seen), pytest.raises(kind):  # type: ignore[misc]
            _ask(url)
    reply = Reply((folder / "hand_thanos_partial_warnings.json").read_text("utf-8"))
    with answering(lambda _request: reply) as (url, _seen):
        answer = _ask(url)
    assert answer.partial
    assert list(answer.frame["value"]) == [61, 63]


def _collect(
    world: worlds.World,
    reply: Callable[[Request], Reply],
    *,
    now: datetime = NOW,
    read_seconds: float = 5,
) -> tuple[CollectionRun, list[Request]]:
    with answering(reply) as (url, seen):
        made = _source(url, read_seconds=read_seconds, token=SECRET)
        run = ingest.collect(
            region=world.regions["tokyo"], catalogue=catalogue.read(), source=made,
            asked_by="test", now=now,
        )  # fmt: skip
        made.close()
    return run, seen


def _good(request: Request, **more: object) -> Reply:
    """The figure 8 on each step, for whatever is asked."""
    return _valued(request, "8", **more)


def _valued(request: Request, value: str, **more: object) -> Reply:
    start, end, step = (int(float(request.query[name][0])) for name in ("start", "end", "step"))
    values = [[at, value] for at in range(start, end + 1, step)]
    labels = {"bound": "+Inf"} if "bound" in request.query["query"][0] else {}
    return Reply(_matrix({"metric": labels, "values": values}, **more))


def _marks() -> set[tuple[Any, ...]]:
    return set(Watermark.objects.values_list())


def test_a_server_that_is_down_fails_the_run_once_and_keeps_what_was_there(
    world: worlds.World,
) -> None:
    good, _seen = _collect(world, _good)
    assert good.state == RunState.COMPLETE
    rows, marks = set(HourRollup.objects.values_list("pk", "sum_value")), _marks()
    later = NOW + timedelta(minutes=10)
    run, seen = _collect(world, lambda _r: Reply("down", 503), now=later)
    assert run.state == RunState.FAILED
    assert run.duration_seconds is not None
    assert len(seen) == 1  # the other questions did not wait for the same answer
    assert set(run.fetches.values_list("error_kind", flat=True)) == {"unreachable"}
    assert run.fetches.count() == len(catalogue.read().asked_in("tokyo"))
    assert set(HourRollup.objects.values_list("pk", "sum_value")) == rows
    assert _marks() == marks


def test_what_was_missed_is_fetched_when_the_server_is_back(world: worlds.World) -> None:
    _collect(world, _good)  # 24 hours, and what was late before them
    later = NOW + timedelta(hours=36)  # 16:32 the day after
    _collect(world, lambda _r: Reply("down", 503), now=later)
    run, _seen = _collect(world, _good, now=later)
    fetches = list(run.fetches.filter(signal="gpu_reporting_gpus").order_by("pk"))
    # The newest six hours first, then a day of what was missed before them.
    assert fetches[0].asked_to == datetime(2026, 12, 1, 16, 30, tzinfo=UTC)
    assert fetches[0].asked_from == datetime(2026, 12, 1, 10, tzinfo=UTC)
    assert fetches[1].asked_to == datetime(2026, 12, 1, 10, tzinfo=UTC)
    assert fetches[-1].asked_from == datetime(2026, 11, 30, 10, tzinfo=UTC)
    of_signal = Gap.objects.filter(signal="gpu_reporting_gpus")
    # Up to 04:30 it was collected, and up to 02:20 read again.
    assert list(of_signal.values_list("start", "end")) == [
        (datetime(2026, 11, 30, 2, 20, tzinfo=UTC), datetime(2026, 11, 30, 10, tzinfo=UTC))
    ]
    _collect(world, _good, now=later)
    assert not Gap.objects.exists()
    hours = HourRollup.objects.filter(series__signal="gpu_reporting_gpus", observed=12)
    assert hours.filter(hour__gte=NOW - timedelta(minutes=32)).count() == 36


def _spans(request: Request) -> tuple[datetime, datetime]:
    start, end = (float(request.query[name][0]) for name in ("start", "end"))
    return datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)


def test_a_sample_that_came_late_is_counted(world: worlds.World) -> None:
    """Read at 04:30, some GPUs had not answered yet: 3 of 8.

    At 06:20 it is this signal's turn to be read again up to 04:20, at 06:35 up to 04:35.
    """
    hour = datetime(2026, 11, 30, 4, tzinfo=UTC)
    _collect(world, lambda request: _valued(request, "3"))
    _collect(world, _good, now=NOW + timedelta(hours=1, minutes=53))
    steps = StepRollup.objects.filter(series__signal="gpu_reporting_gpus")
    found = dict(steps.values_list("at", "sum_value"))
    assert [found[hour + n * STEP] for n in range(3, 7)] == [8, 3, 3, 8]
    # The hour is made anew of its steps: ten are 8, two still 3.
    assert _hour("gpu_reporting_gpus", hour) == (10 * 8 + 2 * 3, 12)
    later, _seen = _collect(world, _good, now=NOW + timedelta(hours=2, minutes=4))
    assert later.state == RunState.COMPLETE
    assert _hour("gpu_reporting_gpus", hour) == (12 * 8, 12)


def test_what_cannot_be_read_again_fails_no_news_and_is_owed(world: worlds.World) -> None:
    _collect(world, _good)
    border = NOW - timedelta(hours=1)

    def forgetful(request: Request) -> Reply:
        old = _spans(request)[0] < border
        return Reply(_error("execution", "blocks are gone"), 422) if old else _good(request)

    run, _seen = _collect(world, forgetful, now=NOW + STEP)
    assert run.state == RunState.COMPLETE
    # Of the signals whose turn it is at 04:35.
    again = (datetime(2026, 11, 30, 2, 20, tzinfo=UTC), datetime(2026, 11, 30, 2, 35, tzinfo=UTC))
    assert set(Gap.objects.values_list("start", "end", "tries")) == {(*again, 0)}
    fetch = run.fetches.get(signal="gpu_reporting_gpus")
    assert "not read again" in fetch.warnings[0]
    assert "blocks are gone" in fetch.warnings[0]
    # By itself it fails, and the news come.
    run, _seen = _collect(world, forgetful, now=NOW + 2 * STEP)
    assert run.state == RunState.PARTIAL
    assert set(Watermark.objects.values_list("collected_until", flat=True)) == {
        datetime(2026, 11, 30, 4, 40, tzinfo=UTC)
    }
    run, _seen = _collect(world, _good, now=NOW + 3 * STEP)
    assert not Gap.objects.exists()


def test_a_back_fill_that_is_killed_leaves_what_it_had_not_asked_owed(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def killed(self: ingest._Attempt, go_on: Any = ingest._Attempt.run_once) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return go_on(self)

    monkeypatch.setattr(ingest._Attempt, "run_once", killed)
    with answering(_good) as (url, _seen), pytest.raises(KeyboardInterrupt):
        ingest.collect(
            region=world.regions["tokyo"], catalogue=catalogue.read(), source=_source(url),
            asked_by="test", now=NOW, since=NOW - timedelta(hours=36),
        )  # fmt: skip
    monkeypatch.undo()
    while True:
        run, _seen = _collect(world, _good)
        assert run.state == RunState.COMPLETE
        if not Gap.objects.exists():
            break
    hours = HourRollup.objects.filter(hour__gte=datetime(2026, 11, 28, 16, tzinfo=UTC))
    of_signals = hours.values_list("series__signal").annotate(Count("hour", distinct=True))
    assert len(of_signals) == len(catalogue.read().asked_in("tokyo"))
    assert {count for _signal, count in of_signals} == {36 + 1}


def _since(begins: datetime, value: str = "8") -> Callable[[Request], Reply]:
    """A server whose memory begins there."""

    def reply(request: Request) -> Reply:
        start, end, step = (int(float(request.query[name][0])) for name in ("start", "end", "step"))
        values = [
            [at, value] for at in range(start, end + 1, step) if at >= begins.timestamp()
        ]  # fmt: skip
        labels = {"bound": "+Inf"} if "bound" in request.query["query"][0] else {}
        return Reply(_matrix({"metric": labels, "values": values}) if values else _matrix())

    return reply


def _hour(signal: str, hour: datetime) -> Any:
    return HourRollup.objects.values_list("sum_value", "observed").get(
        series__signal=signal, hour=hour
    )


def _by_hand(world: worlds.World, reply: Callable[[Request], Reply], since: datetime) -> None:
    with answering(reply) as (url, _seen):
        made = _source(url)
        ingest.collect(
            region=world.regions["tokyo"], catalogue=catalogue.read(), source=made,
            asked_by="test", now=NOW, since=since,
        )  # fmt: skip
        made.close()


def test_a_server_that_lost_its_memory_takes_nothing_from_what_it_told(
    world: worlds.World,
) -> None:
    _collect(world, _good)
    hour = datetime(2026, 11, 29, 9, tzinfo=UTC)
    gauge, count = _hour("gpu_reporting_gpus", hour), _hour("admitted_jobs", hour)
    assert gauge == (12 * 8, 12)
    # Its disk is new since 09:45: three steps of the hour, and of counts less.
    _by_hand(world, _since(hour + timedelta(minutes=45), "3"), NOW - timedelta(hours=24))
    assert _hour("gpu_reporting_gpus", hour) == gauge
    assert _hour("admitted_jobs", hour) == count
    # What it does know is written over what was not whole.
    HourRollup.objects.filter(hour=hour).update(observed=2)
    _by_hand(world, _since(hour + timedelta(minutes=45), "3"), NOW - timedelta(hours=24))
    assert _hour("gpu_reporting_gpus", hour) == (3 * 3, 3)


@pytest.mark.parametrize("by_hand", [False, True])
def test_an_hour_that_an_outage_cut_is_made_of_what_lies_before_and_behind(
    world: worlds.World,
    by_hand: bool,
) -> None:
    """Known up to 20:25; the server starts anew at 20:45; we are back eight hours later."""
    hour = datetime(2026, 11, 29, 20, tzinfo=UTC)
    _collect(world, _good, now=hour + timedelta(minutes=25, seconds=35))
    assert _hour("gpu_reporting_gpus", hour) == (5 * 8, 5)
    anew = _since(hour + timedelta(minutes=45))
    if by_hand:
        _by_hand(world, anew, NOW - timedelta(hours=20))
    else:
        _collect(world, anew)
    # Steps of 20:00 to 20:20, and of 20:45 to 20:55.
    assert _hour("gpu_reporting_gpus", hour) == (8 * 8, 8)
    coverage = models.HourCoverage.objects.get(signal="gpu_reporting_gpus", hour=hour)
    assert coverage.observed == 8


def test_one_signal_that_fails_loses_no_other(world: worlds.World) -> None:
    def reply(request: Request) -> Reply:
        if "kueue_pending" in request.query["query"][0]:
            return Reply(_error("execution", "many-to-many"), 422)
        return _good(request)

    run, _seen = _collect(world, reply)
    assert run.state == RunState.PARTIAL
    assert list(run.fetches.exclude(state="complete").values_list("signal", "error_kind")) == [
        ("pending_jobs", "bad-query")
    ]
    fetch = run.fetches.get(signal="pending_jobs")
    mark = Watermark.objects.get(signal="pending_jobs")
    assert mark.collected_until <= fetch.asked_from + timedelta(hours=1)
    assert mark.last_sample_at is None


def test_a_first_run_that_fails_is_fetched_from_where_it_was_asked(world: worlds.World) -> None:
    with answering(lambda _r: Reply("down", 503)) as (url, _seen):
        made = _source(url)
        ingest.collect(
            region=world.regions["tokyo"], catalogue=catalogue.read(), source=made,
            asked_by="test", now=NOW, since=NOW - timedelta(days=7),
        )  # fmt: skip
        made.close()
    run, _seen = _collect(world, _good)
    assert run.state == RunState.COMPLETE
    week_ago = datetime(2026, 11, 23, 4, tzinfo=UTC)
    assert {gap.start for gap in Gap.objects.all()} == {week_ago}
    while Gap.objects.exists():
        _collect(world, _good)
    hours = HourRollup.objects.filter(series__signal="gpu_reporting_gpus")
    assert hours.filter(hour__gte=week_ago).count() == 7 * 24 + 1


def test_old_collections_are_forgotten_and_what_they_brought_stays(world: worlds.World) -> None:
    old, _seen = _collect(world, _good)
    hours = HourRollup.objects.count()
    later = NOW + ingest.KEPT_FOR + timedelta(seconds=1)
    assert ingest.prune(now=later) == 0  # the newest of its region, however old
    newer, _seen = _collect(world, _good, now=NOW + timedelta(hours=1))
    assert ingest.prune(now=NOW + ingest.KEPT_FOR) == 0
    assert ingest.prune(now=later) == 1
    assert list(CollectionRun.objects.all()) == [newer]
    assert HourRollup.objects.count() >= hours
    assert old.pk != newer.pk


def test_two_questions_that_time_out_end_the_run(world: worlds.World) -> None:
    run, seen = _collect(world, lambda _r: Reply(_matrix(), wait_seconds=0.6), read_seconds=0.2)
    assert run.state == RunState.FAILED
    assert len(seen) == 2
    assert set(run.fetches.values_list("error_kind", flat=True)) == {"timed-out"}


def test_a_partial_answer_is_kept_as_partial_and_asked_again(world: worlds.World) -> None:
    warned = ["remote_read: connection refused"]
    run, _seen = _collect(world, lambda request: _good(request, warnings=warned))
    assert run.state == RunState.PARTIAL
    assert set(HourRollup.objects.values_list("quality", flat=True)) == {Quality.PARTIAL}
    fetch = run.fetches.filter(signal="pending_jobs")[0]
    assert fetch.warnings == warned
    assert all(gap.tries for gap in Gap.objects.filter(signal="pending_jobs"))
    again, _seen = _collect(world, _good)
    assert again.state == RunState.COMPLETE
    assert set(HourRollup.objects.values_list("quality", flat=True)) == {Quality.COMPLETE}


def test_an_empty_answer_is_no_failure_and_no_zero(world: worlds.World) -> None:
    run, _seen = _collect(world, lambda _r: Reply(_matrix()))
    assert run.state == RunState.COMPLETE
    assert not HourRollup.objects.exists()
    assert "No series answers" in run.fetches.first().warnings[0]  # type: ignore[union-attr]
    silent = Watermark.objects.filter(last_sample_at__isnull=True)
    assert silent.count() == len(catalogue.read().asked_in("tokyo"))


def test_a_region_is_collected_once_at_a_time(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    running = CollectionRun.objects.create(
        region=tokyo, asked_by="schedule", source="x", started_at=NOW - timedelta(minutes=10)
    )
    assert Claim(tokyo, owner="another").take()
    with pytest.raises(ingest.AlreadyCollectingError, match="tokyo"):
        _collect(world, _good)
    models.Claim.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    run, _seen = _collect(world, _good)  # nobody heard of the other one: it was killed
    running.refresh_from_db()
    assert (running.state, running.finished_at) == (RunState.FAILED, NOW)
    assert run.state == RunState.COMPLETE
    assert (models.Claim.objects.get().owner, models.Claim.objects.get().busy) == ("", 1)


def test_a_run_whose_claim_was_taken_writes_nothing_more(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = Source.fetch

    def slow(self: Source, query: str, **kwargs: Any) -> Answer:
        answer = fetch(self, query, **kwargs)
        if "kueue_pending" in query:
            models.Claim.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
            assert Claim(world.regions["tokyo"], owner="another").take()
        return answer

    monkeypatch.setattr(Source, "fetch", slow)
    run, _seen = _collect(world, _good)
    assert run.state == RunState.FAILED
    assert HourRollup.objects.exists()
    assert not run.fetches.filter(signal="pending_jobs").exists()
    assert not HourRollup.objects.filter(series__signal="pending_jobs").exists()
    assert models.Claim.objects.get().owner == "another"


def test_a_run_that_is_ended_from_outside_is_closed(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_args: object, **_kwargs: object) -> Answer:
        raise KeyboardInterrupt

    monkeypatch.setattr(Source, "fetch", killed)
    with pytest.raises(KeyboardInterrupt):
        _collect(world, _good)
    assert CollectionRun.objects.get().state == RunState.FAILED


def test_no_secret_is_kept_with_a_run(world: worlds.World) -> None:
    _collect(world, lambda _r: Reply(f"bad {SECRET}", 401))
    run = CollectionRun.objects.get()
    kept = repr([*CollectionRun.objects.values(), *run.fetches.values()])
    assert "let us in" in kept
    assert SECRET not in kept
