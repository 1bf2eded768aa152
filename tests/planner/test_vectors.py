"""Scenarios with known schedules: those shared by all implementations, and a few worked by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner import simulate
from planner.__main__ import records
from planner.scenario import parse, read
from planner.vocabulary import Backfill, Order

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "planner"
OWN = sorted((Path(__file__).parent / "vectors").glob("*.json"))
ENGINES = ("reference", "compiled")
EXPECTED = sorted(SHARED.glob("*.expected.json"))


@pytest.mark.skipif(not EXPECTED, reason=f"the shared vectors are not here: {SHARED}")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name.split(".")[0])
def test_a_shared_vector_gives_exactly_its_rows(expected: Path, engine: str) -> None:
    scenario = read(expected.with_name(expected.name.replace(".expected", "")))
    rows = records(simulate(scenario, engine=engine).jobs)
    wanted = json.loads(expected.read_text(encoding="utf-8"))["jobs"]
    assert [row["id"] for row in rows] == [row["id"] for row in wanted]
    for row, want in zip(rows, wanted, strict=True):
        assert {key: row[key] for key in want} == want


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_a_schedule_worked_out_by_hand_comes_out_as_such(path: Path, engine: str) -> None:
    vector: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    trace = simulate(parse(vector["scenario"]), engine=engine)
    expected = vector["expected"]
    rows = records(trace.jobs)
    assert [row["id"] for row in rows] == [row["id"] for row in expected["jobs"]]
    for row, want in zip(rows, expected["jobs"], strict=True):
        assert {key: row[key] for key in want} == want
    if "attempts" in expected:
        for row, want in zip(records(trace.attempts), expected["attempts"], strict=True):
            assert (row["job"], row["start_seconds"]) == (want["job"], want["start_seconds"])
            for term in (key for key in want if key.startswith("score")):
                assert row[term] == pytest.approx(want[term], rel=1e-13), (row["job"], term)
    assert [list(row.values()) for row in records(trace.spells)] == expected["spells"]
    columns = ("at_seconds", "victim", "preemptor", "ground", "lost_gpu_seconds")
    evictions = [[row[column] for column in columns] for row in records(trace.evictions)]
    assert evictions == expected["evictions"]


def test_there_are_hand_worked_vectors_of_every_order() -> None:
    policies = [json.loads(path.read_text(encoding="utf-8"))["scenario"]["policy"] for path in OWN]
    assert {policy["order"] for policy in policies} == set(Order)
    assert {policy["backfill"] for policy in policies} == set(Backfill)
