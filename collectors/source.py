"""Asks a Prometheus for a range and gives a tidy frame, or says in a sentence why it cannot.

prometheus-api-client carries the request; everything that it drops or gets wrong is done here and
in `answers`: warnings, error texts, time limits, bounded retries, step-aligned chunks, sizes.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import requests
from prometheus_api_client import PrometheusConnect
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.util import Retry

from collectors.answers import (
    Answer,
    BadQuery,
    BrokenOff,
    NotPrometheus,
    Part,
    Reader,
    SourceError,
    TimedOut,
    TooMuch,
    Unauthorised,
    Unreachable,
    joined,
)

__all__ = [
    "Access",
    "Answer",
    "BadQuery",
    "BrokenOff",
    "NotPrometheus",
    "Source",
    "SourceError",
    "TimedOut",
    "TooMuch",
    "Unauthorised",
    "Unreachable",
    "chunks",
    "is_usable",
    "shown",
]

logger = logging.getLogger(__name__)

# Of an answer, unpacked. Twenty thousand series of a week of steps would be more.
MOST_BYTES = 512 * 1024 * 1024
# A federated server gives what its shortest memory holds and does not say so.
BEGINS_LATE = timedelta(days=1)


class _Bearer(AuthBase):
    """The token as a header. As `auth` it also wins over a .netrc and stays on its own host."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


@dataclass(frozen=True, slots=True)
class Access:
    """How one region's server is reached: where, as whom, and what more it wants to hear.

    `tenant` is sent as X-Scope-OrgID (Mimir, Cortex, Loki's family); `parameters` go with every
    query (Thanos: dedup, partial_response, max_source_resolution). `max_range` is how much time one
    request may span: managed servers refuse more. A `problem` with the settings is what every
    question is answered with.
    """

    url: str
    problem: str = ""
    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    tenant: str = ""
    ca_file: str = ""
    client_certificate_file: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    max_range: timedelta = timedelta(days=30)
    connect_seconds: float = 3
    read_seconds: float = 30


class Source:
    """One region's Prometheus. Make it in the process that uses it: a session survives no fork."""

    def __init__(self, access: Access) -> None:
        self.address = shown(access.url)
        self._access = access
        self._usable = is_usable(access.url)
        self._reader = Reader(self.address, secrets=(access.token, access.password))
        self._body: dict[str, Any] = {}
        # Read errors are not tried again: a slow query would run once more for each try. 503 is
        # how Prometheus reports a query that timed out, so it is no reason to try again either.
        # The waits are shaken, or twenty regions behind one proxy would come back as one.
        retry = Retry(
            total=2, connect=2, read=False, status=2, backoff_factor=0.2, backoff_jitter=0.3,
            status_forcelist=[429, 502], raise_on_status=False, respect_retry_after_header=False,
        )  # fmt: skip
        self._client = PrometheusConnect(
            url=access.url.rstrip("/") if self._usable else "http://unusable.invalid",
            session=self._session(), retry=retry,
            timeout=(access.connect_seconds, access.read_seconds),
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
        if self._access.problem:
            raise Unreachable(self._access.problem)
        if not self._usable:
            raise Unreachable(
                f"{self.address} is no usable address; expected one like http://prometheus:9090."
            )
        points = max(min(max_points, self._access.max_range // step), 1)
        answer = joined(
            [
                self._once(query, first, last, step)
                for first, last in chunks(start=start, end=end, step=step, max_points=points)
            ]
        )
        if not answer.frame.empty:
            begins = answer.frame["at"].min().to_pydatetime()
            if begins - start > max(BEGINS_LATE, step):
                answer.warnings.append(
                    f"The answer begins at {begins:%Y-%m-%d %H:%M} UTC, asked from "
                    f"{start.astimezone(UTC):%Y-%m-%d %H:%M}: the server may not remember longer."
                )
        return answer

    def _session(self) -> requests.Session:
        access = self._access
        session = requests.Session()
        session.max_redirects = 3
        session.hooks["response"].append(self._check)
        if access.token:
            session.auth = _Bearer(access.token)
        elif access.username:
            session.auth = HTTPBasicAuth(access.username.encode(), access.password.encode())
        if access.tenant:
            session.headers["X-Scope-OrgID"] = access.tenant
        if access.ca_file:
            session.verify = access.ca_file
        if access.client_certificate_file:
            session.cert = access.client_certificate_file
        return session

    def _once(self, query: str, first: datetime, last: datetime, step: timedelta) -> Part:
        self._body = {}
        read_seconds = self._access.read_seconds
        timeout = f"{max(read_seconds * 900, 100):.0f}ms"
        try:
            self._client.custom_query_range(
                query, first, last, f"{step.total_seconds():g}",
                params={**self._access.parameters, "timeout": timeout},
            )  # fmt: skip
        except requests.TooManyRedirects:
            raise NotPrometheus(
                f"{self.address} sends every request elsewhere, as a sign-in page does."
            ) from None
        except requests.ConnectTimeout:
            raise Unreachable(f"{self.address} does not answer: no connection in time.") from None
        except requests.ReadTimeout:
            raise TimedOut(f"{self.address} did not answer within {read_seconds:g} s.") from None
        except requests.exceptions.SSLError as error:
            raise Unreachable(
                f"{self.address} shows no certificate that we trust: "
                f"{self._reader.quoted(_fault_of_certificate(error))}. "
                "Name its authority in PROMETHEUS_CA_FILE."
            ) from None
        except OSError as error:
            # The text of the error holds the address with its query: the class says enough. A file
            # of ours that cannot be read is one too.
            logger.info("%s: %s", self.address, type(error).__name__)
            if isinstance(error, requests.RequestException):
                raise Unreachable(f"Nothing answers at {self.address}.") from None
            raise Unreachable(f"{self.address} cannot be asked: {error}.") from None
        return self._reader.part(self._body)

    def _check(self, response: requests.Response, *_args: object, **_kwargs: object) -> None:
        """Looks at each response before the library does: it would drop the warnings and texts."""
        if response.is_redirect:
            return
        content = self._content(response)
        if response.status_code != 200:
            raise self._reader.refusal(response.status_code, content)
        self._body = body = self._reader.matrix(content)
        # The library parses again otherwise.
        response.json = lambda **_kwargs: body  # type: ignore[method-assign]

    def _content(self, response: requests.Response) -> bytes:
        """The body, read here so that its size is bounded, however it is packed."""
        parts, size = [], 0
        try:
            for part in response.iter_content(1 << 20):
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    response.close()
                    raise TooMuch(
                        f"{self.address} answers more than {MOST_BYTES >> 20} MB: "
                        "aggregate in the query."
                    )
        except requests.RequestException:
            raise BrokenOff(f"The answer of {self.address} broke off.") from None
        # Where requests itself keeps what it has read.
        response._content = content = b"".join(parts)  # noqa: SLF001
        return content


def _fault_of_certificate(error: BaseException) -> str:
    """What the TLS library says of a certificate; requests and urllib3 have wrapped it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return str(getattr(cause, "verify_message", "") or getattr(cause, "reason", ""))


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
    if (end - start) % step or start.timestamp() % step.total_seconds():
        raise ValueError(f"{start} and {end} do not lie on a grid of {step}")
    first = start
    while first <= end:
        last = min(first + (max_points - 1) * step, end)
        yield first, last
        first = last + step
