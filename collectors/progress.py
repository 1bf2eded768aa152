"""Up to where each signal is collected, and what is owed: the rows behind windows.Progress."""

from __future__ import annotations

from datetime import datetime, timedelta
from zlib import crc32

from collectors import windows
from collectors.rollups import STEP
from collectors.storing import Of
from collectors.windows import Progress
from portal.telemetry.models import Gap, Watermark
from portal.telemetry.versions import is_import


def load(of: Of, *, now: datetime, since: datetime | None = None) -> Progress:
    """How far a signal is collected; what other versions of its query owe, this one owes.

    `since` is where a first back-fill begins.
    """
    of_signal = {"region": of["region"], "signal": of["signal"]}
    marks = {
        row.version: row.collected_until
        for row in Watermark.objects.filter(**of_signal)
        if not is_import(row.version)
    }
    rows = list(Gap.objects.filter(**of_signal))
    own = tuple(_as_gap(row) for row in rows if row.version == of["version"])
    others = tuple(_as_gap(row) for row in rows if row.version != of["version"])
    mark = marks.pop(of["version"], None)
    if mark is not None:
        ordered = tuple(sorted(own, key=lambda gap: gap.start))
        return windows.taken_over(Progress(mark, ordered, _turn(of)), others)
    before = Progress(max(marks.values()), others) if marks else None
    return windows.begin(now=now, since=since, before=before, turn=_turn(of))


def store(of: Of, progress: Progress, *, newest: datetime | None = None) -> None:
    """Writes the progress over what was known, in the caller's transaction.

    `newest` is the instant of the newest sample that came.
    """
    mark = Watermark.objects.filter(**of).first()
    mark = mark or Watermark(**of, collected_until=progress.mark)
    mark.collected_until = progress.mark
    if newest is not None and (mark.last_sample_at is None or newest > mark.last_sample_at):
        mark.last_sample_at = newest
    mark.save()
    new, gone = set(progress.gaps), []
    for row in Gap.objects.filter(region=of["region"], signal=of["signal"]):
        if row.version == of["version"] and _as_gap(row) in new:
            new.discard(_as_gap(row))
        else:
            gone.append(row.pk)
    if gone:
        Gap.objects.filter(pk__in=gone).delete()
    Gap.objects.bulk_create(
        Gap(**of, start=gap.start, end=gap.end, tries=gap.tries, not_before=gap.not_before)
        for gap in sorted(new, key=lambda gap: gap.start)
    )


def _turn(of: Of) -> timedelta:
    """When a signal is read again: always at the same step of a quarter of an hour."""
    return crc32(of["signal"].encode()) % (windows.AGAIN // STEP) * STEP


def _as_gap(row: Gap) -> windows.Gap:
    return windows.Gap(row.start, row.end, row.tries, row.not_before)
