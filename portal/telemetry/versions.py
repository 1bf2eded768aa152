"""Which version of a signal's query is shown where several were stored, and when it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

import pandas as pd

from portal.telemetry.models import HourRollup, Watermark

IMPORT = "import"
BATCH = f"{IMPORT}-"


def is_import(version: str) -> bool:
    """Whether rows of this version were imported, not collected."""
    return version == IMPORT or version.startswith(BATCH)


def is_batch(version: str) -> bool:
    """Whether rows of this version came by hand, as a batch: that says nothing of collecting."""
    return version.startswith(BATCH)


def shown(frame: pd.DataFrame, instant: str, *, signal: str) -> pd.DataFrame:
    """Keeps, for each region and instant, the rows of the version that counts there.

    Columns region, version, `instant` and newest (a key that grows with time). What was collected
    goes before what was imported; of two that were collected, the one that was collected further
    goes first, which is the one in use; of two imports the newer. For the whole signal, not by
    series: another query may have named its series differently.
    """
    if frame["version"].nunique() == 1:
        return frame
    until = {
        (region, version): instant.timestamp()
        for region, version, instant in Watermark.objects.filter(signal=signal).values_list(
            "region__name", "version", "collected_until"
        )
    }
    pairs = frame.groupby(["region", "version"], as_index=False)["newest"].max()
    order = [
        (not is_import(version), _batch(version), until.get((region, version), 0.0), newest)
        for region, version, newest in pairs.itertuples(index=False, name=None)
    ]
    places = {key: place for place, key in enumerate(sorted(order))}
    pairs["rank"] = [places[key] for key in order]
    ranked = frame.merge(pairs[["region", "version", "rank"]], on=["region", "version"])
    best = ranked.groupby(["region", instant])["rank"].transform("max")
    return ranked[ranked["rank"] == best].drop(columns="rank").reset_index(drop=True)


def changes(
    *, signal: str, start: datetime, end: datetime, regions: Collection[str] | None = None
) -> list[datetime]:
    """The hours in [start, end) from which on a signal was asked in another way than before.

    What was collected after an import is no change: an import is another source. Charts mark these
    instants: figures on both sides need not mean the same.
    """
    marks = Watermark.objects.filter(signal=signal)
    rows = HourRollup.objects.filter(series__signal=signal, hour__gte=start, hour__lt=end)
    if regions is not None:
        marks = marks.filter(region__name__in=list(regions))
        rows = rows.filter(series__region__name__in=list(regions))
    asked = [one for one in marks.values_list("region__name", "version") if not is_import(one[1])]
    # Nearly always there is one version, and nothing to read.
    if len(asked) == len({region for region, _version in asked}):
        return []
    found = rows.values_list("hour", "series__region__name", "version").distinct()
    frame = pd.DataFrame(list(found), columns=["hour", "region", "version"])
    frame = frame[~frame["version"].map(is_import).astype(bool)]
    if frame.empty:
        return []
    frame = shown(frame.assign(newest=0), "hour", signal=signal).sort_values("hour")
    before = frame.groupby("region")["version"].shift()
    changed = frame.loc[before.notna() & (before != frame["version"]), "hour"]
    return sorted({instant.to_pydatetime() for instant in changed})


def changes_of_any(
    *, signals: Collection[str], start: datetime, end: datetime, region: str
) -> list[datetime]:
    """As `changes`, of several signals of a region together; one small query where none changed."""
    asked = Watermark.objects.filter(signal__in=signals, region__name=region)
    versions = Counter(
        signal
        for signal, version in asked.values_list("signal", "version")
        if not is_import(version)
    )
    several = [signal for signal, count in versions.items() if count > 1]
    return sorted(
        {
            instant
            for signal in several
            for instant in changes(signal=signal, start=start, end=end, regions=[region])
        }
    )


def _batch(version: str) -> int:
    number = version.removeprefix(BATCH)
    return int(number) if is_import(version) and number.isdigit() else 0
