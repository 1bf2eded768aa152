"""Runs drawn scenarios through the kernel as plain Python, and checks each index it uses.

A program of its own, because `NUMBA_DISABLE_JIT=1` must stand before the kernel is imported:
`NUMBA_DISABLE_JIT=1 python -m tests.planner.plain_kernel FIRST COUNT`.
"""

from __future__ import annotations

import random
import sys
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from numpy.typing import NDArray

from planner.engine import compiled
from planner.engine.kernel import layout
from planner.engine.reference import Run
from planner.engine.telling import record
from planner.scenario import parse
from tests.planner.drawing import scenario_mapping


class Checked:
    """An array that refuses what the compiled code would read or write beyond its ends."""

    def __init__(self, name: str, rows: NDArray[Any]) -> None:
        self.name = name
        self.rows = rows.view(np.recarray) if rows.dtype.names else rows

    @property
    def size(self) -> int:
        """Return how many there are."""
        return len(self.rows)

    def _check(self, index: Any) -> Any:
        for at, length in zip(np.atleast_1d(index), self.rows.shape, strict=True):
            if not 0 <= at < length:
                raise IndexError(f"{self.name}[{index}] of {self.rows.shape}")
        return index

    def __getitem__(self, index: Any) -> Any:
        return self.rows[self._check(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.rows[self._check(index)] = value


def checked(state: layout.State) -> layout.State:
    """Return the state with every array checked."""
    return layout.State(**{n: Checked(n, rows) for n, rows in state._asdict().items()})


def main(first: int, count: int) -> None:
    """Run so many drawn scenarios, and compare their jobs with the reference's."""
    assert numba.config.DISABLE_JIT, "set NUMBA_DISABLE_JIT=1"  # type: ignore[attr-defined]
    with patch.object(compiled, "handle", checked):
        for seed in range(first, first + count):
            scenario = parse(scenario_mapping(random.Random(seed)))
            run = Run(scenario)
            run.run()
            expected = record(scenario, run.courses, run.evictions, run.now).jobs
            assert compiled.simulate(scenario).jobs.equals(expected), seed


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
