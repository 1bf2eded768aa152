from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from portal.accounts.models import User
from portal.policy import selectors
from portal.policy.models import LaneAssignment, PreemptionRight, Quota
from tests.worlds import EPOCH, NOW, World

DAY = timedelta(days=1)


def row(frame: pd.DataFrame, *key: str) -> Any:
    """The one row of these index values."""
    label: Any = key if len(key) > 1 else key[0]
    return frame.loc[label]


def quota(
    world: World, project: str, pool: str, gpus: int, starts_at: datetime, **more: Any
) -> Quota:
    return Quota.objects.create(
        project=world.projects[project],
        pool=world.pools[pool],
        nominal_gpus=gpus,
        starts_at=starts_at,
        **more,
    )


def test_the_quotas_in_force_are_a_table_with_names_and_open_limits(world: World) -> None:
    found = selectors.quotas_in_force(at=NOW)

    assert len(found) == 4
    vision = row(found.set_index(["project", "pool"]), "vision", "tokyo-a-h100")
    assert (vision.tenant, vision.region, vision.domain) == ("kaguya", "tokyo", "tokyo-a")
    assert (vision.nominal_gpus, vision.lending_limit_gpus) == (16, 8)
    assert vision.borrowing_limit_gpus is pd.NA
    assert vision.starts_at == EPOCH


def test_the_quotas_in_force_can_be_narrowed_by_name(world: World) -> None:
    assert list(selectors.quotas_in_force(at=NOW, projects=["speech"]).nominal_gpus) == [24]
    assert list(selectors.quotas_in_force(at=NOW, pools=["osaka-a-a100"]).project) == ["robotics"]
    assert selectors.quotas_in_force(at=NOW, projects=[]).empty


def test_before_the_first_row_nothing_was_in_force(world: World) -> None:
    before = EPOCH - timedelta(seconds=1)
    assert selectors.quotas_in_force(at=before).empty
    assert selectors.quota_of(project="speech", pool="tokyo-a-h100", at=before) is None


def test_entitlement_is_nominal_quota_times_the_seconds_it_held(world: World) -> None:
    found = selectors.entitled(start=NOW - 7 * DAY, end=NOW, projects=["speech", "robotics"])

    seconds = found.set_index(["project", "pool"]).nominal_gpu_seconds
    assert seconds["speech", "tokyo-a-h100"] == 24 * 7 * 86_400
    assert seconds["robotics", "tokyo-a-h100"] == 24 * 7 * 86_400
    assert seconds["robotics", "osaka-a-a100"] == 32 * 7 * 86_400
    assert len(found) == 3


def test_entitlement_counts_a_row_from_the_second_it_starts(world: World) -> None:
    # 24 GPUs for two days and six hours, 40 for one day, 24 again for the rest of the week.
    quota(world, "speech", "tokyo-a-h100", 40, NOW + 2 * DAY + timedelta(hours=6))
    quota(world, "speech", "tokyo-a-h100", 24, NOW + 3 * DAY + timedelta(hours=6))

    found = selectors.entitled(start=NOW, end=NOW + 7 * DAY, projects=["speech"])

    by_hand = 24 * (2 * 86_400 + 21_600) + 40 * 86_400 + 24 * (3 * 86_400 + 64_800)
    assert list(found.nominal_gpu_seconds) == [by_hand]


def test_entitlement_begins_with_the_first_row_and_ends_with_a_withdrawn_one(world: World) -> None:
    quota(world, "vision", "osaka-a-a100", 8, NOW + DAY)
    quota(world, "vision", "osaka-a-a100", 8, NOW + 3 * DAY, withdrawn=True)

    found = selectors.entitled(start=NOW, end=NOW + 7 * DAY, projects=["vision"])

    seconds = found.set_index("pool").nominal_gpu_seconds
    assert seconds["osaka-a-a100"] == 8 * 2 * 86_400
    after = selectors.entitled(start=NOW + 3 * DAY, end=NOW + 7 * DAY, projects=["vision"])
    assert list(after.pool) == ["tokyo-a-h100"]


def test_a_cancelled_row_never_counts(world: World) -> None:
    quota(world, "speech", "tokyo-a-h100", 64, NOW + DAY, cancelled_at=NOW)

    found = selectors.entitled(start=NOW, end=NOW + 7 * DAY, projects=["speech"])

    assert list(found.nominal_gpu_seconds) == [24 * 7 * 86_400]
    assert selectors.upcoming(project="speech", pool="tokyo-a-h100", after=NOW) == []


