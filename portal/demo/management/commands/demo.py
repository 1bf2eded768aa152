"""Runs the demo: everything Sekisho consists of, on this machine, until Ctrl-C."""

from datetime import date
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from portal.demo import launcher, services


class Command(BaseCommand):
    """Runs the demo: everything Sekisho consists of, on this machine, until Ctrl-C."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The port of the web server."""
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Runs until Ctrl-C (status 0), or until something fails (a sentence, status 1)."""
        if not settings.DEMO:
            raise CommandError("Start the demo with `make demo`: it sets what the demo needs.")
        demo = launcher.Demo(
            root=settings.ROOT,
            data=settings.DATA_DIR,
            port=options["port"],
            say=self._say,
            first_day=_first_day,
            environ=launcher.environment(data=settings.DATA_DIR),
        )
        try:
            demo.run()
        except launcher.DemoError as error:
            raise CommandError(str(error)) from error
        except launcher.Interrupted:
            self.stdout.write("Stopped. The data is kept; `make demo-reset` starts over.")

    def _say(self, sentence: str) -> None:
        """Says it at once, also into a pipe or a file."""
        self.stdout.write(sentence)
        self.stdout.flush()


def _first_day() -> date | None:
    day = services.first_day()
    connection.close()
    return day
