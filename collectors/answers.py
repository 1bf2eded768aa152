"""What a Prometheus says, read: a tidy frame, or an error that names why not. Pure.

Bodies and status codes in, no network: `source` carries the requests.
"""
# ruff: noqa: N818 - the errors' names say what happened, as the word stored with a run does.

from __future__ import annotations

import gc
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
import pandas as pd

logger = logging.getLogger(__name__)

MOST_SERIES = 20_000
MOST_TEXT = 300
RESERVED = ("at", "value")
Floats = np.ndarray[Any, np.dtype[np.float64]]
_INSTANT, _TEXT = itemgetter(0), itemgetter(1)
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
    """More was asked for than the server gives at once, or than we take."""

    kind = "too-much"


class BadQuery(SourceError):
    """The server does not accept the query, or it answers what the catalogue does not expect."""

    kind = "bad-query"


class BrokenOff(SourceError):
    """The answer began and did not end."""

    kind = "broken-off"


KINDS = (Unreachable, Unauthorised, NotPrometheus, TimedOut, TooMuch, BadQuery, BrokenOff)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: columns `at` (UTC), `value` and one per label; and what was odd about it.

    Labels are categories; a series without a label that others carry has "" there, as for
    Prometheus itself.
    """

    frame: pd.DataFrame
    series: int = 0
    rejected: int = 0
    warnings: list[str] = field(default_factory=list)
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one response holds: the labels of each series, its instants (s) and its values."""

    labels: list[dict[str, str]]
    seconds: list[Floats]
    values: list[Floats]
    rejected: int
    warnings: list[str]


class Reader:
    """Reads the answers of one address; `secrets` never stand in what it quotes."""

    def __init__(self, address: str, *, secrets: tuple[str, ...] = ()) -> None:
        self.address = address
        self._secrets = tuple(secret for secret in secrets if secret)

    def refusal(self, status: int, content: bytes) -> SourceError:
        """The error for a response that is no answer: by its status, and by what it says."""
        kind, text = _error_of(content)
        said = self.quoted(text)
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

    def matrix(self, content: bytes) -> dict[str, Any]:
        """The body of an answer that holds ranges. Raises BrokenOff, NotPrometheus."""
        try:
            with _no_collecting():
                body = orjson.loads(content)
        except ValueError:
            if content.lstrip().startswith(b"{"):
                raise BrokenOff(f"The answer of {self.address} broke off.") from None
            raise NotPrometheus(
                f"{self.address} answers with something else: {self._start(content)}"
            ) from None
        if not _is_matrix(body):
            raise NotPrometheus(
                f"{self.address} answers, but not as Prometheus does: {self._start(content)}"
            )
        return body  # type: ignore[no-any-return]

    def part(self, body: dict[str, Any]) -> Part:
        """What a body holds. Takes the body apart. Raises SourceError."""
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
        for text in body.get("infos") or []:
            logger.info("%s: %s", self.address, self.quoted(str(text)))
        warnings = [self.quoted(str(text)) for text in body.get("warnings") or []]
        try:
            with _no_collecting():
                return _samples(result, warnings)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise NotPrometheus(
                f"{self.address} answers with samples that cannot be read as numbers in time."
            ) from None

    def quoted(self, text: str) -> str:
        """The server's own words: short, on one line, without our secrets."""
        line = " ".join(text.split()) or "(no text)"
        for secret in self._secrets:
            line = line.replace(secret, "(hidden)")
        return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}…"

    def _start(self, content: bytes) -> str:
        # Enough for a sentence, also where a secret is cut at its end.
        return self.quoted(content[: 16 * MOST_TEXT].decode(errors="replace"))


def joined(parts: Sequence[Part]) -> Answer:
    """The parts of one range as one answer."""
    warnings = list(dict.fromkeys(text for part in parts for text in part.warnings))
    labels = [one for part in parts for one in part.labels]
    lengths = [len(one) for part in parts for one in part.values]
    columns: dict[str, Any] = {
        "at": pd.to_datetime(_end_to_end(part.seconds for part in parts), unit="s", utc=True),
        "value": _end_to_end(part.values for part in parts),
    }
    # The frame's own two names; no query of the catalogue may ask for labels of these names.
    for name in dict.fromkeys(name for one in labels for name in one):
        if name in RESERVED or not sum(lengths):
            continue
        codes, found = pd.factorize(pd.Series([one.get(name, "") for one in labels], dtype=object))
        columns[name] = pd.Categorical.from_codes(np.repeat(codes, lengths), categories=found)
    return Answer(
        frame=pd.DataFrame(columns),
        series=max(len(part.labels) for part in parts),
        rejected=sum(part.rejected for part in parts),
        warnings=warnings,
        partial=any(not text.startswith(ABOUT_THE_QUERY) for text in warnings),
    )


def _end_to_end(parts: Iterable[Sequence[Floats]]) -> Floats:
    return np.concatenate([np.empty(0), *(one for part in parts for one in part)])


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Holds the cyclic garbage collector off: looking through millions of new lists is half the
    cost of reading them, and none of them lies in a circle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_matrix(body: object) -> bool:
    if not isinstance(body, dict) or body.get("status") != "success":
        return False
    data = body.get("data")
    return (
        isinstance(data, dict)
        and data.get("resultType") == "matrix"
        and isinstance(data.get("result"), list)
    )


def _error_of(content: bytes) -> tuple[str, str]:
    """Prometheus's error type and text; without one, the body as it is."""
    try:
        body = orjson.loads(content)
    except ValueError:
        return "", content.decode(errors="replace")
    if not isinstance(body, dict) or "error" not in body:
        return "", content.decode(errors="replace")
    return str(body.get("errorType", "error")), str(body["error"])


def _samples(result: list[dict[str, Any]], warnings: list[str]) -> Part:
    """The samples of each series. NaN and infinities are no measurements: counted, not kept.

    Series are taken off the list as they are read, so that their texts are let go of.
    """
    part = Part([], [], [], 0, warnings)
    rejected = 0
    result.reverse()
    while result:
        series = result.pop()
        samples = series.get("values", [])
        at = np.fromiter(map(_INSTANT, samples), np.float64, len(samples))
        value = np.fromiter(map(float, map(_TEXT, samples)), np.float64, len(samples))
        known = np.isfinite(value)
        rejected += int(len(known) - known.sum())
        part.labels.append(dict(series["metric"]))
        part.seconds.append(at[known])
        part.values.append(value[known])
    return replace(part, rejected=rejected)
