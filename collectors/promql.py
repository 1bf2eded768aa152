"""PromQL as text: matchers, parts written into queries, and what running counts grew by. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACEHOLDERS = ("increase", "rise", "selector", "step")
USED = re.compile(r"\$([a-zA-Z_]\w*)")
INCREASE = re.compile(r"\$(increase|rise)\(\s*([a-zA-Z_:][\w:]*)\{([^{}]*)\}\s*\)")


def increases(query: str, *, buckets: bool = False) -> str:
    """The query with each `$increase(metric{...})` and `$rise(metric{...})` written out.

    Exact where `increase()` extrapolates: the last value of the step less the last one known before
    it, up to a day back, so that a gap in between loses nothing. After a reset the count starts at
    zero: one that the step saw (it was higher within) adds what came before it, one between two
    scrapes at the step's border does not.

    So it does for a series that is new, but only where all new ones of its kind together count less
    than those of the step before: else they may be old counts under new names, or the memory may be
    new. Then they count from their first sample on; so it always is in `$rise`, for counts that
    outlive their exporter, where one of many may be named anew. A bucket is new only with its whole
    histogram: else it is its bound that is spelled anew.
    """

    def written(found: re.Match[str]) -> str:
        kind, metric, wanted = found.groups()
        last, before, most, least = _over_steps(f"{metric}{{{wanted}}}")
        born = f"(({last} - {least}) unless {before})"
        if kind == "increase":
            whole = f'{metric}{{{wanted}, le="+Inf"}}' if buckets else f"{metric}{{{wanted}}}"
            last_all, before_all, _most, _least = _over_steps(whole)
            new = f"({last} unless {before})"
            if buckets:
                new = f"({new} and ignoring (le) ({last_all} unless {before_all}))"
            others = f"sum(last_over_time({whole}[$step] offset $step))"
            born = (
                f"({new} and on () (\n"
                f"  sum({last_all} unless {before_all}) < {others}\n"
                f"  or {others} == 0\n"
                f"))\nor {born}"
            )
        # What a step filters to few series stands first: the server passes over the rest.
        return (
            f"(clamp_min(({most} > {last}) - {before}, 0) + {last}\n"
            f"or {last} < {before}\n"
            f"or {last} - {before}\n"
            f"or {born})"
        )

    return INCREASE.sub(written, query)


def _over_steps(series: str) -> tuple[str, str, str, str]:
    """Of a step: its last value, the last one known before it, its highest, its lowest."""
    return (
        f"last_over_time({series}[$step])",
        f"last_over_time({series}[1d] offset $step)",
        f"max_over_time({series}[$step])",
        f"min_over_time({series}[$step])",
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
