"""The exhibits of the dashboards: figure, words, table and sources put together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
from django.utils.translation import gettext, ngettext

from portal.dashboards import figures, measures
from portal.dashboards.attention import Attention, Kind
from portal.dashboards.figures import LANES, Mark
from portal.dashboards.selectors import Signals, Storage
from portal.dashboards.windows import Window
from portal.exhibits import Exhibit, Key, Source
from portal.fleet.models import Outage
from portal.theme.templatetags.units import duration, local_day

SIGNALS = (
    "gpu_engine_active_gpus",
    "quota_used_gpus",
    "gpu_reporting_gpus",
    "pending_gpus",
    "checkpoint_write_seconds",
)


def meanings() -> dict[str, str]:
    """One sentence of meaning per signal."""
    return {
        "gpu_engine_active_gpus": gettext("engine activity added over devices, in whole GPUs"),
        "quota_used_gpus": gettext("GPUs that the queue counts as held"),
        "gpu_reporting_gpus": gettext("devices that report"),
        "pending_gpus": gettext("GPUs that submitted jobs wait for"),
        "checkpoint_write_seconds": gettext("how long checkpoint writes took"),
    }


def sources(
    signals: Sequence[str],
    *,
    window: Window,
    freshness: pd.DataFrame,
    queries: dict[str, str],
) -> list[Source]:
    """Where each signal comes from: its query, the window, its newest sample."""
    newest = {
        signal: None if pd.isna(at) else at.to_pydatetime()
        for signal, at in zip(freshness["signal"], freshness["last_sample_at"], strict=True)
    }
    stretch = window_note(window)
    said = meanings()
    return [
        Source(name, queries.get(name, ""), stretch, newest.get(name), said.get(name, ""))
        for name in signals
    ]


def window_note(window: Window) -> str:
    """The window in words: from, to, resolution."""
    last = window.end - pd.Timedelta(seconds=1)
    values = {
        "from": local_day(window.start, window.zone),
        "to": local_day(last, window.zone),
        "hours": window.step_hours,
    }
    if window.step_hours == 1:
        return gettext("%(from)s – %(to)s, hourly") % values
    return gettext("%(from)s – %(to)s, every %(hours)d hours") % values


def outage_marks(outages: Sequence[Outage], *, now: datetime) -> list[Mark]:
    """Outages as labels on the axis of time."""
    found = []
    for outage in outages:
        values = {
            "what": outage.what,
            "long": duration(((outage.ends_at or now) - outage.starts_at).total_seconds()),
        }
        if outage.kind == "maintenance":
            text = gettext("%(what)s maintenance, %(long)s") % values
        elif outage.ends_at is None:
            text = gettext("%(what)s out for %(long)s so far") % values
        else:
            text = gettext("%(what)s outage, %(long)s") % values
        tone = "soft" if outage.kind == "maintenance" else "bad"
        found.append(Mark(outage.starts_at, outage.ends_at or now, text, tone))
    return found


def stall_marks(found: Sequence[Attention]) -> list[Mark]:
    """Checkpoint stalls as labels on the axis of time."""
    return [
        Mark(
            item.since, item.until,
            gettext("checkpoint stall, %(long)s")
            % {"long": duration((item.until - item.since).total_seconds())},
            "warn",
        )
        for item in found
        if item.kind is Kind.STORAGE_STALL and item.since and item.until
    ]  # fmt: skip


def quota_marks(changes: pd.DataFrame, *, of_project: bool, most: int = 4) -> list[Mark]:
    """Changes of nominal quota as labels; the newest few, one for those of the same instant.

    How much is said on the page of a project only: elsewhere it may be another tenant's.
    """
    found = []
    for _at, rows in changes.groupby("at", sort=True):
        if of_project and len(rows) == 1:
            row = rows.iloc[0]
            text = gettext("quota %(before)s → %(after)s") % {
                "before": row["before"] or "–",
                "after": row["after"] or "–",
            }
        else:
            text = ngettext("%(n)d quota change", "%(n)d quota changes", len(rows)) % {
                "n": len(rows)
            }
        found.append(Mark(rows["at"].iloc[0].to_pydatetime(), None, text, "accent"))
    return found[-most:]


def query_marks(instants: Sequence[datetime]) -> list[Mark]:
    """Where a signal was asked otherwise from: figures on both sides need not mean the same."""
    return [Mark(instant, None, gettext("query changed"), "soft") for instant in instants]


def words() -> dict[str, str]:
    """The words in the figures."""
    return {
        "in_use": gettext("in use"),
        "idle": gettext("held, idle"),
        "free": gettext("free"),
        "waiting": gettext("waiting"),
        "no_lane": gettext("no lane"),
        "write_p95": gettext("checkpoint write p95"),
        "use_title": gettext("GPUs in use"),
        "waiting_title": gettext("Waiting GPUs by lane"),
        "write_title": gettext("Checkpoint write p95"),
        "usual": gettext("usual band"),
        "no_data": gettext("no data"),
        "nominal": gettext("nominal quota"),
    }


def keys(lanes: Sequence[str]) -> list[Key]:
    """The legend of the one-axis chart."""
    first = [
        Key("in-use", gettext("in use")),
        Key("idle", gettext("held, idle")),
        Key("free", gettext("free")),
    ]
    return first + [Key(lane, lane) for lane in LANES if lane in lanes]


def region_table(
    signals: Signals, waiting: pd.DataFrame, checkpoints: Storage, window: Window
) -> pd.DataFrame:
    """The hours behind the one-axis chart, with column names for a CSV and times in the zone."""
    shown = signals.shown(window)
    table = pd.DataFrame(index=shown.index)
    table["gpus_in_use"] = shown["in_use"]
    table["gpus_held_idle"] = shown["idle"]
    table["gpus_free"] = shown["free"]
    table["gpus_reporting"] = shown["total"]
    for lane in waiting.columns:
        table[f"gpus_waiting_{lane or 'no_lane'}"] = waiting[lane].reindex(shown.index)
    table["checkpoint_write_p95_seconds"] = checkpoints.hourly.reindex(shown.index)
    table = table.round(2)
    table.insert(0, "hour", pd.DatetimeIndex(table.index).tz_convert(window.zone))
    return table.reset_index(drop=True)


def headed(table: pd.DataFrame) -> pd.DataFrame:
    """A table with headings for people instead of column names."""
    said = {
        "hour": gettext("hour"),
        "gpus_in_use": gettext("in use"),
        "gpus_held_idle": gettext("held, idle"),
        "gpus_free": gettext("free"),
        "gpus_reporting": gettext("reporting"),
        "checkpoint_write_p95_seconds": gettext("write p95 (s)"),
    }
    for column in table.columns:
        if column.startswith("gpus_waiting_"):
            lane = column.removeprefix("gpus_waiting_")
            said[column] = gettext("waiting, %(lane)s") % {"lane": lane}
    return table.rename(columns=said)


def one_axis(
    *,
    signals: Signals,
    waiting: pd.DataFrame,
    checkpoints: Storage,
    marks: Sequence[Mark],
    window: Window,
    now: datetime,
    sources: list[Source],
    csv_url: str,
) -> Exhibit:
    """Compute, queue and storage of a region on one axis."""
    shown = signals.shown(window)
    step = window.step_hours
    known = shown[["in_use", "total"]].notna().any().any() or waiting.notna().any().any()
    figure = (
        figures.one_axis(
            compute=measures.stepped(shown, hours=step),
            waiting=measures.stepped(waiting, hours=step),
            write_p95=checkpoints.stepped,
            usual=checkpoints.usual,
            marks=marks,
            start=window.start,
            end=window.end,
            now=now,
            hours=step,
            zone=window.zone,
            words=words(),
        )
        if known
        else None
    )
    table = region_table(signals, waiting, checkpoints, window)
    return Exhibit(
        slug="hours",
        title=gettext("Compute, queue and storage on one axis"),
        figure=figure,
        table=headed(table),
        sources=sources,
        csv_url=csv_url,
        note=window_note(window),
        summary=gettext(
            "GPU use, waiting GPUs by lane and checkpoint write times over the window; the "
            "table holds every hour."
        ),
        keys=keys(list(waiting.columns)),
        why_empty=gettext(
            "Nothing was collected in this window. Choose a longer one, or look at the data "
            "quality page for what went wrong."
        ),
    )
