"""A few requests in different states, made through the same services that people use."""

from __future__ import annotations

from datetime import datetime, timedelta

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.requests import clock
from portal.requests import services as requests
from portal.requests.models import QuotaRequest
from portal.tenants.models import Project


def hold(*, now: datetime) -> list[QuotaRequest]:
    """One request that was denied, one that is in force, and one that waits for a decision."""
    ben = User.objects.get(username="ben")
    denied = _ask(
        "aiko", "speech", "tokyo-a-h100", 32, now=now - timedelta(days=12), weeks=8,
        why="The streaming model needs a run over all languages before the fair in February.",
    )  # fmt: skip
    denied = requests.deny(
        request=requests.open_review(request=denied, by=ben, now=now - timedelta(days=11)),
        by=ben,
        now=now - timedelta(days=11),
        reason="It would leave robotics and vision without what they were promised. "
        "Please ask for 16 or fewer, or for nights only.",
    )
    active = _ask(
        "emi", "vision", "tokyo-a-a100", 4, now=now - timedelta(days=7), weeks=6,
        why="Labels of the new cameras arrive in two parts; both sets are trained side by side.",
    )  # fmt: skip
    active = requests.approve(
        request=requests.open_review(request=active, by=ben, now=now - timedelta(days=6)),
        by=ben,
        now=now - timedelta(days=6),
        reason="Fits; imaging lends its own.",
    )
    pending = _ask(
        "chidi", "robotics", "osaka-a-a100", 8, now=now - timedelta(hours=20), weeks=4,
        why="Gripper runs wait half a day in Osaka, beside the data they need.",
    )  # fmt: skip
    clock.advance(now=now)
    return [denied, active, pending]


def _ask(
    name: str, project: str, pool: str, extra_gpus: int, *, now: datetime, weeks: int, why: str
) -> QuotaRequest:
    starts_at = now + timedelta(days=2)
    return requests.ask(
        project=Project.objects.get(name=project),
        pool=Pool.objects.get(name=pool),
        extra_gpus=extra_gpus,
        starts_at=starts_at,
        ends_at=starts_at + timedelta(weeks=weeks),
        justification=why,
        by=User.objects.get(username=name),
        now=now,
    )
