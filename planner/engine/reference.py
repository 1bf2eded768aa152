"""The reference engine: reads like section 4 of the contract, and is what other engines must equal.

Everything is decided on whole seconds and exact numbers, so the same scenario gives the same
schedule on every machine. One shortcut is taken, the one the contract names: what refused a shape
of waiting job is remembered, and looked at again only when something in its pools, or its
project's use of the lane, has changed.
"""

from __future__ import annotations

import heapq
from decimal import Decimal
from math import inf

from planner.description.record import Scenario
from planner.engine.columns import Columns
from planner.engine.queues import (
    BORROWING,
    CAPACITY,
    FITS,
    FRAGMENTED,
    LANE_LIMIT,
    OUT,
    QUOTA,
    REASON_AT,
    Course,
    Queue,
    Shape,
)
from planner.policy.checkpoint import Spent, back_off_seconds, spent, writes_in
from planner.policy.placement import Nodes, near_data, packed, spread_out
from planner.policy.preemption import Candidate, choose, ground_for
from planner.policy.priority import DominantShares, lanes_in_turn
from planner.trace import Attempt, Eviction
from planner.vocabulary import (
    AttemptEnd,
    Ground,
    JobState,
    Order,
    Placement,
    Queueing,
    Reason,
    Reclaim,
    Recovery,
    Victims,
)

# Kinds of events, in the order in which they are handled within one instant; arrivals come last.
COMPLETION, OUTAGE_END, OUTAGE_BEGIN, BACK_OFF_END = range(1, 5)


