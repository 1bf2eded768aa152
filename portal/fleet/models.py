"""Intended hardware: regions, failure domains, storage, links, pools, and their outages."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

name_validator = RegexValidator(
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    _("Use lower-case letters, digits and hyphens, as in tokyo-a-h100."),
)


def validate_timezone(value: str) -> None:
    """Refuses what is not an IANA zone name."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValidationError(_("Use an IANA zone name such as Asia/Tokyo.")) from error


class Region(models.Model):
    """A place that hosts GPUs, with its own Prometheus and time zone."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    label = models.CharField(_("label"), max_length=80, blank=True)
    label_ja = models.CharField(_("Japanese label"), max_length=80, blank=True)
    timezone = models.CharField(
        _("time zone"), max_length=64, default="Asia/Tokyo", validators=[validate_timezone]
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def local_name(self) -> str:
        """The region's name in the reader's language."""
        japanese = (get_language() or "").startswith("ja")
        return (self.label_ja if japanese else "") or self.label or self.name


class Domain(models.Model):
    """A failure domain: what fails together."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="domains")

    class Meta:
        ordering = ["pk"]
        verbose_name = _("failure domain")

    def __str__(self) -> str:
        return self.name


class Storage(models.Model):
    """Where checkpoints go. Lost with its domain, or only with its region; with neither, never."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    region = models.ForeignKey(
        Region, on_delete=models.PROTECT, related_name="storages", null=True, blank=True
    )
    domain = models.ForeignKey(
        Domain, on_delete=models.PROTECT, related_name="storages", null=True, blank=True
    )
    write_gb_per_second = models.DecimalField(
        _("write GB per second"), max_digits=9, decimal_places=3
    )

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "storages"
        constraints = [
            models.CheckConstraint(
                condition=Q(write_gb_per_second__gt=0), name="storage_write_rate_positive"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """A domain lies in the storage's region."""
        if self.domain and self.region and self.domain.region_id != self.region_id:
            raise ValidationError({"domain": _("This domain lies in another region.")})


class Link(models.Model):
    """The network between two regions, both directions."""

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="links_from")
    other_region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="links_to")
    gbps = models.DecimalField(_("Gbit per second"), max_digits=9, decimal_places=3)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(gbps__gt=0), name="link_rate_positive"),
            # Stored once per pair: the lower key first.
            models.CheckConstraint(
                condition=Q(region__lt=F("other_region")), name="link_stored_lower_region_first"
            ),
            models.UniqueConstraint(fields=["region", "other_region"], name="link_once_per_pair"),
        ]

    def __str__(self) -> str:
        return f"{self.region} – {self.other_region}"

    def clean(self) -> None:
        """Puts the pair in the order in which it is stored."""
        if self.region_id and self.other_region_id and self.region_id > self.other_region_id:
            self.region, self.other_region = self.other_region, self.region


class Purpose(models.TextChoices):
    """What a pool is for."""

    TRAINING = "training", _("training")
    SERVING = "serving", _("serving")
    INTERACTIVE = "interactive", _("interactive")


class Pool(models.Model):
    """Nodes of one kind in one failure domain."""

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[name_validator])
    domain = models.ForeignKey(Domain, on_delete=models.PROTECT, related_name="pools")
    accelerator = models.CharField(_("accelerator"), max_length=32)
    nodes = models.PositiveIntegerField(_("nodes"), validators=[MinValueValidator(1)])
    gpus_per_node = models.PositiveSmallIntegerField(
        _("GPUs per node"), validators=[MinValueValidator(1)]
    )
    storage = models.ForeignKey(
        Storage, on_delete=models.PROTECT, related_name="pools", null=True, blank=True
    )
    purpose = models.CharField(
        _("purpose"), max_length=16, choices=Purpose.choices, default=Purpose.TRAINING
    )
    premium = models.BooleanField(_("premium"), default=False)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(nodes__gte=1) & Q(gpus_per_node__gte=1), name="pool_has_gpus"
            ),
            models.CheckConstraint(
                condition=Q(purpose__in=Purpose.values), name="pool_purpose_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def gpus(self) -> int:
        """All GPUs of the pool."""
        return self.nodes * self.gpus_per_node


class OutageKind(models.TextChoices):
    """Whether people meant it."""

    MAINTENANCE = "maintenance", _("maintenance")
    INCIDENT = "incident", _("incident")


class Outage(models.Model):
    """A time in which a pool, a domain or a whole region is or was not there."""

    region = models.ForeignKey(Region, on_delete=models.PROTECT, null=True, blank=True)
    domain = models.ForeignKey(Domain, on_delete=models.PROTECT, null=True, blank=True)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(
        _("kind"), max_length=16, choices=OutageKind.choices, default=OutageKind.INCIDENT
    )
    starts_at = models.DateTimeField(_("from"))
    ends_at = models.DateTimeField(_("until"), null=True, blank=True)
    note = models.CharField(_("note"), max_length=200, blank=True)

    class Meta:
        ordering = ["starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True) | Q(ends_at__gt=F("starts_at")),
                name="outage_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=(
                    Q(region__isnull=False, domain__isnull=True, pool__isnull=True)
                    | Q(region__isnull=True, domain__isnull=False, pool__isnull=True)
                    | Q(region__isnull=True, domain__isnull=True, pool__isnull=False)
                ),
                name="outage_of_exactly_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what}: {self.starts_at:%Y-%m-%d %H:%M}"

    @property
    def what(self) -> str:
        """The name of what is out."""
        return str(self.pool or self.domain or self.region)
