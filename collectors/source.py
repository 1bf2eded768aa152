"""Asks a Prometheus for a range and gives a tidy frame, or says in a sentence why it cannot.

prometheus-api-client carries the request; everything that it drops or gets wrong is done here:
warnings, error texts, time limits, bounded retries, step-aligned chunks, non-finite values.
"""
# ruff: noqa: N818 - the errors' names say what happened, as the word stored with a run does.

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import requests
from prometheus_api_client import PrometheusConnect
from requests.auth import AuthBase
from urllib3.util import Retry

logger = logging.getLogger(__name__)

MOST_SERIES = 20_000
MOST_TEXT = 300
RESERVED = ("at", "value")
# The server answered in full, but thinks that the query could be written better.
ABOUT_THE_QUERY = ("PromQL warning", "PromQL info")


class SourceError(Exception):
    """A question had no usable answer. `kind` names why; the text is for people."""

    kind = "failed"
    server_wide = False


class Unreachable(SourceError):
    """Nothing answers at the address, or only a proxy does."""

    kind = "unreachable"
    server_wide = True


class Unauthorised(SourceError):
    """The server does not let us in."""

    kind = "unauthorised"
    server_wide = True


class NotPrometheus(SourceError):
    """Something answers that is no Prometheus: a sign-in page, a wrong path."""

    kind = "not-prometheus"
    server_wide = True


class TimedOut(SourceError):
    """The server took too long."""

    kind = "timed-out"


class TooMuch(SourceError):
    """More was asked for than the server gives at once."""

    kind = "too-much"


class BadQuery(SourceError):
    """The server does not accept the query, or it answers what the catalogue does not expect."""

    kind = "bad-query"


class BrokenOff(SourceError):
    """The answer began and did not end."""

    kind = "broken-off"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: columns `at` (UTC), `value` and one per label; and what was odd about it."""

    frame: pd.DataFrame
    series: int = 0
    rejected: int = 0
    warnings: list[str] = field(default_factory=list)
    partial: bool = False


class _Bearer(AuthBase):
    """The token as a header. As `auth` it also wins over a .netrc and stays on its own host."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Source:
    """One region's Prometheus. Make it in the process that uses it: a session survives no fork."""

    def __init__(
        self, *, url: str, token: str = "", connect_seconds: float, read_seconds: float
    ) -> None:
        self.address = shown(url)
        self._usable = is_usable(url)
        self._token = token
        self._read_seconds = read_seconds
        self._body: dict[str, Any] = {}
        session = requests.Session()
        session.max_redirects = 3
        session.hooks["response"].append(self._check)
        if token:
            session.auth = _Bearer(token)
        # Read errors are not tried again: a slow query would run once more for each try. 503 is
        # how Prometheus reports a query that timed out, so it is no reason to try again either.
        retry = Retry(
            total=2, connect=2, read=False, status=1, backoff_factor=0.2,
            status_forcelist=[429, 502], raise_on_status=False, respect_retry_after_header=False,
        )  # fmt: skip
        self._client = PrometheusConnect(
            url=url.rstrip("/") if self._usable else "http://unusable.invalid",
            session=session, retry=retry, timeout=(connect_seconds, read_seconds),
        )  # fmt: skip

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

    def fetch(
        self, query: str, *, start: datetime, end: datetime, step: timedelta, max_points: int
    ) -> Answer:
        """The query at start, start + step, … up to and including `end`, in bounded requests.

        `start` and `end` are aware and lie on the step's grid. Raises SourceError.
        """
        if not self._usable:
            raise Unreachable(
                f"{self.address} is no usable address; expected one like http://prometheus:9090."
            )
        answers = [
            self._once(query, first, last, step)
            for first, last in chunks(start=start, end=end, step=step, max_points=max_points)
        ]
        frames = [answer.frame for answer in answers if not answer.frame.empty]
        return Answer(
            frame=pd.concat(frames, ignore_index=True) if frames else _empty(),
            series=max(answer.series for answer in answers),
            rejected=sum(answer.rejected for answer in answers),
            warnings=list(dict.fromkeys(text for one in answers for text in one.warnings)),
            partial=any(answer.partial for answer in answers),
        )

    def _once(self, query: str, first: datetime, last: datetime, step: timedelta) -> Answer:
        self._body = {}
        try:
            self._client.custom_query_range(
                query, first, last, f"{step.total_seconds():g}",
                params={"timeout": f"{max(self._read_seconds * 900, 100):.0f}ms"},
            )  # fmt: skip
        except requests.TooManyRedirects:
            raise NotPrometheus(
                f"{self.address} sends every request elsewhere, as a sign-in page does."
            ) from None
        except requests.ConnectTimeout:
            raise Unreachable(f"{self.address} does not answer: no connection in time.") from None
        except requests.ReadTimeout:
            raise TimedOut(
                f"{self.address} did not answer within {self._read_seconds:g} s."
            ) from None
        except requests.exceptions.ChunkedEncodingError:
            raise BrokenOff(f"The answer of {self.address} broke off.") from None
        except requests.RequestException as error:
            # The text of the error holds the address with its query: the class says enough.
            logger.info("%s: %s", self.address, type(error).__name__)
            raise Unreachable(f"Nothing answers at {self.address}.") from None
        return self._read(self._body)

    def _check(self, response: requests.Response, *_args: object, **_kwargs: object) -> None:
        """Looks at each response before the library does: it would drop the warnings and texts."""
        if response.is_redirect:
            return
        if response.status_code != 200:
            raise self._refusal(response)
        try:
            body = response.json()
        except ValueError:
            looks_cut = response.text.lstrip().startswith("{")
            if looks_cut:
                raise BrokenOff(f"The answer of {self.address} broke off.") from None
            raise NotPrometheus(
                f"{self.address} answers with something else: {self._quoted(response.text)}"
            ) from None
        if not _is_matrix(body):
            raise NotPrometheus(
                f"{self.address} answers, but not as Prometheus does: {self._quoted(response.text)}"
            )
        self._body = body
        # The library parses again otherwise.
        response.json = lambda **_kwargs: body  # type: ignore[method-assign]

    def _refusal(self, response: requests.Response) -> SourceError:
        status = response.status_code
        kind, text = _error_of(response)
        said = self._quoted(text)
        low = text.lower()
        if status in (401, 403) or "no org id" in low:
            return Unauthorised(f"{self.address} does not let us in ({status}): {said}")
        if status in (408, 504) or kind in ("timeout", "canceled") or "deadline exceeded" in low:
            return TimedOut(f"The query took too long for {self.address}: {said}")
        if status == 429 or "too many" in low or "maximum resolution" in low or "limit" in low:
            return TooMuch(f"{self.address} does not give that much at once: {said}")
        if status in (400, 422) and kind:
            return BadQuery(f"{self.address} does not accept the query: {said}")
        if status >= 500:
            return Unreachable(f"The server behind {self.address} fails ({status}): {said}")
        return NotPrometheus(f"There is no Prometheus at {self.address} ({status}): {said}")

    def _read(self, body: dict[str, Any]) -> Answer:
        result = body["data"]["result"]
        if len(result) > MOST_SERIES:
            raise TooMuch(
                f"The query answers {len(result)} series; at most {MOST_SERIES} are taken: "
                "aggregate in the query."
            )
        if any("histograms" in one for one in result):
            raise BadQuery(
                "The query answers native histograms; the catalogue expects classic buckets."
            )
        for text in body.get("infos", []):
            logger.info("%s: %s", self.address, self._quoted(str(text)))
        warnings = [self._quoted(str(text)) for text in body.get("warnings") or []]
        try:
            frame, rejected = _tidy(result)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise NotPrometheus(
                f"{self.address} answers with samples that cannot be read as numbers in time."
            ) from None
        return Answer(
            frame=frame,
            series=len(result),
            rejected=rejected,
            warnings=warnings,
            partial=any(not text.startswith(ABOUT_THE_QUERY) for text in warnings),
        )

    def _quoted(self, text: str) -> str:
        """The server's own words: short, on one line, without our token."""
        line = " ".join(text.split()) or "(no text)"
        if self._token:
            line = line.replace(self._token, "(hidden)")
        return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}…"


