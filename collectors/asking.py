"""What the command and the task share: the site's catalogue and a region's Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl

from collectors import catalogue
from collectors.source import Access, Source
from portal import env


def site_catalogue() -> catalogue.Catalogue:
    """The catalogue with the site's own file over it; raises CatalogueError."""
    own = env.value(env.COLLECT_CATALOGUE)
    return catalogue.read(Path(own) if own else None)


def has_source(region: str) -> bool:
    """Whether an address of Prometheus is set for a region."""
    return bool(env.for_region(env.PROMETHEUS_URL, region))


@contextmanager
def source_of(region: str, *, tells_problems: bool = False) -> Iterator[Source]:
    """A region's Prometheus, opened in this process and closed at the end.

    Raises SettingError when a setting or a file that it names cannot be read; a source that
    `tells_problems` says so at every question instead, so that the collection records it.
    """
    try:
        access = access_to(region)
    except env.SettingError as error:
        if not tells_problems:
            raise
        access = Access(url=env.for_region(env.PROMETHEUS_URL, region), problem=f"{error}.")
    source = Source(access)
    try:
        yield source
    finally:
        source.close()


def access_to(region: str) -> Access:
    """How a region's Prometheus is reached, by the settings; secrets in files are read anew."""
    return Access(
        url=env.for_region(env.PROMETHEUS_URL, region),
        token=env.secret_for_region(env.PROMETHEUS_TOKEN, env.PROMETHEUS_TOKEN_FILE, region),
        username=env.for_region(env.PROMETHEUS_USERNAME, region),
        password=env.secret_for_region(
            env.PROMETHEUS_PASSWORD, env.PROMETHEUS_PASSWORD_FILE, region
        ),
        tenant=env.for_region(env.PROMETHEUS_TENANT, region),
        ca_file=env.for_region(env.PROMETHEUS_CA_FILE, region),
        client_certificate_file=env.for_region(env.PROMETHEUS_CLIENT_CERTIFICATE_FILE, region),
        parameters=dict(parse_qsl(env.for_region(env.PROMETHEUS_PARAMETERS, region))),
        max_range=_days(region),
        connect_seconds=env.value(env.PROMETHEUS_CONNECT_SECONDS),
        read_seconds=env.value(env.PROMETHEUS_READ_SECONDS),
    )


def _days(region: str) -> timedelta:
    text = env.for_region(env.PROMETHEUS_MAX_RANGE_DAYS, region)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        name, expected = env.PROMETHEUS_MAX_RANGE_DAYS.name, env.PROMETHEUS_MAX_RANGE_DAYS.expected
        raise env.SettingError(f"{name} of {region} is {text!r}; expected {expected}")
    return timedelta(days=min(int(text), 3_650))
