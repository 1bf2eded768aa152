"""What a person may see and ask for."""

from portal.accounts.models import Office, User
from portal.tenants.selectors import requestable_projects, visible_projects, visible_tenants


def _names(found: object) -> set[str]:
    return {thing.name for thing in found}  # type: ignore[attr-defined]


def test_a_lead_sees_and_asks_for_their_project_only(aiko: User) -> None:
    assert _names(visible_projects(aiko)) == {"speech"} == _names(requestable_projects(aiko))
    assert _names(visible_tenants(aiko)) == set()


def test_a_tenant_admin_sees_the_projects_of_the_tenant(emi: User) -> None:
    assert "robotics" not in _names(visible_projects(emi))
    assert {"speech", "vision"} <= _names(visible_projects(emi))
    assert _names(visible_tenants(emi)) == {"kaguya"}


def test_an_auditor_asks_for_nothing_even_as_a_lead(aiko: User) -> None:
    aiko.office = Office.AUDITOR
    aiko.save()

    assert {"speech", "robotics"} <= _names(visible_projects(aiko))
    assert _names(requestable_projects(aiko)) == set()
