"""The engine's one shortcut, held against looking at every waiting job in every pass."""

from typing import Any

import pandas as pd
from hypothesis import HealthCheck, given, settings

from planner import simulate
from planner.engine.courses import Course
from planner.engine.queues import Shape
from planner.engine.reference import Run
from planner.engine.telling import record
from planner.engine.waiting import WaitingRoom
from planner.scenario import parse
from tests.planner.drawing import scenario_mappings


class Forgetful(WaitingRoom):
    """Shares no refusal, remembers none, and rules nobody out by counting."""

    def shape_key(self, course: Course, pools: tuple[int, ...]) -> object:
        return course.turn

    def look_again(self) -> None:
        for shape in list(self._active):
            self._recheck(shape, shape.mask)
        self.occupancy.changed_pools = 0
        self.occupancy.changed_lanes.clear()

    def _may_evict(self, shape: Shape, pool: int) -> bool:
        return True


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings())
def test_remembering_refusals_changes_nothing(mapping: dict[str, Any]) -> None:
    scenario = parse(mapping)
    fast = simulate(scenario)
    run = Run(scenario, room=Forgetful)
    run.run()
    plain = record(scenario, run.courses, run.evictions, run.now)
    pd.testing.assert_frame_equal(fast.jobs, plain.jobs)
    pd.testing.assert_frame_equal(fast.attempts, plain.attempts)
    pd.testing.assert_frame_equal(fast.spells, plain.spells)
    pd.testing.assert_frame_equal(fast.evictions, plain.evictions)
