"""The people of the tests: the same five everywhere.

Aiko leads the project `speech` of the tenant `kaguya`; Ben is ops; Chidi leads `robotics` of
another tenant, `raijin`, and must see nothing of Aiko's; Dana is an auditor; Emi administers
`kaguya`.
"""

from portal.accounts.models import Office, User
from portal.tenants.models import Membership, Project, Role, Tenant

PASSWORD = "correct-horse-battery"


def person(name: str, office: str = Office.NONE) -> User:
    """A user whose email is NAME@example.org."""
    return User.objects.create_user(
        username=name,
        email=f"{name}@example.org",
        password=PASSWORD,
        first_name=name.title(),
        office=office,
    )


def aiko() -> User:
    """Leads `speech` of `kaguya`."""
    return _lead("aiko", "speech")


def ben() -> User:
    """Ops."""
    return person("ben", Office.OPS)


def chidi() -> User:
    """Leads `robotics` of `raijin`."""
    return _lead("chidi", "robotics")


def dana() -> User:
    """An auditor."""
    return person("dana", Office.AUDITOR)


def emi() -> User:
    """Administers `kaguya`."""
    user = person("emi")
    Membership.objects.create(user=user, tenant=Tenant.objects.get(name="kaguya"), role=Role.ADMIN)
    return user


def _lead(name: str, project_name: str) -> User:
    user = person(name)
    project = Project.objects.get(name=project_name)
    Membership.objects.create(user=user, tenant=project.tenant, project=project, role=Role.LEAD)
    return user
