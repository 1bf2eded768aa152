"""What was observed, to look at: nothing here is edited by hand."""

from django.contrib import admin
from django.http import HttpRequest

from portal.telemetry.models import (
    Claim,
    CollectionRun,
    Gap,
    HourRollup,
    ImportBatch,
    JobRecord,
    Series,
    SignalFetch,
    Watermark,
)


class ReadOnly:
    """Pages that show and never change."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody adds observations by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody edits them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody deletes them one by one."""
        return False


class SignalFetchInline(ReadOnly, admin.TabularInline):
    """The signals of a run."""

    model = SignalFetch
    fields = (
        "signal", "version", "state", "asked_from", "asked_to", "series", "samples", "rejected",
        "rows", "warnings", "error_kind", "error", "duration_seconds",
    )  # fmt: skip
    extra = 0


@admin.register(CollectionRun)
class CollectionRunAdmin(ReadOnly, admin.ModelAdmin):
    """Collection runs with their signals."""

    list_display = ("region", "started_at", "state", "asked_by", "duration_seconds")
    list_filter = ("region", "state", "asked_by")
    date_hierarchy = "started_at"
    inlines = (SignalFetchInline,)


@admin.register(Watermark)
class WatermarkAdmin(ReadOnly, admin.ModelAdmin):
    """Up to where each signal is collected."""

    list_display = ("region", "signal", "version", "collected_until", "last_sample_at")
    list_filter = ("region", "signal")


@admin.register(Gap)
class GapAdmin(ReadOnly, admin.ModelAdmin):
    """What is still to be collected behind the watermarks."""

    list_display = ("region", "signal", "version", "start", "end", "tries", "not_before")
    list_filter = ("region", "signal")


@admin.register(Claim)
class ClaimAdmin(ReadOnly, admin.ModelAdmin):
    """Who collects a region now, and how many collections were passed over."""

    list_display = ("region", "owner", "expires_at", "busy", "overdue")


@admin.register(Series)
class SeriesAdmin(ReadOnly, admin.ModelAdmin):
    """The lines of the signals."""

    list_display = ("region", "signal", "pool", "project", "lane", "storage", "detail")
    list_filter = ("region", "signal")
    search_fields = ("pool", "project", "lane", "storage", "detail")


@admin.register(HourRollup)
class HourRollupAdmin(ReadOnly, admin.ModelAdmin):
    """The hours of the series."""

    list_display = ("series", "hour", "sum_value", "count", "observed", "expected", "quality")
    list_filter = ("series__signal", "quality")
    list_select_related = ("series",)
    date_hierarchy = "hour"
    show_full_result_count = False


@admin.register(ImportBatch)
class ImportBatchAdmin(ReadOnly, admin.ModelAdmin):
    """Imports of job records and what was wrong in them."""

    list_display = ("source", "imported_at", "known_until", "rows", "note")


@admin.register(JobRecord)
class JobRecordAdmin(ReadOnly, admin.ModelAdmin):
    """Job records."""

    list_display = ("job_id", "project", "lane", "pool", "gpus", "submit_at", "state")
    list_filter = ("source", "state", "lane")
    search_fields = ("job_id", "project")
    show_full_result_count = False
