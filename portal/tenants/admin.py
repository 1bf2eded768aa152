"""Tenants, projects and who belongs to them, for administrators."""

from django.contrib import admin

from portal.tenants.models import Membership, Project, Tenant


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):
    """Tenants."""

    list_display = ("name", "label")
    search_fields = ("name", "label")


@admin.register(Project)
class ProjectAdmin(admin.ModelAdmin):
    """Projects by tenant."""

    list_display = ("name", "label", "tenant")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("name", "label")


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):
    """Who may do what inside which tenant."""

    list_display = ("user", "role", "project", "tenant")
    list_filter = ("role", "tenant")
    list_select_related = ("user", "project", "tenant")
    search_fields = ("user__email", "user__last_name", "project__name", "tenant__name")
    autocomplete_fields = ("user", "project", "tenant")
