"""Priority: who is looked at first. It never decides whether anything is evicted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from planner.policy.quota import Accounts
from planner.vocabulary import Queueing, Recovery

INFINITE_SHARE = math.inf


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane jobs are sent through. `rank` and `queueing` are priority.

    The other columns belong to two other dimensions and are only kept in the same row of the file:
    `preempts` and `protect_seconds` are read by preemption; `recovery`, the back-off and
    `max_requeues` by checkpoint. None: no limit.
    """

    name: str
    rank: int
    preempts: tuple[str, ...] = ()
    recovery: Recovery = Recovery.REQUEUE
    protect_seconds: int = 0
    backoff_seconds: int = 0
    backoff_limit_seconds: int | None = None
    max_requeues: int | None = None
    queueing: Queueing = Queueing.BEST_EFFORT

    def __post_init__(self) -> None:
        """Take the words of the file for the rules; anything else is a ValueError at once."""
        object.__setattr__(self, "recovery", Recovery(self.recovery))
        object.__setattr__(self, "queueing", Queueing(self.queueing))


def lanes_in_turn(lanes: Sequence[Lane]) -> list[int]:
    """List the lanes (by number) in the order of a pass: highest rank first, ties in file order."""
    return sorted(range(len(lanes)), key=lambda number: -lanes[number].rank)


class DominantShares:
    """How much each project borrows, by weight: the larger, the later its turn.

    A share is a fraction, and equal fractions must compare as equal on every machine. So all are
    brought to one common denominator once, and what is compared are whole numbers.
    """

    __slots__ = ("_factors", "_known", "_pools")

    def __init__(self, pools: Sequence[Accounts], weights: Sequence[Fraction]) -> None:
        self._pools = pools
        units: list[list[tuple[int, Fraction | None]]] = []
        denominators = 1
        for project, weight in enumerate(weights):
            row: list[tuple[int, Fraction | None]] = []
            for pool, accounts in enumerate(pools):
                if not accounts.has_row(project):
                    continue
                capacity = accounts.capacity_for(project)
                unit = 1 / (capacity * weight) if capacity and weight else None
                if unit is not None:
                    denominators = math.lcm(denominators, unit.denominator)
                row.append((pool, unit))
            units.append(row)
        self._factors: list[list[tuple[int, int | float]]] = [
            [(p, INFINITE_SHARE if u is None else int(u * denominators)) for p, u in row]
            for row in units
        ]
        self._known: list[int | float | None] = [0] * len(weights)

    def forget(self, project: int) -> None:
        """Note that the project's use has changed."""
        self._known[project] = None

    def of(self, project: int) -> int | float:
        """Return the dominant share, in units that all projects have in common."""
        known = self._known[project]
        if known is not None:
            return known
        share: int | float = 0
        for pool, factor in self._factors[project]:
            borrowed = self._pools[pool].borrowed(project)
            if borrowed > 0:
                share = max(share, borrowed * factor)
        self._known[project] = share
        return share
