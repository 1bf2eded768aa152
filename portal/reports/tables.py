"""The report's frame as the page shows it: the same digits as the file, with words and units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from portal.reports.definitions import METRICS, Metric, Text
from portal.reports.fairness import COMPARED, LANES, ROUNDED
from portal.theme.templatetags.units import UNKNOWN

DELIVERY = (
    "entitled_gpu_hours",
    "delivered_gpu_hours",
    "delivered_entitled_ratio",
    "share_ratio",
    "jain_index",
    "useful_gpu_hours",
    "idle_entitlement_gpu_hours",
)
QUEUE = (
    "jobs_started",
    "first_wait_p50_minutes",
    "first_wait_p90_minutes",
    "first_wait_longest_minutes",
    "still_waiting",
    "waited_job_hours",
    "preemptions_suffered",
    "preemptions_caused",
    "outage_interruptions",
    "requeues",
    "lost_gpu_hours",
)
# What a scope cannot have by definition is no column of its tables.
NEVER: Mapping[str, frozenset[str]] = {
    "project": frozenset({"jain_index"}),
    "lane": frozenset(
        {
            "entitled_gpu_hours",
            "delivered_entitled_ratio",
            "jain_index",
            "idle_entitlement_gpu_hours",
        }
    ),
}
SCOPES: Mapping[str, Text] = {
    "project": _("By project"),
    "tenant": _("By tenant"),
    "lane": _("By lane"),
    "pool": _("By pool"),
}
NAMELESS: Mapping[str, Text] = {
    "project": _("no project"),
    "tenant": _("not registered"),
    "lane": _("no lane"),
    "pool": _("in no pool yet"),
}
# Waits and losses that grow are worse, deliveries that grow are better; others are neither.
WORSE_WHEN_MORE = frozenset({"first_wait_p90_minutes", "lost_gpu_hours"})
METRIC_OF = {metric.column: metric for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure: as the file has it (`value`), as people read it, and its change of a week."""

    value: str
    text: str
    change: str = ""
    trend: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One name and its figures."""

    name: str
    label: Text
    tenant: str
    known_lane: bool
    url: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Some columns of one scope."""

    slug: str
    caption: Text
    metrics: list[Metric]
    rows: list[Row]
    total: list[Cell]


@dataclass(frozen=True, slots=True)
class Section:
    """All of one scope."""

    scope: str
    title: Text
    tables: list[Table]


def sections(figures: pd.DataFrame) -> list[Section]:
    """The tables by project, tenant, lane and pool; a scope without a row has none."""
    total = _records(figures, "total")
    found = []
    for scope, title in SCOPES.items():
        rows = _records(figures, scope)
        if not rows:
            continue
        tables = [
            _table(f"{scope}-{slug}", caption, scope, columns, rows, total[0])
            for slug, caption, columns in (
                ("delivery", _("Entitled and delivered"), DELIVERY),
                ("queue", _("Waits and interruptions"), QUEUE),
            )
        ]
        found.append(Section(scope, title, tables))
    return found


def totals(figures: pd.DataFrame) -> dict[str, Cell]:
    """The whole fleet's figures by column, or nothing when there is no row."""
    return {column: cell(row, column) for row in _records(figures, "total") for column in METRIC_OF}


def cell(row: Mapping[str, Any], column: str) -> Cell:
    """One figure of a row."""
    value = row.get(column)
    waits = column.startswith("first_wait_") and not column.endswith("change_minutes")
    text = shown(value, column)
    if waits and row["still_waiting"] > 0 and text != UNKNOWN:
        text = f"≥ {text}"
    change = row.get(COMPARED.get(column, ""))
    return Cell(_machine(value), text, *_change(change, column))


def shown(value: Any, column: str) -> str:
    """A figure of a column in words and units: every digit that the file has, no other."""
    if value is None or pd.isna(value):
        return UNKNOWN
    if METRIC_OF[column].unit == "ratio":
        return f"{100 * value:.1f} %"
    if METRIC_OF[column].unit == "min":
        return _minutes(int(value))
    return f"{value:,.{ROUNDED.get(column, 1)}f}"


def headline(figures: pd.DataFrame, *, open_week: bool) -> list[str]:
    """The week in a few sentences: fairness, who was kept waiting, what was lost."""
    totals = _records(figures, "total")
    if not totals:
        return []
    return list(_sentences(totals[0], _records(figures, "project"), open_week))


