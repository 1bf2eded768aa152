"""What a change of policy does: baseline and proposal on the same work, with an interval.

Whole days of the observed work are drawn with replacement, the same days for both scenarios
(common random numbers), and both are simulated; this is one replication. The interval of a figure
is Student's t-interval (90 %) of the mean of the paired differences over the replications. A p95
is taken in each replication, and the mean over replications is shown.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from planner.description.record import Scenario
from planner.description.writing import content_hash
from planner.intervals import METHOD, interval
from planner.measures import waits
from planner.resampling import DAY, compose, draw, observed_days, resample
from planner.simulation import simulate
from planner.version import PLANNER_VERSION
from planner.work import Numbers

WEEK_DAYS = 7
FEWEST_JOBS = 5  # in a replication, on average: below it a percentile says next to nothing
FEWEST_REPLICATIONS = 3

__all__ = [
    "Cancelled",
    "Comparison",
    "Effect",
    "Replication",
    "compare",
    "replicate",
    "resample",
    "summarise",
]

Verdict = Literal["better", "worse", "unclear"]


class Cancelled(Exception):  # noqa: N818 - what happened, not an error
    """The one who asked for a comparison has called it off."""


class Cell(NamedTuple):
    """What a figure is about; None: over all of them."""

    measure: str
    unit: str
    project: str | None = None
    tenant: str | None = None
    lane: str | None = None
    pool: str | None = None
    domain: str | None = None


class Figure(NamedTuple):
    """One figure of one run."""

    value: float
    jobs: int = 0
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Replication:
    """The figures of both scenarios on one draw of days."""

    index: int
    days: int
    baseline_hash: str
    proposal_hash: str
    before: Mapping[Cell, Figure]
    after: Mapping[Cell, Figure]
    # What needs no simulation: what is promised against what there is.
    promised_before: Mapping[Cell, float]
    promised_after: Mapping[Cell, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """One figure before and after, and how sure the difference is.

    `low` and `high` bound the difference (None: too few replications have the figure). `jobs`
    counts the measured jobs of the baseline, over all replications. `at_least`: jobs still waited
    at the end of some replication, so the waits can only be longer. Fewer seconds, GPU-seconds,
    GB and promises are better.
    """

    measure: str
    project: str | None
    tenant: str | None
    lane: str | None
    pool: str | None
    unit: str
    before: float
    after: float
    difference: float
    low: float | None
    high: float | None
    jobs: int
    at_least: bool
    verdict: Verdict
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All effects of a change, and what they were computed from."""

    effects: tuple[Effect, ...]
    replications: int
    days: int
    baseline_hash: str
    proposal_hash: str
    planner_version: str = PLANNER_VERSION
    interval: str = METHOD

    def to_mapping(self) -> dict[str, Any]:
        """Return the comparison ready for JSON."""
        return dataclasses.asdict(self) | {
            "effects": [dataclasses.asdict(effect) for effect in self.effects]
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Comparison:
        """Return the comparison that `to_mapping` wrote."""
        values = dict(mapping)
        values["effects"] = tuple(Effect(**effect) for effect in values["effects"])
        return cls(**values)


class _Same:
    """A key that is equal only for the very same scenario."""

    __slots__ = ("scenario",)

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def __hash__(self) -> int:
        return id(self.scenario)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.scenario is self.scenario


@lru_cache(maxsize=4)
def _hash_of(key: _Same) -> str:
    return content_hash(key.scenario)  # as slow as a small run, when there are many jobs


def replicate(
    baseline: Scenario,
    proposal: Scenario,
    *,
    index: int,
    days: int = 7,
    warmup_days: int = 1,
    seed: int = 7,
) -> Replication:
    """Run both scenarios on the same drawn days, and return the figures of both.

    `index` tells the replications of one comparison apart. `days` are measured, after
    `warmup_days` that only fill the queues. The days are those of the baseline's work; each
    scenario plays its own jobs of them, which are the same unless the proposal changes the work.
    """
    horizon = (warmup_days + days) * DAY
    observed = observed_days(baseline.jobs, horizon_seconds=baseline.horizon_seconds)
    drawn = draw(observed, warmup_days + days, f"{seed}/{index}") if observed else []
    before, after = (
        dict(_figures(_run(scenario, drawn, horizon), days, warmup_days))
        for scenario in (baseline, proposal)
    )
    return Replication(
        index=index,
        days=days,
        baseline_hash=_hash_of(_Same(baseline)),
        proposal_hash=_hash_of(_Same(proposal)),
        before=before,
        after=after,
        promised_before=dict(_promises(baseline)),
        promised_after=dict(_promises(proposal)),
    )


def _run(scenario: Scenario, drawn: Sequence[int], horizon: int) -> pd.DataFrame:
    jobs = compose(scenario.jobs, drawn)
    trace = simulate(dataclasses.replace(scenario, jobs=jobs, horizon_seconds=horizon))
    return waits.each(trace)


# What the jobs are grouped by, one table of figures each.
_GROUPINGS = (("project", "tenant", "lane"), ("lane",), ("project", "tenant"), ())


def _figures(jobs: pd.DataFrame, days: int, warmup_days: int) -> Iterator[tuple[Cell, Figure]]:
    measured = jobs[jobs["submit_seconds"] >= warmup_days * DAY]
    weekly = WEEK_DAYS / days
    seconds, still, lost, staged = (
        measured[column].to_numpy(dtype=np.float64)
        for column in ("seconds", "still", "lost_gpu_seconds", "staged_gb")
    )
    for keys in _GROUPINGS if len(measured) else ():
        group, abouts = _groups(measured, keys)
        counts = np.bincount(group)
        ordered, ends = seconds[np.lexsort((seconds, group))], np.cumsum(counts)
        # Added up in the order of the jobs, so that the last digit is the same everywhere.
        sums = (np.bincount(group, weights=column).tolist() for column in (still, lost, staged))
        rows = zip(abouts, counts.tolist(), ends.tolist(), *sums, strict=True)
        for about, count, end, waiting, lost_sum, staged_sum in rows:
            if "lane" in keys:
                for name, share in (("wait_p95_seconds", 95), ("wait_p50_seconds", 50)):
                    wait = float(ordered[end - count + -(-share * count // 100) - 1])
                    yield Cell(name, "seconds", **about), Figure(wait, count, waiting > 0)
            if ("project" in keys) == ("lane" in keys):
                cell = Cell("lost_gpu_seconds_per_week", "gpu_seconds", **about)
                yield cell, Figure(lost_sum * weekly, count)
            if "lane" not in keys:
                cell = Cell("staged_gb_per_week", "gb", **about)
                yield cell, Figure(staged_sum * weekly, count)


def _groups(measured: pd.DataFrame, keys: Sequence[str]) -> tuple[Numbers, list[dict[str, str]]]:
    """Return the group of each job, and what the jobs of each group have in common."""
    if not keys:
        return np.zeros(len(measured), dtype=np.int64), [{}]
    group = measured.groupby(list(keys), sort=False).ngroup().to_numpy(dtype=np.int64)
    firsts = np.unique(group, return_index=True)[1]
    names = (measured[key].iloc[firsts].tolist() for key in keys)
    return group, [dict(zip(keys, row, strict=True)) for row in zip(*names, strict=True)]


def _promises(scenario: Scenario) -> Iterator[tuple[Cell, float]]:
    """Say how many GPUs are promised for each one there is: by pool, and with a domain down."""
    promised = {pool.name: 0 for pool in scenario.pools}
    for quota in scenario.quotas:
        promised[quota.pool] += quota.nominal
    for pool in scenario.pools:
        ratio = promised[pool.name] / pool.gpus
        yield Cell("oversubscription", "ratio", pool=pool.name), ratio
    everything = sum(promised.values())
    for domain in scenario.domains:
        left = sum(pool.gpus for pool in scenario.pools if pool.domain != domain.name)
        if left:
            cell = Cell("oversubscription_with_domain_down", "ratio", domain=domain.name)
            yield cell, everything / left


def summarise(results: Sequence[Replication]) -> Comparison:
    """Put replications of one comparison together; their order does not matter.

    Raises `ValueError` without any, or when they belong to different comparisons.
    """
    if not results:
        raise ValueError("a comparison needs at least one replication")
    results = sorted(results, key=lambda result: result.index)
    first = results[0]
    kinds = {(result.baseline_hash, result.proposal_hash, result.days) for result in results}
    if len(kinds) > 1:
        raise ValueError("replications of different comparisons do not add up")
    if len({result.index for result in results}) < len(results):
        raise ValueError("the same replication is there twice")
    cells = dict.fromkeys(cell for result in results for cell in result.before)
    cells |= dict.fromkeys(cell for result in results for cell in result.after)
    effects = [effect for cell in sorted(cells, key=_place) if (effect := _effect(cell, results))]
    effects += _static(first.promised_before, first.promised_after)
    return Comparison(
        effects=tuple(effects),
        replications=len(results),
        days=first.days,
        baseline_hash=first.baseline_hash,
        proposal_hash=first.proposal_hash,
    )


def _place(cell: Cell) -> tuple[str, ...]:
    return tuple(value or "" for value in cell)


def _effect(cell: Cell, results: Sequence[Replication]) -> Effect | None:
    pairs = [
        (result.before[cell], result.after[cell])
        for result in results
        if cell in result.before and cell in result.after
    ]
    if not pairs:
        return None
    differences = [after.value - before.value for before, after in pairs]
    difference = statistics.fmean(differences)
    low, high = interval(differences)
    jobs = sum(before.jobs for before, _ in pairs)
    enough = jobs >= FEWEST_JOBS * len(results) and len(pairs) >= FEWEST_REPLICATIONS
    verdict: Verdict = "unclear"
    if enough and low is not None and high is not None and (low > 0 or high < 0):
        verdict = "worse" if low > 0 else "better"
    return Effect(
        **_about(cell),
        before=statistics.fmean(before.value for before, _ in pairs),
        after=statistics.fmean(after.value for _, after in pairs),
        difference=difference,
        low=low,
        high=high,
        jobs=jobs,
        at_least=any(before.at_least or after.at_least for before, after in pairs),
        verdict=verdict,
    )


def _static(before: Mapping[Cell, float], after: Mapping[Cell, float]) -> Iterator[Effect]:
    for cell in dict.fromkeys([*before, *after]):
        old, new = before.get(cell, 0.0), after.get(cell, 0.0)
        # Promises up to what there is cost nobody anything.
        worse = max(new, 1.0) - max(old, 1.0)
        yield Effect(
            **_about(cell),
            before=old,
            after=new,
            difference=new - old,
            low=new - old,
            high=new - old,
            jobs=0,
            at_least=False,
            verdict="worse" if worse > 0 else "better" if worse < 0 else "unclear",
        )


def _about(cell: Cell) -> dict[str, Any]:
    return cell._asdict()


def compare(
    baseline: Scenario,
    proposal: Scenario,
    *,
    replications: int = 20,
    days: int = 7,
    warmup_days: int = 1,
    seed: int = 7,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Comparison:
    """Run baseline and proposal on the same resampled work, and say what the proposal changes.

    `progress(done, total)` is called after each replication; when it returns False, the comparison
    ends with `Cancelled`.
    """
    if replications < 1:
        raise ValueError("a comparison needs at least one replication")
    results = []
    for index in range(replications):
        results.append(
            replicate(
                baseline, proposal, index=index, days=days, warmup_days=warmup_days, seed=seed
            )
        )
        if progress is not None and progress(index + 1, replications) is False:
            raise Cancelled(f"called off after {index + 1} of {replications} replications")
    return summarise(results)
