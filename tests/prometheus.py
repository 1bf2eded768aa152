"""A real Prometheus over a small OpenMetrics text: `with running(text) as url`.

Debian's packages `prometheus` and `promtool` are used; without them, `needed` skips with a reason.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import requests

needed = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("promtool")),
        reason="no prometheus and promtool on the PATH (Debian: apt-get install prometheus)",
    ),
]


@contextmanager
def running(
    openmetrics_text: str, *, scrape: str | None = None, flags: Sequence[str] = ()
) -> Iterator[str]:
    """Starts Prometheus on a free port over blocks made from the text; gives its address.

    `scrape` is a "host:port" to scrape every second as the job `live`; `flags` are more arguments.
    """
    with tempfile.TemporaryDirectory(prefix="sekisho-prometheus-") as folder:
        home = Path(folder)
        (home / "history.om").write_text(openmetrics_text, "utf-8")
        if openmetrics_text.strip() != "# EOF":
            # The default of two-hour blocks would read the whole text once for each.
            subprocess.run(
                ["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q",
                 "--max-block-duration=336h", str(home / "history.om"), str(home / "data")],
                check=True, capture_output=True, timeout=300,
            )  # fmt: skip
        (home / "prometheus.yml").write_text(_config(scrape), "utf-8")
        port = _free_port()
        address = f"http://127.0.0.1:{port}"
        with (home / "log").open("w") as log:
            process = subprocess.Popen(
                ["prometheus", f"--config.file={home / 'prometheus.yml'}",
                 f"--storage.tsdb.path={home / 'data'}", "--storage.tsdb.retention.time=10y",
                 f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
                 *flags],
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            _wait_until_ready(process, address, home / "log")
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)


def openmetrics(
    series: Mapping[str, Callable[[datetime], float | None]],
    *,
    start: datetime,
    end: datetime,
    every: timedelta,
    counters: Iterable[str] = (),
) -> str:
    """Text for `running`: each series `name{labels}` sampled by its function; None is no sample."""
    families: dict[str, list[str]] = {}
    for line, value_at in series.items():
        name = line.partition("{")[0]
        rows = families.setdefault(name, [])
        at = start
        while at <= end:
            value = value_at(at)
            if value is not None:
                rows.append(f"{line} {value!r} {at.timestamp():.3f}")
            at += every
    lines = []
    for name, rows in families.items():
        kind = "counter" if name in counters else "unknown"
        lines += [f"# TYPE {name.removesuffix('_total') if kind == 'counter' else name} {kind}"]
        lines += rows
    return "\n".join([*lines, "# EOF", ""])


def _config(scrape: str | None) -> str:
    if scrape is None:
        return "scrape_configs: []\n"
    return (
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        "scrape_configs:\n"
        f"- {{job_name: live, static_configs: [{{targets: ['{scrape}']}}]}}\n"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"Prometheus ended at once: {log.read_text()[-2000:]}")
        try:
            if requests.get(f"{address}/-/ready", timeout=1).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"Prometheus is not ready after 30 s: {log.read_text()[-2000:]}")
