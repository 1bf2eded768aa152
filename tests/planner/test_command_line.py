"""`python -m planner`: what it prints, what it writes, and with which status it ends."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.compare import Comparison
from planner.scenario import dumps
from tests.planner.building import job, scenario

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "planner" / "examples" / "lend-to-speech.toml"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(
        dumps(scenario(job("a"), job("b", submit=5, gpus=16), job("c", gpus=17))), encoding="utf-8"
    )
    return path


def test_simulate_writes_jobs_attempts_and_measures(plan: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "out.json", tmp_path / "jobs.csv"
    assert main(["simulate", str(plan), "--json", str(out), "--jobs", str(table)]) == 0
    content = json.loads(out.read_text(encoding="utf-8"))
    assert set(content) == {"scenario", "jobs", "attempts", "measures"}
    a, b, c = content["jobs"]
    assert (a["state"], a["end_seconds"], a["reason"]) == ("finished", 100, None)
    assert (b["wait_seconds"], b["total_wait_seconds"]) == (95, 95)
    assert (c["state"], c["pool"], c["wait_seconds"]) == ("unschedulable", None, None)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert rows[2]["first_start_seconds"] == ""


def test_check_says_what_it_has_read(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(plan)]) == 0
    assert capsys.readouterr().out == "small: 1 pools, 2 projects, 2 lanes, 3 jobs: nothing wrong\n"


def test_wrong_input_ends_with_status_2_and_writes_nothing(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace("nominal = 8", "nominal = -8", 1), encoding="utf-8")
    out = tmp_path / "out.json"
    assert main(["simulate", str(plan), "--json", str(out)]) == 2
    assert not out.exists()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{plan}: quota[0].nominal = -8: expected 0 or more\n"


def test_backfill_goes_with_first_come_first_served_only(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan.read_text(encoding="utf-8")
    text = text.replace('"fifo"', '"fair-share"').replace('"none"', '"easy"')
    plan.write_text(text, encoding="utf-8")
    assert main(["check", str(plan)]) == 2
    assert 'policy.backfill = "easy"' in capsys.readouterr().err


def test_a_file_that_cannot_be_written_ends_with_status_1(plan: Path, tmp_path: Path) -> None:
    assert main(["simulate", str(plan), "--json", str(tmp_path / "no" / "where.json")]) == 1


def test_compare_shows_every_figure_with_its_spread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    arguments = ["compare", str(EXAMPLE), str(EXAMPLE), "--replications", "3", "--json", str(out)]
    assert main(arguments) == 0
    comparison = Comparison.from_mapping(json.loads(out.read_text(encoding="utf-8")))
    assert comparison.replications == 3
    assert comparison.baseline_hash == comparison.proposal_hash
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 replications of 7 days"
    assert all("(+0 to +0): unclear" in line for line in lines[2:])
    assert len(lines) == 2 + len(comparison.effects)


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "planner", "check", str(EXAMPLE)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 jobs: nothing wrong" in done.stdout
