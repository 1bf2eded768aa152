from datetime import timedelta

import pytest
from django.db import IntegrityError

from portal.policy.models import Quota
from tests.worlds import EPOCH, NOW, World


def test_the_latest_row_that_has_started_is_in_force(world: World) -> None:
    key = {"project": world.projects["speech"], "pool": world.pools["tokyo-a-h100"]}
    Quota.objects.create(**key, nominal_gpus=40, starts_at=NOW)
    Quota.objects.create(**key, nominal_gpus=24, starts_at=NOW + timedelta(days=28))

    def nominal(at: timedelta) -> int:
        return int(Quota.objects.at(NOW + at).get(**key).nominal_gpus)

    assert nominal(timedelta(seconds=-1)) == 24
    assert nominal(timedelta(0)) == 40
    assert nominal(timedelta(days=27, hours=23)) == 40
    assert nominal(timedelta(days=28)) == 24
    assert not Quota.objects.at(EPOCH - timedelta(seconds=1)).exists()


def test_two_rows_of_one_key_cannot_start_together(world: World) -> None:
    with pytest.raises(IntegrityError):
        Quota.objects.create(
            project=world.projects["speech"],
            pool=world.pools["tokyo-a-h100"],
            nominal_gpus=1,
            starts_at=EPOCH,
        )
