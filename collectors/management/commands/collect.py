"""Collects regions by hand: `manage.py collect tokyo --since 7d`."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from collectors import asking, ingest, rollups, windows
from collectors.catalogue import Catalogue, CatalogueError
from portal.env import SettingError
from portal.fleet.models import Region
from portal.telemetry.models import CollectionRun, RunState

BAD_INPUT = 2
LENGTHS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def instant(text: str) -> datetime | timedelta:
    """A length back from now such as 7d or 36h, or an instant such as 2026-11-30T00:00Z."""
    length = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    if length:
        return timedelta(**{LENGTHS[length[2]]: int(length[1])})
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; expected a length such as 7d, 36h, 90m, "
            "or an instant such as 2026-11-30T00:00+09:00"
        ) from None


class Command(BaseCommand):
    """Collects regions from their Prometheus and prints what was asked and what came."""

    help = (
        "Fetch a region's signals from its Prometheus, from where they stopped or since a time. "
        "Ends with 1 when a region did not answer at all, with 2 when the input is wrong."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Regions and the window."""
        parser.add_argument("regions", nargs="*", metavar="REGION", help="default: every region")
        parser.add_argument("--since", type=instant, help="7d, 36h or an instant with its zone")
        parser.add_argument("--until", type=instant, help="default: now; needs --since")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Checks everything first; nothing is written when something is wrong."""
        now = timezone.now()
        since, until = self._when(options["since"], now), self._when(options["until"], now)
        if until is not None and (since is None or until <= since):
            raise CommandError("--until needs a --since before it.", returncode=BAD_INPUT)
        if since is not None and since >= now:
            raise CommandError("--since lies in the future.", returncode=BAD_INPUT)
        regions = self._regions(options["regions"])
        try:
            catalogue = asking.site_catalogue()
            runs = [
                self._collect(region, catalogue, now=now, since=since, until=until)
                for region in regions
            ]
        except (CatalogueError, SettingError) as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        if any(run is None or run.state == RunState.FAILED for run in runs):
            sys.exit(1)

    def _when(self, given: datetime | timedelta | None, now: datetime) -> datetime | None:
        if isinstance(given, timedelta):
            return now - given
        if given is not None and given.tzinfo is None:
            raise CommandError(
                f"{given.isoformat()} has no zone; write {given.isoformat()}Z or "
                f"{given.isoformat()}+09:00.",
                returncode=BAD_INPUT,
            )
        return None if given is None else given.astimezone(UTC)

    def _regions(self, names: list[str]) -> list[Region]:
        known = {region.name: region for region in Region.objects.all()}
        wanted = list(dict.fromkeys(names)) or list(known)
        problems = [
            f"{name!r} is no region; expected one of {', '.join(sorted(known)) or '(none yet)'}"
            for name in wanted
            if name not in known
        ]
        problems += [
            f"{name} has no Prometheus; set PROMETHEUS_URL or "
            f"PROMETHEUS_URL_{name.upper().replace('-', '_')}"
            for name in wanted
            if name in known and not asking.has_source(name)
        ]
        if problems:
            raise CommandError("\n".join(problems), returncode=BAD_INPUT)
        return [known[name] for name in wanted]

    def _collect(
        self,
        region: Region,
        catalogue: Catalogue,
        *,
        now: datetime,
        since: datetime | None,
        until: datetime | None,
    ) -> CollectionRun | None:
        with asking.source_of(region.name) as source:
            self.stdout.write(f"{region.name} from {source.address}")
            try:
                run = ingest.collect(
                    region=region, catalogue=catalogue, source=source, asked_by="command",
                    now=now, since=since, until=until,
                )  # fmt: skip
            except ingest.AlreadyCollectingError as busy:
                self.stderr.write(str(busy))
                return None
        if not run.pk:
            due = windows.settled(now) + rollups.STEP + windows.SETTLES
            self.stdout.write(f"  nothing is due before {due:%H:%M:%S} UTC")
            return run
        for fetch in run.fetches.order_by("pk"):
            self.stdout.write(
                f"  {fetch.signal:<26} {fetch.asked_from:%Y-%m-%d %H:%M}"
                f"–{fetch.asked_to:%m-%d %H:%M} UTC"
                f"  {fetch.state:<8} {fetch.series:>5} series {fetch.samples:>8} samples"
                f" {fetch.rows:>6} rows   {fetch.duration_seconds:6.2f} s"
            )
            if fetch.rejected:
                self.stdout.write(f"      {fetch.rejected} samples were no usable numbers or names")
            for warning in fetch.warnings:
                self.stdout.write(f"      warning: {warning}")
            if fetch.error:
                self.stdout.write(f"      {fetch.error_kind}: {fetch.error}")
        self.stdout.write(f"  {run.state} in {run.duration_seconds:.1f} s")
        return run
