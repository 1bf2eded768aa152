"""Child processes that never outlive the demo: each in a group of its own, ended together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PR_SET_PDEATHSIG = 1
PATIENCE_SECONDS = 8.0
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class StoppingError(Exception):
    """The demo is being stopped; nothing new is started."""


def _end_with_parent() -> None:
    """Asks Linux to end this child when its parent dies, even when the parent is killed."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Children:
    """The processes that the demo has started, with one log file each."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._stopping = False
        # Linux counts the thread that starts a child as its parent: were it a passing one, the
        # child would end with it. This one stays as long as the launcher does.
        self._parent = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parent")
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        text: str | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a process; `text` is handed to it on its standard input."""
        with self._lock:
            if self._stopping:
                raise StoppingError(name)
            with self.log(name).open("wb") as log:
                child = self._parent.submit(
                    subprocess.Popen,
                    [str(part) for part in command],
                    env=dict(env),
                    stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                ).result()
            self._running[name] = child
        if text is not None and child.stdin is not None:
            child.stdin.write(text.encode())
            child.stdin.close()
        return child

    def run(self, name: str, command: Sequence[str | Path], *, env: Mapping[str, str]) -> int:
        """Starts a process, waits for its end and returns its exit status."""
        child = self.start(name, command, env=env)
        status = child.wait()
        with self._lock:
            if self._stopping:
                raise StoppingError(name)
            self._running.pop(name, None)
        return status

    def log(self, name: str) -> Path:
        """Where a process writes what it has to say."""
        return self.logs / f"{name}.log"

    def crashed(self, *, among: Sequence[str]) -> str | None:
        """The name of a process that has ended although it should not have, if any."""
        with self._lock:
            running = dict(self._running)
        return next(
            (name for name, child in running.items() if name in among and child.poll() is not None),
            None,
        )

    def stop(self) -> None:
        """Ends everything that was started, politely first, and waits until it is gone."""
        with self._lock:
            self._stopping = True
            running = list(self._running.values())[::-1]
        for child in running:
            _tell(child, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        for child in running:
            try:
                child.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        # Whoever is left of a group, also workers of a parent that has gone, ends now.
        for child in running:
            _tell(child, signal.SIGKILL)
            child.wait()


def _tell(child: subprocess.Popen[bytes], what: signal.Signals) -> None:
    try:
        os.killpg(child.pid, what)
    except (ProcessLookupError, PermissionError):
        return  # the whole group is gone already
