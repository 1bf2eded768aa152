"""PromQL as text: matchers, parts written into queries, and what running counts grew by. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACEHOLDERS = ("increase", "selector", "step")
USED = re.compile(r"\$([a-zA-Z_]\w*)")
INCREASE = re.compile(r"\$increase\(\s*([a-zA-Z_:][\w:]*)\{([^{}]*)\}\s*\)")


def increases(query: str, *, buckets: bool = False) -> str:
    """The query with each `$increase(metric{...})` written out.

    Exact where `increase()` extrapolates: the last value of the step less the last one known before
    it, up to a day back, so that a gap in between loses nothing. After a reset the count starts at
    zero: one that the step saw (it was higher within) adds what came before it, one between two
    scrapes at the step's border does not. So it does for a series that is new, if others of its
    kind were there before: when none was, it may be the memory that is new, and the events old. A
    bucket is new only with its whole histogram: else it is its bound that is spelled anew.
    """

    def written(found: re.Match[str]) -> str:
        last, before, most = _over_steps(f"{found[1]}{{{found[2]}}}")
        new = f"({last} unless {before})"
        if buckets:
            last_all, before_all, _most = _over_steps(f'{found[1]}{{{found[2]}, le="+Inf"}}')
            new = f"({new} and ignoring (le) ({last_all} unless {before_all}))"
        # What a step filters to few series stands first: the server passes over the rest.
        return (
            f"(clamp_min(({most} > {last}) - {before}, 0) + {last}\n"
            f"or {last} < {before}\n"
            f"or {last} - {before}\n"
            f"or ({new} and on () group({before})))"
        )

    return INCREASE.sub(written, query)


def _over_steps(series: str) -> tuple[str, str, str]:
    """Of a step: its last value, the last one known before it, its highest."""
    return (
        f"last_over_time({series}[$step])",
        f"last_over_time({series}[1d] offset $step)",
        f"max_over_time({series}[$step])",
    )


def matchers(wanted: Mapping[str, str]) -> str:
    """Label matchers with their values escaped; with none, a matcher that lets all pass."""

    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return (
        ", ".join(f'{label}="{escaped(text)}"' for label, text in wanted.items())
        or 'instance=~".*"'
    )


def with_parts(query: str, parts: Mapping[str, str]) -> str:
    """The query with each `$part` written out, also those that parts use themselves.

    Names that are no part stay as they are. Parts that use one another in a circle end as names.
    """
    for _depth in parts:
        written = USED.sub(lambda found: parts.get(found[1], found[0]), query)
        if written == query:
            break
        query = written
    return query
