"""One way to run a scenario, whichever engine does it."""

from __future__ import annotations

from planner.description.problems import Problem, ScenarioError
from planner.description.record import Scenario
from planner.engine.reference import Run
from planner.trace import Trace, record
from planner.vocabulary import Backfill, Order

ENGINES = ("reference",)


def simulate(scenario: Scenario, *, engine: str = "reference") -> Trace:
    """Run a scenario and return the records of what happened in it.

    The same scenario gives the same records on every machine, to the second. Raises
    `ScenarioError` for a rule that no engine here follows yet, and `ValueError` for an engine that
    does not exist.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    problems = [
        Problem(f"policy.{path}", f'"{value.value}"', expected, scenario.name)
        for path, value, refused, expected in (
            (
                "order",
                scenario.policy.order,
                Order.MULTIFACTOR,
                'not yet simulated; expected "fifo" or "fair-share"',
            ),
            (
                "backfill",
                scenario.policy.backfill,
                Backfill.EASY,
                'not yet simulated; expected "none"',
            ),
        )
        if value is refused
    ]
    if problems:
        raise ScenarioError(problems)
    run = Run(scenario)
    run.run()
    return record(scenario, run.courses, run.evictions, run.now)
