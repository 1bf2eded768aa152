"""Says why nobody was displaced in a pool for a job that may displace others."""

from __future__ import annotations

from collections.abc import Callable

from planner.explanation.facts import Moment, PoolFacts, Spared, Undisplaced
from planner.explanation.templates import Say


def spared(say: Callable[..., str], moment: Moment, pool: PoolFacts, facts: Undisplaced) -> str:
    """Say in one sentence why nobody was displaced."""
    job = moment.job
    if facts.why is Spared.NOBODY:
        return say(
            Say.NOBODY_TO_DISPLACE,
            pool=pool.pool,
            lane=job.lane,
            preempts=facts.preempts,
            reclaim=facts.reclaim,
        )
    if facts.why is Spared.OVER_NOMINAL:
        return say(
            Say.WOULD_BORROW,
            pool=pool.pool,
            gpus=job.gpus,
            project=job.project,
            then=pool.quota.usage + job.gpus,
            nominal=pool.quota.nominal,
        )
    if facts.why is Spared.PROTECTED:
        what = Say.ALL_PROTECTED
    else:
        what = Say.TOO_FEW_UNPROTECTED if facts.protected_jobs else Say.TOO_FEW_TO_DISPLACE
    return say(
        what,
        pool=pool.pool,
        jobs=facts.jobs,
        displaceable=facts.gpus,
        protected=facts.protected_jobs,
        until=facts.protected_until_seconds,
        passed=moment.passed_at_seconds,
    )
