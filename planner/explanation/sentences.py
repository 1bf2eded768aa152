"""From facts to sentences, in one language: the answer first, then the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta

from planner.explanation.facts import (
    AttemptFacts,
    Displaced,
    Life,
    Moment,
    Narrowing,
    PoolFacts,
    Standing,
)
from planner.explanation.order_templates import SayOfTwo
from planner.explanation.templates import Say
from planner.explanation.undisplaced_sentences import spared
from planner.explanation.wording import Language, say
from planner.vocabulary import AttemptEnd, Reason

INDENT = "  "
SHOWN_HOLDERS = 5
_IN_LINE = (Standing.WAITING, Standing.SUSPENDED)
_AFTER_EVICTION = (Standing.CANCELLED, Standing.BACKING_OFF, Standing.SUSPENDED)


class Teller:
    """Says things in one language, with the clock of one scenario."""

    def __init__(self, language: Language, start: datetime) -> None:
        self.language = language
        self._start = start

    def say(self, what: Say | SayOfTwo, **values: object) -> str:
        """Say one thing."""
        return say(what, self.language, **values)

    def clock(self, seconds: int) -> str:
        """Return the scenario's own time at a second."""
        try:
            return (self._start + timedelta(seconds=seconds)).isoformat(" ")
        except OverflowError:
            return "-"  # there are no dates beyond the year 9999

    # --- One moment --------------------------------------------------------------------------

    def moment(self, facts: Moment) -> Iterator[str]:
        """Say how a job stood at a second, and why."""
        yield self.standing(facts)
        if facts.standing is Standing.NOT_SUBMITTED:
            return
        job = facts.job
        yield self.say(
            Say.ASKS,
            gpus=job.gpus,
            project=job.project,
            lane=job.lane,
            submit=job.submit_seconds,
        )
        if facts.reason is not None and facts.narrowing is None:
            yield self.say(Say.HAS_WAITED, waited=facts.waited_seconds)
        yield from self.behind(facts)

    def standing(self, facts: Moment) -> str:
        """Say in one sentence how a job stood."""
        job, attempt = facts.job, facts.attempt
        common: dict[str, object] = {
            "job": job.id,
            "at": facts.at_seconds,
            "clock": self.clock(facts.at_seconds),
        }
        if facts.standing is Standing.NOT_SUBMITTED:
            return self.say(Say.NOT_SUBMITTED, **common, submit=job.submit_seconds)
        if facts.standing is Standing.UNSCHEDULABLE:
            return self.say(Say.CANNOT_RUN, job=job.id, reason=facts.reason)
        if facts.standing is Standing.CANCELLED:
            return self.say(Say.WAS_CANCELLED, **common, end=facts.end_seconds)
        if facts.standing in (Standing.RUNNING, Standing.FINISHED):
            assert attempt is not None  # noqa: S101 - it has run
            if facts.standing is Standing.FINISHED:
                return self.say(
                    Say.HAS_FINISHED, **common, end=facts.end_seconds, pool=attempt.pool
                )
            return self.say(
                Say.RUNS,
                **common,
                pool=attempt.pool,
                start=attempt.start_seconds,
                number=attempt.number,
            )
        return self.say(Say.WAITS, **common, since=facts.since_seconds, reason=facts.reason)

    def behind(self, facts: Moment) -> Iterator[str]:
        """Give the numbers behind a standing."""
        if facts.narrowing is not None and facts.reason is not None:
            yield self._narrowed(facts, facts.narrowing, facts.reason)
        if facts.last_eviction is not None and facts.standing in _AFTER_EVICTION:
            yield self.eviction(facts.last_eviction)
        if facts.back_off_until_seconds is not None:
            yield self.say(
                Say.BACKS_OFF, evictions=facts.evictions, until=facts.back_off_until_seconds
            )
        if facts.ahead is not None:
            yield from self.head(facts.ahead)
        elif facts.standing in _IN_LINE:
            yield from self._in_line(facts)

    def head(self, ahead: Moment) -> Iterator[str]:
        """Name the head of a strict line, and say what it waits for."""
        yield self.say(
            Say.BEHIND_HEAD,
            lane=ahead.job.lane,
            project=ahead.job.project,
            head=ahead.job.id,
            reason=ahead.reason,
        )
        yield from self._in_line(ahead)

    def _in_line(self, facts: Moment) -> Iterator[str]:
        if any(pool.check is None for pool in facts.pools):
            what = Say.EVICTED_IN_PASS if facts.evicted_in_pass else Say.TURN_OVER
            yield self.say(what, passed=facts.passed_at_seconds)
        # The pools in which the job got as far as its reason says come first.
        for pool in sorted(facts.pools, key=lambda pool: pool.check is not facts.reason):
            yield self.check(facts, pool)
            yield from (INDENT + line for line in self._numbers(facts, pool))
        if facts.lane.limit is not None:
            yield self.say(
                Say.LANE,
                project=facts.job.project,
                lane=facts.lane.lane,
                use=facts.lane.use,
                limit=facts.lane.limit,
            )

    # --- One pool ----------------------------------------------------------------------------

    def check(self, facts: Moment, pool: PoolFacts) -> str:
        """Say which check failed first in a pool, or that the job fitted."""
        gpus, quota, reserved = facts.job.gpus, pool.quota, pool.reserved
        asked: dict[str, object] = {"pool": pool.pool, "gpus": gpus}
        if pool.check is Reason.POOL_OUTAGE:
            return self.say(
                Say.CHECK_OUTAGE,
                pool=pool.pool,
                start=pool.outage_since_seconds,
                until=pool.outage_until_seconds,
            )
        if pool.check is Reason.LANE_LIMIT_REACHED:
            lane = facts.lane
            return self.say(
                Say.CHECK_LANE, **asked, then=lane.use + gpus, lane=lane.lane, limit=lane.limit
            )
        if pool.check is Reason.BORROWING_LIMIT_REACHED:
            then = quota.usage + gpus
            return self.say(Say.CHECK_BORROWING, **asked, then=then, ceiling=quota.ceiling)
        if pool.check is Reason.WAITING_FOR_QUOTA:
            return self.say(Say.CHECK_QUOTA, **asked, available=quota.available)
        if pool.check is Reason.WAITING_FOR_CAPACITY:
            return self.say(Say.CHECK_CAPACITY, **asked, free=pool.free_gpus, total=pool.gpus)
        if pool.check is Reason.FRAGMENTED:
            return self._fragmented(gpus, pool)
        if pool.check is Reason.BEHIND_IN_QUEUE and reserved is not None:
            return self.say(
                Say.CHECK_RESERVED,
                pool=pool.pool,
                reserved=reserved.at_seconds,
                holder=reserved.holder,
                holder_gpus=reserved.holder_gpus,
                spare=reserved.spare_gpus,
                ends=reserved.ends_seconds,
            )
        return self.say(
            Say.CHECK_FITS,
            **asked,
            free=pool.free_gpus,
            total=pool.gpus,
            available=quota.available,
        )

    def _fragmented(self, gpus: int, pool: PoolFacts) -> str:
        whole, rest = divmod(gpus, pool.gpus_per_node)
        if not whole:
            return self.say(
                Say.CHECK_ONE_NODE,
                pool=pool.pool,
                free=pool.free_gpus,
                most=pool.most_free_on_a_used_node,
                rest=rest,
            )
        if not rest:
            return self.say(
                Say.CHECK_WHOLE_NODES,
                pool=pool.pool,
                free=pool.free_gpus,
                free_nodes=pool.free_nodes,
                whole=whole,
            )
        return self.say(
            Say.CHECK_NODES_AND_REST,
            pool=pool.pool,
            free=pool.free_gpus,
            free_nodes=pool.free_nodes,
            most=pool.most_free_on_a_used_node,
            whole=whole,
            rest=rest,
        )

    def _numbers(self, facts: Moment, pool: PoolFacts) -> Iterator[str]:
        """Give the quota line of a pool, what is free in it, who holds it, and for whom."""
        if pool.check is Reason.POOL_OUTAGE:
            return
        project = facts.job.project
        quota = {
            key: value
            for key, value in asdict(pool.quota).items()
            if key not in ("lending_limit", "ceiling")
        }
        yield self.say(Say.QUOTA, project=project, pool=pool.pool, **quota)
        yield self.say(
            Say.FREE,
            pool=pool.pool,
            free=pool.free_gpus,
            total=pool.gpus,
            free_nodes=pool.free_nodes,
            nodes=pool.nodes,
        )
        yield from self._held(pool)
        if pool.undisplaced is not None:
            yield spared(self.say, facts, pool, pool.undisplaced)
        reserved = pool.reserved
        if reserved is None or reserved.binds:
            return
        if reserved.holder == facts.job.id:
            yield self.say(Say.RESERVED_FOR_IT, pool=pool.pool, reserved=reserved.at_seconds)
        else:
            yield self.say(
                Say.RESERVED_FOR_OTHER,
                pool=pool.pool,
                reserved=reserved.at_seconds,
                holder=reserved.holder,
                holder_gpus=reserved.holder_gpus,
                spare=reserved.spare_gpus,
            )

    def _held(self, pool: PoolFacts) -> Iterator[str]:
        if not pool.holders:
            return
        shown, more = pool.holders[:SHOWN_HOLDERS], pool.holders[SHOWN_HOLDERS:]
        holders = [
            self.say(
                Say.HOLDER,
                project=held.project,
                lane=held.lane,
                gpus=held.gpus,
                jobs=held.jobs,
                since=held.since_seconds,
            )
            for held in shown
        ]
        if more:
            gpus = sum(held.gpus for held in more)
            yield self.say(
                Say.HELD_AND_MORE, pool=pool.pool, holders=holders, more=len(more), gpus=gpus
            )
        else:
            yield self.say(Say.HELD, pool=pool.pool, holders=holders)

    # --- Evictions and attempts --------------------------------------------------------------

    def eviction(self, facts: Displaced) -> str:
        """Say who was evicted by whom, and what that cost."""
        where: dict[str, object] = {
            "pool": facts.pool,
            "at": facts.at_seconds,
            "lost": facts.lost_gpu_seconds,
        }
        if facts.by is None:
            return self.say(Say.EVICTED_BY_OUTAGE, **where)
        by = facts.by
        return self.say(
            Say.EVICTED_BY,
            **where,
            by=by.id,
            project=by.project,
            lane=by.lane,
            ground=facts.ground,
        )

    def attempt(self, facts: AttemptFacts) -> str:
        """Say where and when a job ran, and how that ended."""
        where: dict[str, object] = {
            "number": facts.number,
            "pool": facts.pool,
            "start": facts.start_seconds,
        }
        if facts.ended is AttemptEnd.RUNNING:
            return self.say(Say.ATTEMPT_RUNNING, **where)
        where["end"] = facts.end_seconds
        if facts.eviction is None:
            return self.say(Say.ATTEMPT_FINISHED, **where)
        where["lost"] = facts.eviction.lost_gpu_seconds
        by = facts.eviction.by
        if by is None:
            return self.say(Say.ATTEMPT_OUTAGE, **where)
        return self.say(
            Say.ATTEMPT_EVICTED,
            **where,
            by=by.id,
            project=by.project,
            lane=by.lane,
            ground=facts.eviction.ground,
        )

    # --- A job that can never run ------------------------------------------------------------

    def _narrowed(self, facts: Moment, left: Narrowing, reason: Reason) -> str:
        job = facts.job
        if reason is Reason.LANE_NOT_ASSIGNED:
            return self.say(
                Say.LANES_ASSIGNED, lane=job.lane, project=job.project, lanes=left.lanes
            )
        if reason is Reason.NO_QUOTA:
            return self.say(
                Say.POOLS_WITH_QUOTA,
                project=job.project,
                quota_pools=left.quota_pools,
                allowed_pools=left.allowed_pools,
            )
        if reason is Reason.NO_MATCHING_ACCELERATOR:
            offers = [
                self.say(Say.OFFER, pool=offer.pool, trait=offer.accelerator) for offer in left.left
            ]
            return self.say(Say.ACCELERATORS_LEFT, accelerator=left.accelerator, offers=offers)
        if reason is Reason.EXCEEDS_POOL:
            offers = [
                self.say(Say.OFFER_GPUS, pool=offer.pool, gpus=offer.gpus) for offer in left.left
            ]
            return self.say(Say.SIZES_LEFT, gpus=job.gpus, offers=offers)
        if reason is Reason.EXCEEDS_MAX_QUOTA:
            offers = [
                self.say(Say.OFFER_GPUS, pool=offer.pool, gpus=offer.most) for offer in left.left
            ]
            return self.say(
                Say.MOST_LEFT,
                gpus=job.gpus,
                project=job.project,
                lane=job.lane,
                offers=offers,
                limit=left.max_gpus,
            )
        offers = [self.say(Say.OFFER, pool=offer.pool, trait=offer.region) for offer in left.left]
        if reason is Reason.RESIDENCY_FORBIDS:
            return self.say(Say.REGIONS_LEFT, regions=left.regions, offers=offers)
        return self.say(Say.NOT_LINKED, region=left.data_region, offers=offers)

    # --- A whole life ------------------------------------------------------------------------

    def life(self, facts: Life) -> Iterator[str]:
        """Say how a job waited, for what and how long, and how it ran."""
        yield from self.moment(facts.now)
        if facts.now.standing in (Standing.NOT_SUBMITTED, Standing.UNSCHEDULABLE):
            return
        yield from (self.attempt(attempt) for attempt in facts.attempts)
        if not facts.spells:
            yield self.say(Say.NEVER_WAITED)
            return
        yield self.say(Say.WAITED, total=facts.total_wait_seconds)
        for wait in facts.waits:
            yield INDENT + self.say(Say.WAITED_FOR, seconds=wait.seconds, reason=wait.reason)
        left_out = [spell for spell in facts.spells if spell.moment is None]
        for spell in facts.spells:
            if spell.moment is None:
                continue
            start, end = spell.start_seconds, spell.end_seconds
            yield self.say(
                Say.SPELL, seconds=end - start, start=start, end=end, reason=spell.reason
            )
            yield from (INDENT + line for line in self.behind(spell.moment))
        if left_out:
            seconds = sum(spell.end_seconds - spell.start_seconds for spell in left_out)
            yield self.say(Say.MORE_SPELLS, spells=len(left_out), seconds=seconds)
