"""Names of places in the reader's language."""

from django.utils.translation import get_language

from portal.fleet.models import Region


def region_label(region: Region) -> str:
    """The region's name in the reader's language."""
    japanese = (get_language() or "").startswith("ja")
    return (region.label_ja if japanese else "") or region.label or region.name
