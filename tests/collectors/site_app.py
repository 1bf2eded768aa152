"""The Celery app of a site that tests break: the real one, hurried, by a clock that the test moves.

    celery -A tests.collectors.site_app worker | beat
    python -m tests.collectors.site_app undisturbed INSTANT ...

The clock is a file that holds an instant; beat comes twice a second instead of every five minutes.
"""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import django

from portal.celery import app

django.setup()

from collectors import asking, claims, tasks, windows  # noqa: E402
from collectors.catalogue import Catalogue, Question  # noqa: E402

CLOCK = Path(os.environ["SITE_CLOCK"])
BEAT_SECONDS = 0.4
# One of each kind: a gauge with a gap of scrapes, a count that is reset, one that is born late,
# running counts of two trainers, a histogram.
SIGNALS = (
    "source_up_ratio", "gpu_engine_active_gpus", "quota_used_gpus", "admitted_jobs",
    "evicted_jobs", "wait_seconds", "checkpoint_written_bytes",
)  # fmt: skip


class _Clock:
    """What tasks know of the time."""

    @staticmethod
    def now() -> datetime:
        """The instant in the file; it is replaced as a whole."""
        return datetime.fromisoformat(CLOCK.read_text())


tasks.timezone = _Clock  # type: ignore[assignment, attr-defined]
# A beat is a five-minute step here: five minutes of holding a claim are two beats.
claims.HELD_FOR = timedelta(seconds=2 * BEAT_SECONDS)
# Reading again what may have been late would also bring back what was lost.
windows.LATE = timedelta(0)
app.conf.beat_schedule = {
    "collect every region": {
        "task": "collectors.collect_all",
        "schedule": BEAT_SECONDS,
        "options": {"expires": 10},
    }
}
app.conf.beat_max_loop_interval = BEAT_SECONDS


def _some(self: Catalogue, region: str, ask: Any = Catalogue.asked_in) -> list[Question]:
    return [question for question in ask(self, region) if question.name in SIGNALS]


Catalogue.asked_in = _some  # type: ignore[method-assign]
# Read once, before the workers fork: beats come so often that it would cost more than all else.
READ = asking.site_catalogue()
asking.site_catalogue = lambda: READ


def undisturbed(instants: list[str]) -> None:
    """Collects at each instant of the clock, one after the other."""
    for instant in instants:
        CLOCK.write_text(instant)
        tasks.collect_region("tokyo")


if __name__ == "__main__":
    undisturbed(sys.argv[2:])
