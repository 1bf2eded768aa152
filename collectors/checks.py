"""What `manage.py check --deploy` says of collecting: whether the site's catalogue can be read."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from collectors import asking
from collectors.catalogue import CatalogueError


@register(deploy=True)
def catalogue_is_sound(**_asked: Any) -> list[CheckMessage]:
    """Every problem of the site's catalogue (COLLECT_CATALOGUE), one message each."""
    try:
        asking.site_catalogue()
    except CatalogueError as error:
        return [Error(str(problem), id="collectors.E001") for problem in error.problems]
    return []