def shown(url: str) -> str:
    """An address without the name and password that may stand in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(no address)"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/") if host else "(no address)"


def is_usable(url: str) -> bool:
    """Whether an address can be asked at all: http or https, a host, a port that is a number."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def chunks(
    *, start: datetime, end: datetime, step: timedelta, max_points: int
) -> Iterator[tuple[datetime, datetime]]:
    """[start, end] cut into ranges of at most `max_points` steps; no step stands in two."""
    if start > end:
        raise ValueError(f"start {start} lies after end {end}")
    first = start
    while first <= end:
        last = min(first + (max_points - 1) * step, end)
        yield first, last
        first = last + step


def _is_matrix(body: object) -> bool:
    if not isinstance(body, dict) or body.get("status") != "success":
        return False
    data = body.get("data")
    return (
        isinstance(data, dict)
        and data.get("resultType") == "matrix"
        and isinstance(data.get("result"), list)
    )


def _error_of(response: requests.Response) -> tuple[str, str]:
    """Prometheus's error type and text; without one, the body as it is."""
    try:
        body = response.json()
    except ValueError:
        return "", response.text
    if not isinstance(body, dict) or "error" not in body:
        return "", response.text
    return str(body.get("errorType", "error")), str(body["error"])


def _empty() -> pd.DataFrame:
    return pd.DataFrame(
        {"at": pd.Series(dtype="datetime64[s, UTC]"), "value": pd.Series(dtype="float64")}
    )


def _tidy(result: list[dict[str, Any]]) -> tuple[pd.DataFrame, int]:
    """One row a sample. NaN and infinities are no measurements: counted, not kept."""
    seconds: list[float] = []
    values: list[float] = []
    labels: list[dict[str, str]] = []
    rejected = 0
    for series in result:
        # The frame's own two names; no query of the catalogue may ask for labels of these names.
        metric = {k: v for k, v in series["metric"].items() if k not in RESERVED}
        for second, text in series.get("values", []):
            value = float(text)
            if not math.isfinite(value):
                rejected += 1
                continue
            seconds.append(second)
            values.append(value)
            labels.append(metric)
    if not values:
        return _empty(), rejected
    frame = pd.DataFrame(labels, dtype=object)
    frame.insert(0, "value", values)
    frame.insert(0, "at", pd.to_datetime(pd.Series(seconds), unit="s", utc=True))
    return frame, rejected
