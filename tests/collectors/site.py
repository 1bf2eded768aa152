"""A whole site of its own, to be broken: `with Site(history) as site`.

PostgreSQL, Redis, a Prometheus behind a proxy that misbehaves, two workers, two beats.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import requests

from tests import services
from tests.collectors.servers import Reply, Request, answering
from tests.conftest import ROOT
from tests.prometheus import running

APP = "tests.collectors.site_app"
READ_SECONDS = 0.6
Started = contextlib.AbstractContextManager[subprocess.Popen[bytes]]


@dataclass(slots=True)
class Server:
    """A process that can be ended and started again at the same place."""

    make: Callable[[], Started]
    _running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process; its children are those of the service."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Comes back when it is ready."""
        self._process = self._running.enter_context(self.make())

    def end(self, how: signal.Signals, *, with_children: bool = False) -> None:
        """Sends the signal and waits for the end."""
        assert self._process is not None
        if with_children:
            os.killpg(self.pid, how)
        else:
            self._process.send_signal(how)
        self._process.wait(20)
        self.close()

    def close(self) -> None:
        """Ends it, if it still runs."""
        self._running.close()


class Proxy:
    """Hands requests on to Prometheus; some are dropped, cut off, refused or delayed."""

    def __init__(self, upstream: str, draw: random.Random) -> None:
        self.faults_ratio = 0.0
        self.requests = 0
        self._upstream = upstream
        self._draw = draw

    def reply(self, request: Request) -> Reply:
        """What the client gets."""
        self.requests += 1
        fault = None
        if self._draw.random() < self.faults_ratio:
            fault = self._draw.choice(["drop", "cut", "refuse", "delay", "too late"])
        if fault == "drop":
            return Reply(hangs_up=True)
        if fault == "refuse":
            return Reply("overloaded", 503)
        # The client has brought its words back to plain ones: so are they sent on.
        answer = requests.get(f"{self._upstream}{request.path}", params=request.query, timeout=20)
        said = Reply(answer.text, answer.status_code)
        if fault == "cut":
            return Reply(said.body[: len(said.body) // 2], said.status, promise_more=100)
        if fault == "delay":
            return Reply(said.body, said.status, wait_seconds=READ_SECONDS / 2)
        if fault == "too late":
            return Reply(said.body, said.status, wait_seconds=READ_SECONDS * 1.5)
        return said


class Site:
    """Everything that runs, and what is in its database."""

    def __init__(self, history: str, draw: random.Random) -> None:
        self._history = history
        self._draw = draw
        self._stack = contextlib.ExitStack()
        self.workers: list[Server] = []
        self.beats: list[Server] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in [*self.beats, *self.workers]:
            server.end(signal.SIGKILL, with_children=True)  # nobody waits for good order
        self._stack.close()

    def _start(self) -> None:
        self.folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sekisho-site-"))
        )
        services.make_cluster(self.folder)
        self._database, broker = services.free_port(), services.free_port()
        self.postgres = self._server(lambda: services.postgres_server(self.folder, self._database))
        self.redis = self._server(lambda: services.redis_server(self.folder, broker))
        self._prometheus = self._stack.enter_context(running(self._history))
        self.proxy = Proxy(self._prometheus, self._draw)
        address, _seen = self._stack.enter_context(answering(self.proxy.reply))
        self.clock = self.folder / "clock"
        self._env = os.environ | {
            "SEKISHO_DATA_DIR": str(self.folder),
            "SEKISHO_LOG_LEVEL": "INFO",
            "REDIS_URL": f"redis://127.0.0.1:{broker}/0",
            "PROMETHEUS_URL": address,
            "PROMETHEUS_READ_SECONDS": str(READ_SECONDS),
            "SITE_CLOCK": str(self.clock),
            # Midnight is 03:00 UTC there: a day ends in the middle of the story.
            "SEKISHO_REPORT_TIMEZONE": "America/Sao_Paulo",
        }
        services.make_database(self._database, "sekisho")
        self.python("manage.py", "migrate", "--verbosity", "0")
        with self.database() as database:
            database.execute(
                "INSERT INTO fleet_region (name, label, label_ja, timezone)"
                " VALUES ('tokyo', 'Tokyo', '東京', 'Asia/Tokyo')"
            )
        with self.database("postgres") as database:
            database.execute("CREATE DATABASE undisturbed TEMPLATE sekisho")

    def _server(self, make: Callable[[], Started]) -> Server:
        made = Server(make)
        self._stack.callback(made.close)
        made.start()
        return made

    def start_workers(self) -> None:
        """Two workers of one process each, and two beats."""
        worker = ["worker", "--queues", "collect", "--concurrency", "1", "--without-gossip",
                  "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]  # fmt: skip
        self.workers = [self._celery(f"worker-{n}", worker) for n in range(2)]
        self.beats = [
            self._celery(f"beat-{n}", ["beat", "--schedule", str(self.folder / f"beat-{n}.db")])
            for n in range(2)
        ]

    def _celery(self, name: str, arguments: Sequence[str]) -> Server:
        command = [sys.executable, "-m", "celery", "-A", APP, *arguments]
        if arguments[0] == "worker":
            command += ["--hostname", f"{name}@%h"]
        env = self._env | {"DATABASE_URL": self.address("sekisho")}
        return self._server(
            lambda: services.service(
                name, command, log=self.folder / f"{name}.log", env=env, ready=lambda: True
            )
        )

    def address(self, database: str) -> str:
        """DATABASE_URL of a database of the cluster."""
        return f"postgres://sekisho@127.0.0.1:{self._database}/{database}"

    def database(self, name: str = "sekisho") -> psycopg.Connection[Any]:
        """A connection of the test's own."""
        return psycopg.connect(self.address(name), autocommit=True)

    def python(self, *arguments: str, **env: str) -> None:
        """Runs one of our programs to its end."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
            env=self._env | {"DATABASE_URL": self.address("sekisho")} | env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]

    def undisturbed(self, instants: Sequence[datetime]) -> str:
        """Collects at these instants straight from Prometheus; gives the name of the database."""
        self.python(
            "-m", APP, "undisturbed", *(instant.isoformat() for instant in instants),
            DATABASE_URL=self.address("undisturbed"), PROMETHEUS_URL=self._prometheus,
            SITE_CLOCK=str(self.folder / "clock-undisturbed"), PROMETHEUS_READ_SECONDS="20",
        )  # fmt: skip
        return "undisturbed"

    def set_clock(self, now: datetime) -> None:
        """What tasks take for now."""
        new = self.clock.with_suffix(".new")
        new.write_text(now.isoformat())
        new.replace(self.clock)

    def kill_collecting(self) -> int:
        """Kills the processes that collect, not those that started them; gives how many."""
        killed = 0
        for worker in self.workers:
            for child in _children(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                    killed += 1
        return killed

    def logs(self) -> str:
        """The last words of everything."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def wait_until(what: Callable[[], bool], *, seconds: float, step_seconds: float = 0.05) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(step_seconds)
    return False
