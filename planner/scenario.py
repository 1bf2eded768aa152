"""Scenarios: read, parse, write, hash, and tell two of them apart.

>>> from planner.scenario import read, diff
"""

from planner.description.differences import DIMENSIONS, Change, diff
from planner.description.problems import Problem, ScenarioError
from planner.description.reading import parse, read
from planner.description.record import Scenario
from planner.description.writing import content_hash, dumps, to_mapping, write

__all__ = [
    "DIMENSIONS",
    "Change",
    "Problem",
    "Scenario",
    "ScenarioError",
    "content_hash",
    "diff",
    "dumps",
    "parse",
    "read",
    "to_mapping",
    "write",
]
