"""The whole table of steps, walked by the whole cast."""

from collections.abc import Callable
from datetime import timedelta
from itertools import product

import pytest
from django.core.exceptions import PermissionDenied

from portal.accounts.models import User
from portal.requests import selectors, services, transitions
from portal.requests.models import QuotaRequest, RequestState, Verb
from portal.requests.transitions import TABLE, Actor
from tests.portal.requests.asking import SOON, ask, reviewed
from tests.worlds import NOW, World

S = RequestState
ASKER, OPS, CLOCK = Actor.ASKER, Actor.OPS, Actor.CLOCK
# Written out by hand on purpose: this is what the table must say, not what it happens to say.
EXPECTED = {
    (Verb.SUBMIT, S.DRAFT, S.SUBMITTED, ASKER),
    (Verb.EDIT, S.DRAFT, S.DRAFT, ASKER),
    (Verb.EDIT, S.SUBMITTED, S.SUBMITTED, ASKER),
    (Verb.EDIT, S.IN_REVIEW, S.SUBMITTED, ASKER),
    (Verb.SIMULATE, S.SUBMITTED, S.SUBMITTED, ASKER),
    (Verb.SIMULATE, S.SUBMITTED, S.SUBMITTED, OPS),
    (Verb.SIMULATE, S.IN_REVIEW, S.IN_REVIEW, ASKER),
    (Verb.SIMULATE, S.IN_REVIEW, S.IN_REVIEW, OPS),
    (Verb.OPEN, S.SUBMITTED, S.IN_REVIEW, OPS),
    (Verb.APPROVE, S.IN_REVIEW, S.APPROVED, OPS),
    (Verb.APPROVE_PART, S.IN_REVIEW, S.PARTIALLY_APPROVED, OPS),
    (Verb.DENY, S.IN_REVIEW, S.DENIED, OPS),
    (Verb.WITHDRAW, S.DRAFT, S.WITHDRAWN, ASKER),
    (Verb.WITHDRAW, S.SUBMITTED, S.WITHDRAWN, ASKER),
    (Verb.WITHDRAW, S.IN_REVIEW, S.WITHDRAWN, ASKER),
    (Verb.SCHEDULE, S.APPROVED, S.SCHEDULED, CLOCK),
    (Verb.SCHEDULE, S.PARTIALLY_APPROVED, S.SCHEDULED, CLOCK),
    (Verb.UNDO, S.SCHEDULED, S.IN_REVIEW, OPS),
    (Verb.REVOKE, S.ACTIVE, S.REVOKED, OPS),
    (Verb.REVOKE, S.EXPIRING, S.REVOKED, OPS),
    (Verb.ACTIVATE, S.SCHEDULED, S.ACTIVE, CLOCK),
    (Verb.NEAR_END, S.ACTIVE, S.EXPIRING, CLOCK),
    (Verb.EXPIRE, S.ACTIVE, S.EXPIRED, CLOCK),
    (Verb.EXPIRE, S.EXPIRING, S.EXPIRED, CLOCK),
    (Verb.SUPERSEDE, S.SCHEDULED, S.SUPERSEDED, CLOCK),
    (Verb.SUPERSEDE, S.ACTIVE, S.SUPERSEDED, CLOCK),
    (Verb.SUPERSEDE, S.EXPIRING, S.SUPERSEDED, CLOCK),
}


def test_the_table_says_exactly_this() -> None:
    table = {
        (step.verb, step.origin, step.target, actor)
        for step in TABLE
        for actor in step.actors
        if step.verb is not Verb.COMMENT
    }
    assert table == EXPECTED


def test_everything_but_a_draft_can_be_talked_about_and_talk_changes_no_state() -> None:
    talk = {step.origin: step for step in TABLE if step.verb is Verb.COMMENT}
    assert set(talk) == set(S) - {S.DRAFT}
    assert all(step.target == step.origin for step in talk.values())


def test_a_step_is_allowed_exactly_where_the_table_has_it() -> None:
    for verb, state, actor in product(Verb, S, Actor):
        talk = verb is Verb.COMMENT and state is not S.DRAFT and actor is not CLOCK
        listed = any((verb, state, target, actor) in EXPECTED for target in S)
        assert transitions.allowed(verb, state, [actor]) == (talk or listed), (verb, state, actor)


def test_who_each_of_the_cast_is_to_a_request(
    world: World, aiko: User, ben: User, chidi: User, dana: User, emi: User
) -> None:
    request = ask(world, aiko)
    cast = (aiko, ben, chidi, dana, emi)
    assert [selectors.actors(user, request) for user in cast] == [
        {ASKER}, {OPS}, set(), set(), {ASKER},
    ]  # fmt: skip


def test_no_one_takes_a_step_that_is_not_theirs(
    world: World, aiko: User, ben: User, chidi: User, dana: User, emi: User
) -> None:
    request = reviewed(world, aiko, ben)
    steps: dict[Verb, Callable[[User], object]] = {
        Verb.EDIT: lambda by: services.edit(
            request=request, extra_gpus=8, starts_at=SOON, ends_at=SOON + timedelta(days=7),
            justification="less", by=by, now=NOW,
        ),
        Verb.SIMULATE: lambda by: services.simulate(request=request, by=by, now=NOW),
        Verb.COMMENT: lambda by: services.comment(request=request, text="?", by=by, now=NOW),
        Verb.APPROVE: lambda by: services.approve(request=request, by=by, now=NOW),
        Verb.APPROVE_PART: lambda by: services.approve(
            request=request, by=by, now=NOW, granted_extra_gpus=8
        ),
        Verb.DENY: lambda by: services.deny(request=request, reason="no", by=by, now=NOW),
        Verb.WITHDRAW: lambda by: services.withdraw(request=request, by=by, now=NOW),
        Verb.UNDO: lambda by: services.undo(request=request, by=by, now=NOW),
        Verb.REVOKE: lambda by: services.revoke(request=request, reason="x", by=by, now=NOW),
        Verb.SUBMIT: lambda by: services.submit(request=request, by=by, now=NOW),
    }  # fmt: skip
    barred = [
        (verb, by)
        for verb in steps
        for by in (aiko, ben, chidi, dana, emi)
        if transitions.who(verb).isdisjoint(selectors.actors(by, request))
    ]
    assert len(barred) == 10 * 2 + 5 * 2 + 3  # Chidi and Dana never; five are not Aiko's or Emi's
    for verb, by in barred:
        with pytest.raises(PermissionDenied):
            steps[verb](by)
    assert QuotaRequest.objects.get().state == S.IN_REVIEW
