"""Two engines, one schedule: the compiled engine leaves the reference's records, to the second.

Run longer with `ENGINE_EXAMPLES=20000 pytest tests/planner/test_engines_agree.py`.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from planner import simulate
from planner.description.record import Scenario
from planner.engine import compiled
from planner.scenario import parse, read
from planner.vocabulary import Victims
from tests.planner.building import job, mapping
from tests.planner.drawing import scenario_mapping, scenario_mappings

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "planner"
EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "300"))
FRAMES = ("jobs", "attempts", "spells", "evictions")


def assert_one_schedule(scenario: Scenario) -> None:
    reference, compiled = (simulate(scenario, engine=name) for name in ("reference", "compiled"))
    for frame in FRAMES:
        pd.testing.assert_frame_equal(
            getattr(compiled, frame), getattr(reference, frame), obj=frame
        )
    assert compiled.end_seconds == reference.end_seconds


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings())
def test_both_engines_leave_the_same_records(mapping: dict[str, Any]) -> None:
    assert_one_schedule(parse(mapping))


@pytest.mark.parametrize("victims", list(Victims))
def test_of_many_who_may_be_evicted_both_engines_choose_the_same(victims: Victims) -> None:
    """Drawn scenarios have few candidates at a time; here there are up to sixty."""
    for seed in range(12):
        draw = random.Random(seed)
        jobs = [
            job(f"small-{n}", draw.randrange(300), draw.choice((1, 1, 2, 3)), 4_000)
            | {"project": draw.choice(("speech", "vision"))}
            for n in range(80)
        ]
        jobs += [
            job(f"large-{n}", 400 + draw.randrange(2_000), draw.randrange(2, 24), 300)
            | {"lane": "emergency"}
            for n in range(30)
        ]
        given = mapping(*sorted(jobs, key=lambda one: one["submit_seconds"]))
        given["policy"]["victims"] = victims.value
        given["pool"][0]["nodes"] = 8
        given["quota"] = [
            {"project": name, "pool": "h100", "nominal": 64} for name in ("speech", "vision")
        ]
        scenario = parse(given)
        assert len(simulate(scenario, engine="reference").evictions) > 30
        assert_one_schedule(scenario)


def test_the_kernel_never_looks_beyond_the_ends_of_its_arrays() -> None:
    # Compiled, it would read or write somebody else's memory without a word.
    done = subprocess.run(
        [sys.executable, "-m", "tests.planner.plain_kernel", "0", "40"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# Seeds of drawn scenarios in which the compiled engine once went another way.
ONCE_DIFFERENT = {
    4: "a head of a line that waits behind another goes on waiting for the same reason",
    7: "what the rule of placement leaves equal goes by the order of the file",
    55: "a line's new head is tried in the same pass, though its shape was tried before",
    255: "whoever starts in a pass may be somebody to reclaim from in the same pass",
}


@pytest.mark.parametrize("seed", ONCE_DIFFERENT, ids=lambda seed: ONCE_DIFFERENT[seed])
def test_what_once_differed_is_the_same(seed: int) -> None:
    vector = Path(__file__).parent / "vectors" / "once_different" / f"{seed}.json"
    assert_one_schedule(parse(json.loads(vector.read_text(encoding="utf-8"))))


@pytest.mark.skipif(not SHARED.exists(), reason=f"the shared vectors are not here: {SHARED}")
def test_both_engines_agree_on_the_shared_vectors() -> None:
    files = [path for path in sorted(SHARED.glob("*.json")) if ".expected" not in path.name]
    assert len(files) >= 12
    for path in files:
        assert_one_schedule(read(path))


def test_the_generator_draws_every_rule() -> None:
    policies = [scenario_mapping(random.Random(seed))["policy"] for seed in range(200)]
    assert {p["order"] for p in policies} == {"fifo", "fair-share", "multifactor"}
    assert any(p.get("backfill") == "easy" for p in policies)
    assert {p["placement"] for p in policies} == {"listed", "locality", "pack", "spread"}
    assert {p["reclaim"] for p in policies} == {"never", "lower-lane", "any"}


def test_records_that_need_more_room_get_it() -> None:
    mapping = scenario_mapping(random.Random(4))
    scenario = parse(mapping)
    state = compiled.build(scenario)
    small = state._replace(
        attempts=state.attempts[:1].copy(),
        spells=state.spells[:1].copy(),
        evictions=state.evictions[:1].copy(),
        log=state.log[: len(state.kins)].copy(),
    )
    told = compiled.tell(scenario, compiled.run_state(small))
    whole = simulate(scenario, engine="reference")
    for frame in FRAMES:
        pd.testing.assert_frame_equal(getattr(told, frame), getattr(whole, frame), obj=frame)
