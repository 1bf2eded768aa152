"""Measures the parts people wait for, on the demo world, and writes docs/reference/benchmarks.md.

Needs an empty PostgreSQL database and a Redis, which `make bench` starts.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from statistics import median

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from planner import PLANNER_VERSION, simulate  # noqa: E402
from portal.accounts.models import User  # noqa: E402
from portal.demo import services as demo  # noqa: E402
from portal.demo import story  # noqa: E402
from portal.telemetry.models import HourRollup  # noqa: E402
from portal.version import VERSION  # noqa: E402
from tests.bench.collection import lines as collection_lines  # noqa: E402
from tests.bench.engine import lines as engine_lines  # noqa: E402
from tests.bench.source import lines as source_lines  # noqa: E402
from tests.conftest import ROOT  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
TIMES = 3
PAGES = ["/", "/regions/tokyo/", "/projects/speech/", "/requests/", "/weeks/"]


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the page: what, its median, and how it was counted."""

    what: str
    value: str
    how: str


def timed(work: Callable[[], object], *, times: int = TIMES) -> float:
    """The median of the seconds that the work takes."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def engine() -> Measured:
    """Jobs that the engine carries through the demo's weeks per second."""
    now = timezone.now()
    told = story.tell(first_day=now.astimezone(story.JST).date(), now=now)
    scenario = told.trace.scenario
    seconds = timed(lambda: simulate(scenario))
    jobs = len(scenario.jobs)
    days = (told.end - told.start).days
    return Measured(
        "planner engine",
        f"{jobs / seconds:,.0f} jobs/s",
        f"{jobs:,} jobs over {days} days in {seconds:.2f} s",
    )


def seeding() -> Measured:
    """Hours of signals stored per second, when the demo's world is made."""
    start = time.perf_counter()
    demo.seed(now=timezone.now())
    seconds = time.perf_counter() - start
    rows = HourRollup.objects.count()
    return Measured(
        "hourly rollups stored",
        f"{rows / seconds:,.0f} rows/s",
        f"{rows:,} rows, told and written, in {seconds:.1f} s, once",
    )


def page(path: str) -> Measured:
    """One page for ops, from request to finished HTML."""
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(email="ben@example.org"))

    def load() -> None:
        status = client.get(path, follow=True).status_code
        if status != 200:
            raise SystemExit(f"{path} answered {status}")

    load()
    return Measured(f"page {path}", f"{timed(load) * 1000:,.0f} ms", "as ops, second visit on")


def machine() -> list[str]:
    """What the figures depend on."""
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT version()")
        database = " ".join(str(cursor.fetchone()[0]).split()[:2])
    packages = ", ".join(
        f"{name} {installed(name)}" for name in ("django", "numba", "numpy", "pandas")
    )
    return [
        f"{processor}, {os.cpu_count()} cores, {platform.system()}",
        f"Python {platform.python_version()}, {packages}, {database}",
        f"Sekisho {VERSION}, planner {PLANNER_VERSION}",
    ]


def written(measured: list[Measured]) -> str:
    """The reference page."""
    rows = "\n".join(f"| {line.what} | {line.value} | {line.how} |" for line in measured)
    facts = "\n".join(f"- {fact}" for fact in machine())
    return (
        "# Benchmarks\n\n"
        f"Made by `make bench` on {timezone.now():%Y-%m-%d}; medians of {TIMES} runs unless it says"
        f" once. Compare only with runs on the same machine.\n\n{facts}\n\n"
        f"| What | Median | How |\n| --- | --- | --- |\n{rows}\n"
    )


def main() -> int:
    """Measures everything, prints it, writes the page."""
    if connection.vendor != "postgresql":
        sys.stderr.write(
            f"Found SQLite {sqlite3.sqlite_version}; `make bench` gives a PostgreSQL.\n"
        )
        return 2
    call_command("migrate", verbosity=0, skip_checks=True)
    speed = [Measured(*line) for line in (*engine_lines(), *source_lines())]
    measured = [*speed, engine(), seeding(), *(page(path) for path in PAGES)]
    # Last: its regions would stand on the pages.
    measured += [Measured(*line) for line in collection_lines()]
    text = written(measured)
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
