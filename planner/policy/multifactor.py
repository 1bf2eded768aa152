"""The multifactor score: who of one lane is looked at first, by age, fair share, size and lane.

A part of priority. The scalar functions here use the basic operations of IEEE 754 only, in a fixed
order, so that every engine that calls them, interpreted or compiled, gets the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from planner.work import Project, Tenant

LN2 = 0.6931471805599453
_WEEK_SECONDS = 604_800


@dataclass(frozen=True, slots=True)
class Multifactor:
    """The weights of the score and its two times: when age counts in full, and use by half."""

    age_weight: int = 1000
    fair_share_weight: int = 1000
    size_weight: int = 1000
    lane_weight: int = 1000
    max_age_seconds: int = _WEEK_SECONDS
    half_life_seconds: int = _WEEK_SECONDS


def half_to_the(x: float) -> float:
    """Return 2^-x for x >= 0: the part after the point by its series, the rest by halving."""
    if x > 1074.0:
        return 0.0
    whole = int(x)
    y = (x - whole) * -LN2  # e^y, with -ln 2 < y <= 0
    term, total = 1.0, 1.0
    for n in range(1, 20):
        term = term * y / n
        total = total + term
    for _ in range(whole):
        total = total * 0.5
    return total


def decay(seconds: float, half_life_seconds: float) -> tuple[float, float]:
    """Return what is left of old use after some seconds, and what each GPU held adds to it."""
    left = half_to_the(seconds / half_life_seconds)
    return left, (1.0 - left) * half_life_seconds / LN2


def normalised_shares(projects: Sequence[Project], tenants: Sequence[Tenant]) -> list[float]:
    """Return each project's part of its tenant's share, times the tenant's part of all."""
    weight_of = {tenant.name: Fraction(tenant.weight) for tenant in tenants}
    everything = sum(weight_of.values())
    within: dict[str, Fraction] = {}
    for project in projects:
        within[project.tenant] = within.get(project.tenant, Fraction(0)) + Fraction(project.weight)
    return [
        float(Fraction(p.weight) / within[p.tenant] * weight_of[p.tenant] / everything)
        if within[p.tenant] and everything
        else 0.0
        for p in projects
    ]
