"""A request's life, walked through its services."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from portal.accounts.models import Office, User
from portal.policy.models import Quota
from portal.policy.services import change_quota
from portal.requests import clock, rules, selectors, services, steps
from portal.requests.models import QuotaRequest, RequestEvent, RequestState, Verb
from portal.requests.steps import RefusedError
from tests.portal.requests.asking import ask, nominal, reviewed
from tests.worlds import NOW, World

SOON = NOW + timedelta(days=1)
WEEKS_4 = SOON + timedelta(weeks=4)


def test_a_quota_for_a_time_comes_into_force_and_reverts_by_itself(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)

    request = services.approve(request=request, by=ben, now=NOW)

    assert request.state == RequestState.SCHEDULED
    assert [nominal(world, at) for at in (NOW, SOON, WEEKS_4 - timedelta(seconds=1), WEEKS_4)] == [
        24, 40, 40, 24,
    ]  # fmt: skip
    states = []
    for at in (NOW, SOON, WEEKS_4 - timedelta(days=7), WEEKS_4, WEEKS_4 + timedelta(days=9)):
        clock.advance(now=at)
        request.refresh_from_db()
        states.append(request.state)
    assert states == ["scheduled", "active", "expiring", "expired", "expired"]


def test_moving_along_twice_changes_nothing_more(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)
    services.approve(request=request, by=ben, now=NOW)

    assert clock.advance(now=SOON) == 1
    events = RequestEvent.objects.count()
    assert clock.advance(now=SOON) == 0
    assert RequestEvent.objects.count() == events


def test_a_clock_that_stood_still_for_months_catches_up_in_one_go(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)
    services.approve(request=request, by=ben, now=NOW)

    clock.advance(now=WEEKS_4 + timedelta(days=90))

    request.refresh_from_db()
    assert request.state == RequestState.EXPIRED


@pytest.mark.parametrize(("weeks", "notice_days"), [(1, 1), (4, 7), (8, 7), (12, 30)])
def test_the_end_is_announced_no_earlier_than_half_way(
    world: World, aiko: User, ben: User, weeks: int, notice_days: int
) -> None:
    end = SOON + timedelta(weeks=weeks)
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=end)
    services.approve(request=request, by=ben, now=NOW)

    clock.advance(now=end - timedelta(days=notice_days, seconds=1))
    request.refresh_from_db()
    assert request.state == RequestState.ACTIVE
    clock.advance(now=end - timedelta(days=notice_days))
    request.refresh_from_db()
    assert request.state == RequestState.EXPIRING


def test_what_starts_at_once_is_in_force_when_it_is_approved(
    world: World, aiko: User, ben: User
) -> None:
    later = NOW + timedelta(hours=5)
    request = reviewed(world, aiko, ben, starts_at=NOW, ends_at=None)

    request = services.approve(request=request, by=ben, now=later)

    assert request.state == RequestState.ACTIVE
    assert request.starts_at == later
    assert (nominal(world, NOW), nominal(world, later)) == (24, 40)


def test_a_part_is_granted_with_its_own_number(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON)

    request = services.approve(request=request, by=ben, now=NOW, granted_extra_gpus=8)

    assert request.granted_in_part
    assert nominal(world, SOON) == 32
    verbs = list(request.events.values_list("verb", flat=True))
    assert verbs == ["draft", "submit", "open", "approve_part", "schedule"]


@pytest.mark.parametrize("part", [0, 16, 17, -1])
def test_a_part_lies_strictly_between_nothing_and_all(
    world: World, aiko: User, ben: User, part: int
) -> None:
    request = reviewed(world, aiko, ben)

    with pytest.raises(RefusedError, match="more than none and less than all"):
        services.approve(request=request, by=ben, now=NOW, granted_extra_gpus=part)


def test_gpus_can_be_given_back(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben, extra_gpus=-8, starts_at=NOW, ends_at=None)

    services.approve(request=request, by=ben, now=NOW)

    assert nominal(world, NOW) == 16


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [(0, "at least one"), (-25, "no more can be given back"), (41, "can never fit")],
)
def test_what_no_decision_could_put_in_force_is_refused(
    world: World, aiko: User, extra: int, sentence: str
) -> None:
    with pytest.raises(RefusedError, match=sentence):
        ask(world, aiko, extra_gpus=extra)
    assert not QuotaRequest.objects.exists()


def test_an_oversize_justification_is_refused_in_services_too(world: World, aiko: User) -> None:
    with pytest.raises(RefusedError, match="2001 characters; at most 2000"):
        ask(world, aiko, justification="x" * 2001)


def test_an_approval_is_undone_until_it_is_in_force(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)
    request = services.approve(request=request, by=ben, now=NOW, reason="fine")

    request = services.undo(request=request, by=ben, now=SOON - timedelta(seconds=1))

    assert request.state == RequestState.IN_REVIEW
    assert (request.decided_by, request.granted_extra_gpus, request.decision_reason) == (
        None, None, "",
    )  # fmt: skip
    assert nominal(world, SOON) == 24
    request = services.approve(request=request, by=ben, now=NOW)
    assert nominal(world, SOON) == 40
    with pytest.raises(RefusedError, match="revoked, not undone"):
        services.undo(request=request, by=ben, now=SOON)


def test_quota_in_force_is_revoked_with_a_reason_and_goes_back_at_once(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)
    services.approve(request=request, by=ben, now=NOW)
    clock.advance(now=SOON)
    later = SOON + timedelta(days=2)

    with pytest.raises(RefusedError, match="Say why"):
        services.revoke(request=request, reason=" ", by=ben, now=later)
    request = services.revoke(request=request, reason="an incident", by=ben, now=later)

    assert request.state == RequestState.REVOKED
    assert (nominal(world, SOON), nominal(world, later), nominal(world, WEEKS_4)) == (40, 24, 24)


def test_a_denial_without_a_reason_is_refused(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben)

    with pytest.raises(RefusedError, match="only with a reason"):
        services.deny(request=request, reason="  ", by=ben, now=NOW)

    request = services.deny(request=request, reason="full until May", by=ben, now=NOW)
    assert request.state == RequestState.DENIED
    assert nominal(world, NOW) == 24


def test_nobody_decides_for_a_project_they_may_ask_for_not_even_ops(
    world: World, aiko: User, ben: User
) -> None:
    aiko.office = Office.OPS
    aiko.save()
    request = ask(world, aiko)

    assert services.open_review(request=request, by=aiko, now=NOW).state == RequestState.SUBMITTED
    request = services.open_review(request=request, by=ben, now=NOW)
    with pytest.raises(PermissionDenied):
        services.approve(request=request, by=aiko, now=NOW)
    assert nominal(world, NOW) == 24


def test_the_base_may_have_moved_then_it_must_be_simulated_again(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON)
    change_quota(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], nominal_gpus=20,
        starts_at=NOW, by=ben, because="incident", now=NOW,
    )  # fmt: skip

    with pytest.raises(RefusedError, match="simulate again") as refused:
        services.approve(request=request, by=ben, now=NOW)

    assert refused.value.simulate_again
    assert selectors.board(request, now=NOW).must_simulate
    request = services.simulate(request=request, by=ben, now=NOW)
    assert request.base_nominal_gpus == 20
    assert request.plan is not None
    assert request.plan.created_by == aiko
    services.approve(request=request, by=ben, now=NOW)
    assert nominal(world, SOON) == 36


def test_what_was_changed_after_the_page_was_opened_is_not_decided(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben)
    seen = rules.mark(request)
    request = edited(request, aiko, extra_gpus=32)
    assert request.state == RequestState.SUBMITTED
    request = services.open_review(request=request, by=ben, now=NOW)

    with pytest.raises(RefusedError, match="changed after you opened it"):
        services.approve(request=request, by=ben, now=NOW, seen=seen)

    services.approve(request=request, by=ben, now=NOW, seen=rules.mark(request))
    assert nominal(world, SOON) == 56


def test_of_two_decisions_the_second_is_told_that_the_first_was_faster(
    world: World, aiko: User, ben: User
) -> None:
    first = reviewed(world, aiko, ben)
    second = QuotaRequest.objects.get(pk=first.pk)
    services.approve(request=first, by=ben, now=NOW)

    with pytest.raises(RefusedError, match="scheduled"):
        services.deny(request=second, reason="no", by=ben, now=NOW)

    assert Quota.objects.standing().filter(starts_at__gte=NOW).count() == 2


def test_a_step_from_a_state_that_has_passed_changes_no_row(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben)
    stale = QuotaRequest.objects.get(pk=request.pk)
    services.withdraw(request=request, by=aiko, now=NOW)
    events = RequestEvent.objects.count()

    with pytest.raises(RefusedError, match="faster"):
        steps.move(stale, Verb.APPROVE, by=ben, now=NOW)

    assert RequestEvent.objects.count() == events
    assert QuotaRequest.objects.get().state == RequestState.WITHDRAWN


def test_a_second_pending_request_for_the_same_pool_is_refused_and_names_the_first(
    world: World, aiko: User, emi: User
) -> None:
    first = ask(world, aiko)

    with pytest.raises(RefusedError, match="waits for a decision already") as refused:
        ask(world, emi)

    assert refused.value.other == first
    assert QuotaRequest.objects.count() == 1
    services.withdraw(request=first, by=aiko, now=NOW)
    ask(world, emi)


def test_a_change_for_good_takes_the_place_of_the_one_before(
    world: World, aiko: User, ben: User
) -> None:
    first = reviewed(world, aiko, ben, starts_at=NOW, ends_at=None)
    services.approve(request=first, by=ben, now=NOW)
    later = NOW + timedelta(days=3)
    second = reviewed(world, aiko, ben, starts_at=later, ends_at=None, extra_gpus=8, now=later)
    services.approve(request=second, by=ben, now=later)

    first.refresh_from_db()
    assert first.state == RequestState.SUPERSEDED
    assert nominal(world, later) == 48


def test_a_change_whose_row_was_replaced_by_hand_does_not_claim_to_be_active(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=None)
    services.approve(request=request, by=ben, now=NOW)
    request.rows.update(cancelled_at=NOW)

    clock.advance(now=SOON)

    request.refresh_from_db()
    assert request.state == RequestState.SUPERSEDED


def test_what_collides_with_a_change_already_planned_is_refused_with_its_sentence(
    world: World, aiko: User, ben: User
) -> None:
    request = reviewed(world, aiko, ben, starts_at=SOON, ends_at=WEEKS_4)
    change_quota(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], nominal_gpus=20,
        starts_at=SOON + timedelta(days=7), by=ben, because="planned", now=NOW,
    )  # fmt: skip
    request = services.simulate(request=request, by=ben, now=NOW)

    with pytest.raises(RefusedError, match="does not overlap"):
        services.approve(request=request, by=ben, now=NOW)

    request.refresh_from_db()
    assert request.state == RequestState.IN_REVIEW
    assert nominal(world, SOON) == 24


def test_every_step_is_kept_with_who_and_when(world: World, aiko: User, ben: User) -> None:
    request = reviewed(world, aiko, ben)
    services.comment(request=request, text="Is February enough?", by=ben, now=NOW)
    services.comment(request=request, text="No.", by=aiko, now=NOW)
    services.withdraw(request=request, by=aiko, now=NOW)

    trail = [(event.verb, event.by, event.comment) for event in selectors.trail(request)]
    assert trail == [
        ("draft", aiko, ""),
        ("submit", aiko, ""),
        ("open", ben, ""),
        ("comment", ben, "Is February enough?"),
        ("comment", aiko, "No."),
        ("withdraw", aiko, ""),
    ]


def edited(request: QuotaRequest, by: User, **changes: Any) -> QuotaRequest:
    terms: dict[str, Any] = {
        "extra_gpus": request.extra_gpus,
        "starts_at": request.starts_at,
        "ends_at": request.ends_at,
        "justification": request.justification,
    }
    return services.edit(request=request, by=by, now=NOW, **(terms | changes))
