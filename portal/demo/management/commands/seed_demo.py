"""Fills an empty database with the demo world, or adds the time that a demo has missed."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from portal.demo import services


class Command(BaseCommand):
    """Fills an empty database with the demo world, or adds the time that a demo has missed."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """`--migrate` brings the database up to date first."""
        parser.add_argument("--migrate", action="store_true", help="migrate the database first")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Seeds and says what was written."""
        if options["migrate"]:
            call_command("migrate", verbosity=0, interactive=False)
        told = services.seed(now=timezone.now())
        what = "Made the demo world" if told.seeded else "Kept the demo world"
        self.stdout.write(f"{what}; told {told.jobs} jobs and {told.hours} hours of signals.")
