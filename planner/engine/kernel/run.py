"""The run: one instant after the other, each with its events in order and then one pass."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numba

from planner.engine.kernel.courses import complete, interrupt, pop
from planner.engine.kernel.easy import easy_lane_pass
from planner.engine.kernel.layout import (
    ARRIVED,
    ATTEMPTS,
    BACK_OFFS,
    BACKING_OFF,
    CHANGED,
    COMPLETIONS,
    EASY,
    ENDED,
    EVENTS,
    EVICTED_NOW,
    EVICTIONS,
    FRESH,
    HORIZON,
    LAST_SECOND,
    LOG,
    LONGEST_QUEUE,
    MORE_ROOM,
    MULTIFACTOR,
    NEVER,
    NOT_YET,
    NOW,
    OPTIONS,
    ORDER,
    OUTAGE,
    OUTAGES_DONE,
    PHASE,
    RECLAIM_NEVER,
    RECLAIMS,
    RELEASED,
    REQUEUE,
    RUNNERS,
    SOURCES,
    SPELLS,
    STILL_RUNNING,
    TOO_LONG,
    WAITERS,
    WAITING,
    State,
    jit,
)
from planner.engine.kernel.passes import lane_pass
from planner.engine.kernel.queues import enter, pool_changed, pool_may_admit, spell, uses_scores
from planner.engine.kernel.reasons import note_reasons
from planner.engine.kernel.scores import age_usage
from planner.policy import multifactor

EVENTS_NEXT, PASS_NEXT = 0, 1  # what the next step of the run is


@jit
def _next_instant(s: State) -> int:
    """Return the second of the next event that does happen."""
    st = s.st
    # The end of an attempt that an eviction has ended before is no event.
    while st[COMPLETIONS] > 0 and s.attempts[s.completions[0].what].ended != STILL_RUNNING:
        pop(s.completions, st[COMPLETIONS])
        st[COMPLETIONS] -= 1
    instant = NEVER
    if st[COMPLETIONS] > 0:
        instant = s.completions[0].time
    if st[BACK_OFFS] > 0:
        instant = min(instant, s.back_offs[0].time)
    if st[OUTAGES_DONE] < s.outage_events.size:
        instant = min(instant, s.outage_events[st[OUTAGES_DONE]].time)
    if st[ARRIVED] < s.order.size:
        instant = min(instant, s.submit[s.order[st[ARRIVED]]])
    return instant


@jit
def _strike(s: State, outage: int, now: int) -> None:
    """Begin an outage: its pools lose their capacity, and every job in them is evicted."""
    for k in range(s.struck_lo[outage], s.struck_lo[outage + 1]):
        p = s.struck[k].pool
        s.pools[p].out += 1
        pool_changed(s, p)
        while s.pools[p].running >= 0:
            job = s.pools[p].running
            interrupt(s, job, now, REQUEUE, OUTAGE, outage, s.struck[k].storage_lost)
            enter(s, job, now)


@jit
def _outages(s: State, now: int) -> None:
    st = s.st
    while st[OUTAGES_DONE] < s.outage_events.size:
        event = s.outage_events[st[OUTAGES_DONE]]
        if event.time > now:
            break
        st[OUTAGES_DONE] += 1
        st[EVENTS] += 1
        if event.begins:
            _strike(s, event.outage, now)
            continue
        for k in range(s.struck_lo[event.outage], s.struck_lo[event.outage + 1]):
            p = s.struck[k].pool
            s.pools[p].out -= 1
            pool_changed(s, p)
            pool_may_admit(s, p)


@jit
def _events(s: State, now: int) -> None:
    """Handle the events of one instant, kind by kind."""
    st = s.st
    # (1) completions
    while st[COMPLETIONS] > 0 and s.completions[0].time == now:
        a = s.completions[0].what
        pop(s.completions, st[COMPLETIONS])
        st[COMPLETIONS] -= 1
        if s.attempts[a].ended == STILL_RUNNING:
            complete(s, a, now)
            st[EVENTS] += 1
    # (2) outages that end, (3) outages that begin: they are sorted so
    _outages(s, now)
    # (4) back-offs that end
    while st[BACK_OFFS] > 0 and s.back_offs[0].time == now:
        job = s.back_offs[0].what
        pop(s.back_offs, st[BACK_OFFS])
        st[BACK_OFFS] -= 1
        st[EVENTS] += 1
        spell(s, job, s.jobs[job].since, now, -1 - BACKING_OFF)
        enter(s, job, now)
    # (5) arrivals in file order
    while st[ARRIVED] < s.order.size and s.submit[s.order[st[ARRIVED]]] == now:
        job = s.order[st[ARRIVED]]
        st[ARRIVED] += 1
        st[EVENTS] += 1
        if s.jobs[job].state == NOT_YET:
            s.jobs[job].state = WAITING
            enter(s, job, now)
    st[LONGEST_QUEUE] = max(st[LONGEST_QUEUE], st[WAITERS])


@jit
def _after_pass(s: State, now: int, looked_at: int) -> None:
    """Forget what has been looked at, and let wait whom the pass has evicted."""
    st = s.st
    for k in range(st[FRESH]):
        s.shapes[s.fresh[k]].fresh = 0
    st[FRESH] = 0
    if looked_at:
        for k in range(st[CHANGED]):
            s.pools[s.changed[k]].changed = 0
        st[CHANGED] = 0
        for k in range(st[RELEASED]):
            s.queues[s.released[k]].released = 0
        st[RELEASED] = 0
    for k in range(st[EVICTED_NOW]):
        enter(s, s.evicted[k], now)
    st[EVICTED_NOW] = 0


@jit
def _quiet(s: State, now: int) -> bool:
    """Say whether a pass would find nobody to admit who was not refused before."""
    st = s.st
    if st[CHANGED] > 0 or st[FRESH] > 0 or st[RELEASED] > 0 or uses_scores(s):
        return False
    for lane in range(s.lanes.size):  # noqa: SIM110 - Numba has no all()
        if s.lanes[lane].ask_from <= now:  # somebody's protection has run out
            return False
    return True


@jit
def _pass(s: State, now: int) -> None:
    """Admit whom the state allows, lane by lane."""
    st = s.st
    evictions, attempts = st[EVICTIONS], st[ATTEMPTS]
    for place in range(s.lane_order.size):
        lane = s.lane_order[place]
        if s.lanes[lane].n > 0:
            if s.rule[EASY]:
                easy_lane_pass(s, place, now)
            else:
                lane_pass(s, lane, now)
    # What an eviction has given back, or a new borrower, may let in somebody of a lane already
    # looked at: then the lists stay for the next pass.
    borrows = s.rule[RECLAIMS] != RECLAIM_NEVER and st[ATTEMPTS] != attempts
    _after_pass(s, now, st[EVICTIONS] == evictions and not borrows)


@jit
def _has_room(s: State) -> bool:
    """Say whether the records have room for whatever the next step may write."""
    st = s.st
    waiting, running = st[WAITERS], st[RUNNERS]
    return (
        st[ATTEMPTS] + waiting + running <= s.attempts.size
        and st[EVICTIONS] + waiting + 2 * running <= s.evictions.size
        and st[SPELLS] + waiting + st[BACK_OFFS] + 2 * s.queues.size <= s.spells.size
        and st[LOG] + s.kins.size <= s.log.size
    )


def _fingerprint() -> int:
    """Return a number that changes with any file the compiled code is made of."""
    files = [*Path(__file__).parent.glob("*.py"), Path(multifactor.__file__)]
    return zlib.crc32(b"".join(file.read_bytes() for file in sorted(files)))


def _entry(sources: int) -> Any:
    """Make the entry point. Numba's cache looks at the file, and the closure, of this one function
    only; so that number is what makes it compile anew when another file has changed.
    """

    @numba.njit(nogil=True, cache=True, **OPTIONS)  # type: ignore[untyped-decorator]
    def steps(s: State) -> int:
        """Run until the last event, or until the records need more room; say which."""
        st = s.st
        st[SOURCES] = sources
        horizon, last = s.rule[HORIZON], s.rule[LAST_SECOND]
        while True:
            if st[PHASE] == EVENTS_NEXT:
                instant = _next_instant(s)
                if instant == NEVER or instant > horizon:
                    return ENDED
                if instant > last:
                    return TOO_LONG
                # Arrivals and completions write nothing that may grow.
                writes = st[BACK_OFFS] > 0 or st[OUTAGES_DONE] < s.outage_events.size
                if writes and not _has_room(s):
                    return MORE_ROOM
                if s.rule[ORDER] == MULTIFACTOR:
                    age_usage(s, instant)
                st[NOW] = instant
                _events(s, instant)
                st[PHASE] = PASS_NEXT
            if not _has_room(s):
                return MORE_ROOM
            if s.rule[EASY] or not _quiet(s, st[NOW]):
                _pass(s, st[NOW])
            note_reasons(s, st[NOW])
            st[PHASE] = EVENTS_NEXT

    return steps


steps = _entry(_fingerprint())
