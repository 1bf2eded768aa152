"""Plans: two frozen scenarios, the work they ran on, and what came out."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from portal.tenants.models import Project


class Workload(models.Model):
    """The jobs a plan ran on, frozen: gzipped JSON, kept once however many plans use it."""

    content_hash = models.CharField(max_length=80, unique=True)
    jobs = models.BinaryField()
    job_count = models.PositiveIntegerField()
    observed_from = models.DateTimeField()
    observed_to = models.DateTimeField()
    left_out = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.job_count} jobs, {self.observed_from:%Y-%m-%d} – {self.observed_to:%Y-%m-%d}"


class PlanState(models.TextChoices):
    """Where a plan stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Plan(models.Model):
    """A comparison of today's policy with a proposed one, on the same observed work."""

    title = models.CharField(_("title"), max_length=200)
    project = models.ForeignKey(
        Project,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="plans",
        help_text=_("Who may see this project may see the plan."),
    )
    policy_at = models.DateTimeField(
        null=True, help_text=_("The policy in force then was frozen. Empty: when it was made.")
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="plans"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="plans")
    baseline = models.JSONField()
    proposal = models.JSONField()
    baseline_hash = models.CharField(max_length=80)
    proposal_hash = models.CharField(max_length=80)
    replications = models.PositiveSmallIntegerField(default=20)
    days = models.PositiveSmallIntegerField(default=7)
    seed = models.PositiveIntegerField(default=7)
    state = models.CharField(max_length=16, choices=PlanState.choices, default=PlanState.QUEUED)
    done_replications = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    outcome = models.JSONField(null=True)
    planner_version = models.CharField(max_length=32, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["baseline_hash", "proposal_hash"])]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=PlanState.values), name="plan_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state=PlanState.DONE) | Q(outcome__isnull=False),
                name="plan_done_has_outcome",
            ),
        ]

    def __str__(self) -> str:
        return self.title
