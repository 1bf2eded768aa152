"""Quota: how much a project may hold of a pool."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.fleet.models import Pool
from portal.policy.models.in_force import InForce, dated
from portal.tenants.models import Project


class Quota(InForce):
    """A project's entitlement in one pool. Without a row the project may not use that pool."""

    KEY = ("project", "pool")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="quotas")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="quotas")
    nominal_gpus = models.PositiveIntegerField(_("nominal quota (GPUs)"))
    borrowing_limit_gpus = models.PositiveIntegerField(
        _("borrowing limit (GPUs)"), null=True, blank=True, help_text=_("Empty: no limit.")
    )
    lending_limit_gpus = models.PositiveIntegerField(
        _("lending limit (GPUs)"),
        null=True,
        blank=True,
        help_text=_("Empty: lends all that is idle."),
    )

    class Meta(InForce.Meta):
        constraints = dated("quota", "project", "pool")

    def __str__(self) -> str:
        return f"{self.project} on {self.pool}: {self.nominal_gpus}"
