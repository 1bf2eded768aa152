from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.policy import selectors, services
from portal.policy.models import Quota
from tests.worlds import NOW, World

DAY = timedelta(days=1)
POOL = "tokyo-a-h100"


def change(world: World, **terms: Any) -> list[Quota]:
    usual: dict[str, Any] = {
        "project": world.projects["speech"],
        "pool": world.pools[POOL],
        "nominal_gpus": 40,
        "starts_at": NOW + DAY,
        "by": None,
        "because": "January release",
        "now": NOW,
    }
    return services.change_quota(**usual | terms)


def nominal_at(instant: datetime) -> int | None:
    found = selectors.quota_of(project="speech", pool=POOL, at=instant)
    return found.nominal_gpus if found else None


def test_a_change_for_good_holds_from_its_start_and_keeps_the_limits(
    world: World, ben: User
) -> None:
    [row] = change(world, by=ben)

    assert nominal_at(NOW + DAY - timedelta(seconds=1)) == 24
    assert nominal_at(NOW + 400 * DAY) == 40
    assert (row.borrowing_limit_gpus, row.lending_limit_gpus) == (16, None)
    assert (row.recorded_by, row.because) == (ben, "January release")


def test_a_change_for_a_time_reverts_by_itself(world: World) -> None:
    change(world, ends_at=NOW + 29 * DAY)

    assert [nominal_at(NOW + days * DAY) for days in (0, 1, 28, 29)] == [24, 40, 40, 24]
    back = selectors.quota_of(project="speech", pool=POOL, at=NOW + 29 * DAY)
    assert back is not None
    assert back.borrowing_limit_gpus == 16
    assert back.because == "End of: January release"


def test_a_first_quota_for_a_time_is_withdrawn_at_its_end(world: World) -> None:
    pool = world.pools["osaka-a-a100"]
    change(world, pool=pool, nominal_gpus=8, ends_at=NOW + 8 * DAY)

    def held(instant: datetime) -> Quota | None:
        return selectors.quota_of(project="speech", pool=pool, at=instant)

    assert held(NOW) is None
    assert (held(NOW + DAY) or Quota(nominal_gpus=0)).nominal_gpus == 8
    assert held(NOW + 8 * DAY) is None


def test_a_change_inside_a_longer_one_goes_back_to_the_longer_one(world: World) -> None:
    change(world, ends_at=NOW + 29 * DAY)
    change(world, nominal_gpus=48, starts_at=NOW + 3 * DAY, ends_at=NOW + 5 * DAY)

    assert [nominal_at(NOW + days * DAY) for days in (2, 3, 5, 29)] == [40, 48, 40, 24]


def test_a_change_that_another_one_falls_into_is_refused_with_what_to_do(world: World) -> None:
    change(world, starts_at=NOW + 10 * DAY, ends_at=NOW + 20 * DAY)

    with pytest.raises(
        services.QuotaConflict, match=r"to 40 GPUs from 2026-12-10 03:00 UTC.*Choose"
    ):
        change(world, nominal_gpus=30, ends_at=NOW + 15 * DAY)
    with pytest.raises(services.QuotaConflict, match="does not overlap"):
        change(world, nominal_gpus=30, ends_at=NOW + 10 * DAY)
    assert Quota.objects.filter(nominal_gpus=30).count() == 0


def test_a_change_for_good_that_a_later_one_would_undo_is_refused(world: World) -> None:
    change(world, starts_at=NOW + 10 * DAY)

    with pytest.raises(services.QuotaConflict, match="would undo this one"):
        change(world, nominal_gpus=30)
    with pytest.raises(services.QuotaConflict, match="would undo this one"):
        change(world, nominal_gpus=30, starts_at=NOW + 10 * DAY)


def test_another_project_or_pool_is_no_conflict(world: World) -> None:
    change(world)
    change(world, project=world.projects["vision"])
    change(world, pool=world.pools["osaka-a-a100"])

    assert Quota.objects.filter(starts_at=NOW + DAY).count() == 3


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"starts_at": NOW - timedelta(seconds=1)}, "in the past. Choose a start"),
        ({"ends_at": NOW + DAY}, "Choose a later end"),
        ({"nominal_gpus": -1}, "less than 0"),
    ],
)
def test_an_impossible_change_is_refused(
    world: World, terms: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(services.QuotaConflict, match=sentence):
        change(world, **terms)
    assert Quota.objects.count() == 4


def test_a_change_may_start_this_very_second(world: World) -> None:
    change(world, starts_at=NOW)
    assert nominal_at(NOW) == 40


def test_a_long_reason_is_cut_to_what_the_row_holds(world: World) -> None:
    first, second = change(world, because="x" * 2000, ends_at=NOW + 2 * DAY)
    assert len(first.because) == len(second.because) == 200


def test_what_has_not_started_can_be_taken_back(world: World, ben: User) -> None:
    rows = change(world, ends_at=NOW + 29 * DAY)

    services.cancel(rows=rows, by=ben, now=NOW + timedelta(hours=1))

    assert nominal_at(NOW + 2 * DAY) == 24
    assert Quota.objects.filter(cancelled_at=NOW + timedelta(hours=1)).count() == 2
    change(world, nominal_gpus=30)  # the time is free again
    assert nominal_at(NOW + 2 * DAY) == 30


def test_what_has_started_stays_and_nothing_else_is_taken_back_either(world: World) -> None:
    rows = change(world, ends_at=NOW + 29 * DAY)

    with pytest.raises(services.QuotaConflict, match="make a new change"):
        services.cancel(rows=rows, by=None, now=NOW + DAY)

    assert not Quota.objects.filter(cancelled_at__isnull=False).exists()


def test_taking_back_twice_is_refused(world: World) -> None:
    rows = change(world)
    services.cancel(rows=rows, by=None, now=NOW)

    with pytest.raises(services.QuotaConflict):
        services.cancel(rows=rows, by=None, now=NOW)
