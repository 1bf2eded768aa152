"""Preemption: who may be displaced, and by whom."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from portal.policy.models.in_force import InForce, dated
from portal.policy.models.lanes import Lane


class Victims(models.TextChoices):
    """Whom an eviction takes first."""

    YOUNGEST = "youngest", _("youngest first")
    LEAST_LOST_WORK = "least-lost-work", _("least lost work first")


class Reclaim(models.TextChoices):
    """Whether lent capacity is taken back from running work."""

    NEVER = "never", _("never")
    LOWER_LANE = "lower-lane", _("from lower lanes")
    ANY = "any", _("from any lane")


class EvictionRule(InForce):
    """How victims are chosen and whether lent capacity is reclaimed, for the whole site."""

    KEY = ()
    victims = models.CharField(_("victims"), max_length=16, choices=Victims.choices)
    reclaim = models.CharField(_("reclaim"), max_length=16, choices=Reclaim.choices)

    class Meta(InForce.Meta):
        constraints = [
            *dated("eviction_rule"),
            models.CheckConstraint(
                condition=Q(victims__in=Victims.values), name="eviction_rule_victims_known"
            ),
            models.CheckConstraint(
                condition=Q(reclaim__in=Reclaim.values), name="eviction_rule_reclaim_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.victims}, {self.reclaim}"


class PreemptionRight(InForce):
    """One lane may displace running work of another, lower one."""

    KEY = ("lane", "over")
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="preemption_rights")
    over = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="preemptors")

    class Meta(InForce.Meta):
        constraints = [
            *dated("preemption_right", "lane", "over"),
            models.CheckConstraint(
                condition=~Q(lane=F("over")), name="preemption_right_not_over_itself"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane} over {self.over}"


class LaneProtection(InForce):
    """How long an attempt of a lane runs before it may be evicted."""

    KEY = ("lane",)
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="protections")
    protect_seconds = models.PositiveIntegerField(_("protected for (seconds)"))

    class Meta(InForce.Meta):
        constraints = dated("lane_protection", "lane")

    def __str__(self) -> str:
        return f"{self.lane}: {self.protect_seconds} s"
