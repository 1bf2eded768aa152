"""Requests: the conversation about a change of quota, and its trail."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from portal.fleet.models import Pool
from portal.plans.models import Plan
from portal.policy.models import Quota
from portal.tenants.models import Project


class RequestState(models.TextChoices):
    """Where a request stands."""

    DRAFT = "draft", _("draft")
    SUBMITTED = "submitted", _("submitted")
    IN_REVIEW = "in_review", _("in review")
    APPROVED = "approved", _("approved")
    PARTIALLY_APPROVED = "partially_approved", _("partially approved")
    DENIED = "denied", _("denied")
    WITHDRAWN = "withdrawn", _("withdrawn")
    SCHEDULED = "scheduled", _("scheduled")
    ACTIVE = "active", _("active")
    EXPIRING = "expiring", _("expiring")
    EXPIRED = "expired", _("expired")
    REVOKED = "revoked", _("revoked")
    SUPERSEDED = "superseded", _("superseded")


PENDING = (RequestState.SUBMITTED, RequestState.IN_REVIEW)


class Verb(models.TextChoices):
    """What can be done with a request; the label is what the trail says after a name."""

    DRAFT = "draft", _("wrote a draft")
    SUBMIT = "submit", _("submitted the request")
    EDIT = "edit", _("changed the request")
    SIMULATE = "simulate", _("simulated it again")
    COMMENT = "comment", _("commented")
    OPEN = "open", _("opened the review")
    APPROVE = "approve", _("approved it")
    APPROVE_PART = "approve_part", _("approved it in part")
    DENY = "deny", _("denied it")
    WITHDRAW = "withdraw", _("withdrew it")
    SCHEDULE = "schedule", _("the change was scheduled")
    UNDO = "undo", _("undid the approval")
    REVOKE = "revoke", _("revoked the quota")
    ACTIVATE = "activate", _("the change came into force")
    NEAR_END = "near_end", _("the end comes near")
    EXPIRE = "expire", _("the time ran out")
    SUPERSEDE = "supersede", _("a later change took its place")


class QuotaRequest(models.Model):
    """A project's wish to hold more or less of a pool, for a time or for good."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="requests")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="requests")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="requests"
    )
    state = models.CharField(
        _("state"), max_length=32, choices=RequestState.choices, default=RequestState.DRAFT
    )
    extra_gpus = models.IntegerField(_("GPUs more"))
    starts_at = models.DateTimeField(_("from"))
    ends_at = models.DateTimeField(_("until"), null=True, blank=True)
    justification = models.TextField(_("why"), max_length=2000)
    base_nominal_gpus = models.PositiveIntegerField(
        help_text=_("The nominal quota that the request was simulated against.")
    )
    plan = models.ForeignKey(
        Plan, on_delete=models.PROTECT, null=True, blank=True, related_name="requests"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="decided_requests",
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = models.TextField(_("reason of the decision"), max_length=2000, blank=True)
    granted_extra_gpus = models.IntegerField(_("GPUs granted"), null=True, blank=True)
    rows = models.ManyToManyField(
        Quota,
        related_name="+",
        blank=True,
        help_text=_("The rows of policy that the decision wrote: the change and its way back."),
    )

    class Meta:
        ordering = ["submitted_at", "created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=RequestState.values), name="request_state_known"
            ),
            models.CheckConstraint(condition=~Q(extra_gpus=0), name="request_changes_something"),
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True) | Q(ends_at__gt=F("starts_at")),
                name="request_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(decided_by__isnull=True) | ~Q(decided_by=F("requested_by")),
                name="request_not_decided_by_requester",
            ),
            models.CheckConstraint(
                condition=~Q(state=RequestState.DENIED) | ~Q(decision_reason=""),
                name="request_denied_with_reason",
            ),
            # Two pending wishes for one thing would be simulated against a base that neither keeps.
            models.UniqueConstraint(
                fields=["project", "pool"],
                condition=Q(state__in=PENDING),
                name="request_one_pending_per_project_and_pool",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project}: {self.extra_gpus:+d} on {self.pool}"

    @property
    def is_pending(self) -> bool:
        """Waits for a decision."""
        return self.state in PENDING

    @property
    def asked_gpus(self) -> int:
        """The nominal quota that the requester wishes to hold."""
        return self.base_nominal_gpus + self.extra_gpus

    @property
    def granted_gpus(self) -> int | None:
        """The nominal quota that the decision gave; None while there is none."""
        if self.granted_extra_gpus is None:
            return None
        return self.base_nominal_gpus + self.granted_extra_gpus

    @property
    def granted_in_part(self) -> bool:
        """Was approved with another number than was asked for."""
        return self.granted_extra_gpus not in (None, self.extra_gpus)


class RequestEvent(models.Model):
    """One step of a request, kept for good: who did what, when, and what they said."""

    request = models.ForeignKey(QuotaRequest, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    verb = models.CharField(max_length=32, choices=Verb.choices)
    from_state = models.CharField(max_length=32, blank=True)
    to_state = models.CharField(max_length=32, blank=True)
    comment = models.TextField(blank=True)

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.request_id} {self.verb}"
