"""What was observed: rollups of Prometheus signals, how they were collected, and job records.

Names of pools, projects, lanes and storages are kept as the source spelled them: an unknown name is
shown as it is, never dropped.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from portal.fleet.models import Region


class Quality(models.TextChoices):
    """How much of the truth stands behind a figure."""

    COMPLETE = "complete", _("complete")
    PARTIAL = "partial", _("partial")


class Series(models.Model):
    """One line of a signal: what it measures, where, for whom."""

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="series")
    signal = models.CharField(max_length=63)
    pool = models.CharField(max_length=63, blank=True, default="")
    project = models.CharField(max_length=63, blank=True, default="")
    lane = models.CharField(max_length=63, blank=True, default="")
    storage = models.CharField(max_length=63, blank=True, default="")
    detail = models.CharField(max_length=63, blank=True, default="")

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(
                fields=["region", "signal", "pool", "project", "lane", "storage", "detail"],
                name="series_once",
            )
        ]

    def __str__(self) -> str:
        parts = (self.signal, self.pool, self.project, self.lane, self.storage, self.detail)
        return "/".join(part for part in parts if part)


class Rollup(models.Model):
    """A stretch of a series: what can be added up; ratios and quantiles are made when asked.

    `sum_value / count` is the mean over its samples; `buckets` maps the upper bound of a histogram
    bucket (as text, "+Inf" last) to how many events of this stretch fell at or below it. Of
    `expected` five-minute steps `observed` had a sample.
    """

    # The unique key of each level begins with the series: another index would only cost writes.
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+", db_index=False)
    version = models.CharField(max_length=16)
    sum_value = models.FloatField(null=True)
    count = models.FloatField(default=0)
    min_value = models.FloatField(null=True)
    max_value = models.FloatField(null=True)
    buckets = models.JSONField(null=True)
    last_value = models.FloatField(null=True)
    last_at = models.DateTimeField(null=True)
    observed = models.PositiveSmallIntegerField()
    expected = models.PositiveSmallIntegerField()
    quality = models.CharField(max_length=16, choices=Quality.choices, default=Quality.COMPLETE)

    class Meta:
        abstract = True


class StepRollup(Rollup):
    """Five minutes of a series from `at` on, as they were fetched. Kept for some weeks."""

    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at"])]
        constraints = [
            models.UniqueConstraint(
                fields=["series", "at", "version"], name="step_rollup_once_per_version"
            ),
            models.CheckConstraint(
                condition=Q(observed__lte=F("expected")),
                name="step_rollup_observed_within_expected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series} {self.at:%Y-%m-%d %H:%M}"


class HourRollup(Rollup):
    """One hour of a series, made as a whole from its steps. Kept for years."""

    hour = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["hour"])]
        constraints = [
            models.UniqueConstraint(
                fields=["series", "hour", "version"], name="hour_rollup_once_per_version"
            ),
            models.CheckConstraint(
                condition=Q(observed__lte=F("expected")),
                name="hour_rollup_observed_within_expected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series} {self.hour:%Y-%m-%d %H}"


class DayRollup(Rollup):
    """One day of a series, made as a whole from its hours. Kept for ever unless a site says else.

    `day` is the instant at which the day begins in the site's time zone: a day may have 23 or 25
    hours, and `expected` twelve steps for each.
    """

    day = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["day"])]
        constraints = [
            models.UniqueConstraint(
                fields=["series", "day", "version"], name="day_rollup_once_per_version"
            ),
            models.CheckConstraint(
                condition=Q(observed__lte=F("expected")),
                name="day_rollup_observed_within_expected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series} {self.day:%Y-%m-%d}"


class RunState(models.TextChoices):
    """How a collection ended."""

    RUNNING = "running", _("running")
    COMPLETE = "complete", _("complete")
    PARTIAL = "partial", _("partial")
    FAILED = "failed", _("failed")


class CollectionRun(models.Model):
    """One attempt to collect a region's signals: what was asked, what came, how long it took.

    `error` says why the region as a whole could not be asked, or was asked no further.
    """

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="runs")
    asked_by = models.CharField(max_length=32)
    source = models.CharField(max_length=200)
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.RUNNING)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    duration_seconds = models.FloatField(null=True)
    error_kind = models.CharField(max_length=32, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-started_at"]
        indexes = [models.Index(fields=["region", "-started_at"])]
        constraints = [
            # Two collections of one region at a time would do the same work twice.
            models.UniqueConstraint(
                fields=["region"],
                condition=Q(state="running"),
                name="collection_run_one_at_a_time_per_region",
            )
        ]

    def __str__(self) -> str:
        return f"{self.region} {self.started_at:%Y-%m-%d %H:%M} {self.state}"


class SignalFetch(models.Model):
    """One signal in a collection run: the query, the window, what came, what was wrong."""

    run = models.ForeignKey(CollectionRun, on_delete=models.CASCADE, related_name="fetches")
    signal = models.CharField(max_length=63)
    version = models.CharField(max_length=16)
    query = models.TextField()
    asked_from = models.DateTimeField()
    asked_to = models.DateTimeField()
    state = models.CharField(max_length=16, choices=RunState.choices)
    series = models.PositiveIntegerField(default=0)
    samples = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    warnings = models.JSONField(default=list)
    error_kind = models.CharField(max_length=32, blank=True)
    error = models.TextField(blank=True)
    duration_seconds = models.FloatField()

    class Meta:
        verbose_name_plural = "signal fetches"
        constraints = [
            models.CheckConstraint(
                condition=Q(asked_to__gt=F("asked_from")), name="signal_fetch_window_not_empty"
            )
        ]

    def __str__(self) -> str:
        return f"{self.signal} {self.state}"


class Watermark(models.Model):
    """Up to where a signal of a region is collected; the next collection goes on from here."""

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="watermarks")
    signal = models.CharField(max_length=63)
    version = models.CharField(max_length=16)
    collected_until = models.DateTimeField()
    last_sample_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["region", "signal", "version"], name="watermark_once_per_signal"
            )
        ]

    def __str__(self) -> str:
        return f"{self.region} {self.signal}: {self.collected_until:%Y-%m-%d %H:%M}"


class Gap(models.Model):
    """A stretch behind the watermark of a signal that has not come yet, or only in part.

    Asked in vain `tries` times; it is not asked again before `not_before`. It goes when it came.
    """

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="gaps")
    signal = models.CharField(max_length=63)
    version = models.CharField(max_length=16)
    start = models.DateTimeField()
    end = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["region", "signal", "version", "start"], name="gap_once_per_signal"
            ),
            models.CheckConstraint(condition=Q(end__gt=F("start")), name="gap_not_empty"),
        ]

    def __str__(self) -> str:
        stretch = f"{self.start:%Y-%m-%d %H:%M} to {self.end:%Y-%m-%d %H:%M}"
        return f"{self.region} {self.signal}: {stretch}"


class Claim(models.Model):
    """Who collects a region now: nobody else does until it is given back or has expired.

    Collections that were not made are counted: those that met another one (`busy`), and those that
    came too late to be worth it (`overdue`).
    """

    region = models.OneToOneField(Region, on_delete=models.CASCADE, related_name="claim")
    owner = models.CharField(max_length=64, blank=True, default="")
    expires_at = models.DateTimeField(null=True)
    busy = models.PositiveBigIntegerField(default=0)
    overdue = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.region}: {self.owner or 'nobody'}"


class HourCoverage(models.Model):
    """What came of a signal in one hour of a region: kept whatever came, so that gaps have a row.

    Of `expected` five-minute steps `observed` had a sample, from at most `series` lines; `rejected`
    samples were no measurements; `partial` when a server said that it did not answer in full. An
    hour without a row was not collected (yet); one that only an import brought is `imported`. Of a
    `gauge` there is always something to see; a count that never rose may have no line at all.
    """

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="coverage")
    signal = models.CharField(max_length=63)
    hour = models.DateTimeField()
    observed = models.PositiveSmallIntegerField()
    expected = models.PositiveSmallIntegerField()
    series = models.PositiveIntegerField()
    rejected = models.PositiveIntegerField(default=0)
    gauge = models.BooleanField(default=True)
    partial = models.BooleanField(default=False)
    imported = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["region", "signal", "hour"], name="hour_coverage_once"),
            models.CheckConstraint(
                condition=Q(observed__lte=F("expected")),
                name="hour_coverage_observed_within_expected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.region} {self.signal} {self.hour:%Y-%m-%d %H}: {self.observed}"


class DoubtKind(models.TextChoices):
    """Why figures of a region cannot all be true."""

    HELD_OVER_INSTALLED = "held-over-installed", _("more GPUs held than installed")
    SEEN_OVER_INSTALLED = "seen-over-installed", _("more GPUs report than installed")
    QUEUE_STANDS_STILL = "queue-stands-still", _("jobs wait, and nothing arrives or starts")
    HELD_AGAINST_RECORDS = "held-against-records", _("scheduler and job records differ")
    CLOCK_OFF = "clock-off", _("a clock is off")


class Doubt(models.Model):
    """Two figures of a region that contradict each other, for as long as they do."""

    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="doubts")
    kind = models.CharField(max_length=32, choices=DoubtKind.choices)
    subject = models.CharField(max_length=127, blank=True)
    found = models.FloatField()
    against = models.FloatField()
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["region", "kind", "subject"], name="doubt_once")
        ]

    def __str__(self) -> str:
        return f"{self.region} {self.kind} {self.subject}".rstrip()


class ImportKind(models.TextChoices):
    """What an import brought."""

    JOBS = "jobs", _("job records")
    ROLLUPS = "rollups", _("signals")


class ImportBatch(models.Model):
    """One import: where it came from, what was wrong with it, and until when it tells the truth.

    What came with it carries its key, so that it can be undone as one. `digest` is the SHA-256 of
    the file, where there was one; `problems` holds the first ones, `problems_count` all.
    """

    kind = models.CharField(max_length=16, choices=ImportKind.choices, default=ImportKind.JOBS)
    region = models.ForeignKey(
        Region, on_delete=models.PROTECT, related_name="imports", null=True, blank=True
    )
    source = models.CharField(max_length=63)
    note = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    imported_at = models.DateTimeField()
    known_until = models.DateTimeField()
    undone_at = models.DateTimeField(null=True, blank=True)
    rows = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list)
    problems_count = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "import batches"

    def __str__(self) -> str:
        return f"{self.source} {self.imported_at:%Y-%m-%d %H:%M}"

    @property
    def version(self) -> str:
        """The version that its rollups carry."""
        return f"import-{self.pk}"


class JobState(models.TextChoices):
    """Where a job stands."""

    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    SUSPENDED = "suspended", _("suspended")
    FINISHED = "finished", _("finished")
    CANCELLED = "cancelled", _("cancelled")
    UNSCHEDULABLE = "unschedulable", _("can never run")


class JobRecord(models.Model):
    """A job as its scheduler recorded it: what it asked for, when it ran, what it lost."""

    source = models.CharField(max_length=63)
    job_id = models.CharField(max_length=127)
    batch = models.ForeignKey(ImportBatch, on_delete=models.CASCADE, related_name="jobs")
    project = models.CharField(max_length=63)
    lane = models.CharField(max_length=63)
    pool = models.CharField(max_length=63, blank=True)
    gpus = models.PositiveIntegerField()
    submit_at = models.DateTimeField()
    first_start_at = models.DateTimeField(null=True)
    end_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, choices=JobState.choices)
    reason = models.CharField(max_length=32, blank=True)
    total_wait_seconds = models.BigIntegerField(null=True)
    work_seconds = models.BigIntegerField()
    limit_seconds = models.BigIntegerField(null=True)
    accelerator = models.CharField(max_length=32, blank=True)
    pools = models.JSONField(default=list)
    regions = models.JSONField(default=list)
    data_region = models.CharField(max_length=63, blank=True)
    data_gb = models.DecimalField(max_digits=14, decimal_places=3, default=0)
    checkpoint_interval_seconds = models.PositiveIntegerField(default=0)
    checkpoint_gb = models.DecimalField(max_digits=12, decimal_places=3, default=0)
    restart_seconds = models.PositiveIntegerField(default=0)
    attempts_count = models.PositiveIntegerField(default=0)
    preemptions = models.PositiveIntegerField(default=0)
    staged_gb = models.DecimalField(max_digits=14, decimal_places=3, default=0)

    class Meta:
        indexes = [
            models.Index(fields=["submit_at"]),
            models.Index(fields=["end_at"]),
            models.Index(fields=["project", "submit_at"]),
            models.Index(fields=["state"]),
        ]
        constraints = [
            models.UniqueConstraint(fields=["source", "job_id"], name="job_record_once"),
            models.CheckConstraint(condition=Q(gpus__gte=1), name="job_record_has_gpus"),
            models.CheckConstraint(
                condition=Q(state__in=JobState.values), name="job_record_state_known"
            ),
            models.CheckConstraint(
                condition=Q(first_start_at__isnull=True) | Q(first_start_at__gte=F("submit_at")),
                name="job_record_starts_after_submit",
            ),
        ]

    def __str__(self) -> str:
        return self.job_id


class AttemptRecord(models.Model):
    """One attempt of a job: where it ran, how it ended, and what its GPU-seconds went into."""

    job = models.ForeignKey(JobRecord, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    pool = models.CharField(max_length=63)
    start_at = models.DateTimeField()
    end_at = models.DateTimeField(null=True)
    ended = models.CharField(max_length=16)
    ground = models.CharField(max_length=16, blank=True)
    evicted_by_job = models.CharField(max_length=127, blank=True)
    evicted_by_project = models.CharField(max_length=63, blank=True)
    evicted_by_lane = models.CharField(max_length=63, blank=True)
    useful_gpu_seconds = models.BigIntegerField(default=0)
    lost_gpu_seconds = models.BigIntegerField(default=0)
    checkpoint_gpu_seconds = models.BigIntegerField(default=0)
    restart_gpu_seconds = models.BigIntegerField(default=0)
    staging_gpu_seconds = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["job", "number"]
        indexes = [models.Index(fields=["start_at"]), models.Index(fields=["end_at"])]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_record_once"),
            models.CheckConstraint(
                condition=Q(end_at__isnull=True) | Q(end_at__gte=F("start_at")),
                name="attempt_record_ends_after_it_starts",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job} #{self.number}"
