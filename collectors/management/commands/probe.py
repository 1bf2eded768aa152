"""Says what a region's Prometheus can give: `manage.py probe tokyo`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from collectors import asking, probing
from collectors.catalogue import Catalogue, CatalogueError, matchers
from collectors.probing import Asked, Found, More, State
from collectors.ranges import floor
from collectors.rollups import STEP
from collectors.source import Source, SourceError
from portal.env import SettingError
from portal.fleet.models import Region

BAD_INPUT = 2
MARKS = {
    State.GIVEN: "●",
    State.EMPTY: "○",
    State.ABSENT: "▲",
    State.OTHER_LABELS: "▲",
    State.FAILED: "▲",
}


class Command(BaseCommand):
    """Asks a region's Prometheus for everything once, stores nothing, and says what is missing."""

    help = (
        "Which signals a region's Prometheus can give, which metrics are absent, and what else "
        "could give them. Stores nothing. Ends with 1 when no signal answers."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The region, and how to say it."""
        parser.add_argument("region", metavar="REGION")
        parser.add_argument("--json", action="store_true", help="for machines")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Checks the input, asks, prints."""
        region = _known(options["region"])
        try:
            catalogue = asking.site_catalogue()
            with asking.source_of(region) as source:
                found, more = _probed(catalogue, source, region, now=timezone.now())
                address = source.address
        except (CatalogueError, SettingError) as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        except SourceError as error:
            raise CommandError(f"{error.kind}: {error}", returncode=1) from None
        if options["json"]:
            told = {
                "region": region,
                "address": address,
                "signals": [asdict(one) for one in found],
                "more": [asdict(one) for one in more],
            }
            self.stdout.write(json.dumps(told, indent=2))
        else:
            for line in _lines(region, address, found, more):
                self.stdout.write(line)
        if not any(one.state is State.GIVEN for one in found):
            sys.exit(1)


def _known(name: str) -> str:
    known = sorted(Region.objects.values_list("name", flat=True))
    if name not in known:
        raise CommandError(
            f"{name!r} is no region; expected one of {', '.join(known) or '(none yet)'}",
            returncode=BAD_INPUT,
        )
    if not asking.has_source(name):
        raise CommandError(
            f"{name} has no Prometheus; set PROMETHEUS_URL or "
            f"PROMETHEUS_URL_{name.upper().replace('-', '_')}",
            returncode=BAD_INPUT,
        )
    return name


def _probed(
    catalogue: Catalogue, source: Source, region: str, *, now: datetime
) -> tuple[list[Found], list[More]]:
    # A step that is over, so that every exporter had the time to be read.
    at = floor(now, STEP) - STEP
    names, points = probing.every_metric(catalogue), catalogue.max_points(region)

    def series(query: str) -> Iterator[tuple[str, int]]:
        answer = source.fetch(query, start=at, end=at, step=STEP, max_points=points)
        if not answer.frame.empty:
            for name, count in zip(answer.frame["__name__"], answer.frame["value"], strict=True):
                yield str(name), int(count)

    questions = catalogue.asked_in(region)
    here = dict(series(probing.counting(names, matchers(catalogue.selector(region)))))
    anywhere = dict(series(probing.counting(names, matchers({}))))
    answers = {}
    for question in questions:
        query = question.queries(step_seconds=int(STEP.total_seconds()))[0]
        try:
            answer = source.fetch(query, start=at, end=at, step=STEP, max_points=points)
        except SourceError as error:
            if error.server_wide:
                raise
            answers[question.name] = Asked(error=f"{error.kind}: {error}")
        else:
            answers[question.name] = Asked(series=answer.series)
    found = probing.judge(catalogue, region, here=here, anywhere=anywhere, answers=answers)
    return found, probing.more(catalogue, region, here=here)


def _lines(region: str, address: str, found: list[Found], more: list[More]) -> Iterator[str]:
    given = sum(one.state is State.GIVEN for one in found)
    yield f"{region} from {address}: {given} of {len(found)} signals answer"
    for one in found:
        preset = one.preset or "(the region's own query)"
        yield f"{MARKS[one.state]} {one.signal:<28} {preset:<28} {_said(one)}"
        if one.fallback:
            nothing = one.fallback.startswith("Nothing")
            yield f"    {one.fallback}" if nothing else f"    instead: {one.fallback}"
        if one.others:
            yield f"    could be given by the preset {' or '.join(one.others)}"
    if more:
        yield "Not asked for, but this Prometheus could give:"
        for signal in more:
            yield f"  {signal.signal:<28} by the preset {' or '.join(signal.presets)}"


def _said(one: Found) -> str:
    if one.state is State.GIVEN:
        return f"{one.series} series"
    if one.state is State.FAILED:
        return one.error
    if one.state is State.OTHER_LABELS:
        away = [metric.name for metric in one.metrics if metric.anywhere and not metric.here]
        return (
            f"{', '.join(away)}: there, but not with this region's labels; "
            "relabel it, or give the region another selector in the catalogue"
        )
    if one.state is State.EMPTY:
        return "the metrics are there, and the query has no answer now"
    return f"absent: {', '.join(one.missing)}"
