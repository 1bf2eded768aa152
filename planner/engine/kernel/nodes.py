"""Nodes: best fit for less than a node, wholly free ones, lowest numbers first, for more.

The nodes of a pool that have k GPUs free are the bits of level k; so the lowest numbered one is
found in one step for every 64 nodes. Where a node has one GPU, a count is enough.
"""

from __future__ import annotations

import numpy as np

from planner.engine.kernel.layout import State, inlined, jit

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SHIFT = np.uint64(58)
# Multiplying a lone bit by a de Bruijn sequence puts its number into the highest six bits.
_SEQUENCE = 0x03F79D71B4CB0A89
_DE_BRUIJN = np.uint64(_SEQUENCE)
_NUMBER = np.zeros(64, np.int64)
for _bit in range(64):
    _NUMBER[((_SEQUENCE << _bit) & (2**64 - 1)) >> 58] = _bit


@jit
def lowest(s: State, p: int, level: int) -> int:
    """Return the lowest numbered node that has exactly `level` GPUs free; there is one."""
    pool = s.pools[p]
    at = pool.word_lo + level * pool.words
    word = 0
    while s.words[at + word] == _ZERO:
        word += 1
    bits = s.words[at + word]
    lone = bits & (~bits + _ONE)
    return word * 64 + _NUMBER[(lone * _DE_BRUIJN) >> _SHIFT]


@jit
def move(s: State, p: int, node: int, after: int) -> None:
    """Give a node another number of free GPUs."""
    pool = s.pools[p]
    before = s.node_free[pool.node_lo + node]
    bit = _ONE << np.uint64(node & 63)
    word = pool.word_lo + (node >> 6)
    s.words[word + before * pool.words] ^= bit
    s.words[word + after * pool.words] ^= bit
    s.counts[pool.count_lo + before] -= 1
    s.counts[pool.count_lo + after] += 1
    s.node_free[pool.node_lo + node] = after


@jit
def nodes_fit(s: State, p: int, gpus: int) -> bool:
    """Say whether an arrangement exists for a gang that is not larger than what is free."""
    pool = s.pools[p]
    per_node = pool.per_node
    if per_node == 1:
        return True
    whole = gpus // per_node
    rest = gpus - whole * per_node
    full = s.counts[pool.count_lo + per_node]
    if full < whole:
        return False
    if rest == 0 or full > whole:
        return True
    for level in range(rest, per_node):  # noqa: SIM110 - Numba has no any()
        if s.counts[pool.count_lo + level] > 0:
            return True
    return False


@inlined
def take(s: State, p: int, job: int, gpus: int) -> None:
    """Give the gang its nodes, and remember which."""
    pool, j = s.pools[p], s.jobs[job]
    pool.free -= gpus
    j.node, j.rest = -1, -1
    per_node = pool.per_node
    if per_node == 1:
        return
    whole = gpus // per_node
    rest = gpus - whole * per_node
    for _ in range(whole):
        node = lowest(s, p, per_node)
        move(s, p, node, 0)
        s.node_next[pool.node_lo + node] = j.node
        j.node = node
    if rest > 0:
        level = rest
        while s.counts[pool.count_lo + level] == 0:
            level += 1
        node = lowest(s, p, level)
        move(s, p, node, level - rest)
        j.rest = node


@jit
def give(s: State, p: int, job: int, gpus: int) -> None:
    """Free the nodes of a gang; it still knows which they were."""
    pool, j = s.pools[p], s.jobs[job]
    pool.free += gpus
    node = j.node
    while node >= 0:
        move(s, p, node, pool.per_node)
        node = s.node_next[pool.node_lo + node]
    if j.rest >= 0:
        move(s, p, j.rest, s.node_free[pool.node_lo + j.rest] + gpus % pool.per_node)


@jit
def retake(s: State, p: int, job: int, gpus: int) -> None:
    """Put a gang back on the nodes it had, after it has been taken off them on trial."""
    pool, j = s.pools[p], s.jobs[job]
    pool.free -= gpus
    node = j.node
    while node >= 0:
        move(s, p, node, 0)
        node = s.node_next[pool.node_lo + node]
    if j.rest >= 0:
        move(s, p, j.rest, s.node_free[pool.node_lo + j.rest] - gpus % pool.per_node)
