"""Imports signals from a file: `manage.py import_openmetrics week.om.gz --region tokyo`."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from collectors import asking, importing, openmetrics
from collectors.catalogue import CatalogueError
from collectors.openmetrics import Bounds, Text
from portal import env
from portal.fleet.models import Region
from portal.telemetry import services
from portal.telemetry.models import ImportBatch

BAD_INPUT = 2
PACKED = b"\x1f\x8b"


class Command(BaseCommand):
    """Stores a file's signals as one batch, or takes a batch back."""

    help = (
        "Import Sekisho's own signals from OpenMetrics text (also gzipped), for places that no "
        "Prometheus reaches; or undo an import. Bad lines are listed and left out."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The file and its region, or the batch to undo."""
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--region", metavar="REGION", help="where the signals come from")
        parser.add_argument("--dry-run", action="store_true", help="read and check, store nothing")
        parser.add_argument(
            "--partial", action="store_true", help="store what a file that is cut short holds"
        )
        parser.add_argument(
            "--again", action="store_true", help="store a file that was imported before"
        )
        parser.add_argument("--undo", type=int, metavar="BATCH", help="take an import back")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Imports or undoes."""
        now = timezone.now()
        if options["undo"] is not None:
            self._undo(options["undo"], now)
            return
        if options["file"] is None or options["region"] is None:
            raise CommandError("Name a FILE and its --region.", returncode=BAD_INPUT)
        region, file = _region(options["region"]), options["file"]
        text, digest = self._read(file, now)
        for problem in text.problems:
            self.stderr.write(f"{file}, {problem}")
        if text.problems_count > len(text.problems):
            self.stderr.write(f"… and {text.problems_count - len(text.problems)} more problems")
        if not text.ended and not options["partial"]:
            raise CommandError(
                f"{file} does not end with {openmetrics.END}: it may be cut short, so nothing was "
                "stored. --partial stores what it holds.",
                returncode=BAD_INPUT,
            )
        if not text.signals():
            raise CommandError(f"{file} holds no usable sample.", returncode=BAD_INPUT)
        for signal in text.signals():
            steps = text.steps(signal)
            lines = steps["line"].nunique()
            self.stdout.write(f"  {signal:<28} {lines:>6} lines {len(steps):>8} steps")
        if options["dry_run"]:
            self.stdout.write("Nothing was stored.")
            if text.problems_count:
                sys.exit(1)
            return
        try:
            batch = importing.store(
                text, region=region, source=file.name, digest=digest, now=now,
                again=options["again"],
            )  # fmt: skip
        except importing.ImportedBeforeError as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        self.stdout.write(
            f"Batch {batch.pk}: {batch.rows} rows from {text.rows} samples, "
            f"{text.problems_count} lines left out. Undo it with --undo {batch.pk}."
        )
        if text.problems_count:
            sys.exit(1)

    def _read(self, file: Path, now: datetime) -> tuple[Text, str]:
        bounds = Bounds(
            rows=env.value(env.IMPORT_MAX_SAMPLES),
            oldest=now - timedelta(days=env.value(env.IMPORT_MAX_DAYS)),
            newest=now,
        )
        digest = hashlib.sha256()
        try:
            text = Text(asking.site_catalogue(), bounds)
            lines = openmetrics.bounded(_lines(file), env.value(env.IMPORT_MAX_MB) << 20)
            text.read(_digested(lines, digest))
        except (CatalogueError, env.SettingError) as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        except (OSError, EOFError, ValueError) as error:
            raise CommandError(f"{file} cannot be read: {error}.", returncode=BAD_INPUT) from None
        return text, digest.hexdigest()

    def _undo(self, number: int, now: datetime) -> None:
        batch = ImportBatch.objects.filter(pk=number).first()
        if batch is None:
            raise CommandError(f"There is no import {number}.", returncode=BAD_INPUT)
        try:
            gone = services.undo_rollups(batch, now=now)
        except ValueError as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        self.stdout.write(f"Import {number} of {batch.source} is undone: {gone} rows are gone.")


def _region(name: str) -> Region:
    found = Region.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(sorted(Region.objects.values_list("name", flat=True))) or "(none yet)"
        raise CommandError(f"{name!r} is no region; expected one of {known}", returncode=BAD_INPUT)
    return found


def _lines(file: Path) -> Iterator[bytes]:
    """The lines as bytes, unpacked. One that is too long is cut, and refused by whoever reads."""
    with file.open("rb") as start:
        packed = start.read(2) == PACKED
    with gzip.open(file, "rb") if packed else file.open("rb") as opened:
        most = openmetrics.MOST_LINE + 2
        while line := opened.readline(most):
            yield line
            while line and not line.endswith(b"\n"):
                line = opened.readline(most)


def _digested(lines: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for line in lines:
        digest.update(line)
        yield line
