"""Reads signals from OpenMetrics text: line by line, bounded, every problem with its line. Pure.

A file names Sekisho's own signals, `sekisho_SIGNAL{pool="...", ...} VALUE TIMESTAMP`, with the
columns of the catalogue as labels. One bad line costs itself, nothing else.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from collectors import rollups
from collectors.catalogue import BUCKET_BOUND, Catalogue, Kind, Signal
from collectors.rollups import STEP
from portal.telemetry.histograms import bound

PREFIX = "sekisho_"
END = "# EOF"
# Enough to mend a file by; a file that is wrong altogether is no reason to fill the memory.
MOST_LISTED = 1_000
MOST_LINE = 4_096
# What nearly all lines end with; anything else is for the parser.
NUMBERS = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) ([0-9]+(?:\.[0-9]+)?)")
COUNT_SUFFIXES = {Kind.COUNTER: ("_total",), Kind.HISTOGRAM: ("_bucket", "_sum", "_count")}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a file may hold: lines with samples, and the time that they may lie in."""

    rows: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one line, and what was expected; line 0 is the file as a whole."""

    line: int
    what: str
    expected: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}; expected {self.expected}"


@dataclass(slots=True)
class _Samples:
    """Samples of one metric: the number of the series, the instant, the value, the line."""

    series: array[int] = field(default_factory=lambda: array("q"))
    seconds: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "line": np.frombuffer(self.series, dtype=np.int64),
                "second": np.frombuffer(self.seconds, dtype=np.float64),
                "value": np.frombuffer(self.values, dtype=np.float64),
            }
        )


@dataclass(frozen=True, slots=True)
class _Series:
    """What stands before the numbers of a line: the signal, the number of its line, its samples."""

    signal: str
    line: int
    samples: _Samples


@dataclass(slots=True)
class Text:
    """A file as it was read: `read` it once, then ask for the steps of each signal."""

    catalogue: Catalogue
    bounds: Bounds
    rows: int = 0
    problems_count: int = 0
    ended: bool = False
    first_second: float = math.inf
    last_second: float = -math.inf
    problems: list[Problem] = field(default_factory=list)
    _lines: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)
    _samples: dict[tuple[str, str], _Samples] = field(default_factory=dict)
    _series: dict[str, _Series] = field(default_factory=dict)
    _newest: dict[int, dict[int, tuple[float, float]]] = field(default_factory=dict)

    def read(self, lines: Iterable[bytes]) -> None:
        """Takes every line; what is wrong is listed (the first MOST_LISTED) and counted."""
        number = 0
        for number, raw in enumerate(lines, 1):
            if self.ended:
                more = 1 + sum(1 for _line in lines)
                what = f"{more} lines stand behind {END}" if more > 1 else f"stands behind {END}"
                self._wrong(number, what, "nothing; two files are imported one after the other")
                self.problems_count += more - 1
                return
            if self.rows >= self.bounds.rows:
                self._wrong(
                    number, f"is more than {self.bounds.rows} samples", "a file in several parts"
                )
                return
            self._line(number, raw)
        if not self.ended:
            self._wrong(number + 1, "the file ends", f"{END} as its last line: it may be cut short")

    def signals(self) -> list[str]:
        """The signals that have samples, in the catalogue's order."""
        found = {signal for (signal, _suffix), samples in self._samples.items() if samples.series}
        return [signal for signal in self.catalogue.signals if signal in found]

    def lines(self, signal: str) -> pd.DataFrame:
        """The labels of a signal's lines by their number: one column for each of its columns."""
        names = self._names(self.catalogue.signals[signal])
        return pd.DataFrame(list(self._lines[signal]), columns=names, dtype=object)

    def steps(self, signal: str) -> pd.DataFrame:
        """The signal's five-minute steps: `line` (a number of `lines`), at, and what is measured.

        A gauge keeps the last sample of a step. A count rises by the difference to the sample
        before it, in the step in which it is seen; it starts anew where it falls, and its first
        sample only says from where it counts.
        """
        kind = self.catalogue.signals[signal].kind
        if kind is Kind.GAUGE:
            frame = self._of(signal, "").sort_values(["line", "second"], kind="stable")
            frame["at"] = _instants(frame["second"] // STEP.total_seconds())
            frame = frame.drop_duplicates(["line", "at"], keep="last")
            return rollups.steps(kind, frame[["line", "at", "value"]], ["line"])
        if kind is Kind.COUNTER:
            return rollups.steps(kind, self._grown(signal, "_total"), ["line"])
        buckets, total = self._grown(signal, "_bucket"), self._grown(signal, "_sum")
        bounds = self._lines[signal]
        # The bound is the last part of a bucket's line; the line itself is that of its histogram.
        owners, texts = {}, {}
        plain = {key[:-1]: number for key, number in bounds.items() if not key[-1]}
        for key, number in bounds.items():
            owners[number] = plain.setdefault(key[:-1], number)
            texts[number] = key[-1]
        buckets[BUCKET_BOUND] = buckets["line"].map(texts)
        buckets["line"] = buckets["line"].map(owners)
        return rollups.steps(kind, buckets, ["line"], total)

    def _line(self, number: int, raw: bytes) -> None:
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            self._wrong(number, f"byte {error.start + 1} is no UTF-8", "UTF-8 text")
            return
        if text == END:
            self.ended = True
            return
        if not text or text.startswith("#"):
            return
        if len(text) > MOST_LINE:
            self._wrong(number, f"has {len(text)} characters", f"at most {MOST_LINE}")
            return
        self.rows += 1
        # A series is read by the parser once; what follows it in later lines are two numbers.
        named, _, numbers = text.partition("} ") if "{" in text else text.partition(" ")
        series, plain = self._series.get(named), NUMBERS.fullmatch(numbers)
        if series is not None and plain is not None:
            self._add(number, series, float(plain[1]), float(plain[2]))
            return
        try:
            # By itself, so that it costs no other line: the parser stops at the first fault.
            (family,) = text_string_to_metric_families(f"{text}\n{END}\n")  # type: ignore[no-untyped-call]
            (sample,) = family.samples
        except (ValueError, KeyError, IndexError) as error:
            said = " ".join(str(error).split())[:120]
            what = f"{text[:80]!r} is no sample ({said})"
            self._wrong(number, what, "NAME{LABELS} VALUE SECONDS")
            return
        series = self._named(number, sample.name, sample.labels)
        if series is None:
            return
        if plain is not None:
            self._series[named] = series
        second = None if sample.timestamp is None else float(sample.timestamp)
        self._add(number, series, float(sample.value), second)

    def _add(self, number: int, series: _Series, value: float, second: float | None) -> None:
        if not self._sound(number, self.catalogue.signals[series.signal], second, value):
            return
        assert second is not None  # noqa: S101 - _sound has looked
        if not self._in_order(number, series, second, value):
            return
        series.samples.series.append(series.line)
        series.samples.seconds.append(second)
        series.samples.values.append(value)
        self.first_second = min(self.first_second, second)
        self.last_second = max(self.last_second, second)

    def _in_order(self, number: int, series: _Series, second: float, value: float) -> bool:
        """Whether a sample is newer than the one before it, as OpenMetrics wants it.

        Taken for a count, an older or other value at the same instant would be a reset. The same
        sample once more is nothing new: a pair of exporters writes each twice.
        """
        newest = self._newest.setdefault(id(series.samples), {})
        before, known = newest.get(series.line, (-math.inf, math.nan))
        if second > before:
            newest[series.line] = (second, value)
            return True
        if second < before:
            what = f"{_shown(second)} lies before the sample above it"
            self._wrong(number, what, "the samples of a series in the order of time")
        elif value != known:
            what = f"{value:g} at {_shown(second)} stands beside {known:g}"
            self._wrong(number, what, "one sample of a series at an instant")
        return False

    def _named(self, number: int, metric: str, labels: dict[str, str]) -> _Series | None:
        """What a name with labels means, or None when it means nothing."""
        found = self._signal(number, metric)
        if found is None:
            return None
        name, suffix = found
        key = self._key(number, name, self.catalogue.signals[name], suffix, labels)
        if key is None:
            return None
        known = self._lines.setdefault(name, {})
        samples = self._samples.setdefault((name, suffix), _Samples())
        return _Series(name, known.setdefault(key, len(known)), samples)

    def _signal(self, number: int, metric: str) -> tuple[str, str] | None:
        """The signal and the suffix that a metric's name means."""
        name = metric.removeprefix(PREFIX)
        if name != metric:
            for signal, of in self.catalogue.signals.items():
                for suffix in COUNT_SUFFIXES.get(of.kind, ("",)):
                    if name == f"{signal}{suffix}":
                        return signal, suffix
        plain = self.catalogue.signals.get(name)
        if name != metric and plain is not None:
            forms = " or ".join(metric + suffix for suffix in COUNT_SUFFIXES[plain.kind])
            self._wrong(number, f"{metric} is a {plain.kind}", forms)
        else:
            close = get_close_matches(name, self.catalogue.signals, n=3)
            expected = " or ".join(PREFIX + one for one in close) or "a signal of the catalogue"
            self._wrong(number, f"the metric {metric[:80]} is unknown", expected)
        return None

    def _key(
        self, number: int, name: str, signal: Signal, suffix: str, labels: dict[str, str]
    ) -> tuple[str, ...] | None:
        allowed = [str(column) for column in signal.columns]
        taken = [*allowed, "le"] if suffix == "_bucket" else allowed
        for label, value in labels.items():
            if label not in taken:
                self._wrong(
                    number,
                    f"{name} has no label {label!r}",
                    f"labels among {', '.join(taken) or '(none)'}",
                )
                return None
            if len(value) > rollups.MOST_NAME:
                self._wrong(
                    number,
                    f"{label} has {len(value)} characters",
                    f"at most {rollups.MOST_NAME}",
                )
                return None
        key = tuple(labels.get(column, "") for column in allowed)
        if signal.kind is not Kind.HISTOGRAM:
            return key
        upper = ""
        if suffix == "_bucket":
            upper = _bound(labels.get("le"))
            if not upper:
                self._wrong(
                    number, f"le is {labels.get('le')!r}", "the upper bound of a bucket, or +Inf"
                )
                return None
        return (*key, upper)

    def _sound(self, number: int, signal: Signal, second: float | None, value: float) -> bool:
        if second is None:
            self._wrong(number, "has no timestamp", "seconds since 1970 behind the value")
            return False
        if not math.isfinite(second):
            self._wrong(number, f"the timestamp is {second}", "seconds since 1970")
            return False
        if not self.bounds.oldest.timestamp() <= second <= self.bounds.newest.timestamp():
            self._wrong(
                number,
                f"{_shown(second)} lies outside",
                f"a time from {self.bounds.oldest:%Y-%m-%d} to {self.bounds.newest:%Y-%m-%d %H:%M}"
                " UTC",
            )
            return False
        if not math.isfinite(value):
            self._wrong(number, f"the value is {value}", "a finite number, or no line")
            return False
        if value < 0 and signal.kind is not Kind.GAUGE:
            self._wrong(number, f"the value is {value:g}", "a count of 0 or more")
            return False
        return True

    def _of(self, signal: str, suffix: str) -> pd.DataFrame:
        return self._samples.get((signal, suffix), _Samples()).frame()

    def _grown(self, signal: str, suffix: str) -> pd.DataFrame:
        """What each line of a count rose by, at the end of the step in which it was seen."""
        frame = self._of(signal, suffix).sort_values(["line", "second"], kind="stable")
        before = frame.groupby("line")["value"].shift()
        rose = frame["value"] - before
        frame["value"] = rose.where(rose >= 0, frame["value"])
        frame = frame[before.notna()]
        frame["at"] = _instants(-(-frame["second"] // STEP.total_seconds()))
        return frame.groupby(["line", "at"])["value"].sum().reset_index()

    def _names(self, signal: Signal) -> list[str]:
        names = [str(column) for column in signal.columns]
        return [*names, BUCKET_BOUND] if signal.kind is Kind.HISTOGRAM else names

    def _wrong(self, line: int, what: str, expected: str) -> None:
        self.problems_count += 1
        if len(self.problems) < MOST_LISTED:
            self.problems.append(Problem(line, what, expected))


def _bound(text: str | None) -> str:
    """The one spelling of a bucket's bound; "" when it is none."""
    try:
        number = float(text or "nan")
    except ValueError:
        return ""
    return "" if math.isnan(number) or number == -math.inf else bound(str(number))


def bounded(chunks: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    """The lines of a file, as long as it is not larger than this. Raises ValueError when it is."""
    size = 0
    for line in chunks:
        size += len(line)
        if size > most_bytes:
            raise ValueError(f"is larger than {most_bytes >> 20} MB")
        yield line


def _instants(steps: Any) -> pd.Series[Any]:
    seconds = (steps * STEP.total_seconds()).astype("int64")
    return pd.Series(pd.to_datetime(seconds, unit="s", utc=True).astype("datetime64[us, UTC]"))


def _shown(second: float) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second):%Y-%m-%d %H:%M}"
    except OverflowError:
        return f"second {second:g}"
