"""How sure a mean difference is: Student's t-interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

METHOD = "Student's t, 90 %, mean of the paired differences over the replications"

# Student's t, 95 % one-sided (so 90 % two-sided), by degrees of freedom from 1.
_T95 = (
    *(6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125),
    *(1.7959, 1.7823, 1.7709, 1.7613, 1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247),
    *(1.7207, 1.7171, 1.7139, 1.7109, 1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973),
)


def student_t95(degrees: int) -> float:
    """Return the 95 % point of Student's t; beyond 30 degrees by its expansion (error < 1e-4)."""
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.95)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def interval(differences: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the 90 % interval of the mean; (None, None) for fewer than two differences."""
    count = len(differences)
    if count < 2:
        return None, None
    half = student_t95(count - 1) * statistics.stdev(differences) / math.sqrt(count)
    mean = statistics.fmean(differences)
    return mean - half, mean + half
