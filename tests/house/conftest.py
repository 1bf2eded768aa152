"""The things that the access table and the query counts ask for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.requests import services as requests
from portal.tenants.models import Project
from tests.house.access_table import Row
from tests.worlds import NOW, World, job

Things = dict[str, str | int]


@pytest.fixture
def cast_by_role(aiko: User, chidi: User, ben: User, dana: User) -> dict[str, User]:
    """The cast, by the columns of the access table."""
    return {"lead": aiko, "stranger": chidi, "ops": ben, "auditor": dana}


@pytest.fixture
def things(world: World, aiko: User) -> Things:
    """A plan and a pending request of Aiko's, on top of a few jobs: their keys by name."""
    for number in range(6):
        owner = ("speech", "vision", "robotics")[number % 3]
        job(f"job-{number}", project=owner, submit_at=NOW - timedelta(days=number + 1))
    now = timezone.now()  # the pages read the clock too: the wished start must lie ahead of it
    asked = requests.ask(
        project=Project.objects.get(name="speech"),
        pool=Pool.objects.get(name="tokyo-a-h100"),
        extra_gpus=16,
        starts_at=now + timedelta(days=1),
        ends_at=now + timedelta(weeks=4),
        justification="A longer run.",
        by=aiko,
        now=now,
    )
    assert asked.plan_id is not None
    return {"@plan": asked.plan_id, "@request": asked.pk}


def ask(client: Client, row: Row, things: Things) -> tuple[int, str]:
    """The status and the redirect target that a row's address answers with."""
    arguments = {
        name: things[str(value)] if str(value).startswith("@") else value
        for name, value in row.args.items()
    }
    url = reverse(row.url, kwargs=arguments) + row.query
    answer = client.get(url) if row.method == "GET" else client.post(url, row.data)
    return answer.status_code, answer.headers.get("Location", "")
