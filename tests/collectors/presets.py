"""Asks a preset of a real server as a collection does, and gives the figures by column.

`SERVERS` are what regions have: each figure must come out the same in all of them.
`gauge` reads one instant; `grown` adds up the steps of a window, as hours are made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import requests

from collectors import catalogue, rollups
from collectors.catalogue import BUCKET_BOUND, Catalogue, Question
from collectors.rollups import STEP
from collectors.source import Source
from tests import prometheus, victoriametrics

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
TOKYO = 'region="tokyo"'

SERVERS = [
    pytest.param(prometheus.running, id="Prometheus"),
    pytest.param(victoriametrics.running, id="VictoriaMetrics", marks=victoriametrics.needed),
]

Key = tuple[str, ...]
Value = Callable[[datetime], float | None]


def at(clock: str) -> datetime:
    """An instant of the test's day, as in "02:10"."""
    hours, minutes = clock.split(":")
    return MIDNIGHT + timedelta(hours=int(hours), minutes=int(minutes))


def flat(value: float) -> Value:
    """The same at all times."""
    return lambda _at: value


def cut(value: Value | float, *, since: str = "00:00", until: str = "99:00") -> Value:
    """The values in [since, until) only."""
    of = value if callable(value) else flat(value)
    return lambda when: of(when) if at(since) <= when < at(until) else None


def question(
    preset: str, signal: str, *, whole: Catalogue | None = None, region: str = "tokyo"
) -> Question:
    """A signal as a preset asks for it in a region."""
    whole = whole or catalogue.read()
    asked = whole.of_preset(preset)[signal]
    return Question(signal, whole.signals[signal], asked, {"region": region})


def gauge(source: Source, asked: Question, when: datetime) -> dict[Key, float]:
    """The values of the columns, in the order of the labels, at an instant."""
    (query,) = asked.queries(step_seconds=300)
    answer = source.fetch(query, start=when, end=when, step=timedelta(minutes=1), max_points=11)
    frame, refused = rollups.tidy(answer.frame, asked.columns)
    assert (refused, answer.warnings) == (0, [])
    keys = frame[list(asked.columns.values())].itertuples(index=False, name=None)
    return dict(zip(map(tuple, keys), frame["value"], strict=True))


def grown(
    source: Source,
    asked: Question,
    start: datetime,
    end: datetime,
    *,
    sums: bool = False,
    step: timedelta = STEP,
) -> dict[Key, float]:
    """What counts, or a histogram's buckets, grew by in (start, end]; the bound is the last key.

    With `sums`: what the sum of the observed values grew by.
    """
    query = asked.queries(step_seconds=int(step.total_seconds()))[1 if sums else 0]
    answer = source.fetch(query, start=start + step, end=end, step=step, max_points=2016)
    frame, _refused = rollups.tidy(answer.frame, asked.columns)
    names = list(asked.columns.values())
    names += [BUCKET_BOUND] if BUCKET_BOUND in frame else []
    total: dict[Key, float] = defaultdict(float)
    for row in frame.to_dict("records"):
        total[tuple(str(row[name]) for name in names)] += row["value"]
    return dict(total)


def accepted(url: str, query: str) -> bool:
    """Whether Prometheus itself parses the query; asserts with its words when it does not."""
    answer = requests.post(f"{url}/api/v1/format_query", data={"query": query}, timeout=10)
    assert answer.status_code == 200, f"{answer.text}\n{query}"
    return True
