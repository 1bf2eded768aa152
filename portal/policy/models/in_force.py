"""Effective-dated rows: what was in force at any instant can be asked, nothing is overwritten.

A row is in force from `starts_at` until the next row of the same key starts. A change for a time is
two rows: the change, and the row that takes it back. A row that has not started yet may be
cancelled; one that has started never changes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class InForceQuerySet(models.QuerySet[Any]):
    """Asks effective-dated rows what was in force when."""

    def standing(self) -> Self:
        """Rows that were not cancelled before they started."""
        return self.filter(cancelled_at__isnull=True)

    def at(self, instant: datetime) -> Self:
        """The rows in force at an instant: one per key at most, withdrawn ones left out."""
        key = {name: OuterRef(name) for name in self.model.KEY}
        latest = (
            self.model.objects.standing()
            .filter(starts_at__lte=instant, **key)
            .order_by("-starts_at")
            .values("pk")[:1]
        )
        return self.filter(pk=Subquery(latest), withdrawn=False)

    def between(self, start: datetime, end: datetime) -> Self:
        """The standing rows that start inside [start, end), oldest first."""
        return self.standing().filter(starts_at__gte=start, starts_at__lt=end).order_by("starts_at")


class InForce(models.Model):
    """A rule that holds from an instant on, until the next one of its key."""

    KEY: ClassVar[tuple[str, ...]] = ()

    starts_at = models.DateTimeField(_("in force from"))
    withdrawn = models.BooleanField(
        pgettext_lazy("a rule", "withdrawn"),
        default=False,
        help_text=_("From this instant on there is no such rule."),
    )
    because = models.CharField(_("because"), max_length=200, blank=True)
    recorded_at = models.DateTimeField(_("recorded at"), auto_now_add=True)
    recorded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("recorded by"),
    )
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True, blank=True, editable=False)

    objects = InForceQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["starts_at"]


def dated(name: str, *key: str) -> list[models.BaseConstraint]:
    """The constraints of an effective-dated table: one standing row per key and start."""
    return [
        models.UniqueConstraint(
            fields=[*key, "starts_at"],
            condition=Q(cancelled_at__isnull=True),
            name=f"{name}_once_per_start",
        ),
        models.CheckConstraint(
            condition=Q(cancelled_at__isnull=True) | Q(cancelled_at__lte=F("starts_at")),
            name=f"{name}_cancelled_only_before_it_starts",
        ),
    ]