def test_what_will_change_is_listed_oldest_first(world: World) -> None:
    later = quota(world, "speech", "tokyo-a-h100", 24, NOW + 5 * DAY)
    sooner = quota(world, "speech", "tokyo-a-h100", 40, NOW + DAY)
    quota(world, "vision", "tokyo-a-h100", 40, NOW + DAY)

    found = selectors.upcoming(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], after=NOW
    )

    assert found == [sooner, later]


def test_a_change_names_its_dimension_what_was_before_and_who_did_it(
    world: World, ben: User
) -> None:
    quota(
        world, "speech", "tokyo-a-h100", 40, NOW, borrowing_limit_gpus=None, because="January",
        recorded_by=ben,
    )  # fmt: skip

    found = selectors.changes(start=NOW - DAY, end=NOW + DAY)

    assert list(found.dimension) == ["quota", "quota"]
    nominal, borrowing = found.itertuples(index=False)
    assert (nominal.before, nominal.after, nominal.because, nominal.by) == (
        "24", "40", "January", "Ben",
    )  # fmt: skip
    assert str(nominal.what).endswith(": Speech, tokyo-a-h100")
    assert (borrowing.before, borrowing.after) == ("16", "no limit")


def test_a_rule_that_comes_or_goes_has_no_before_or_after(world: World) -> None:
    LaneAssignment.objects.create(
        project=world.projects["speech"], lane=world.lanes["emergency"], max_gpus=8, starts_at=NOW
    )
    PreemptionRight.objects.create(
        lane=world.lanes["emergency"], over=world.lanes["background"], starts_at=NOW, withdrawn=True
    )

    found = selectors.changes(start=NOW, end=NOW + DAY).set_index("dimension")

    assert found.loc["quota", "before"] is None
    assert found.loc["quota", "after"] == "Speech in emergency"
    assert found.loc["preemption", "before"] == "emergency over background"
    assert found.loc["preemption", "after"] is None


def test_changes_can_be_narrowed_to_a_project_and_a_pool(world: World) -> None:
    quota(world, "speech", "tokyo-a-h100", 40, NOW)
    quota(world, "robotics", "osaka-a-a100", 16, NOW)

    def count(**narrow: Any) -> int:
        return len(selectors.changes(start=NOW, end=NOW + DAY, **narrow))

    assert count(project="speech") == 2  # nominal, and the borrowing limit that went away
    assert count(pool="osaka-a-a100") == 1
    assert count(project="speech", pool="osaka-a-a100") == 0
    assert selectors.changes(start=NOW + DAY, end=NOW + 2 * DAY).empty


def test_guarantees_are_compared_with_the_gpus_of_the_pool(world: World) -> None:
    found = selectors.oversubscription(at=NOW).set_index("pool")

    h100 = row(found, "tokyo-a-h100")
    assert (h100.guaranteed_gpus, h100.gpus, h100.ratio, h100.over) == (64, 64, 1.0, False)
    override = {("speech", "tokyo-a-h100"): 40, ("vision", "osaka-a-a100"): 8}
    proposed = selectors.oversubscription(at=NOW, override=override).set_index("pool")
    assert proposed.loc["tokyo-a-h100", "guaranteed_gpus"] == 80
    assert proposed.loc["tokyo-a-h100", "over"]
    assert proposed.loc["osaka-a-a100", "guaranteed_gpus"] == 40


def test_with_the_only_domain_of_an_accelerator_down_its_guarantees_have_nowhere_to_go(
    world: World,
) -> None:
    h100 = row(selectors.oversubscription(at=NOW).set_index("pool"), "tokyo-a-h100")

    assert h100.worst_domain_down == "tokyo-a"
    assert (h100.guaranteed_gpus_with_domain_down, h100.gpus_with_domain_down) == (64, 0)
    assert h100.over_with_domain_down


def test_with_one_domain_down_guarantees_must_fit_beside_those_of_the_same_accelerator(
    world: World,
) -> None:
    # 64 H100 in Tokyo and 32 in Osaka; losing Tokyo leaves 32 for 64 + 32 guaranteed GPUs.
    pool = world.pools["osaka-a-a100"]
    pool.accelerator = "H100"
    pool.save()

    found = selectors.oversubscription(at=NOW).set_index("pool")

    for name in ("tokyo-a-h100", "osaka-a-a100"):
        of_pool = row(found, name)
        assert of_pool.worst_domain_down == "tokyo-a"
        assert (of_pool.guaranteed_gpus_with_domain_down, of_pool.gpus_with_domain_down) == (96, 32)
    assert not found.loc["tokyo-b-serve", "over_with_domain_down"]


@pytest.mark.django_db
def test_a_site_without_pools_has_nothing_to_oversubscribe() -> None:
    assert selectors.oversubscription(at=NOW).empty
    assert selectors.entitled(start=NOW - DAY, end=NOW).empty
    assert selectors.changes(start=NOW - DAY, end=NOW).empty
