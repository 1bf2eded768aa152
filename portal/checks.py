"""System checks of the settings: each has an id and says what to do."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks  # noqa: A004
from django.core.exceptions import ImproperlyConfigured

from portal import env

SETTINGS = "settings"


@register(SETTINGS)
def settings_are_usable(
    app_configs: Sequence[AppConfig] | None, **_kwargs: object
) -> list[CheckMessage]:
    """Says which settings are missing or cannot work together."""
    found: list[CheckMessage] = []
    if not settings.SECRET_KEY_IS_OWN and not (settings.DEBUG or settings.DEMO):
        found.append(
            Error(
                "SEKISHO_SECRET_KEY is not set.",
                hint="Set 50 or more random characters: sessions and signatures depend on it.",
                id="sekisho.E001",
            )
        )
    try:
        ZoneInfo(settings.REPORT_TIMEZONE)
    except (ZoneInfoNotFoundError, ValueError):
        found.append(
            Error(
                f"SEKISHO_REPORT_TIMEZONE is {settings.REPORT_TIMEZONE!r}.",
                hint="Use an IANA zone name such as Asia/Tokyo.",
                id="sekisho.E002",
            )
        )
    if not env.value(env.REDIS_URL):
        found.append(
            Warning(
                "REDIS_URL is not set: tasks have no broker, and each web process counts failed"
                " sign-ins for itself.",
                hint="`make demo` starts an embedded server; in production point to Redis.",
                id="sekisho.W001",
            )
        )
    return found


def refuse_unusable_settings() -> None:
    """Raises when a setting is missing or cannot be used: only manage.py checks by itself."""
    errors = [found for found in run_checks(tags=[SETTINGS]) if found.is_serious()]
    if errors:
        raise ImproperlyConfigured("\n".join(str(error) for error in errors))
