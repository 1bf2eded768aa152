"""Taking a step: who may, from where, exactly once, and with its line on the trail."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from portal.accounts.models import User
from portal.requests import selectors, transitions
from portal.requests.models import QuotaRequest, RequestEvent, RequestState, Verb


class RefusedError(Exception):
    """A step that cannot be taken; the sentence says why and what to do instead."""

    def __init__(
        self, sentence: str, *, other: QuotaRequest | None = None, simulate_again: bool = False
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.other = other
        self.simulate_again = simulate_again


def locked(request: QuotaRequest) -> QuotaRequest:
    """The request as it is now, held until the transaction ends."""
    return QuotaRequest.objects.select_for_update().get(pk=request.pk)


def may(request: QuotaRequest, verb: Verb, by: User) -> None:
    """Refuses people who may never take this step (403), then steps that come too late or early."""
    if transitions.who(verb).isdisjoint(selectors.actors(by, request)):
        raise PermissionDenied(
            _("This step is not yours to take; nobody decides their own request.")
        )
    if transitions.step(verb, request.state) is None:
        raise RefusedError(
            _("This request is %(state)s; from there that step is not possible.")
            % {"state": request.get_state_display()}
        )


def move(
    request: QuotaRequest,
    verb: Verb,
    *,
    by: User | None,
    now: datetime,
    comment: str = "",
    **fields: Any,
) -> QuotaRequest:
    """Takes a step by a conditional UPDATE: of two at one time exactly one succeeds."""
    step = transitions.step(verb, request.state)
    if step is None:
        raise ValueError(f"no step {verb} from {request.state}")
    try:
        with transaction.atomic():
            changed = QuotaRequest.objects.filter(pk=request.pk, state=step.origin).update(
                state=step.target, **fields
            )
    except IntegrityError as error:
        raise RefusedError(
            _("Another request for this project and pool was submitted at the same moment.")
        ) from error
    if changed != 1:
        raise RefusedError(_("Somebody else was faster: look at the request again."))
    record(request, verb, origin=step.origin, target=step.target, by=by, now=now, comment=comment)
    request.refresh_from_db()
    return request


def record(
    request: QuotaRequest,
    verb: Verb,
    *,
    origin: str,
    by: User | None,
    now: datetime,
    target: str = RequestState.DRAFT,
    comment: str = "",
) -> None:
    """Adds a line to the trail."""
    RequestEvent.objects.create(
        request=request,
        at=now,
        by=by,
        verb=verb,
        from_state=origin,
        to_state=target,
        comment=comment,
    )
