"""Which step a request may take from where, and who may take it: one table.

Nothing else decides it: services look the step up here, pages ask here which buttons to show, and
the tests walk the whole table with the whole cast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from portal.requests.models import RequestState as S
from portal.requests.models import Verb


class Actor(StrEnum):
    """Who takes a step. One person may be several of them for one request."""

    ASKER = "asker"  # whoever may ask for this project: its leads and its tenant's admins
    OPS = "ops"  # ops who may not ask for this project: nobody decides their own request
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Step:
    """One allowed step: what is done, from where, where it leads, who may do it."""

    verb: Verb
    origin: S
    target: S
    actors: frozenset[Actor]


def _steps(verb: Verb, origins: Iterable[S], target: S | None, *actors: Actor) -> list[Step]:
    """The step from each origin; without a target the state stays what it is."""
    return [Step(verb, origin, target or origin, frozenset(actors)) for origin in origins]


_PENDING = (S.SUBMITTED, S.IN_REVIEW)
_LIVE = (S.ACTIVE, S.EXPIRING)
_TALK = tuple(state for state in S if state is not S.DRAFT)

TABLE: tuple[Step, ...] = (
    *_steps(Verb.SUBMIT, [S.DRAFT], S.SUBMITTED, Actor.ASKER),
    *_steps(Verb.EDIT, [S.DRAFT], S.DRAFT, Actor.ASKER),
    # An edit sends a review back to its start: nobody goes on deciding what has changed.
    *_steps(Verb.EDIT, _PENDING, S.SUBMITTED, Actor.ASKER),
    *_steps(Verb.SIMULATE, _PENDING, None, Actor.ASKER, Actor.OPS),
    *_steps(Verb.COMMENT, _TALK, None, Actor.ASKER, Actor.OPS),
    *_steps(Verb.OPEN, [S.SUBMITTED], S.IN_REVIEW, Actor.OPS),
    *_steps(Verb.APPROVE, [S.IN_REVIEW], S.APPROVED, Actor.OPS),
    *_steps(Verb.APPROVE_PART, [S.IN_REVIEW], S.PARTIALLY_APPROVED, Actor.OPS),
    *_steps(Verb.DENY, [S.IN_REVIEW], S.DENIED, Actor.OPS),
    *_steps(Verb.WITHDRAW, (S.DRAFT, *_PENDING), S.WITHDRAWN, Actor.ASKER),
    *_steps(Verb.SCHEDULE, [S.APPROVED, S.PARTIALLY_APPROVED], S.SCHEDULED, Actor.CLOCK),
    *_steps(Verb.UNDO, [S.SCHEDULED], S.IN_REVIEW, Actor.OPS),
    *_steps(Verb.REVOKE, _LIVE, S.REVOKED, Actor.OPS),
    *_steps(Verb.ACTIVATE, [S.SCHEDULED], S.ACTIVE, Actor.CLOCK),
    *_steps(Verb.NEAR_END, [S.ACTIVE], S.EXPIRING, Actor.CLOCK),
    *_steps(Verb.EXPIRE, _LIVE, S.EXPIRED, Actor.CLOCK),
    *_steps(Verb.SUPERSEDE, (S.SCHEDULED, *_LIVE), S.SUPERSEDED, Actor.CLOCK),
)
_BY_KEY = {(step.verb, step.origin): step for step in TABLE}


def step(verb: Verb, origin: str) -> Step | None:
    """The step `verb` takes from a state, or None when it cannot be taken from there."""
    return _BY_KEY.get((verb, S(origin)))


def who(verb: Verb) -> frozenset[Actor]:
    """Everybody who may do `verb` at some time of a request's life."""
    return frozenset().union(*(step.actors for step in TABLE if step.verb is verb))


def allowed(verb: Verb, origin: str, actors: Iterable[Actor]) -> bool:
    """Says whether one of these actors may do `verb` to a request in this state."""
    found = step(verb, origin)
    return found is not None and not found.actors.isdisjoint(actors)
