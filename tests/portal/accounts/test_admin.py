from collections.abc import Callable

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from tests.worlds import World

SignIn = Callable[[User], Client]


@pytest.fixture
def staff(ben: User, signed_in: SignIn) -> Client:
    """Ben, with all rights in the administration."""
    ben.is_staff = ben.is_superuser = True
    ben.save()
    return signed_in(ben)


def test_people_can_be_listed_searched_and_opened(staff: Client, aiko: User) -> None:
    listed = staff.get(reverse("admin:accounts_user_changelist"), {"q": "aiko"})
    assert "aiko@example.org" in listed.content.decode()
    assert (
        'name="office"'
        in staff.get(reverse("admin:accounts_user_change", args=[aiko.pk])).content.decode()
    )


def test_a_person_is_added_with_an_address_and_an_office(world: World, staff: Client) -> None:
    terms = {
        "username": "fumi", "email": "fumi@example.org", "office": "auditor",
        "usable_password": "true", "password1": "long-enough-word", "password2": "long-enough-word",
    }  # fmt: skip

    response = staff.post(reverse("admin:accounts_user_add"), terms)

    assert response.status_code == 302
    fumi = User.objects.get(email="fumi@example.org")
    assert fumi.is_auditor
    assert fumi.check_password("long-enough-word")


def test_passwords_never_reach_the_audit_trail(aiko: User) -> None:
    aiko.set_password("another-long-word")
    aiko.office = "ops"
    aiko.save()

    entries = LogEntry.objects.get_for_object(aiko)
    assert entries.filter(action=LogEntry.Action.UPDATE).get().changes_dict == {
        "office": ["", "ops"]
    }
    assert not any("password" in entry.changes_dict for entry in entries)
