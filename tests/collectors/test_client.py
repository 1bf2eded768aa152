"""How a source is reached: secrets, tenants, certificates, and how much is asked and taken."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from collectors import answers, asking, source, tasks
from collectors.source import Access, Answer, Source
from portal.env import SettingError
from portal.telemetry.models import SignalFetch
from tests import worlds
from tests.collectors.servers import Reply, Request, answering

STEP = timedelta(minutes=5)
START = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
END = START + timedelta(hours=1)
EMPTY = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})


def matrix(*series: dict[str, object]) -> str:
    data = {"resultType": "matrix", "result": list(series)}
    return json.dumps({"status": "success", "data": data})


def ask(access: Access, *, end: datetime = END, max_points: int = 2_016) -> Answer:
    made = Source(access)
    try:
        return made.fetch("x", start=START, end=end, step=STEP, max_points=max_points)
    finally:
        made.close()


def heard(**access: object) -> Request:
    """The request that a server gets from a source with this access."""
    with answering(lambda _request: Reply(EMPTY)) as (url, seen):
        ask(Access(url=url, **access))  # type: ignore[arg-type]
        return seen[0]


def test_a_tenant_and_parameters_go_with_every_query() -> None:
    request = heard(
        tenant="kaguya",
        parameters={"dedup": "true", "max_source_resolution": "0s"},
        read_seconds=20,
    )
    assert request.headers["X-Scope-OrgID"] == "kaguya"
    assert request.query["dedup"] == ["true"]
    assert request.query["max_source_resolution"] == ["0s"]
    # The server shall give up before we do, and say why.
    assert request.query["timeout"] == ["18000ms"]


def test_name_and_password_are_sent_and_never_said() -> None:
    def reply(request: Request) -> Reply:
        sent = request.headers["Authorization"].removeprefix("Basic ")
        assert base64.b64decode(sent).decode() == "ops:pass:wörd"
        return Reply("pass:wörd is wrong", 401)

    with answering(reply) as (url, _seen), pytest.raises(source.Unauthorised) as caught:
        ask(Access(url=url, username="ops", password="pass:wörd"))
    assert "pass:wörd" not in str(caught.value)
    assert "(hidden)" in str(caught.value)
    assert "pass:wörd" not in repr(Access(url="http://x", password="pass:wörd", token="t0ken"))
    assert "t0ken" not in repr(Access(url="http://x", token="t0ken"))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that nobody else vouches for, with its key."""
    path = tmp_path / "own.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key"), "-out",
         str(tmp_path / "cert")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text((tmp_path / "key").read_text() + (tmp_path / "cert").read_text())
    return path


