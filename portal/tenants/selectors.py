"""What a person may see and ask for."""

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.tenants.models import Project, Role, Tenant


def visible_projects(user: User) -> QuerySet[Project]:
    """The projects whose data this person may see.

    Ops and auditors see all; a tenant admin all of the tenant; others the projects they belong to.
    """
    projects = Project.objects.select_related("tenant")
    if user.sees_all_tenants:
        return projects
    return projects.filter(
        Q(memberships__user=user)
        | Q(tenant__memberships__user=user, tenant__memberships__role=Role.ADMIN)
    ).distinct()


def visible_tenants(user: User) -> QuerySet[Tenant]:
    """The tenants whose totals this person may see: all for ops and auditors, else as an admin."""
    if user.sees_all_tenants:
        return Tenant.objects.all()
    return Tenant.objects.filter(memberships__user=user, memberships__role=Role.ADMIN).distinct()


def requestable_projects(user: User) -> QuerySet[Project]:
    """The projects for which this person may ask for a change: as lead or tenant admin.

    None for an auditor, who changes nothing whatever else they are.
    """
    projects = Project.objects.select_related("tenant")
    if user.is_auditor:
        return projects.none()
    return projects.filter(
        Q(memberships__user=user, memberships__role=Role.LEAD)
        | Q(tenant__memberships__user=user, tenant__memberships__role=Role.ADMIN)
    ).distinct()
