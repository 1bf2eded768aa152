"""The reference engine: reads like section 4 of the contract, and is what other engines must equal.

Everything is decided on whole seconds and exact numbers, so the same scenario gives the same
schedule on every machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from math import inf

from planner.description.record import Scenario
from planner.engine.columns import Beyond, Columns, last_second
from planner.engine.courses import Course, Eviction
from planner.engine.occupancy import Occupancy
from planner.engine.queues import FITS, Queue, Shape
from planner.engine.reservations import Reservations
from planner.engine.scoring import Scores
from planner.engine.waiting import WaitingRoom
from planner.policy.checkpoint import back_off_seconds
from planner.policy.preemption import Candidate, choose, ground_for
from planner.policy.priority import lanes_in_turn
from planner.vocabulary import Backfill, Ground, JobState, Order, Reason, Recovery, Victims

# Kinds of events, in the order in which they are handled within one instant; arrivals come last.
COMPLETION, OUTAGE_END, OUTAGE_BEGIN, BACK_OFF_END = range(1, 5)


class Run:
    """One run of a scenario, from its first event to its last."""

    def __init__(self, scenario: Scenario, room: type[WaitingRoom] = WaitingRoom) -> None:
        self.scenario = scenario
        self.columns = Columns(scenario)
        self.occupancy = Occupancy(self.columns)
        self.courses = self._courses()  # by turn
        self.room = room(self.columns, self.occupancy, self.courses)
        self.now = 0
        self.evictions: list[Eviction] = []
        self.fair = scenario.policy.order is Order.FAIR_SHARE
        self._easy = scenario.policy.backfill is Backfill.EASY
        self.scores: Scores | None = None
        if scenario.policy.order is Order.MULTIFACTOR:
            self.scores = Scores(self.columns, self.occupancy)
            self.room.score_of = self.score_of
        self._by_loss = scenario.policy.victims is Victims.LEAST_LOST_WORK
        self.lanes_in_turn = lanes_in_turn(scenario.lanes)
        self.arrived = 0
        self._evicted_in_pass: list[Course] = []
        # (second, kind, position in the file, turn of the job, number of the attempt)
        self._events: list[tuple[int, int, int, int, int]] = []
        for position, outage in enumerate(scenario.outages):
            start = outage.start_seconds
            self._events.append((start, OUTAGE_BEGIN, position, 0, 0))
            self._events.append((start + outage.duration_seconds, OUTAGE_END, position, 0, 0))
        heapq.heapify(self._events)

    def _courses(self) -> list[Course]:
        """Put the jobs in order of arrival, without those submitted after the horizon."""
        scenario, columns = self.scenario, self.columns
        horizon = scenario.horizon_seconds
        in_turn = sorted(
            (job.submit_seconds, position, job)
            for position, job in enumerate(scenario.jobs)
            if horizon is None or job.submit_seconds <= horizon
        )
        return [
            Course(
                job,
                position=position,
                turn=turn,
                project=columns.project_number[job.project],
                lane=columns.lane_number[job.lane],
            )
            for turn, (_, position, job) in enumerate(in_turn)
        ]

    # --- The run -----------------------------------------------------------------------------

    def run(self) -> None:
        """Handle one instant after the other, each with its events in order and then one pass."""
        horizon, last = self.scenario.horizon_seconds, last_second(self.scenario)
        while (instant := self._next_instant()) is not None:
            if horizon is not None and instant > horizon:
                break
            if instant > last:
                raise Beyond(last)
            self.now = instant
            if self.scores is not None:
                self.scores.advance(instant)
            # (1) completions, (2) outages that end, (3) that begin, (4) back-offs that end
            while self._events and self._events[0][0] == instant:
                _, kind, position, turn, number = heapq.heappop(self._events)
                if kind == COMPLETION:
                    if self._still_on(turn, number):
                        self.courses[turn].complete(instant)
                        self.occupancy.stop(self.courses[turn])
                elif kind == OUTAGE_END:
                    for pool in self.struck(position):
                        self.occupancy.outage(pool, -1)
                elif kind == OUTAGE_BEGIN:
                    self._strike(position)
                else:
                    self.courses[turn].end_phase(instant)
                    self.room.enter(self.courses[turn], instant)
            # (5) arrivals in file order
            while self.arrived < len(self.courses):
                course = self.courses[self.arrived]
                if course.job.submit_seconds > instant:
                    break
                self.arrived += 1
                self._arrive(course)
            self.one_pass()
        if horizon is not None:
            self.now = horizon
        for course in self.courses:
            course.stop(self.now)

    def _next_instant(self) -> int | None:
        """Return the second of the next event that does happen."""
        events = self._events
        while events and events[0][1] == COMPLETION and not self._still_on(*events[0][3:]):
            heapq.heappop(events)  # the attempt was evicted, so nothing happens at its end
        instant = events[0][0] if events else None
        if self.arrived < len(self.courses):
            submit = self.courses[self.arrived].job.submit_seconds
            instant = submit if instant is None else min(instant, submit)
        return instant

    def _still_on(self, turn: int, number: int) -> bool:
        course = self.courses[turn]
        return course.state is JobState.RUNNING and len(course.attempts) == number

    def _arrive(self, course: Course) -> None:
        """Queue a new job, unless no pool can ever hold it."""
        pools, reason = self.columns.eligible(course.job, self.occupancy.accounts)
        if reason is not None:
            course.state, course.reason = JobState.UNSCHEDULABLE, reason
            return
        self.room.welcome(course, pools)
        self.room.enter(course, self.now)

    def struck(self, position: int) -> list[int]:
        """List the pools an outage takes the capacity of."""
        outage = self.scenario.outages[position]
        return [
            number
            for number, pool in enumerate(self.scenario.pools)
            if outage.pool == pool.name
            or outage.domain == pool.domain
            or outage.region == self.columns.region_of_pool[number]
        ]

    def _strike(self, position: int) -> None:
        """Begin an outage: its pools lose their capacity, and every job in them is evicted."""
        outage = self.scenario.outages[position]
        hit: list[Course] = []
        for pool in self.struck(position):
            self.occupancy.outage(pool, 1)
            hit.extend(self.occupancy.running[pool])
        for course in sorted(hit, key=lambda course: course.position):
            storage = self.columns.storage_of_pool[course.pool]
            gone = storage is not None and storage.lost_with(outage, self.columns.region_of_domain)
            self._end_attempt(course, Recovery.REQUEUE, Ground.OUTAGE, storage_lost=gone)
            self.room.enter(course, self.now)

    # --- The pass ----------------------------------------------------------------------------

    def one_pass(self) -> None:
        """Admit whom the state allows, lane by lane; then keep why the others wait."""
        if self.scores is not None:
            self.room.look_for_heads()
        admit_one = self._admit_one_easy if self._easy else self._admit_one
        for lane in self.lanes_in_turn:
            while self.room.in_lane[lane] and admit_one(lane):
                pass
        for course in self._evicted_in_pass:
            self.room.enter(course, self.now)
        self._evicted_in_pass.clear()
        self.room.note_reasons(self.now)

    def _admit_one(self, lane: int) -> bool:
        """Admit one job of the lane, the first that can be; say whether there was one."""
        self.room.look_again()
        now = self.now
        # 1. The projects with a waiting job in this lane. One whose every shape is known to be
        #    refused would be tried in vain, so it is left out.
        hopeful = [
            queue
            for queue in self.room.in_lane[lane]
            if any(shape.stage == FITS or shape.evict_from <= now for shape in queue.open)
        ]
        # 2. Their order.
        if len(hopeful) > 1:
            hopeful.sort(key=self._place_in_line)
        # 3. One after the other; a strict queue offers its first job only.
        for queue in hopeful:
            for turn, shape in self.heads(queue):
                if self._admit(self.courses[turn], shape):
                    return True  # 4. back to 1 for the same lane
        return False

    def _place_in_line(self, queue: Queue) -> tuple[int | float, int]:
        if self.scores is not None:
            turn, _ = self.heads(queue)[0]
            return -self.score_of(turn), self.courses[turn].position
        # A turn is unique: submit time, then position in the file.
        return (self.occupancy.shares.of(queue.project) if self.fair else 0, queue.first)

    def heads(self, queue: Queue) -> list[tuple[int, Shape]]:
        """List the first job of each shape that may be tried, in the order of the policy."""
        heads = queue.heads()
        if self.scores is not None and len(heads) > 1:
            heads.sort(key=lambda head: (-self.score_of(head[0]), head[0]))
        return heads

    def score_of(self, turn: int) -> float:
        """Return the score that a waiting job has now (multifactor)."""
        shape = self.room.shape_of[turn]
        assert self.scores is not None and shape is not None  # noqa: S101, PT018
        return self.scores.of(self.courses[turn], shape.pools)

    def _admit_one_easy(self, lane: int) -> bool:
        """Admit one job of the lane without delaying those for whom a pool is reserved."""
        self.room.look_again()
        place = self.lanes_in_turn.index(lane)
        reservations = Reservations(self.occupancy, self.line(place), self.now)
        for queue in sorted(self.room.in_lane[lane], key=lambda queue: queue.first):
            for turn, shape in queue.line():
                course = self.courses[turn]
                fits = [
                    pool
                    for pool, stage in zip(shape.pools, shape.stages, strict=True)
                    if stage == FITS and reservations.let(course, pool)
                ]
                if fits:
                    self.start(course, shape, self.occupancy.in_order(course, fits)[0])
                    return True
                if self._make_room(course, shape):
                    return True
        return False

    def line(self, place: int) -> Iterator[tuple[Course, Shape]]:
        """List who may be tried, in order, down to the lane at this place."""
        for lane in self.lanes_in_turn[: place + 1]:
            for queue in sorted(self.room.in_lane[lane], key=lambda queue: queue.first):
                for turn, shape in queue.line():
                    yield self.courses[turn], shape

    def _admit(self, course: Course, shape: Shape) -> bool:
        """Start the job where it fits, or where others may be displaced for it."""
        if shape.stage == FITS:
            fits = [p for p, stage in zip(shape.pools, shape.stages, strict=True) if stage == FITS]
            self.start(course, shape, self.occupancy.in_order(course, fits)[0])
            return True
        return self._make_room(course, shape)

    def _make_room(self, course: Course, shape: Shape) -> bool:
        """Start the job in the first of its pools where others can be displaced for it."""
        if shape.evict_from > self.now:
            return False
        for pool in self.occupancy.in_order(course, shape.pools):
            at = shape.pools.index(pool)
            if shape.evict_from_in[at] > self.now:
                continue
            victims, ask_again = self.victims(course, pool, self.now)
            if victims:
                for victim in victims:
                    self.displace(self.courses[victim.job], victim.ground, by=course)
                self.start(course, shape, pool)
                return True
            shape.evict_from_in[at] = ask_again
            shape.evict_from = min(shape.evict_from_in)
        return False

    def start(self, course: Course, shape: Shape, pool: int) -> None:
        """Begin an attempt of the job in the pool, and note when it will be complete."""
        score = None if self.scores is None else self.scores.terms(course, shape.pools)
        self.room.leave(course, shape)
        end = course.begin(
            self.now,
            pool,
            self.columns.region_of_pool[pool],
            staging=self.occupancy.staging(course, pool),
            write=self.columns.writing(course.job, pool),
        )
        course.attempt.score = score
        self.occupancy.start(course)
        event = (end, COMPLETION, course.position, course.turn, len(course.attempts))
        heapq.heappush(self._events, event)

    # --- Victims -----------------------------------------------------------------------------

    def displaceable(
        self, course: Course, pool: int, *, within_nominal: bool
    ) -> Iterator[tuple[Course, Ground, int]]:
        """List whom the job may displace in the pool, on what ground, and from which second on."""
        rights = self.columns.rights[course.lane]
        accounts = self.occupancy.accounts[pool]
        for other in self.occupancy.running[pool]:
            lane = self.scenario.lanes[other.lane]
            ground = ground_for(
                rights,
                accounts,
                project=course.project,
                within_nominal=within_nominal,
                victim_project=other.project,
                victim_lane=other.lane,
                victim_rank=lane.rank,
            )
            if ground is not None:
                yield other, ground, other.attempt.start + lane.protect_seconds

    def victims(self, course: Course, pool: int, now: int) -> tuple[list[Candidate], float]:
        """Choose whom to evict for the job; without any, the second from which to ask again."""
        accounts = self.occupancy.accounts[pool]
        candidates: list[Candidate] = []
        ask_again: float = inf
        within = accounts.within_nominal(course.project, course.gpus)
        for other, ground, free_from in self.displaceable(course, pool, within_nominal=within):
            if free_from > now:
                ask_again = min(ask_again, free_from)
                continue
            candidates.append(
                Candidate(
                    borrower_last=not accounts.borrows(other.project),
                    rank=self.scenario.lanes[other.lane].rank,
                    choice=other.would_lose(now, self._recovery(other))
                    if self._by_loss
                    else -other.attempt.start,
                    position_last=-other.position,
                    job=other.turn,
                    project=other.project,
                    gpus=other.gpus,
                    nodes=other.shares,
                    ground=ground,
                )
            )
        trial, nodes = accounts.copy(), self.occupancy.nodes[pool].copy()

        def fits() -> bool:
            return trial.fits(course.project, course.gpus) and nodes.fits(course.gpus)

        victims, left_out = choose(candidates, trial, nodes, fits)
        if left_out and self._by_loss:
            ask_again = now + 1  # the order changes as the candidates work on
        return victims, ask_again

    def _recovery(self, course: Course) -> Recovery:
        """Say what an eviction, other than by an outage, means for the job."""
        lane = self.scenario.lanes[course.lane]
        if lane.max_requeues is not None and course.evictions + 1 > lane.max_requeues:
            return Recovery.CANCEL
        return lane.recovery

    def displace(self, course: Course, ground: Ground, *, by: Course) -> None:
        """Evict a job for another one, and let it wait or back off, unless that ends it."""
        recovery = self._recovery(course)
        self._end_attempt(course, recovery, ground, by=by)
        if recovery is Recovery.CANCEL:
            return
        wait = 0
        if recovery is Recovery.REQUEUE:
            lane = self.scenario.lanes[course.lane]
            first, limit = lane.backoff_seconds, lane.backoff_limit_seconds
            wait = back_off_seconds(first, limit, course.evictions)
        if wait:
            course.wait_on(self.now, Reason.BACKING_OFF)
            event = (self.now + wait, BACK_OFF_END, course.position, course.turn, 0)
            heapq.heappush(self._events, event)
        else:
            # A job evicted in a pass is not looked at again in that pass: every pass ends.
            self._evicted_in_pass.append(course)

    def _end_attempt(
        self,
        course: Course,
        recovery: Recovery,
        ground: Ground,
        *,
        by: Course | None = None,
        storage_lost: bool = False,
    ) -> None:
        lost = course.interrupt(self.now, recovery, ground, by=by, storage_lost=storage_lost)
        self.occupancy.stop(course)
        self.evictions.append(Eviction(self.now, course, by, ground, course.pool, lost))
