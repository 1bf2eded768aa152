"""Placement: where work goes first."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from portal.policy.models.in_force import InForce, dated


class Placement(models.TextChoices):
    """In which order a job's eligible pools are tried."""

    LISTED = "listed", _("as listed")
    LOCALITY = "locality", _("beside the data")
    PACK = "pack", _("packed")
    SPREAD = "spread", _("spread over failure domains")


class PlacementRule(InForce):
    """The order in which pools are tried, for the whole site."""

    KEY = ()
    placement = models.CharField(_("placement"), max_length=16, choices=Placement.choices)

    class Meta(InForce.Meta):
        constraints = [
            *dated("placement_rule"),
            models.CheckConstraint(
                condition=Q(placement__in=Placement.values), name="placement_rule_known"
            ),
        ]

    def __str__(self) -> str:
        return self.placement
