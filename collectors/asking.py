"""What the command and the task share: the site's catalogue and a region's Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collectors import catalogue
from collectors.source import Source
from portal import env


def site_catalogue() -> catalogue.Catalogue:
    """The catalogue with the site's own file over it; raises CatalogueError."""
    own = env.value(env.COLLECT_CATALOGUE)
    return catalogue.read(Path(own) if own else None)


def has_source(region: str) -> bool:
    """Whether an address of Prometheus is set for a region."""
    return bool(env.for_region(env.PROMETHEUS_URL, region))


@contextmanager
def source_of(region: str) -> Iterator[Source]:
    """A region's Prometheus, opened in this process and closed at the end."""
    source = Source(
        url=env.for_region(env.PROMETHEUS_URL, region),
        token=env.for_region(env.PROMETHEUS_TOKEN, region),
        connect_seconds=env.value(env.PROMETHEUS_CONNECT_SECONDS),
        read_seconds=env.value(env.PROMETHEUS_READ_SECONDS),
    )
    try:
        yield source
    finally:
        source.close()
