"""Changing what is in force: new rows are added, nothing that has held is ever overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from auditlog.context import set_actor
from django.db import transaction
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.policy import selectors
from portal.policy.models import Quota
from portal.tenants.models import Project


class QuotaConflict(Exception):  # noqa: N818 -- the word its readers use
    """A change of quota that cannot be made; the text says why and what to do."""


@transaction.atomic
def change_quota(
    *,
    project: Project,
    pool: Pool,
    nominal_gpus: int,
    starts_at: datetime,
    ends_at: datetime | None = None,
    by: User | None,
    because: str,
    now: datetime,
) -> list[Quota]:
    """Sets a project's nominal quota in a pool from an instant on, for a time or for good.

    The borrowing and lending limits in force then are kept. For a time: two rows, the change and
    the one that takes it back to what would have held at `ends_at`. Raises QuotaConflict when the
    change would start in the past, when another change starts inside its time, or, for a change for
    good, when a later one would undo it.
    """
    _refuse_bad_times(starts_at=starts_at, ends_at=ends_at, now=now)
    if nominal_gpus < 0:
        raise QuotaConflict(_("A quota cannot be less than 0 GPUs. Take back fewer."))
    # Two changes of one project at a time would not see each other's rows.
    Project.objects.select_for_update().get(pk=project.pk)
    _refuse_collision(project=project, pool=pool, starts_at=starts_at, ends_at=ends_at)

    base = selectors.quota_of(project=project, pool=pool, at=starts_at)
    change = Quota(
        project=project,
        pool=pool,
        nominal_gpus=nominal_gpus,
        borrowing_limit_gpus=base.borrowing_limit_gpus if base else None,
        lending_limit_gpus=base.lending_limit_gpus if base else None,
        starts_at=starts_at,
        because=Truncator(because).chars(200),
        recorded_by=by,
    )
    rows = [change]
    if ends_at is not None:
        revert = Quota(
            project=project,
            pool=pool,
            nominal_gpus=base.nominal_gpus if base else 0,
            borrowing_limit_gpus=change.borrowing_limit_gpus,
            lending_limit_gpus=change.lending_limit_gpus,
            withdrawn=base is None,
            starts_at=ends_at,
            because=Truncator(_("End of: %(because)s") % {"because": because}).chars(200),
            recorded_by=by,
        )
        rows.append(revert)
    with set_actor(by):
        for row in rows:
            row.save(force_insert=True)
    return rows


@transaction.atomic
def cancel(*, rows: Iterable[Quota], by: User | None, now: datetime) -> None:
    """Takes back rows that have not started yet; QuotaConflict, and no change, when one has."""
    wanted = {row.pk for row in rows}
    found = list(
        Quota.objects.select_for_update().standing().filter(pk__in=wanted, starts_at__gt=now)
    )
    if len(found) != len(wanted):
        raise QuotaConflict(
            _(
                "This change is in force or was taken back already. "
                "To end it, make a new change that starts now."
            )
        )
    with set_actor(by):
        for row in found:
            row.cancelled_at = now
            row.save(update_fields=["cancelled_at"])


def _refuse_bad_times(*, starts_at: datetime, ends_at: datetime | None, now: datetime) -> None:
    if starts_at < now:
        raise QuotaConflict(_("A quota cannot be changed in the past. Choose a start from now on."))
    if ends_at is not None and ends_at <= starts_at:
        raise QuotaConflict(_("The change would end before it starts. Choose a later end."))


def _refuse_collision(
    *, project: Project, pool: Pool, starts_at: datetime, ends_at: datetime | None
) -> None:
    later = Quota.objects.standing().filter(project=project, pool=pool, starts_at__gte=starts_at)
    if ends_at is not None:
        later = later.filter(starts_at__lte=ends_at)
    other = later.order_by("starts_at").first()
    if other is None:
        return
    facts = {
        "project": project,
        "pool": pool,
        "gpus": other.nominal_gpus,
        "when": f"{other.starts_at:%Y-%m-%d %H:%M} UTC",
    }
    if ends_at is None:
        raise QuotaConflict(
            _(
                "Another change already sets %(project)s on %(pool)s to %(gpus)s GPUs from "
                "%(when)s on and would undo this one. Choose an end before that, or take the other "
                "change back first."
            )
            % facts
        )
    raise QuotaConflict(
        _(
            "Another change already sets %(project)s on %(pool)s to %(gpus)s GPUs from %(when)s "
            "on, within the time of this one. Choose a time that does not overlap, or take the "
            "other change back first."
        )
        % facts
    )
