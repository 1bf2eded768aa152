"""Priority: lanes, their rank, the order of the queue, and the weight of each project."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from portal.fleet.models import Pool, name_validator
from portal.policy.models.in_force import InForce, dated
from portal.tenants.models import Project, Tenant


class Lane(models.Model):
    """A class of work: emergency, primary, exploratory, background."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    label_ja = models.CharField(_("Japanese label"), max_length=80, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class Queueing(models.TextChoices):
    """Whether a blocked head of the queue blocks those behind it."""

    STRICT = "strict", _("strict: the first blocks the rest")
    BEST_EFFORT = "best-effort", _("best effort: others may pass")


class LaneRank(InForce):
    """How important a lane is: higher goes first. Priority, nothing else."""

    KEY = ("lane",)
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="ranks")
    rank = models.PositiveIntegerField(_("rank"))
    queueing = models.CharField(
        _("queueing"), max_length=16, choices=Queueing.choices, default=Queueing.BEST_EFFORT
    )

    class Meta(InForce.Meta):
        constraints = [
            *dated("lane_rank", "lane"),
            models.CheckConstraint(
                condition=Q(queueing__in=Queueing.values), name="lane_rank_queueing_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane}: {self.rank}"


class Order(models.TextChoices):
    """Who is looked at first inside a lane."""

    FIFO = "fifo", _("first come, first served")
    FAIR_SHARE = "fair-share", _("fair share")
    MULTIFACTOR = "multifactor", _("multifactor")


class Backfill(models.TextChoices):
    """Whether later jobs may use what a blocked one is waiting for."""

    NONE = "none", _("none")
    EASY = "easy", _("easy")


class QueueOrder(InForce):
    """The order of the queue, for the whole site."""

    KEY = ()
    order = models.CharField(_("order"), max_length=16, choices=Order.choices)
    backfill = models.CharField(
        _("backfill"), max_length=16, choices=Backfill.choices, default=Backfill.NONE
    )

    class Meta(InForce.Meta):
        constraints = [
            *dated("queue_order"),
            models.CheckConstraint(condition=Q(order__in=Order.values), name="queue_order_known"),
            models.CheckConstraint(
                condition=Q(backfill__in=Backfill.values), name="queue_order_backfill_known"
            ),
        ]

    def __str__(self) -> str:
        return self.order


class TenantWeight(InForce):
    """A tenant's weight when borrowed capacity is shared out."""

    KEY = ("tenant",)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="weights")
    weight = models.DecimalField(
        _("weight"), max_digits=9, decimal_places=3, validators=[MinValueValidator(0)]
    )

    class Meta(InForce.Meta):
        constraints = [
            *dated("tenant_weight", "tenant"),
            models.CheckConstraint(condition=Q(weight__gte=0), name="tenant_weight_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant}: {self.weight}"


class ProjectWeight(InForce):
    """A project's weight inside its tenant, and the cohort it lends to and borrows from."""

    KEY = ("project",)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="weights")
    weight = models.DecimalField(
        _("weight"), max_digits=9, decimal_places=3, validators=[MinValueValidator(0)]
    )
    cohort = models.CharField(
        _("cohort"), max_length=63, default="all", validators=[name_validator]
    )

    class Meta(InForce.Meta):
        constraints = [
            *dated("project_weight", "project"),
            models.CheckConstraint(condition=Q(weight__gte=0), name="project_weight_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.project}: {self.weight}"


class LaneAssignment(InForce):
    """Which lanes a project may use, where, and up to how many GPUs at one time."""

    KEY = ("project", "lane")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="assignments")
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="assignments")
    max_gpus = models.PositiveIntegerField(
        _("most GPUs at one time"), null=True, blank=True, help_text=_("Empty: not limited.")
    )

    class Meta(InForce.Meta):
        constraints = dated("lane_assignment", "project", "lane")

    def __str__(self) -> str:
        return f"{self.project} in {self.lane}"


class LaneAssignmentPool(models.Model):
    """A pool that a lane assignment allows, in the order that `listed` placement follows."""

    assignment = models.ForeignKey(
        LaneAssignment, on_delete=models.CASCADE, related_name="allowed_pools"
    )
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField(_("position"))

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "pool"], name="lane_assignment_pool_once"
            ),
            models.UniqueConstraint(
                fields=["assignment", "position"], name="lane_assignment_position_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assignment}: {self.pool}"
