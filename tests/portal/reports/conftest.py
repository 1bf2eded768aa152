"""A fortnight of job records in the small world, and a clock that stands on the Monday after."""

from datetime import datetime, timedelta

import pytest

from tests import worlds
from tests.portal.reports.weeks import at
from tests.worlds import NOW


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """It is 2026-11-30 12:00 in Tokyo: week 48 is over since twelve hours."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    return NOW


@pytest.fixture
def fortnight(world: worlds.World, clock: datetime) -> None:
    """Weeks 47 and 48: Aiko's and Chidi's runs, and one of Aiko's that still waits."""
    for name, hours, project, lane, gpus, wait, run in [
        ("old", -300, "speech", "primary", 8, 0, 1),
        ("last", -160, "speech", "primary", 8, 2, 20),
        ("one", 1, "speech", "primary", 8, 1, 10),
        ("chidi", 5, "robotics", "exploratory", 16, 0.5, 20),
        ("waits", 160, "speech", "background", 8, None, None),
    ]:
        worlds.job(
            name,
            project=project,
            lane=lane,
            gpus=gpus,
            submit_at=at(hours),
            wait=None if wait is None else timedelta(hours=wait),
            run=None if run is None else timedelta(hours=run),
        )
