"""Every setting Sekisho reads from the environment: one table, and nothing else reads it.

The table is the source of `.env.example` and of `docs/reference/settings.md`; a test compares all
three. Secrets have no default that could be used by mistake outside the demo.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent


class SettingError(ValueError):
    """A setting holds a value that cannot be used; says which, what it is and what was expected."""


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One environment variable: its name, default, meaning and how its text is read."""

    name: str
    default: str
    meaning: str
    read: Callable[[str], T]
    expected: str = "text"
    secret: bool = False


def _text(value: str) -> str:
    return value


def _flag(value: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    return known[value.strip().lower()]


def _whole(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError(value)
    return number


def _some(value: str) -> int:
    number = int(value)
    if number < 1:
        raise ValueError(value)
    return number


def _for_days(value: str) -> int | None:
    return _some(value) if value.strip() else None


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 < number < 1e6:
        raise ValueError(value)
    return number


def _names(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _path(value: str) -> Path:
    return (ROOT / value).resolve()


FLAG = "1 or 0"
SECONDS = "a number of seconds above 0"
WHOLE = "a whole number, 0 or more"
NAMES = "names separated by commas"
DAYS_OR_EVER = "a whole number of days, 1 or more, or nothing: for ever"

DEBUG = Setting(
    "SEKISHO_DEBUG", "0", "Show tracebacks in the browser. Never in production.", _flag, FLAG
)
DEMO = Setting(
    "SEKISHO_DEMO",
    "0",
    "Run as the demo: sign-ins are shown on the sign-in page. `make demo` sets it.",
    _flag,
    FLAG,
)
SECRET_KEY = Setting(
    "SEKISHO_SECRET_KEY",
    "",
    "Key for sessions and signatures. Required unless debug or demo.",
    _text,
    secret=True,
)
ALLOWED_HOSTS = Setting(
    "SEKISHO_ALLOWED_HOSTS",
    "127.0.0.1,localhost",
    "Host names the web server answers to.",
    _names,
    NAMES,
)
TRUSTED_ORIGINS = Setting(
    "SEKISHO_TRUSTED_ORIGINS",
    "",
    "Origins (https://…) trusted for form posts behind a proxy.",
    _names,
    NAMES,
)
HTTPS = Setting(
    "SEKISHO_HTTPS",
    "0",
    "The site is served over HTTPS: secure cookies, HSTS, redirect.",
    _flag,
    FLAG,
)
TRUSTED_PROXIES = Setting(
    "SEKISHO_TRUSTED_PROXIES",
    "0",
    "How many reverse proxies stand in front (for rate limits by address).",
    _whole,
    WHOLE,
)
DATA_DIR = Setting(
    "SEKISHO_DATA_DIR",
    "var",
    "Folder for the embedded database, the demo's files and logs.",
    _path,
    "a path",
)
DATABASE_URL = Setting(
    "DATABASE_URL",
    "",
    "PostgreSQL address. Empty: an SQLite file in the data folder.",
    _text,
    secret=True,
)
REDIS_URL = Setting(
    "REDIS_URL",
    "",
    "Redis or Valkey address for tasks and cache. Empty: the embedded server of `make demo`.",
    _text,
    secret=True,
)
PROMETHEUS_URL = Setting(
    "PROMETHEUS_URL",
    "",
    "Prometheus address of every region that has none of its own (PROMETHEUS_URL_TOKYO, …).",
    _text,
)
PROMETHEUS_TOKEN = Setting(
    "PROMETHEUS_TOKEN",
    "",
    "Bearer token sent to Prometheus (PROMETHEUS_TOKEN_TOKYO, … for one region).",
    _text,
    secret=True,
)
PROMETHEUS_TOKEN_FILE = Setting(
    "PROMETHEUS_TOKEN_FILE",
    "",
    "File that holds the bearer token, read anew by each collection: tokens change.",
    _text,
    "a path",
)
PROMETHEUS_USERNAME = Setting(
    "PROMETHEUS_USERNAME", "", "Name for Prometheus where it asks for name and password.", _text
)
PROMETHEUS_PASSWORD = Setting(
    "PROMETHEUS_PASSWORD", "", "Password to that name.", _text, secret=True
)
PROMETHEUS_PASSWORD_FILE = Setting(
    "PROMETHEUS_PASSWORD_FILE",
    "",
    "File that holds the password, read anew by each collection.",
    _text,
    "a path",
)
PROMETHEUS_TENANT = Setting(
    "PROMETHEUS_TENANT",
    "",
    "Tenant of a Mimir or Cortex, sent as X-Scope-OrgID.",
    _text,
)
PROMETHEUS_CA_FILE = Setting(
    "PROMETHEUS_CA_FILE",
    "",
    "Certificates of the authorities to trust for Prometheus. Empty: those of the machine.",
    _text,
    "a path",
)
PROMETHEUS_CLIENT_CERTIFICATE_FILE = Setting(
    "PROMETHEUS_CLIENT_CERTIFICATE_FILE",
    "",
    "Certificate and key (one PEM file) to show to Prometheus.",
    _text,
    "a path",
)
PROMETHEUS_PARAMETERS = Setting(
    "PROMETHEUS_PARAMETERS",
    "",
    "More that goes with every query, for a Thanos: dedup=true&partial_response=false.",
    _text,
    "NAME=VALUE, joined by &",
)
PROMETHEUS_MAX_RANGE_DAYS = Setting(
    "PROMETHEUS_MAX_RANGE_DAYS",
    "30",
    "How many days one request may span; managed servers refuse more than 32.",
    _text,
    "a whole number above 0",
)
PROMETHEUS_CONNECT_SECONDS = Setting(
    "PROMETHEUS_CONNECT_SECONDS",
    "3",
    "How long to wait for a connection to Prometheus.",
    _seconds,
    SECONDS,
)
PROMETHEUS_READ_SECONDS = Setting(
    "PROMETHEUS_READ_SECONDS",
    "30",
    "How long to wait for an answer of Prometheus.",
    _seconds,
    SECONDS,
)
COLLECT_CATALOGUE = Setting(
    "COLLECT_CATALOGUE",
    "",
    "A site's own catalogue (TOML) laid over the built-in one. Empty: none.",
    _text,
    "a path",
)
COLLECT_FILL_HOURS = Setting(
    "COLLECT_FILL_HOURS",
    "24",
    "How many hours of what was missed a collection makes up for, beside what is new.",
    _some,
    "a whole number, 1 or more",
)
KEEP_STEPS_DAYS = Setting(
    "KEEP_STEPS_DAYS",
    "30",
    "How long what was collected is kept in steps of five minutes.",
    _for_days,
    DAYS_OR_EVER,
)
KEEP_HOURS_DAYS = Setting(
    "KEEP_HOURS_DAYS", "730", "How long it is kept by the hour.", _for_days, DAYS_OR_EVER
)
KEEP_DAYS_DAYS = Setting(
    "KEEP_DAYS_DAYS", "", "How long it is kept by the day. Empty: for ever.", _for_days,
    DAYS_OR_EVER,
)  # fmt: skip
IMPORT_MAX_MB = Setting(
    "IMPORT_MAX_MB", "512", "How large an imported file may be, unpacked.", _some, "MB, 1 or more"
)
IMPORT_MAX_SAMPLES = Setting(
    "IMPORT_MAX_SAMPLES",
    "2000000",
    "How many samples an imported file may hold.",
    _some,
    "a whole number, 1 or more",
)
IMPORT_MAX_DAYS = Setting(
    "IMPORT_MAX_DAYS",
    "730",
    "How far back the samples of an imported file may lie.",
    _some,
    "a whole number, 1 or more",
)
REPORT_TIMEZONE = Setting(
    "SEKISHO_REPORT_TIMEZONE",
    "Asia/Tokyo",
    "Zone in which weeks are cut and shared times are shown.",
    _text,
    "an IANA zone name",
)
METRICS_TOKEN = Setting(
    "SEKISHO_METRICS_TOKEN",
    "",
    "Bearer token with which a Prometheus reads /metrics. Empty: there is no such page.",
    _text,
    secret=True,
)
LOG_LEVEL = Setting(
    "SEKISHO_LOG_LEVEL", "INFO", "Lowest level that is logged.", _text, "a logging level"
)

REGISTRY: tuple[Setting[object], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Setting)
)


def value(setting: Setting[T], environ: Mapping[str, str] | None = None) -> T:
    """The setting's value from the environment, or its default.

    Raises SettingError when the text cannot be read as what is expected.
    """
    text = (os.environ if environ is None else environ).get(setting.name, setting.default)
    try:
        return setting.read(text)
    except (ValueError, KeyError) as error:
        shown = "(hidden)" if setting.secret else repr(text)
        raise SettingError(f"{setting.name} is {shown}; expected {setting.expected}") from error


def for_region(setting: Setting[str], region: str, environ: Mapping[str, str] | None = None) -> str:
    """The setting's value for one region: NAME_REGION when set, else NAME."""
    env = os.environ if environ is None else environ
    own = f"{setting.name}_{region.upper().replace('-', '_')}"
    return env.get(own) or value(setting, env)


def secret_for_region(
    setting: Setting[str],
    file: Setting[str],
    region: str,
    environ: Mapping[str, str] | None = None,
) -> str:
    """A secret of one region: as it is set, or as its file holds it now.

    Raises SettingError when the file cannot be read.
    """
    given = for_region(setting, region, environ)
    path = for_region(file, region, environ)
    if given or not path:
        return given
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file.name} is {path!r}, which cannot be read: {error}") from error


def in_any_region(setting: Setting[str], environ: Mapping[str, str] | None = None) -> bool:
    """Whether the setting has a value for any region at all."""
    env = os.environ if environ is None else environ
    return any(
        text
        for name, text in env.items()
        if name == setting.name or name.startswith(f"{setting.name}_")
    )
