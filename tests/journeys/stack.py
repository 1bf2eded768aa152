"""Starts the whole product on a demo world of its own: web server, worker, database, broker."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests import services
from tests.conftest import ROOT

DATABASE = "sekisho_journeys"
BROKER_NUMBER = 9
SEED_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Stack:
    """The address of a running Sekisho, and where its processes write their logs."""

    url: str
    logs: Path


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """The stack on PostgreSQL and Redis where `make test` gives them, else on SQLite."""
    with contextlib.ExitStack() as stack:
        port = services.free_port()
        env = os.environ | {
            "SEKISHO_DATA_DIR": str(folder / "data"),
            "SEKISHO_DEMO": "1",
            "SEKISHO_SECRET_KEY": "of-the-journeys-only-" * 3,
            "DATABASE_URL": _own_database(os.environ.get("DATABASE_URL", "")),
            "REDIS_URL": _own_broker(os.environ.get("REDIS_URL", ""))
            or stack.enter_context(services.redis(folder)),
        }
        for command in ("migrate", "seed_demo"):
            _manage(command, env, folder)
        stack.enter_context(
            services.service(
                "The worker",
                [
                    sys.executable, "-m", "celery", "-A", "portal.celery", "worker",
                    "--queues", "collect,simulate,report", "--concurrency", "1",
                    "--without-gossip", "--without-mingle", "--loglevel", "INFO",
                ],
                log=folder / "worker.log", env=env, start_seconds=60,
                ready=lambda: " ready." in (folder / "worker.log").read_text(),
            )
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        stack.enter_context(
            services.service(
                "The web server",
                [
                    sys.executable, "-m", "gunicorn", "portal.wsgi", "--bind", f"127.0.0.1:{port}",
                    "--workers", "1", "--threads", "4", "--access-logfile", "-",
                ],
                log=folder / "web.log", env=env, ready=lambda: _ready(url), start_seconds=60,
            )
        )  # fmt: skip
        yield Stack(url, folder)


def _own_database(url: str) -> str:
    """A new database beside the one that the unit tests use; empty means SQLite."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("postgres") or parts.port is None:
        return ""
    services.make_database(parts.port, DATABASE)
    return parts._replace(path=f"/{DATABASE}").geturl()


def _own_broker(url: str) -> str:
    """Another numbered database of the same Redis; empty when there is none."""
    return urlsplit(url)._replace(path=f"/{BROKER_NUMBER}").geturl() if url else ""


def _manage(command: str, env: dict[str, str], folder: Path) -> None:
    with (folder / f"{command}.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "manage.py", command],
            cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT, check=False,
            timeout=SEED_SECONDS,
        )  # fmt: skip
    if done.returncode:
        said = (folder / f"{command}.log").read_text()[-3000:]
        raise services.ServiceError(f"manage.py {command} failed:\n{said}")


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
