"""Spells spelled out: the log of a shape, cut to the time each of its jobs has waited."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def _count(spells: Any, log: Any) -> int:
    total = 0
    for row in range(spells.size):
        at = spells[row].ref
        total += 1
        while at >= 0:
            at = log[at].next
            if at < 0 or log[at].time >= spells[row].end:
                break
            total += 1
    return total


@numba.njit(cache=True)
def _fill(spells: Any, log: Any, job: Any, start: Any, end: Any, reason: Any) -> int:
    n = 0
    for row in range(spells.size):
        spell = spells[row]
        if spell.ref < 0:
            job[n], start[n], end[n], reason[n] = spell.job, spell.start, spell.end, -1 - spell.ref
            n += 1
            continue
        at = spell.ref
        first = n
        while at >= 0 and log[at].time < spell.end:
            after = log[at].next
            since = max(spell.start, log[at].time)
            until = spell.end if after < 0 else min(spell.end, log[after].time)
            if until > since:
                if n > first and reason[n - 1] == log[at].reason:
                    end[n - 1] = until
                else:
                    job[n], start[n], end[n] = spell.job, since, until
                    reason[n] = log[at].reason
                    n += 1
            at = after
    return n


def spell_out(spells: Any, log: Any) -> tuple[Any, Any, Any, Any]:
    """Return job, start, end and reason (as the kernel's code) of every spell."""
    room = _count(spells, log)
    job, start, end = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    reason = np.zeros(room, np.int64)
    n = _fill(spells, log, job, start, end, reason)
    return job[:n], start[:n], end[:n], reason[:n]
