"""What becomes of a histogram where Prometheus takes native ones. Seen with Debian's 2.42.

Its buckets are kept while the exporter publishes no native ones (Kueue up to 0.20 does not). Of one
that does, 2.42 keeps the native ones only: then the buckets are unknown, and never zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic, sleep

import pytest
import requests

from collectors.source import Access, BadQuery, Source
from tests.collectors.presets import question
from tests.prometheus import needed, running

pytestmark = needed

WAITS = "kueue_admission_wait_time_seconds"
PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)
FEATURE = "--enable-feature=native-histograms"


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _family(queue: str, waits: int, *, native: bool) -> bytes:
    """A histogram in Prometheus's protobuf: so many waits of 15 s; its bounds are 10 and 20 s."""
    labels = {"region": "tokyo", "cluster_queue": queue, "priority_class": "primary"}
    pairs = b"".join(_bytes(1, _bytes(1, name) + _bytes(2, text)) for name, text in labels.items())
    histogram = _number(1, waits) + _double(2, 15.0 * waits)
    for bound, count in ((10.0, 0), (20.0, waits)):
        histogram += _bytes(3, _number(1, count) + _double(2, bound))
    if native:
        # Schema 0: bounds are powers of two, and 15 lies in the fourth bucket, (8, 16].
        # Signed numbers are zigzag coded: twice the number.
        span = _bytes(12, _number(1, 2 * 4) + _number(2, 1))
        histogram += (
            _number(5, 0) + _double(6, 1e-9) + _number(7, 0) + span + _number(13, 2 * waits)
        )
    metric = pairs + _bytes(7, histogram)
    family = _bytes(1, WAITS) + _number(3, 4) + _bytes(4, metric)
    return _varint(len(family)) + family


class _Exporter:
    """Publishes the waits of one queue, as a classic or as a native histogram."""

    def __init__(self, *, native: bool) -> None:
        self.waits, self.native = 3, native

    def body(self) -> bytes:
        return _family("robotics", self.waits, native=self.native)


@pytest.fixture
def exporter(request: pytest.FixtureRequest) -> Iterator[tuple[_Exporter, Source, str]]:
    told = _Exporter(native=request.param)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = told.body()
            self.send_response(200)
            self.send_header("Content-Type", PROTOBUF)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        with running("# EOF", scrape=f"127.0.0.1:{server.server_port}", flags=[FEATURE]) as url:
            source = Source(Access(url=url, connect_seconds=2, read_seconds=20))
            yield told, source, url
            source.close()
    finally:
        server.shutdown()
        server.server_close()


def _wait_for(url: str, query: str, wanted: Callable[[float], bool]) -> int:
    """The whole second after the first answer that fits; gives up after 20 s."""
    until = monotonic() + 20
    while monotonic() < until:
        found = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=5).json()
        result = found["data"]["result"]
        if result and wanted(float(result[0]["value"][1])):
            return math.ceil(float(result[0]["value"][0]))
        sleep(0.2)
    raise AssertionError(f"{query} was not answered within 20 s")


def _steps_of_three_seconds(source: Source, at: int) -> dict[str, float]:
    """What each bucket grew by in the three seconds before."""
    (query, _sums) = question("kueue", "wait_seconds").queries(step_seconds=3)
    when = datetime.fromtimestamp(at, UTC)
    frame = source.fetch(
        query, start=when, end=when, step=timedelta(seconds=1), max_points=11
    ).frame
    return {} if frame.empty else dict(zip(frame["bound"], frame["value"], strict=True))


@pytest.mark.parametrize("exporter", [False], indirect=True)
def test_classic_buckets_stay_when_native_ones_are_switched_on(
    exporter: tuple[_Exporter, Source, str],
) -> None:
    told, source, url = exporter
    _wait_for(url, f"{WAITS}_count", lambda count: count == 3)
    sleep(4)  # a whole step is known before it grows
    told.waits = 5
    at = _wait_for(url, f"{WAITS}_count", lambda count: count == 5)
    # Two more waits of 15 s. Read from protobuf, the bounds are spelled 10.0 and 20.0.
    assert _steps_of_three_seconds(source, at) == {"10": 0.0, "20": 2.0, "+Inf": 2.0}


@pytest.mark.parametrize("exporter", [True], indirect=True)
def test_native_buckets_are_unknown_and_no_zero(exporter: tuple[_Exporter, Source, str]) -> None:
    told, source, url = exporter
    _wait_for(url, f"histogram_count({WAITS})", lambda count: count == 3)
    sleep(4)
    told.waits = 5
    at = _wait_for(url, f"histogram_count({WAITS})", lambda count: count == 5)
    absent = requests.get(
        f"{url}/api/v1/query", params={"query": f"{WAITS}_bucket or {WAITS}_count"}, timeout=5
    ).json()
    assert absent["data"]["result"] == []  # the classic series are gone
    assert _steps_of_three_seconds(source, at) == {}
    # Asked for as it is, the client refuses it: nothing could be added up.
    when = datetime.fromtimestamp(at, UTC)
    with pytest.raises(BadQuery, match="native histograms"):
        source.fetch(WAITS, start=when, end=when, step=timedelta(seconds=1), max_points=11)
