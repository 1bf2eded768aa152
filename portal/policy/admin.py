"""The policy in force, for administrators: rows are added; one that has started never changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.access import viewer
from portal.policy.models import (
    CheckpointRule,
    EvictionRule,
    Lane,
    LaneAssignment,
    LaneAssignmentPool,
    LaneProtection,
    LaneRank,
    LaneRecovery,
    PlacementRule,
    PreemptionRight,
    ProjectWeight,
    QueueOrder,
    Quota,
    TenantWeight,
)
from portal.policy.models.in_force import InForce


def _is_open(row: InForce | None) -> bool:
    """Whether a row may still be changed: it has not started and was not taken back."""
    return row is None or (row.starts_at > timezone.now() and row.cancelled_at is None)


class InForceForm(forms.ModelForm):
    """A row of policy; what has held cannot be rewritten, so it starts from now on."""

    def clean_starts_at(self) -> datetime:
        """Refuses a start in the past."""
        starts_at: datetime = self.cleaned_data["starts_at"]
        if starts_at < timezone.now():
            raise ValidationError(
                _("A rule cannot start in the past: what was in force then would change. Choose a "
                  "start from now on.")
            )  # fmt: skip
        return starts_at


class InForceAdmin(admin.ModelAdmin):
    """Effective-dated rows: shown for ever, changed or deleted only before they start."""

    form = InForceForm
    readonly_fields = ("recorded_by", "recorded_at", "cancelled_at")
    date_hierarchy = "starts_at"
    search_fields: ClassVar[tuple[str, ...]] = ("because",)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """The rule, since when, and who recorded it why."""
        about = ("starts_at", "withdrawn", "because", "recorded_by", "cancelled_at")
        return ("__str__", *self.model.KEY, *about)

    def get_list_filter(self, request: HttpRequest) -> tuple[str, ...]:
        """By what the rule is about."""
        return (*self.model.KEY, "withdrawn")

    def get_queryset(self, request: HttpRequest) -> Any:
        """Newest first, with what the list names."""
        related = ("recorded_by", *self.model.KEY)
        return super().get_queryset(request).select_related(*related).order_by("-starts_at", "pk")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The next full hour as the start."""
        hour = timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return {"starts_at": hour, **super().get_changeform_initial_data(request)}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """No deleting in bulk: it would not look whether a row has started."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only before it starts."""
        return super().has_change_permission(request, obj) and _is_open(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only before it starts."""
        return super().has_delete_permission(request, obj) and _is_open(obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Keeps who recorded the row."""
        obj.recorded_by = viewer(request)
        super().save_model(request, obj, form, change)


class AllowedPoolInline(admin.TabularInline):
    """The pools of a lane assignment, in order."""

    model = LaneAssignmentPool
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only before the assignment starts."""
        return super().has_add_permission(request, obj) and _is_open(obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only before the assignment starts."""
        return super().has_change_permission(request, obj) and _is_open(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only before the assignment starts."""
        return super().has_delete_permission(request, obj) and _is_open(obj)


@admin.register(Lane)
class LaneAdmin(admin.ModelAdmin):
    """Lanes; their rules are rows of their own."""

    list_display = ("name", "label_ja")
    search_fields = ("name", "label_ja")


@admin.register(LaneRank, LaneProtection, LaneRecovery)
class OfLaneAdmin(InForceAdmin):
    """Rank, protection and recovery of a lane."""

    search_fields = ("lane__name", "because")


@admin.register(PreemptionRight)
class PreemptionRightAdmin(InForceAdmin):
    """Which lane may displace which."""

    search_fields = ("lane__name", "over__name", "because")


@admin.register(QueueOrder, PlacementRule, EvictionRule)
class OfSiteAdmin(InForceAdmin):
    """Rules of the whole site."""


@admin.register(TenantWeight)
class TenantWeightAdmin(InForceAdmin):
    """Weights of tenants."""

    search_fields = ("tenant__name", "because")


@admin.register(ProjectWeight, CheckpointRule)
class OfProjectAdmin(InForceAdmin):
    """Weight, cohort and checkpoint rule of a project."""

    search_fields = ("project__name", "because")


@admin.register(Quota)
class QuotaAdmin(InForceAdmin):
    """Quotas by project and pool."""

    search_fields = ("project__name", "pool__name", "because")


@admin.register(LaneAssignment)
class LaneAssignmentAdmin(InForceAdmin):
    """Which lanes a project may use, and where."""

    search_fields = ("project__name", "lane__name", "because")
    inlines = (AllowedPoolInline,)
