"""A small exporter that goes on telling the demo's story: `python -m portal.demo.exporter`.

Answers GET /REGION/JOB in Prometheus's text format. It needs neither Django nor the database: the
story follows from the demo's first day.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

from portal.demo import exposition, story

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Exporter(BaseHTTPRequestHandler):
    """Answers a scrape with what the story says at this moment."""

    def __init__(self, *args: Any, first_day: date) -> None:
        self.first_day = first_day
        super().__init__(*args)

    def do_GET(self) -> None:
        """Serves /REGION/JOB; anything else is not here."""
        now = datetime.now(UTC)
        told = story.tell(first_day=self.first_day, now=now)
        regions = {region.name for region in told.trace.scenario.regions}
        region, _slash, job = self.path.strip("/").partition("/")
        if region not in regions or job not in exposition.JOBS:
            self.send_error(404)
            return
        body = exposition.scrape(told, region=region, job=job, second=told.seconds(now)).encode()
        self.send_response(200)
        self.send_header("Content-Type", TEXT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # Prometheus gave up waiting; it asks again
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Says nothing of every scrape."""


def server(*, first_day: date, port: int) -> BaseServer:
    """An exporter on a port of this machine, not yet serving."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Exporter, first_day=first_day))


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser(description="Tells the demo's story to Prometheus.")
    parser.add_argument("--first-day", type=date.fromisoformat, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    with server(first_day=options.first_day, port=options.port) as serving:
        serving.serve_forever()


if __name__ == "__main__":
    main()
