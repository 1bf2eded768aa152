"""Requests that tests begin with."""

from datetime import datetime, timedelta
from typing import Any

from portal.accounts.models import User
from portal.policy.selectors import quota_of
from portal.requests import services
from portal.requests.models import QuotaRequest
from tests.worlds import NOW, World

SOON = NOW + timedelta(days=1)


def ask(world: World, by: User, *, now: datetime = NOW, **wish: Any) -> QuotaRequest:
    """A submitted request: 16 more GPUs of tokyo-a-h100 for speech, tomorrow, for four weeks."""
    wanted: dict[str, Any] = {
        "project": world.projects["speech"],
        "pool": world.pools["tokyo-a-h100"],
        "extra_gpus": 16,
        "starts_at": SOON,
        "ends_at": SOON + timedelta(weeks=4),
        "justification": "Retraining before the January release.",
    }
    return services.ask(**(wanted | wish), by=by, now=now)


def reviewed(
    world: World, by: User, ops: User, *, now: datetime = NOW, **wish: Any
) -> QuotaRequest:
    """The same, opened by ops."""
    return services.open_review(request=ask(world, by, now=now, **wish), by=ops, now=now)


def nominal(world: World, at: datetime, pool: str = "tokyo-a-h100") -> int:
    """The nominal quota of speech in force at an instant."""
    quota = quota_of(project=world.projects["speech"], pool=world.pools[pool], at=at)
    return 0 if quota is None else quota.nominal_gpus


def form(world: World, **values: Any) -> dict[str, Any]:
    """What the form posts: 16 more GPUs for speech as soon as approved, for four weeks."""
    return {
        "project": world.projects["speech"].pk,
        "pool": world.pools["tokyo-a-h100"].pk,
        "extra_gpus": 16,
        "starts_on": "",
        "how_long": "4",
        "until": "",
        "justification": "Retraining before the January release.",
    } | values