def _sentences(
    total: Mapping[str, Any],
    projects: list[dict[str, Any]],
    open_week: bool,  # noqa: FBT001
) -> Iterator[str]:
    if not pd.isna(total["delivered_entitled_ratio"]):
        yield gettext(
            "The fleet delivered %(delivered)s GPU·h against %(entitled)s GPU·h of entitlement."
        ) % {
            "delivered": shown(total["delivered_gpu_hours"], "delivered_gpu_hours"),
            "entitled": shown(total["entitled_gpu_hours"], "entitled_gpu_hours"),
        }
    if not pd.isna(total["jain_index"]):
        yield gettext("Jain's index over the projects is %(index)s.") % {
            "index": shown(total["jain_index"], "jain_index")
        }
    kept_waiting = [
        row
        for row in projects
        if not pd.isna(row["first_wait_p90_minutes"])
        and row["first_wait_p90_minutes"] >= 60
        and not pd.isna(row["delivered_entitled_ratio"])
        and row["delivered_entitled_ratio"] < 1
    ]
    if kept_waiting:
        worst = min(kept_waiting, key=lambda row: float(row["delivered_entitled_ratio"]))
        yield gettext(
            "%(project)s got %(ratio)s of its entitlement while one in ten of its jobs waited"
            " %(wait)s or longer."
        ) % {
            "project": worst["name"],
            "ratio": shown(worst["delivered_entitled_ratio"], "delivered_entitled_ratio"),
            "wait": shown(worst["first_wait_p90_minutes"], "first_wait_p90_minutes"),
        }
    interruptions = int(total["preemptions_suffered"] + total["outage_interruptions"])
    if interruptions:
        yield ngettext(
            "%(count)d interruption destroyed %(lost)s GPU·h of work.",
            "%(count)d interruptions destroyed %(lost)s GPU·h of work.",
            interruptions,
        ) % {
            "count": interruptions,
            "lost": shown(total["lost_gpu_hours"], "lost_gpu_hours"),
        }
    waiting = int(total["still_waiting"])
    if waiting:
        sentence = (
            ngettext("%(count)d job still waits.", "%(count)d jobs still wait.", waiting)
            if open_week
            else ngettext(
                "%(count)d job still waited when the week ended.",
                "%(count)d jobs still waited when the week ended.",
                waiting,
            )
        )
        yield sentence % {"count": waiting}


def _records(figures: pd.DataFrame, scope: str) -> list[dict[str, Any]]:
    rows = figures[figures["scope"] == scope].to_dict("records")
    return [{str(column): value for column, value in row.items()} for row in rows]


def _table(
    slug: str,
    caption: Text,
    scope: str,
    columns: tuple[str, ...],
    rows: list[dict[str, Any]],
    total: Mapping[str, Any],
) -> Table:
    kept = [column for column in columns if column not in NEVER.get(scope, ())]
    return Table(
        slug=slug,
        caption=caption,
        metrics=[METRIC_OF[column] for column in kept],
        rows=[
            Row(
                name=row["name"],
                label=row["name"] or NAMELESS[scope],
                tenant=row["tenant"] if scope == "project" else "",
                known_lane=scope == "lane" and row["name"] in LANES,
                url=_page_of(scope, row),
                cells=[cell(row, column) for column in kept],
            )
            for row in rows
        ],
        total=[cell(total, column) for column in kept],
    )


def _page_of(scope: str, row: Mapping[str, Any]) -> str:
    """The page of a registered project or of a pool with quota; others have none."""
    registered = {
        "project": bool(row["tenant"]),
        "pool": not pd.isna(row["entitled_gpu_hours"]),
    }
    known = registered.get(scope, False)
    return reverse(f"dashboards:{scope}", args=[row["name"]]) if known else ""


def _machine(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)


def _change(change: Any, column: str) -> tuple[str, str]:
    """A change in words with its sign, and whether it is for the worse or the better."""
    if change is None or pd.isna(change):
        return "", ""
    if change == 0:
        return "±0", ""
    size = abs(change)
    if METRIC_OF[column].unit == "ratio":
        text = gettext("%(points)s pt") % {"points": f"{100 * size:.1f}"}
    else:
        text = shown(size, column)
    sign = "+" if change > 0 else "−"
    if column in WORSE_WHEN_MORE:
        return f"{sign}{text}", "up" if change > 0 else "down"
    return f"{sign}{text}", ""


def _minutes(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    if not hours:
        return gettext("%(minutes)d min") % {"minutes": rest}
    return gettext("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": rest}
