from collections.abc import Callable

import pytest
from auditlog.models import LogEntry
from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.fleet.models import Link, Pool, Region
from tests.worlds import World

SignIn = Callable[[User], Client]


@pytest.fixture
def staff(ben: User, signed_in: SignIn) -> Client:
    """Ben, with all rights in the administration."""
    ben.is_staff = ben.is_superuser = True
    ben.save()
    return signed_in(ben)


@pytest.mark.parametrize("model", ["region", "domain", "storage", "link", "pool", "outage"])
def test_the_fleet_can_be_listed_searched_and_added_to(
    world: World, staff: Client, model: str
) -> None:
    listed = reverse(f"admin:fleet_{model}_changelist")
    assert staff.get(listed).status_code == 200
    assert staff.get(listed, {"q": "tokyo"}).status_code == 200
    assert staff.get(reverse(f"admin:fleet_{model}_add")).status_code == 200


def test_a_link_may_be_entered_from_either_end(world: World, staff: Client) -> None:
    kyoto = Region.objects.create(name="kyoto")
    terms = {"region": kyoto.pk, "other_region": world.regions["osaka"].pk, "gbps": "10"}

    assert staff.post(reverse("admin:fleet_link_add"), terms).status_code == 302

    link = Link.objects.get(gbps=10)
    assert (link.region.name, link.other_region.name) == ("osaka", "kyoto")
    assert staff.post(reverse("admin:fleet_link_add"), terms).status_code == 200  # once per pair


def test_a_change_of_the_fleet_is_on_the_audit_trail(
    world: World, staff: Client, ben: User
) -> None:
    pool = world.pools["osaka-a-a100"]
    terms = {
        "name": pool.name, "domain": pool.domain_id, "accelerator": "A100", "nodes": 6,
        "gpus_per_node": 8, "storage": pool.storage_id, "purpose": "training",
    }  # fmt: skip

    staff.post(reverse("admin:fleet_pool_change", args=[pool.pk]), terms)

    entry = LogEntry.objects.get_for_model(Pool).filter(action=LogEntry.Action.UPDATE).get()
    assert entry.actor == ben
    assert entry.changes_dict == {"nodes": ["4", "6"]}
