import json
from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from planner.scenario import parse
from portal.accounts.models import User
from tests.portal.plans.conftest import Make

SignIn = Callable[[User], Client]


def test_a_plan_downloads_as_files_that_the_planner_reads(
    make: Make, aiko: User, ben: User, signed_in: SignIn
) -> None:
    plan = make(aiko)
    client = signed_in(ben)
    quotas = {}
    for side in ("baseline", "proposal"):
        response = client.get(reverse("plans:download", args=[plan.pk]), {"scenario": side})
        assert response["Content-Disposition"] == (
            f'attachment; filename="plan-{plan.pk}-{side}.json"'
        )
        scenario = parse(json.loads(response.content))
        assert len(scenario.jobs) == plan.workload.job_count
        assert scenario.seed == plan.seed
        quotas[side] = {(row.project, row.pool): row.nominal for row in scenario.quotas}
    assert quotas["baseline"]["speech", "tokyo-a-h100"] == 24
    assert quotas["proposal"]["speech", "tokyo-a-h100"] == 40


def test_leads_may_not_have_the_work_of_all_tenants(
    make: Make, aiko: User, chidi: User, signed_in: SignIn
) -> None:
    address = reverse("plans:download", args=[make(aiko).pk])

    assert signed_in(aiko).get(address).status_code == 403
    assert signed_in(chidi).get(address).status_code == 403


def test_an_auditor_may_have_the_files(
    make: Make, aiko: User, dana: User, signed_in: SignIn
) -> None:
    address = reverse("plans:download", args=[make(aiko).pk])
    assert signed_in(dana).get(address).status_code == 200


def test_another_scenario_is_refused_and_another_plan_not_found(
    make: Make, aiko: User, ben: User, signed_in: SignIn
) -> None:
    address = reverse("plans:download", args=[make(aiko).pk])
    client = signed_in(ben)

    assert client.get(address, {"scenario": "both"}).status_code == 400
    assert client.get(reverse("plans:download", args=[10**6])).status_code == 404
