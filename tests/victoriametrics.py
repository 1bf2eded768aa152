"""A real VictoriaMetrics over the same text as a Prometheus: `with running(text) as url`.

Debian's package `victoria-metrics` is used; without it, `needed` skips with a reason.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.services import free_port

PROGRAM = "victoria-metrics"
needed = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        not shutil.which(PROGRAM),
        reason=f"no {PROGRAM} on the PATH (Debian: apt-get install {PROGRAM})",
    ),
]


@contextmanager
def running(openmetrics_text: str) -> Iterator[str]:
    """Starts VictoriaMetrics on a free port and imports the samples; gives its address."""
    with tempfile.TemporaryDirectory(prefix="sekisho-victoria-") as folder:
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        log = Path(folder) / "log"
        with log.open("w") as said:
            process = subprocess.Popen(
                [PROGRAM, f"-storageDataPath={folder}/data", f"-httpListenAddr=127.0.0.1:{port}",
                 "-retentionPeriod=100y", "-search.latencyOffset=0s", "-loggerLevel=WARN",
                 "-search.disableCache"],
                stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            _wait_until_ready(process, address, log)
            requests.post(
                f"{address}/api/v1/import/prometheus", data=_in_milliseconds(openmetrics_text),
                timeout=60,
            ).raise_for_status()  # fmt: skip
            # What was imported is searchable when its buffers are written.
            requests.get(f"{address}/internal/force_flush", timeout=60).raise_for_status()
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)


def _in_milliseconds(text: str) -> bytes:
    """OpenMetrics text has seconds, this import wants milliseconds; types and the end go."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            sample, _, second = line.rpartition(" ")
            lines.append(f"{sample} {float(second) * 1000:.0f}")
    return "\n".join([*lines, ""]).encode()


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"VictoriaMetrics ended at once: {log.read_text()[-2000:]}")
        try:
            if requests.get(f"{address}/health", timeout=1).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"VictoriaMetrics is not ready after 30 s: {log.read_text()[-2000:]}")
