"""From a run, stopped or going on, to the facts about one job at one moment."""

from __future__ import annotations

from dataclasses import replace

from planner.engine.courses import Course, Eviction
from planner.engine.reservations import Reservations, limit_left
from planner.explanation.facts import (
    About,
    AttemptFacts,
    Displaced,
    Holder,
    LaneFacts,
    Moment,
    Narrowing,
    Offer,
    PoolFacts,
    QuotaLine,
    Reserved,
    Standing,
)
from planner.explanation.undisplaced import undisplaced
from planner.explanation.watching import Watched
from planner.policy.checkpoint import back_off_seconds
from planner.policy.quota import UNLIMITED
from planner.vocabulary import Ground, Reason
from planner.work import Job


def about(course: Course) -> About:
    """Say whom it is about."""
    job = course.job
    return About(job.id, job.project, job.lane, job.gpus, job.submit_seconds, course.position + 1)


def moment(run: Watched, course: Course, at: int) -> Moment:
    """Gather how a job stands at a second."""
    standing = _standing(run, course)
    waits = standing in (Standing.WAITING, Standing.BACKING_OFF, Standing.SUSPENDED)
    in_line = waits and standing is not Standing.BACKING_OFF
    in_pass = in_line and run.evicted_in_pass(course)
    reason = run.reason(course) if waits else course.reason
    last = None
    if course.attempts:
        last = attempts_of(run, course)[-1]
    waited = sum(end - start for start, end, _ in course.spells)
    if waits:
        waited += at - course.phase_start
    head = run.head_before(course) if in_line else None
    return Moment(
        job=about(course),
        at_seconds=at,
        passed_at_seconds=run.passed_at,
        standing=standing,
        reason=reason,
        since_seconds=None,  # a run that goes on does not know yet
        waited_seconds=waited,
        lane=_lane(run, course),
        pools=_pools(run, course, at) if in_line else (),
        ahead=None if head is None else moment(run, head, at),
        evicted_in_pass=in_pass,
        back_off_until_seconds=_back_off_until(run, course)
        if standing is Standing.BACKING_OFF
        else None,
        evictions=course.evictions,
        last_eviction=None if last is None else last.eviction,
        attempt=last,
        end_seconds=course.end,
        narrowing=_narrowing(run, course) if standing is Standing.UNSCHEDULABLE else None,
    )


def stopped_moment(run: Watched, course: Course) -> Moment:
    """Gather how a job stands in a run that has stopped, and since when it waits."""
    at = run.now
    found = moment(run, course, at)
    if found.reason is None or found.standing is Standing.UNSCHEDULABLE:
        return found
    # The spell that goes on was written down when the run stopped, unless it has just begun.
    since = at
    if course.spells and course.spells[-1][1:] == (at, found.reason):
        since = course.spells[-1][0]
    return replace(found, since_seconds=since)


def _standing(run: Watched, course: Course) -> Standing:
    if not run.has_arrived(course):
        return Standing.NOT_SUBMITTED
    if run.backs_off(course):
        return Standing.BACKING_OFF
    return Standing(course.state)


def _back_off_until(run: Watched, course: Course) -> int:
    lane, evicted_at = run.scenario.lanes[course.lane], course.attempt.end
    assert evicted_at is not None  # noqa: S101 - its attempt was evicted
    return evicted_at + back_off_seconds(
        lane.backoff_seconds, lane.backoff_limit_seconds, course.evictions
    )


def _lane(run: Watched, course: Course) -> LaneFacts:
    lane = run.scenario.lanes[course.lane]
    limit = run.columns.lane_limit(course.project, course.lane)
    return LaneFacts(
        lane=lane.name,
        rank=lane.rank,
        queueing=lane.queueing,
        use=run.occupancy.project_lane_use[course.project][course.lane],
        limit=None if limit == UNLIMITED else limit,
    )


# --- Pools ---------------------------------------------------------------------------------------


def _pools(run: Watched, course: Course, at: int) -> tuple[PoolFacts, ...]:
    held = run.reservations()
    return tuple(_pool(run, course, number, at, held) for number in run.shape(course).pools)


def _pool(
    run: Watched, course: Course, number: int, at: int, reservations: Reservations | None
) -> PoolFacts:
    pool, nodes = run.scenario.pools[number], run.occupancy.nodes[number]
    check, reserved = run.check(course, number), None
    if reservations is not None:
        reserved = _reserved(run, course, number, reservations)
    if check is None and reserved is not None and reserved.binds:
        check = Reason.BEHIND_IN_QUEUE
    outage = run.outage_of(number, at) if check is Reason.POOL_OUTAGE else None
    return PoolFacts(
        pool=pool.name,
        check=check,
        gpus=pool.gpus,
        free_gpus=0 if outage else nodes.free_gpus,
        nodes=pool.nodes,
        free_nodes=0 if outage else nodes.nodes_with[-1],
        gpus_per_node=pool.gpus_per_node,
        most_free_on_a_used_node=0
        if outage
        else max((free for free in nodes.free if free < nodes.per_node), default=0),
        quota=_quota(run, course.project, number),
        outage_since_seconds=outage and outage[0],
        outage_until_seconds=outage and outage[1],
        reserved=reserved,
        undisplaced=undisplaced(run, course, number, check),
        holders=_holders(run, number),
    )


