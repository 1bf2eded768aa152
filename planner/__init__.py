"""Sekisho's planner: what a scheduling policy does to the work, second by second.

    describe -> run -> record -> measure

A pure library: no clock, no global random state, no input or output outside its command line.
"""

from planner.simulation import simulate
from planner.version import PLANNER_VERSION

__all__ = ["PLANNER_VERSION", "simulate"]
