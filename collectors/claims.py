"""Who collects a region: one at a time, whoever holds its claim.

A claim is a row with the token of its owner. It is taken and renewed by one UPDATE that must change
the row, and expires by the clock of the database when its owner no longer renews it. What a run
writes is written in a transaction that holds the row: whoever lost the claim writes nothing more.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now

from portal.fleet.models import Region
from portal.telemetry import models

# Longer than any one signal takes to be fetched; after a kill nobody collects for so long.
HELD_FOR = timedelta(minutes=5)


class ClaimLostError(RuntimeError):
    """Another run has taken over: the claim had expired."""


class Claim:
    """The right to collect a region, for as long as it is renewed.

    `owner` is who asks: the same one may take it again, as a task does that is tried again.
    """

    def __init__(self, region: Region, *, owner: str) -> None:
        self._region = region
        self._owner = owner
        self._mine = models.Claim.objects.filter(region=region, owner=owner)

    def take(self) -> bool:
        """Whether the region is ours now; counts it when somebody else holds it."""
        _rows(self._region)
        free = Q(owner__in=["", self._owner]) | Q(expires_at__lte=Now())
        of_region = models.Claim.objects.filter(region=self._region)
        taken = of_region.filter(free).update(owner=self._owner, expires_at=Now() + HELD_FOR)
        if not taken:
            of_region.update(busy=F("busy") + 1)
        return bool(taken)

    def renew(self) -> None:
        """Holds it for as long again. Raises ClaimLostError."""
        if not self._mine.update(expires_at=Now() + HELD_FOR):
            raise self._lost()

    def check(self) -> None:
        """Keeps it from everybody until the transaction ends. Raises ClaimLostError.

        An expired claim that nobody took is still ours.
        """
        if not self._mine.select_for_update().values_list("pk").first():
            raise self._lost()

    def release(self) -> None:
        """Gives it back, unless it was lost."""
        self._mine.update(owner="", expires_at=None)

    def _lost(self) -> ClaimLostError:
        return ClaimLostError(
            f"{self._region.name} is collected by somebody else: this run was not heard of "
            f"for {HELD_FOR}."
        )


def count_overdue(region: Region) -> None:
    """Counts a collection that was not made because it came too late."""
    _rows(region)
    models.Claim.objects.filter(region=region).update(overdue=F("overdue") + 1)


def _rows(region: Region) -> None:
    """Sees to it that the region has its row."""
    models.Claim.objects.bulk_create([models.Claim(region=region)], ignore_conflicts=True)
