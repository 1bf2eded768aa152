"""People, for administrators."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User


@admin.register(User)
class PersonAdmin(UserAdmin):
    """People with their office; what they may do inside a tenant is a membership."""

    list_display = ("email", "first_name", "last_name", "office", "is_staff", "is_active")
    list_filter = ("office", "is_staff", "is_active")
    search_fields = ("email", "username", "first_name", "last_name")
    ordering = ("email",)
    fieldsets: ClassVar[Any] = (
        *(UserAdmin.fieldsets or ()),
        (_("Office"), {"fields": ("office",)}),
    )
    add_fieldsets: Any = (
        (None, {"classes": ("wide",), "fields": ("username", "email", "password1", "password2")}),
        (_("Office"), {"fields": ("office",)}),
    )
