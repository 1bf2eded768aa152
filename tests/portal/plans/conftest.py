"""A plan of one change of quota on a little observed work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.plans import services, simulate
from portal.plans.models import Plan
from tests import worlds
from tests.worlds import NOW, World

Make = Callable[..., Plan]


@pytest.fixture
def observed(world: World) -> World:
    """Three weeks in which three projects crowd one pool every day."""
    crowd = [
        ("speech", "primary"),
        ("speech", "primary"),
        ("vision", "exploratory"),
        ("robotics", "primary"),
        ("robotics", "background"),
    ]
    for day in range(21):
        for number, (project, lane) in enumerate(crowd):
            worlds.job(
                f"{project}-{day}-{number}",
                project=project,
                lane=lane,
                gpus=24,
                submit_at=NOW - timedelta(days=day, hours=4, minutes=number),
                run=timedelta(hours=7),
            )
    return world


@pytest.fixture
def make(observed: World) -> Make:
    """Queues a plan; without other terms, 16 more GPUs of the H100 pool for `speech`."""

    def queue(by: User, *, project: str = "speech", extra_gpus: int = 16) -> Plan:
        return services.queue_quota_change(
            project=observed.projects[project],
            pool=observed.pools["tokyo-a-h100"],
            extra_gpus=extra_gpus,
            starts_at=NOW,
            by=by,
            now=NOW,
        )

    return queue


@pytest.fixture
def done(make: Make, aiko: User) -> Plan:
    """Aiko's plan, simulated in few replications: enough for clear effects."""
    plan = make(aiko)
    Plan.objects.update(replications=6)
    simulate.run(plan_id=plan.pk)
    plan.refresh_from_db()
    assert plan.outcome is not None, plan.error
    return plan
