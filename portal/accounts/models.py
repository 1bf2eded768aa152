"""A person who signs in, and the office they hold over all tenants, if any."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _


class Office(models.TextChoices):
    """A role over the whole site. Roles inside a tenant are memberships (portal.tenants)."""

    NONE = "", _("none")
    OPS = "ops", _("ops: reviews regions and decides requests")
    AUDITOR = "auditor", _("auditor: reads everything, changes nothing")


class User(AbstractUser):
    """A person. Signs in with their email address."""

    email = models.EmailField(_("email address"), unique=True)
    office = models.CharField(
        _("office"), max_length=16, choices=Office.choices, default=Office.NONE, blank=True
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(office__in=[*Office.values]), name="user_office_known"
            )
        ]

    @property
    def is_ops(self) -> bool:
        """May review regions and decide requests."""
        return self.office == Office.OPS

    @property
    def is_auditor(self) -> bool:
        """May read everything and change nothing."""
        return self.office == Office.AUDITOR

    @property
    def sees_all_tenants(self) -> bool:
        """Is not confined to the tenants they belong to."""
        return self.office in {Office.OPS, Office.AUDITOR}