def _quota(run: Watched, project: int, pool: int) -> QuotaLine:
    accounts, scenario = run.occupancy.accounts[pool], run.scenario
    nominal, ceiling = accounts.nominal[project], accounts.ceiling[project]
    names = scenario.projects[project].name, scenario.pools[pool].name
    row = next(row for row in scenario.quotas if (row.project, row.pool) == names)
    return QuotaLine(
        nominal=nominal,
        lending_limit=row.lending_limit,
        guaranteed=accounts.guaranteed[project],
        usage=accounts.usage[project],
        borrowed=max(0, accounts.borrowed(project)),
        borrowing_limit=row.borrowing_limit,
        ceiling=None if row.borrowing_limit is None else ceiling,
        cohort=scenario.projects[project].cohort,
        cohort_capacity=accounts.capacity_for(project),
        cohort_use=accounts.shared_use[accounts.cohort_of[project]],
        available=accounts.available(project),
    )


def _reserved(
    run: Watched, course: Course, pool: int, reservations: Reservations
) -> Reserved | None:
    held = reservations.of(pool)
    if held is None:
        return None
    assert held.at is not None  # noqa: S101 - the running jobs hold what the holder lacks
    return Reserved(
        holder=held.holder.job.id,
        holder_gpus=held.holder.gpus,
        at_seconds=held.at,
        spare_gpus=held.spare,
        ends_seconds=run.passed_at + limit_left(course),
        binds=held.holder is not course and not reservations.let(course, pool),
    )


def _holders(run: Watched, pool: int) -> tuple[Holder, ...]:
    """Sum up who runs in the pool, most GPUs first."""
    found: dict[tuple[str, str], Holder] = {}
    for other in run.occupancy.running[pool]:
        job, start = other.job, other.attempt.start
        key = job.project, job.lane
        held = found.get(key, Holder(*key, 0, 0, start))
        found[key] = replace(
            held,
            gpus=held.gpus + job.gpus,
            jobs=held.jobs + 1,
            since_seconds=min(held.since_seconds, start),
        )
    return tuple(
        sorted(found.values(), key=lambda h: (-h.gpus, h.since_seconds, h.project, h.lane))
    )


# --- Attempts ------------------------------------------------------------------------------------


def attempts_of(run: Watched, course: Course) -> tuple[AttemptFacts, ...]:
    """List the attempts of a job, with the evictions that ended them."""
    evictions = iter(run.evictions_of(course))
    return tuple(
        AttemptFacts(
            number=attempt.number,
            pool=run.scenario.pools[attempt.pool].name,
            start_seconds=attempt.start,
            end_seconds=attempt.end,
            ended=attempt.ended,
            eviction=None if attempt.ground is None else displaced(run, next(evictions)),
        )
        for attempt in course.attempts
    )


def displaced(run: Watched, eviction: Eviction) -> Displaced:
    """Say who was evicted, for whom, and at what cost."""
    return Displaced(
        at_seconds=eviction.at,
        pool=run.scenario.pools[eviction.pool].name,
        ground=Ground(eviction.ground),
        by=None if eviction.preemptor is None else about(eviction.preemptor),
        victim=eviction.victim.job.id,
        lost_gpu_seconds=eviction.lost,
    )


# --- Jobs that can never run ---------------------------------------------------------------------


def _narrowing(run: Watched, course: Course) -> Narrowing:
    """Find what was left before the step that left nothing: ask without it and what follows it."""
    scenario, job, reason = run.scenario, course.job, course.reason
    row = next(
        (a for a in scenario.assignments if (a.project, a.lane) == (job.project, job.lane)), None
    )
    limits = [None if row is None else row.pools, job.pools]
    named = [set(pools) for pools in limits if pools is not None]
    return Narrowing(
        accelerator=job.accelerator,
        regions=job.regions or (),
        data_region=job.data_region,
        lanes=tuple(a.lane for a in scenario.assignments if a.project == job.project),
        max_gpus=None if row is None else row.max_gpus,
        quota_pools=tuple(q.pool for q in scenario.quotas if q.project == job.project),
        allowed_pools=tuple(
            p.name for p in scenario.pools if all(p.name in names for names in named)
        )
        if named
        else None,
        left=tuple(_offer(run, course, pool) for pool in _left(run, job, reason)),
    )


def _left(run: Watched, job: Job, reason: Reason | None) -> tuple[int, ...]:
    """List the pools that were left before the step that gave the reason."""
    asked = replace(job, gpus=0)  # as the steps before pool size and quota
    if reason is Reason.EXCEEDS_MAX_QUOTA:
        pools, _ = run.columns.eligible(asked, run.occupancy.accounts)
        return tuple(pool for pool in pools if job.gpus <= run.scenario.pools[pool].gpus)
    if reason in (Reason.NO_LINK, Reason.RESIDENCY_FORBIDS, Reason.NO_MATCHING_ACCELERATOR):
        asked = replace(asked, data_region=None)
    if reason in (Reason.RESIDENCY_FORBIDS, Reason.NO_MATCHING_ACCELERATOR):
        asked = replace(asked, regions=None)
    if reason is Reason.NO_MATCHING_ACCELERATOR:
        asked = replace(asked, accelerator=None)
    pools, _ = run.columns.eligible(asked, run.occupancy.accounts)
    return pools


def _offer(run: Watched, course: Course, number: int) -> Offer:
    pool = run.scenario.pools[number]
    return Offer(
        pool=pool.name,
        region=run.columns.region_of_pool[number],
        accelerator=pool.accelerator,
        gpus=pool.gpus,
        most=run.occupancy.accounts[number].most(course.project),
    )
