"""The alert rules that we ship: Prometheus takes them, and they fire when they should."""

import shutil
import subprocess
from pathlib import Path

from tests import prometheus
from tests.conftest import ROOT

pytestmark = prometheus.needed


def test_the_rules_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    shutil.copy(ROOT / "collectors" / "alerts.yml", tmp_path)
    shutil.copy(Path(__file__).with_name("alerts.test.yml"), tmp_path)
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts.test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
