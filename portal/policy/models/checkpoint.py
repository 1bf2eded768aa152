"""Checkpointing: what an interruption costs."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from portal.policy.models.in_force import InForce, dated
from portal.policy.models.lanes import Lane
from portal.tenants.models import Project


class Recovery(models.TextChoices):
    """What happens to evicted work."""

    REQUEUE = "requeue", _("back to the queue")
    SUSPEND = "suspend", _("suspended")
    CANCEL = "cancel", _("cancelled")


class LaneRecovery(InForce):
    """What happens to a lane's work when it is evicted, and when it is tried again."""

    KEY = ("lane",)
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="recoveries")
    recovery = models.CharField(_("recovery"), max_length=16, choices=Recovery.choices)
    backoff_seconds = models.PositiveIntegerField(_("first back-off (seconds)"), default=0)
    backoff_limit_seconds = models.PositiveIntegerField(
        _("longest back-off (seconds)"), default=3600
    )
    max_requeues = models.PositiveIntegerField(
        _("most re-queues"), null=True, blank=True, help_text=_("Empty: not limited.")
    )

    class Meta(InForce.Meta):
        constraints = [
            *dated("lane_recovery", "lane"),
            models.CheckConstraint(
                condition=Q(recovery__in=Recovery.values), name="lane_recovery_known"
            ),
            models.CheckConstraint(
                condition=Q(backoff_limit_seconds__gte=F("backoff_seconds")),
                name="lane_recovery_backoff_within_limit",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane}: {self.recovery}"


class CheckpointRule(InForce):
    """How a project's training saves its work, where its jobs say nothing themselves."""

    KEY = ("project",)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="checkpoint_rules")
    interval_seconds = models.PositiveIntegerField(
        _("interval (seconds)"), help_text=_("0: never saves.")
    )
    checkpoint_gb = models.DecimalField(
        _("size (GB)"), max_digits=12, decimal_places=3, validators=[MinValueValidator(0)]
    )
    restart_seconds = models.PositiveIntegerField(_("restart (seconds)"), default=0)

    class Meta(InForce.Meta):
        constraints = [
            *dated("checkpoint_rule", "project"),
            models.CheckConstraint(
                condition=Q(checkpoint_gb__gte=0), name="checkpoint_rule_size_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project}: every {self.interval_seconds} s"
