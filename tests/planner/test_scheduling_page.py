"""The concept page's example happens as it says, and the generated references are current."""

import re
import tomllib
from pathlib import Path

import pytest

from planner import simulate
from planner.__main__ import records
from planner.scenario import parse
from planner.simulation import ENGINES
from tests.planner import reference_pages

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "scheduling.md"
REMEDY = "run: python -m tests.planner.reference_pages"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_worked_example_happens_as_the_page_says(engine: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    scenario = parse(tomllib.loads(text.split("```toml\n")[1].split("```")[0]))
    lines = re.findall(r"^\| ([a-d]) \|(.*)\|$", text, re.MULTILINE)
    assert len(lines) == len(scenario.jobs)
    trace = simulate(scenario, engine=engine)
    jobs = {row["id"]: row for row in records(trace.jobs)}
    reasons = {row["job"]: row["reason"] for row in records(trace.spells)}
    evictions = {row["victim"]: row for row in records(trace.evictions)}
    for name, rest in lines:
        first, end, wait, reason, by, ground, lost = (cell.strip() for cell in rest.split("|"))
        job, eviction = jobs[name], evictions.get(name, {})
        assert [job["first_start_seconds"], job["end_seconds"], job["total_wait_seconds"]] == [
            int(first),
            int(end),
            int(wait),
        ]
        assert reasons.get(name, "") == reason
        assert eviction.get("preemptor", "") == by
        assert eviction.get("ground", "") == ground
        assert job["lost_gpu_seconds"] == eviction.get("lost_gpu_seconds", 0) == int(lost)


def test_the_reference_of_reasons_is_the_vocabularys() -> None:
    written = reference_pages.REASONS.read_text(encoding="utf-8")
    assert written == reference_pages.reasons(), REMEDY


def test_the_reference_of_the_scenario_file_is_the_models() -> None:
    written = reference_pages.SCENARIO_FILE.read_text(encoding="utf-8")
    assert written == reference_pages.scenario_file(), REMEDY
