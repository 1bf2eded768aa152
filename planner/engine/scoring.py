"""Multifactor scores as they stand at one instant: age, fair share, size and lane."""

from __future__ import annotations

from planner.engine.columns import Columns
from planner.engine.courses import Course, Score
from planner.engine.occupancy import Occupancy
from planner.policy.multifactor import decay, half_to_the, normalised_shares


class Scores:
    """Who of one lane comes first, with order = "multifactor"."""

    def __init__(self, columns: Columns, occupancy: Occupancy) -> None:
        scenario = columns.scenario
        self._factors = scenario.policy.multifactor
        self._occupancy = occupancy
        self._pool_gpus = [pool.gpus for pool in scenario.pools]
        self._shares = normalised_shares(scenario.projects, scenario.tenants)
        highest = max((lane.rank for lane in scenario.lanes), default=0)
        self._lane = [lane.rank / highest if highest else 0.0 for lane in scenario.lanes]
        self._usage = [0.0] * len(scenario.projects)
        self._fair = [1.0] * len(scenario.projects)
        self.now = 0

    def advance(self, instant: int) -> None:
        """Bring every project's decayed usage, and what it is worth, up to an instant."""
        seconds = instant - self.now
        self.now = instant
        if seconds > 0:
            kept, gained = decay(seconds, self._factors.half_life_seconds)
            for project, use in enumerate(self._usage):
                held = sum(accounts.usage[project] for accounts in self._occupancy.accounts)
                self._usage[project] = use * kept + held * gained
        total = 0.0
        for use in self._usage:
            total += use
        for project, use in enumerate(self._usage):
            used = 0.0 if total == 0.0 else use / total
            share = self._shares[project]
            if share == 0.0:
                self._fair[project] = 1.0 if used == 0.0 else 0.0
            else:
                self._fair[project] = half_to_the(used / share)

    def terms(self, course: Course, pools: tuple[int, ...]) -> Score:
        """Return the weighted terms of a job's score; `pools` are those it may ever run in."""
        factors = self._factors
        age = min(1.0, (self.now - course.job.submit_seconds) / factors.max_age_seconds)
        size = course.gpus / max(self._pool_gpus[pool] for pool in pools)
        return Score(
            age=factors.age_weight * age,
            fair_share=factors.fair_share_weight * self._fair[course.project],
            size=factors.size_weight * size,
            lane=factors.lane_weight * self._lane[course.lane],
        )

    def of(self, course: Course, pools: tuple[int, ...]) -> float:
        """Return a job's score at this instant: its terms, added up from left to right."""
        age, fair_share, size, lane = self.terms(course, pools)
        return age + fair_share + size + lane
