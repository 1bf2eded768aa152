"""A real Prometheus for the demo: found or installed, filled with the story's last week."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from portal.demo import exposition
from portal.demo.processes import Children
from portal.demo.story import Story

BACK_FILL = timedelta(days=7)
STEP_SECONDS = 300
SCRAPE_SECONDS = 30
# One block for the whole week: promtool reads the file once for each block.
BLOCK = "4374h"
POLICY = Path("/usr/sbin/policy-rc.d")
APT = {"DEBIAN_FRONTEND": "noninteractive"}


def find() -> Path | None:
    """The Prometheus on the PATH that comes with its promtool."""
    found = shutil.which("prometheus")
    return Path(found) if found and shutil.which("promtool") else None


def may_install() -> bool:
    """Whether this is Debian or Ubuntu, and we are root."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(children: Children, *, env: Mapping[str, str]) -> Path | None:
    """Installs Debian's package without starting it as a service; None when that fails."""
    own_policy = not POLICY.exists()
    if own_policy:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        for name, words in (
            ("apt-update", ["apt-get", "update", "-qq"]),
            (
                "apt-install",
                ["apt-get", "install", "-y", "--no-install-recommends", "prometheus"],
            ),
        ):
            if children.run(name, words, env={**env, **APT}) != 0:
                return None
    finally:
        if own_policy:
            POLICY.unlink(missing_ok=True)
    return find()


def back_fill(
    story: Story, *, now: datetime, folder: Path, children: Children, env: Mapping[str, str]
) -> bool:
    """Makes a fresh data folder with the story's last week in it; says whether that worked."""
    shutil.rmtree(folder / "data", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    last = story.seconds(now)
    first = max(0, last - int(BACK_FILL.total_seconds()))
    aligned = np.arange(-(-first // STEP_SECONDS) * STEP_SECONDS, last, STEP_SECONDS)
    text = folder / "back-fill.om"
    try:
        with text.open("w", encoding="utf-8") as file:
            file.writelines(
                exposition.openmetrics(story, instants=np.append(aligned, last).astype(float))
            )
        status = children.run(
            "promtool",
            [
                "promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet",
                f"--max-block-duration={BLOCK}", text, folder / "data",
            ],
            env=env,
        )  # fmt: skip
    finally:
        text.unlink(missing_ok=True)
    return status == 0


def start(
    binary: Path,
    story: Story,
    *,
    port: int,
    exporter_port: int,
    folder: Path,
    children: Children,
    env: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """Starts Prometheus on a port of this machine, scraping the demo's exporter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "prometheus.yml"
    config.write_text(configuration(story, exporter_port=exporter_port), encoding="utf-8")
    return children.start(
        "prometheus",
        [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=1y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ],
        env=env,
    )


def configuration(story: Story, *, exporter_port: int) -> str:
    """One target a region and job; its labels are the back-fill's, so that series go on."""
    lines = ["global:", f"  scrape_interval: {SCRAPE_SECONDS}s", "scrape_configs:"]
    for region in (region.name for region in story.trace.scenario.regions):
        for job in exposition.JOBS:
            lines += [
                f"  - job_name: {region} {job}",
                f"    metrics_path: /{region}/{job}",
                "    static_configs:",
                f"      - targets: ['127.0.0.1:{exporter_port}']",
                "        labels:",
                f"          region: {region}",
                f"          instance: {exposition.instance(region, job)}",
                f"          job: {job}",
            ]
    return "\n".join(lines) + "\n"
