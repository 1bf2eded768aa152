"""Records what the demo's jobs have done since the last time."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from portal.demo import services


class Command(BaseCommand):
    """Records what the demo's jobs have done since the last time."""

    help = __doc__ or ""

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Ticks once and says how many jobs were told of."""
        self.stdout.write(f"Told of {services.tick(now=timezone.now())} jobs.")
