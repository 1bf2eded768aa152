"""One way to run a scenario, whichever engine does it."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from planner.description.problems import Problem, ScenarioError
from planner.description.record import Scenario
from planner.engine.columns import Beyond
from planner.engine.reference import Run
from planner.engine.telling import record
from planner.trace import Trace

log = logging.getLogger("planner")

COMPILER = find_spec("numba") is not None
if COMPILER:
    from planner.engine import compiled

# The default comes first.
ENGINES = ("compiled", "reference") if COMPILER else ("reference",)
_told: set[str] = set()


def simulate(scenario: Scenario, *, engine: str | None = None) -> Trace:
    """Run a scenario and return the records of what happened in it.

    The same scenario gives the same records on every machine, and from every engine, to the
    second. The compiled engine is the default; without its compiler, or for weights so fine that
    64 bits cannot compare them, the reference runs instead, which is said once. Raises
    `ScenarioError` for a run beyond second 2^53, and `ValueError` for an engine that is not there.
    """
    engine = ENGINES[0] if engine is None else engine
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    try:
        if engine == "compiled":
            try:
                return compiled.simulate(scenario)
            except compiled.TooFine:
                _tell_once("the weights are too fine for 64 bits; the reference engine runs")
        elif not COMPILER:
            _tell_once("numba is not installed; the reference engine runs, which is slower")
        run = Run(scenario)
        run.run()
    except Beyond as beyond:
        expected = f"the run goes beyond second {beyond.second}; expected one that ends before"
        raise ScenarioError([Problem("horizon_seconds", "", expected, scenario.name)]) from None
    return record(scenario, run.courses, run.evictions, run.now)


def _tell_once(what: str) -> None:
    if what not in _told:
        _told.add(what)
        log.warning(what)
