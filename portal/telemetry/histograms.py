"""Histogram buckets as numbers: add them up first, ask for a quantile last.

Buckets map the upper bound (as text, "+Inf" last) to how many events fell at or below it, as
Prometheus counts them. Pure: works in a notebook.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

TOP = "+Inf"


class Interval(NamedTuple):
    """Where a quantile certainly lies: above `lower` and at or below `upper`.

    `upper` is None above the highest finite bound: nobody knows how far, so show "> lower".
    """

    lower: float
    upper: float | None


@lru_cache(maxsize=1024)
def bound(text: str) -> str:
    """The one spelling of an upper bound: Prometheus 3 writes 10.0 where 2 wrote 10."""
    number = float(text)
    return TOP if number == float("inf") else f"{number:g}" if number < 1e6 else repr(number)


def added(many: Iterable[Mapping[str, float] | None]) -> dict[str, float] | None:
    """The buckets of several hours or series as one; None when none of them has any.

    Only bounds that all parts with events have: under a bound that one part does not know, nobody
    knows how many of its events fell. So a week in which an exporter got finer buckets is read by
    the coarser ones.
    """
    parts = [buckets for buckets in many if buckets]
    telling = [part for part in parts if any(part.values())] or parts
    if not telling:
        return None
    total: dict[str, float] = {}
    known: Counter[str] = Counter()
    for part in telling:
        known.update({bound(text) for text in part})
        for text, events in part.items():
            key = bound(text)
            total[key] = total.get(key, 0.0) + events
    common = [text for text in total if known[text] == len(telling)]
    return {text: total[text] for text in sorted(common, key=float)} or None


def quantile(buckets: Mapping[str, float] | None, q: float) -> float | None:
    """The value below which the share q (0-1) of the events lies; None when there were none.

    Interpolates inside a bucket, as Prometheus does. When the quantile lies above the highest
    finite bound, that bound is returned and `is_more_than` is true: show "more than".
    """
    found = _find(buckets, q)
    return None if found is None else found[0]


def interval(buckets: Mapping[str, float] | None, q: float) -> Interval | None:
    """The bucket in which the quantile lies: what interpolating may be wrong by; None as there.

    Between its bounds nothing is known: a p95 of 15 in a bucket from 10 to 20 is one of 10 to 20.
    """
    found = _find(buckets, q)
    return None if found is None else found[2]


def is_more_than(buckets: Mapping[str, float] | None, q: float) -> bool:
    """Whether `quantile` can only say "more than": the events lie above the highest bound."""
    found = _find(buckets, q)
    return found is not None and found[1]


def share_within(buckets: Mapping[str, float] | None, seconds: float) -> float | None:
    """The share (0-1) of events at or below a bound; None without events or such a bound."""
    counts = {float(text): events for text, events in (buckets or {}).items()}
    total = counts.get(float("inf"), 0.0)
    if total <= 0 or seconds not in counts:
        return None
    return counts[seconds] / total


def _find(buckets: Mapping[str, float] | None, q: float) -> tuple[float, bool, Interval] | None:
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q}; expected a share from 0 to 1")
    counts = sorted((float(text), events) for text, events in (buckets or {}).items())
    if not counts or counts[-1][0] != float("inf") or counts[-1][1] <= 0:
        return None
    rank = q * counts[-1][1]
    lower, below = 0.0, 0.0
    for upper, events in counts[:-1]:
        if events >= rank and events > below:
            value = lower + (upper - lower) * max(rank - below, 0.0) / (events - below)
            return value, False, Interval(lower, upper)
        # Extrapolated increases of single buckets may dip by a hair; counts never go down.
        lower, below = upper, max(below, events)
    return (lower, True, Interval(lower, None)) if len(counts) > 1 else None
