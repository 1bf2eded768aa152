"""The intended hardware, for administrators."""

from django.contrib import admin

from portal.fleet.models import Domain, Link, Outage, Pool, Region, Storage


@admin.register(Region)
class RegionAdmin(admin.ModelAdmin):
    """Regions with their time zone."""

    list_display = ("name", "label", "label_ja", "timezone")
    search_fields = ("name", "label", "label_ja")


@admin.register(Domain)
class DomainAdmin(admin.ModelAdmin):
    """Failure domains by region."""

    list_display = ("name", "region")
    list_filter = ("region",)
    list_select_related = ("region",)
    search_fields = ("name",)


@admin.register(Storage)
class StorageAdmin(admin.ModelAdmin):
    """Checkpoint storage, and what it is lost with."""

    list_display = ("name", "region", "domain", "write_gb_per_second")
    list_filter = ("region", "domain")
    list_select_related = ("region", "domain")
    search_fields = ("name",)


@admin.register(Link)
class LinkAdmin(admin.ModelAdmin):
    """The network between regions."""

    list_display = ("__str__", "gbps")
    list_filter = ("region",)
    list_select_related = ("region", "other_region")
    search_fields = ("region__name", "other_region__name")


@admin.register(Pool)
class PoolAdmin(admin.ModelAdmin):
    """Pools with their size and where they stand."""

    list_display = (
        "name", "domain", "accelerator", "nodes", "gpus_per_node", "gpus", "purpose", "premium",
        "storage",
    )  # fmt: skip
    list_filter = ("domain__region", "domain", "accelerator", "purpose", "premium")
    list_select_related = ("domain", "storage")
    search_fields = ("name", "accelerator")


@admin.register(Outage)
class OutageAdmin(admin.ModelAdmin):
    """Maintenance and incidents."""

    list_display = ("what", "kind", "starts_at", "ends_at", "note")
    list_filter = ("kind", "region", "domain", "pool")
    list_select_related = ("region", "domain", "pool")
    search_fields = ("note", "region__name", "domain__name", "pool__name")
    date_hierarchy = "starts_at"