class Run:
    """One run of a scenario, from its first event to its last."""

    def __init__(self, scenario: Scenario) -> None:
        self.columns = columns = Columns(scenario)
        self.scenario = scenario
        self.policy = scenario.policy
        self.fair = scenario.policy.order is Order.FAIR_SHARE
        self.now = 0
        pools, lanes, projects = scenario.pools, scenario.lanes, scenario.projects
        self.accounts = columns.accounts()
        self.nodes = [Nodes(pool.nodes, pool.gpus_per_node) for pool in pools]
        self.outages_in = [0] * len(pools)
        self.running: list[dict[Course, None]] = [{} for _ in pools]
        self.lane_use = [[0] * len(lanes) for _ in pools]
        self.domain_use = [[0] * len(scenario.domains) for _ in projects]
        self.shares = DominantShares(self.accounts, columns.weights)
        self.lanes_in_turn = lanes_in_turn(lanes)
        self.waiting: list[dict[Queue, None]] = [{} for _ in lanes]
        self.queues: dict[tuple[int, int], Queue] = {}
        self.shapes: dict[object, Shape] = {}
        self.evicted_in_pass: list[Course] = []
        self.active: dict[Shape, None] = {}  # shapes that are looked at
        self.changed_pools = 0  # a bit for each pool that has changed since the last look
        self.changed_queues: dict[Queue, None] = {}  # whose lane limit has to be looked at again
        self.rechecked: dict[Shape, None] = {}
        self.evictions: list[Eviction] = []

        horizon = scenario.horizon_seconds
        by_submit = sorted(
            (job.submit_seconds, position)
            for position, job in enumerate(scenario.jobs)
            if horizon is None or job.submit_seconds <= horizon
        )
        self.courses = [
            Course(
                job := scenario.jobs[position],
                position=position,
                turn=turn,
                project=columns.project_number[job.project],
                lane=columns.lane_number[job.lane],
            )
            for turn, (_, position) in enumerate(by_submit)
        ]
        self.arrived = 0
        # (second, kind, position in the file, turn of the job, number of the attempt)
        self.events: list[tuple[int, int, int, int, int]] = []
        for position, outage in enumerate(scenario.outages):
            start = outage.start_seconds
            self.events.append((start, OUTAGE_BEGIN, position, 0, 0))
            self.events.append((start + outage.duration_seconds, OUTAGE_END, position, 0, 0))
        heapq.heapify(self.events)

    # --- The run -----------------------------------------------------------------------------

    def run(self) -> None:
        """Handle one instant after the other, each with its events in order and then one pass."""
        horizon = self.scenario.horizon_seconds
        while (instant := self._next_instant()) is not None:
            if horizon is not None and instant > horizon:
                break
            self.now = instant
            # (1) completions, (2) outages that end, (3) that begin, (4) back-offs that end
            while self.events and self.events[0][0] == instant:
                _, kind, position, turn, number = heapq.heappop(self.events)
                if kind == COMPLETION:
                    if self._still_on(turn, number):
                        self._complete(self.courses[turn])
                elif kind == OUTAGE_END:
                    for pool in self._struck(position):
                        self.outages_in[pool] -= 1
                        self.changed_pools |= 1 << pool
                elif kind == OUTAGE_BEGIN:
                    self._strike(position)
                else:
                    self.courses[turn].end_phase(instant)
                    self._enqueue(self.courses[turn])
            # (5) arrivals in file order
            while self.arrived < len(self.courses):
                course = self.courses[self.arrived]
                if course.job.submit_seconds > instant:
                    break
                self.arrived += 1
                self._arrive(course)
            self._pass()
        if horizon is not None:
            self.now = horizon
        self._stop()

    def _next_instant(self) -> int | None:
        events = self.events
        while (
            events and events[0][1] == COMPLETION and not self._still_on(events[0][3], events[0][4])
        ):
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
        pools, reason = self.columns.eligible(course.job, self.accounts)
        if reason is not None:
            course.state, course.reason = JobState.UNSCHEDULABLE, reason
            return
        course.shape = self._shape(course, pools)
        course.phase_start = self.now
        self._enqueue(course)

    def _shape(self, course: Course, pools: tuple[int, ...]) -> Shape:
        key = (course.project, course.lane)
        queue = self.queues.get(key)
        if queue is None:
            lane = self.scenario.lanes[course.lane]
            queue = self.queues[key] = Queue(
                *key,
                strict=lane.queueing is Queueing.STRICT,
                limit=self.columns.lane_limit(*key),
            )
        shape_key = self._shape_key(course, pools)
        shape = self.shapes.get(shape_key)
        if shape is None:
            shape = self.shapes[shape_key] = Shape(queue, course.gpus, pools)
        return shape

    def _shape_key(self, course: Course, pools: tuple[int, ...]) -> object:
        return course.project, course.lane, course.gpus, pools

    def _struck(self, position: int) -> list[int]:
        outage = self.scenario.outages[position]
        return [
            number
            for number, pool in enumerate(self.scenario.pools)
            if outage.pool == pool.name
            or outage.domain == pool.domain
            or (outage.region is not None and outage.region == self.columns.region_of_pool[number])
        ]

    def _strike(self, position: int) -> None:
        """Begin an outage: its pools lose their capacity, and every job in them is evicted."""
        outage = self.scenario.outages[position]
        hit: list[Course] = []
        for pool in self._struck(position):
            self.outages_in[pool] += 1
            self.changed_pools |= 1 << pool
            hit.extend(self.running[pool])
        for course in sorted(hit, key=lambda course: course.position):
            storage = self.columns.storage_of_pool[course.pool]
            gone = storage is not None and storage.lost_with(outage, self.columns.region_of_domain)
            self._evict(course, Ground.OUTAGE, by=None, storage_lost=gone)
            self._enqueue(course)

    # --- The pass ----------------------------------------------------------------------------

    def _pass(self) -> None:
        for lane in self.lanes_in_turn:
            while self.waiting[lane] and self._admit_one(lane):
                pass
        for course in self.evicted_in_pass:
            self._enqueue(course)
        self.evicted_in_pass.clear()
        self._look_again()
        self._note_reasons()

    def _admit_one(self, lane: int) -> bool:
        """Admit one job of the lane, the first that can be; say whether there was one."""
        self._look_again()
        now = self.now
        # 1. The projects with a waiting job in this lane. One whose every shape is known to be
        #    refused would be tried in vain, so it is left out.
        hopeful = [
            queue
            for queue in self.waiting[lane]
            if any(shape.stage == FITS or shape.evict_from <= now for shape in queue.open)
        ]
        # 2. Their order.
        if len(hopeful) > 1:
            hopeful.sort(key=self._place_in_line)
        # 3. One after the other; a strict queue offers its first job only.
        for queue in hopeful:
            for turn, shape in queue.heads():
                if self._admit(self.courses[turn], shape):
                    return True  # 4. back to 1 for the same lane
        return False

    def _place_in_line(self, queue: Queue) -> tuple[int | float, int]:
        # A turn is unique: submit time, then position in the file.
        return (self.shares.of(queue.project) if self.fair else 0, queue.first)

    def _admit(self, course: Course, shape: Shape) -> bool:
        """Start the job where it fits, or where others may be displaced for it."""
        if shape.stage == FITS:
            fitting = [p for p, s in zip(shape.pools, shape.stages, strict=True) if s == FITS]
            pool = self._in_order(course, fitting)[0] if len(fitting) > 1 else fitting[0]
            self._start(course, pool)
            return True
        if shape.evict_from > self.now:
            return False
        for pool in self._in_order(course, shape.pools):
            at = shape.pools.index(pool)
            if shape.evict_from_in[at] > self.now:
                continue
            victims, again_at = self._victims(course, pool)
            if victims:
                for victim in victims:
                    target = self.courses[victim.job]
                    self._evict(target, victim.ground, by=course, storage_lost=False)
                self._start(course, pool)
                return True
            shape.evict_from_in[at] = again_at
            shape.evict_from = min(shape.evict_from_in)
        return False

    def _in_order(self, course: Course, pools: list[int] | tuple[int, ...]) -> list[int]:
        """Put pools (given in listed order) into placement order."""
        placement, nodes = self.policy.placement, self.nodes
        if placement is Placement.LISTED:
            return list(pools)
        keys: dict[int, tuple[int, ...]] = {}
        for pool in pools:
            free = 0 if self.outages_in[pool] else nodes[pool].free_gpus
            if placement is Placement.LOCALITY:
                home = course.job.data_region
                at_home = home is None or home == self.columns.region_of_pool[pool]
                staging = self._staging(course, pool)
                keys[pool] = near_data(at_home=at_home, staging_seconds=staging, free_gpus=free)
            elif placement is Placement.PACK:
                fit = nodes[pool].fits(course.gpus)
                keys[pool] = packed(nodes_fit=fit, free_gpus=free)
            else:
                held = self.domain_use[course.project][self.columns.domain_of_pool[pool]]
                keys[pool] = spread_out(held_in_domain=held, free_gpus=free)
        return sorted(pools, key=lambda pool: (keys[pool], pool))

    def _staging(self, course: Course, pool: int) -> int:
        if self.columns.region_of_pool[pool] in course.staged_in:
            return 0
        return self.columns.staging(course.job, pool) or 0

    # --- What refuses a job ------------------------------------------------------------------

    def _look_again(self) -> None:
        """Look again at the shapes whose pools, or whose use of the lane, have changed."""
        changed = self.changed_pools
        if changed:
            self.changed_pools = 0
            for shape in self.active:
                if shape.mask & changed:
                    self._recheck(shape, changed)
        if self.changed_queues:
            for queue in self.changed_queues:
                for shape in queue.open:
                    self._recheck(shape, shape.mask)
            self.changed_queues.clear()

    def _recheck(self, shape: Shape, pools: int) -> None:
        """Find the first check that fails in each of these pools, and the furthest over all."""
        for at, pool in enumerate(shape.pools):
            if pools >> pool & 1:
                stage = shape.stages[at] = self._stage(shape, pool)
                worth = OUT < stage < FITS and stage != LANE_LIMIT and self._may_evict(shape, pool)
                shape.evict_from_in[at] = 0 if worth else inf
        shape.stage = max(shape.stages)
        shape.evict_from = min(shape.evict_from_in)
        self.rechecked[shape] = None

    def _stage(self, shape: Shape, pool: int) -> int:
        """Return the first check that fails: outage, lane limit, quota, GPUs, nodes."""
        if self.outages_in[pool]:
            return OUT
        queue, gpus = shape.queue, shape.gpus
        if queue.held + gpus > queue.limit:
            return LANE_LIMIT
        accounts = self.accounts[pool]
        if not accounts.below_ceiling(queue.project, gpus):
            return BORROWING
        if gpus > accounts.available(queue.project):
            return QUOTA
        nodes = self.nodes[pool]
        if gpus > nodes.free_gpus:
            return CAPACITY
        return FITS if nodes.fits(gpus) else FRAGMENTED

    def _may_evict(self, shape: Shape, pool: int) -> bool:
        """Rule out, by counting alone, pools in which nobody would be found."""
        project, accounts = shape.queue.project, self.accounts[pool]
        rights = self.columns.rights[shape.queue.lane]
        if not rights.any:
            return False
        within = accounts.within_nominal(project, shape.gpus)
        if within and rights.reclaim is not Reclaim.NEVER and accounts.borrowers:
            return True
        use = self.lane_use[pool]
        reachable = sum(use[lane] for lane in rights.preempts)
        if not within:
            reachable = min(reachable, accounts.usage[project])
        return reachable > 0 and self.nodes[pool].free_gpus + reachable >= shape.gpus

    def _note_reasons(self) -> None:
        """Keep why each job still waits, as this pass has found it."""
        now = self.now
        for shape in self.rechecked:
            if shape in self.active and not shape.queue.strict:
                shape.note(now)
        self.rechecked.clear()
        for queues in self.waiting:
            for queue in queues:
                if queue.strict:
                    self._note_head(queue)

    def _note_head(self, queue: Queue) -> None:
        head, before = self.courses[queue.turns[0]], queue.noted
        if (
            before is not None
            and before is not head
            and before.state is JobState.WAITING
            and before.phase_reason is not Reason.BACKING_OFF
        ):
            self._change_reason(before, Reason.BEHIND_IN_QUEUE)
        queue.noted = head
        if head.state is JobState.WAITING:
            self._change_reason(head, REASON_AT[queue.open[0].stage])

    def _change_reason(self, course: Course, reason: Reason) -> None:
        if course.phase_reason is not reason:
            course.end_phase(self.now)
            course.wait_on(self.now, reason)

    # --- Victims -----------------------------------------------------------------------------

    def _victims(self, course: Course, pool: int) -> tuple[list[Candidate], float]:
        """Choose whom to evict for the job; without any, the second from which to ask again."""
        now, lanes = self.now, self.scenario.lanes
        rights = self.columns.rights[course.lane]
        accounts, by_loss = self.accounts[pool], self.policy.victims is Victims.LEAST_LOST_WORK
        within = accounts.within_nominal(course.project, course.gpus)
        candidates: list[Candidate] = []
        ask_again: float = inf
        for other in self.running[pool]:
            lane = lanes[other.lane]
            ground = ground_for(
                rights,
                accounts,
                project=course.project,
                within_nominal=within,
                victim_project=other.project,
                victim_lane=other.lane,
                victim_rank=lane.rank,
            )
            if ground is None:
                continue
            unprotected = other.attempt.start + lane.protect_seconds
            if unprotected > now:
                ask_again = min(ask_again, unprotected)
                continue
            candidates.append(
                Candidate(
                    borrower_last=not accounts.borrows(other.project),
                    rank=lane.rank,
                    choice=self._would_lose(other) if by_loss else -other.attempt.start,
                    position_last=-other.position,
                    job=other.turn,
                    project=other.project,
                    gpus=other.gpus,
                    nodes=other.shares,
                    ground=ground,
                )
            )
        trial, nodes = accounts.copy(), self.nodes[pool].copy()

        def fits() -> bool:
            return trial.fits(course.project, course.gpus) and nodes.fits(course.gpus)

        victims, left_out = choose(candidates, trial, nodes, fits)
        if left_out and by_loss:
            ask_again = now + 1  # the order changes as the candidates work on
        return victims, ask_again

    def _recovery(self, course: Course) -> Recovery:
        """Say what an eviction, other than by an outage, would mean for the job."""
        lane = self.scenario.lanes[course.lane]
        if lane.max_requeues is not None and course.evictions + 1 > lane.max_requeues:
            return Recovery.CANCEL
        return lane.recovery

    def _would_lose(self, course: Course) -> int:
        recovery = self._recovery(course)
        if recovery is Recovery.SUSPEND:
            return 0
        so_far = self._spent(course)
        if recovery is Recovery.CANCEL:
            return course.gpus * (course.saved + so_far.progress)
        return course.gpus * (so_far.progress - so_far.saved)

    # --- One attempt -------------------------------------------------------------------------

    def _start(self, course: Course, pool: int) -> None:
        now, job = self.now, course.job
        course.end_phase(now)
        self._leave_queue(course)
        course.state = JobState.RUNNING
        course.shares = self.nodes[pool].choose(course.gpus)
        course.pool = pool
        attempt = Attempt(
            job=course.position,
            number=len(course.attempts) + 1,
            pool=pool,
            start=now,
            staging=self._staging(course, pool),
            restart=job.restart_seconds if course.pays_restart else 0,
            write=self.columns.writing(job, pool),
        )
        course.attempts.append(attempt)
        if course.first_start is None:
            course.first_start = now
        self.running[pool][course] = None
        self.nodes[pool].take(course.shares)
        self._book(course, course.gpus)
        left = job.work_seconds - course.saved
        writes = writes_in(left, job.checkpoint_interval_seconds)
        end = now + attempt.staging + attempt.restart + left + writes * attempt.write
        event = (end, COMPLETION, course.position, course.turn, attempt.number)
        heapq.heappush(self.events, event)

    def _book(self, course: Course, gpus: int) -> None:
        pool, project = course.pool, course.project
        self.accounts[pool].add(project, gpus)
        self.shares.forget(project)
        self.lane_use[pool][course.lane] += gpus
        self.domain_use[project][self.columns.domain_of_pool[pool]] += gpus
        self.changed_pools |= 1 << pool
        queue = course.shape.queue
        queue.held += gpus
        if queue.limit < 1 << 60:
            self.changed_queues[queue] = None

    def _release(self, course: Course) -> None:
        self.nodes[course.pool].give(course.shares)
        del self.running[course.pool][course]
        self._book(course, -course.gpus)

    def _spent(self, course: Course) -> Spent:
        attempt = course.attempt
        return spent(
            self.now - attempt.start,
            staging=attempt.staging,
            restart=attempt.restart,
            interval=course.job.checkpoint_interval_seconds,
            write=attempt.write,
        )

    def _close(self, course: Course, so_far: Spent, *, useful: int, ended: AttemptEnd) -> None:
        """Split the attempt's GPU-seconds and count what it has brought over a link."""
        attempt, gpus = course.attempt, course.gpus
        attempt.ended = ended
        attempt.staging_gpu = gpus * so_far.staging
        attempt.restart_gpu = gpus * so_far.restart
        attempt.checkpoint_gpu = gpus * so_far.writing
        attempt.useful_gpu = gpus * useful
        attempt.lost_gpu = gpus * (so_far.progress - useful)
        if attempt.staging and so_far.staging == attempt.staging:
            course.staged_gb += Decimal(course.job.data_gb)
            course.staged_in += (self.columns.region_of_pool[attempt.pool],)

    def _complete(self, course: Course) -> None:
        attempt = course.attempt
        left = course.job.work_seconds - course.saved
        writing = self.now - attempt.start - attempt.staging - attempt.restart - left
        whole = Spent(attempt.staging, attempt.restart, writing, left, left)
        self._close(course, whole, useful=left, ended=AttemptEnd.FINISHED)
        attempt.end = course.end = self.now
        course.state = JobState.FINISHED
        self._release(course)

    def _evict(
        self, course: Course, ground: Ground, *, by: Course | None, storage_lost: bool
    ) -> None:
        """End an attempt before its time, and settle what is kept, lost and paid for it."""
        now, so_far, attempt = self.now, self._spent(course), course.attempt
        by_outage = ground is Ground.OUTAGE
        recovery = Recovery.REQUEUE if by_outage else self._recovery(course)
        course.evictions += 1
        course.preemptions += not by_outage
        keeps = so_far.progress if recovery is Recovery.SUSPEND else so_far.saved
        loses_all = recovery is Recovery.CANCEL or storage_lost
        self._close(course, so_far, useful=0 if loses_all else keeps, ended=AttemptEnd.EVICTED)
        lost = attempt.lost_gpu
        if loses_all:
            for earlier in course.attempts[:-1]:
                lost += earlier.useful_gpu
                earlier.lost_gpu += earlier.useful_gpu
                earlier.useful_gpu = 0
            course.saved = 0
        else:
            course.saved += keeps
        attempt.end, attempt.by, attempt.ground = now, by.position if by else None, ground
        self.evictions.append(Eviction(now, course, by, ground, course.pool, lost))
        self._release(course)
        if recovery is Recovery.CANCEL:
            course.state, course.end = JobState.CANCELLED, now
            return
        suspends = recovery is Recovery.SUSPEND
        course.pays_restart = not suspends
        course.state = JobState.SUSPENDED if suspends else JobState.WAITING
        course.phase_start = now
        if by_outage:
            return  # the caller queues it again at once
        lane = self.scenario.lanes[course.lane]
        wait = 0
        if not suspends:
            wait = back_off_seconds(
                lane.backoff_seconds, lane.backoff_limit_seconds, course.evictions
            )
        if wait:
            course.wait_on(now, Reason.BACKING_OFF)
            event = (now + wait, BACK_OFF_END, course.position, course.turn, 0)
            heapq.heappush(self.events, event)
        else:
            # A job evicted in a pass is not looked at again in that pass: every pass ends.
            self.evicted_in_pass.append(course)

    # --- Waiting -----------------------------------------------------------------------------

    def _enqueue(self, course: Course) -> None:
        queue = course.shape.queue
        self.waiting[course.lane][queue] = None
        for shape in queue.add(course, self.courses):
            self._open(shape)
        if queue.strict:  # one shape leaves the line's head when another comes before it
            for shape in [s for s in self.active if s.queue is queue and s not in queue.open]:
                del self.active[shape]
        suspended = course.state is JobState.SUSPENDED
        reason = Reason.SUSPENDED if suspended else Reason.BEHIND_IN_QUEUE if queue.strict else None
        course.wait_on(self.now, reason)

    def _leave_queue(self, course: Course) -> None:
        queue = course.shape.queue
        closed, opened = queue.remove(course, self.courses)
        for shape in closed:
            del self.active[shape]
        for shape in opened:
            self._open(shape)
        if not queue.open:
            del self.waiting[course.lane][queue]

    def _open(self, shape: Shape) -> None:
        shape.history.clear()  # nobody waits who would ask for it
        self.active[shape] = None
        self._recheck(shape, shape.mask)

    # --- The end -----------------------------------------------------------------------------

    def _stop(self) -> None:
        """Report jobs that still run or wait as they stand now."""
        for course in self.courses:
            if course.state is JobState.RUNNING:
                so_far = self._spent(course)
                useful = so_far.progress  # nobody has interrupted it, so nothing is lost
                self._close(course, so_far, useful=useful, ended=AttemptEnd.RUNNING)
            elif course.state in (JobState.WAITING, JobState.SUSPENDED):
                course.end_phase(self.now)
                # Unless it came to wait in this very second, its last spell says why.
                course.waits_for = course.phase_reason or course.shape.history[-1][1]
