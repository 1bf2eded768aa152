"""Tenants, their projects, and who belongs to them."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from portal.fleet.models import name_validator


class Tenant(models.Model):
    """An organisation that shares the fleet. Tenants never see one another's data."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    label = models.CharField(_("label"), max_length=80, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.label or self.name


class Project(models.Model):
    """A piece of work of one tenant; quota is given to projects."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    label = models.CharField(_("label"), max_length=80, blank=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.label or self.name


class Role(models.TextChoices):
    """What a person may do inside a tenant."""

    ADMIN = "admin", _("tenant admin")
    LEAD = "lead", _("project lead")
    MEMBER = "member", _("member")


class Membership(models.Model):
    """A person's role: admin of a whole tenant, or lead or member of one project."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="memberships")
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="memberships", null=True, blank=True
    )
    role = models.CharField(_("role"), max_length=16, choices=Role.choices)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(
                    Q(role=Role.ADMIN, project__isnull=True)
                    | Q(role__in=[Role.LEAD, Role.MEMBER], project__isnull=False)
                ),
                name="membership_admin_of_tenant_else_of_project",
            ),
            models.UniqueConstraint(
                fields=["user", "tenant"],
                condition=Q(project__isnull=True),
                name="membership_once_per_tenant",
            ),
            models.UniqueConstraint(fields=["user", "project"], name="membership_once_per_project"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.get_role_display()} of {self.project or self.tenant}"

    def clean(self) -> None:
        """A project belongs to the membership's tenant."""
        if self.project and self.project.tenant_id != self.tenant_id:
            raise ValidationError({"project": _("This project belongs to another tenant.")})