def test_an_own_authority_is_trusted_only_when_it_is_named(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with answering(lambda _request: Reply(EMPTY), tls=tls) as (url, seen):
        with pytest.raises(source.Unreachable, match=r"self-signed.*PROMETHEUS_CA_FILE"):
            ask(Access(url=url))
        assert not seen
        assert ask(Access(url=url, ca_file=str(certificate))).series == 0
    assert len(seen) == 1


def test_a_client_certificate_is_shown(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.load_verify_locations(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    with answering(lambda _request: Reply(EMPTY), tls=tls) as (url, seen):
        with pytest.raises(source.SourceError):
            ask(Access(url=url, ca_file=str(certificate)))
        ask(Access(url=url, ca_file=str(certificate), client_certificate_file=str(certificate)))
    assert len(seen) == 1


def test_a_file_of_ours_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(source.Unreachable, match=r"cannot be asked.*nowhere\.pem"):
        ask(Access(url="https://127.0.0.1:1", ca_file=str(tmp_path / "nowhere.pem")))


@pytest.mark.parametrize("status", [429, 502])
def test_a_busy_server_is_asked_three_times_and_its_words_are_kept(status: int) -> None:
    with answering(lambda _request: Reply("come back later", status)) as (url, seen):
        with pytest.raises(source.SourceError, match="come back later"):
            ask(Access(url=url))
        assert len(seen) == 3


def test_the_waits_between_tries_are_not_all_alike() -> None:
    retry = Source(Access(url="http://x"))._client._session.get_adapter("http://x").max_retries
    waits = set()
    for _ in range(20):
        tried = retry.increment("GET", "/", error=ConnectionError())
        tried = tried.increment("GET", "/", error=ConnectionError())
        waits.add(tried.get_backoff_time())
    assert len(waits) > 10
    assert max(waits) < 1


def test_a_range_is_cut_to_what_the_server_lets_one_request_span() -> None:
    with answering(lambda _request: Reply(EMPTY)) as (url, seen):
        ask(Access(url=url, max_range=timedelta(days=1)), end=START + timedelta(days=3))
    spans = [(float(one.query["start"][0]), float(one.query["end"][0])) for one in seen]
    assert max(end - start for start, end in spans) < 24 * 3600
    # No instant is left out, none asked twice: each begins a step after the one before.
    assert all(after[0] - before[1] == 300 for before, after in pairwise(spans))
    assert (spans[0][0], spans[-1][1]) == (
        START.timestamp(), (START + timedelta(days=3)).timestamp(),
    )  # fmt: skip


def test_what_lies_beside_the_grid_is_refused() -> None:
    seven = timedelta(seconds=7)
    for start, end in ((START + seven, END + seven), (START, END + seven)):
        with pytest.raises(ValueError, match="do not lie on a grid of 0:05:00"):
            list(source.chunks(start=start, end=end, step=STEP, max_points=10))


def test_an_answer_that_begins_days_after_what_was_asked_carries_a_warning() -> None:
    def reply(request: Request) -> Reply:
        end = float(request.query["end"][0])
        return Reply(matrix({"metric": {}, "values": [[end, "1"]]}))

    with answering(reply) as (url, _seen):
        late = ask(Access(url=url), end=START + timedelta(days=3))
        soon = ask(Access(url=url))
    (warning,) = late.warnings
    assert warning.startswith(
        "The answer begins at 2026-12-03 03:00 UTC, asked from 2026-11-30 03:00"
    )
    # It may also have begun then: what came is whole.
    assert not late.partial
    assert soon.warnings == []


def test_an_answer_is_bounded_however_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 3 << 20)
    bomb = gzip.compress(b" " * (20 << 20))

    class Packed(str):
        def encode(self, *_args: object) -> bytes:
            return bomb

    assert len(bomb) < 1 << 20
    with (
        answering(lambda _request: Reply(Packed(), headers={"Content-Encoding": "gzip"})) as (
            url,
            _,
        ),
        pytest.raises(source.TooMuch, match="more than 3 MB"),
    ):
        ask(Access(url=url))


def test_an_answer_that_stops_midway_is_broken_off() -> None:
    body = matrix({"metric": {}, "values": [[START.timestamp(), "1"]] * 500})
    with answering(lambda _request: Reply(body, stall_seconds=2)) as (url, seen):
        with pytest.raises(source.BrokenOff):
            ask(Access(url=url, read_seconds=0.4))
        assert len(seen) == 1


def test_a_label_that_only_some_series_carry_is_empty_in_the_others() -> None:
    at = START.timestamp()
    body = matrix(
        {"metric": {"pool": "a", "lane": "primary"}, "values": [[at, "1"], [at + 300, "2"]]},
        {"metric": {"pool": "b"}, "values": [[at, "3"]]},
        {"metric": {"pool": "c", "value": "no", "at": "no"}, "values": [[at, "NaN"]]},
    )
    with answering(lambda _request: Reply(body)) as (url, _seen):
        answer = ask(Access(url=url))
    frame = answer.frame
    assert list(frame["pool"]) == ["a", "a", "b"]
    assert list(frame["lane"]) == ["primary", "primary", ""]
    assert list(frame["value"]) == [1.0, 2.0, 3.0]
    assert set(frame.columns) == {"at", "value", "pool", "lane"}
    assert (answer.series, answer.rejected) == (3, 1)
    # One entry a series, not one a sample: half a million samples name each label once.
    assert str(frame["pool"].dtype) == "category"


def test_pieces_of_one_range_become_one_frame() -> None:
    def reply(request: Request) -> Reply:
        start, end = (float(request.query[name][0]) for name in ("start", "end"))
        pool = "early" if start == START.timestamp() else "late"
        return Reply(matrix({"metric": {"pool": pool}, "values": [[start, "1"], [end, "2"]]}))

    with answering(reply) as (url, _seen):
        answer = ask(Access(url=url), max_points=7)
    assert list(answer.frame["pool"]) == ["early", "early", "late", "late"]
    assert list(answer.frame["value"]) == [1, 2, 1, 2]
    assert answer.frame["at"].is_monotonic_increasing


def test_every_kind_of_error_has_a_word_of_its_own() -> None:
    words = [kind.kind for kind in answers.KINDS]
    assert len(set(words)) == len(words)
    assert answers.SourceError.kind not in words


def test_a_secret_in_a_file_is_read_anew_and_the_setting_goes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    monkeypatch.setenv("PROMETHEUS_TOKEN_FILE", str(file))
    assert asking.access_to("tokyo").token == "first"
    file.write_text("second\n")
    assert asking.access_to("tokyo").token == "second"
    monkeypatch.setenv("PROMETHEUS_TOKEN_TOKYO", "given")
    assert asking.access_to("tokyo").token == "given"
    assert asking.access_to("osaka").token == "second"
    monkeypatch.setenv("PROMETHEUS_TOKEN_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SettingError, match=r"PROMETHEUS_TOKEN_FILE is .*nowhere.*cannot be read"):
        asking.access_to("osaka")


def test_each_region_is_reached_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PROMETHEUS_URL": "http://all:9090",
        "PROMETHEUS_TENANT_OSAKA": "osaka-gpus",
        "PROMETHEUS_PARAMETERS": "dedup=true&partial_response=false",
        "PROMETHEUS_MAX_RANGE_DAYS_OSAKA": "7",
    }.items():
        monkeypatch.setenv(name, value)
    tokyo, osaka = asking.access_to("tokyo"), asking.access_to("osaka")
    assert (tokyo.tenant, osaka.tenant) == ("", "osaka-gpus")
    assert tokyo.parameters == osaka.parameters == {"dedup": "true", "partial_response": "false"}
    assert (tokyo.max_range.days, osaka.max_range.days) == (30, 7)
    for wrong in ("0", "-1", "a week", "1.5"):
        monkeypatch.setenv("PROMETHEUS_MAX_RANGE_DAYS_OSAKA", wrong)
        with pytest.raises(SettingError, match="expected a whole number above 0"):
            asking.access_to("osaka")


def test_a_secret_that_cannot_be_read_is_told_by_the_collection(
    world: worlds.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PROMETHEUS_TOKEN_FILE", str(tmp_path / "nowhere"))
    with pytest.raises(SettingError), asking.source_of("tokyo"):
        pass
    tasks.collect_region("tokyo")
    fetch = SignalFetch.objects.first()
    assert fetch is not None
    assert fetch.error_kind == "unreachable"
    assert "PROMETHEUS_TOKEN_FILE" in fetch.error
