"""The things that the access table and the query counts ask for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.plans.models import Plan, Workload
from portal.requests.models import QuotaRequest, RequestState
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
    workload = Workload.objects.create(
        content_hash="none", jobs=b"", job_count=0, observed_from=NOW, observed_to=NOW
    )
    plan = Plan.objects.create(
        title="speech +16", created_by=aiko, workload=workload, baseline={}, proposal={},
        baseline_hash="a", proposal_hash="b",
    )  # fmt: skip
    request = QuotaRequest.objects.create(
        project=Project.objects.get(name="speech"), pool=Pool.objects.get(name="tokyo-a-h100"),
        requested_by=aiko, state=RequestState.SUBMITTED, extra_gpus=16, starts_at=NOW,
        ends_at=NOW + timedelta(weeks=4), justification="A longer run.", base_nominal_gpus=24,
        plan=None, submitted_at=NOW,
    )  # fmt: skip
    return {"@plan": plan.pk, "@request": request.pk}


def ask(client: Client, row: Row, things: Things) -> tuple[int, str]:
    """The status and the redirect target that a row's address answers with."""
    arguments = {
        name: things[str(value)] if str(value).startswith("@") else value
        for name, value in row.args.items()
    }
    url = reverse(row.url, kwargs=arguments) + row.query
    answer = client.get(url) if row.method == "GET" else client.post(url, row.data)
    return answer.status_code, answer.headers.get("Location", "")
