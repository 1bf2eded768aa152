"""Preemption: who may be displaced, and by whom. It never decides who goes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.policy.placement import Nodes, Share
from planner.policy.quota import Accounts
from planner.vocabulary import Ground, Reclaim


class Candidate(NamedTuple):
    """A running job that may be displaced, with the numbers its place in the order depends on."""

    borrower_last: int  # 0: its project borrows here, so it goes first; 1: it does not
    rank: int
    choice: int  # what policy.victims compares; the smaller, the sooner it goes
    position_last: int  # minus the position in the file: the last in the file goes first
    job: int
    project: int
    gpus: int
    nodes: list[Share]
    ground: Ground


@dataclass(frozen=True, slots=True)
class Rights:
    """What a job of one lane may do to others."""

    preempts: frozenset[int]  # lanes, by number
    rank: int
    reclaim: Reclaim

    @property
    def any(self) -> bool:
        """Say whether the job may displace anybody at all."""
        return bool(self.preempts) or self.reclaim is not Reclaim.NEVER


def ground_for(
    rights: Rights,
    accounts: Accounts,
    *,
    project: int,
    within_nominal: bool,
    victim_project: int,
    victim_lane: int,
    victim_rank: int,
) -> Ground | None:
    """Say on what ground a job of `project` may displace this one; None: it may not.

    Borrowed GPUs never displace anybody of another project: without this rule a borrower and a
    reclaimer would evict each other for ever.
    """
    same = victim_project == project
    if victim_lane in rights.preempts and (same or within_nominal):
        return Ground.PREEMPTION
    if (
        within_nominal
        and not same
        and rights.reclaim is not Reclaim.NEVER
        and accounts.cohort_of[victim_project] == accounts.cohort_of[project]
        and accounts.borrows(victim_project)
        and (rights.reclaim is Reclaim.ANY or victim_rank < rights.rank)
    ):
        return Ground.RECLAIM
    return None


def choose(
    candidates: Sequence[Candidate], accounts: Accounts, nodes: Nodes, fits: Callable[[], bool]
) -> tuple[list[Candidate], bool]:
    """Choose whom to evict; an empty list when not even all of them would be enough.

    `accounts` and `nodes` are copies of the pool's, changed at will; `fits` looks at them. The
    second value tells whether a candidate was left out because its project had stopped borrowing:
    then the answer hangs on the order, which may change with time.
    """

    def remove(victim: Candidate) -> None:
        accounts.add(victim.project, -victim.gpus)
        nodes.give(victim.nodes)

    def put_back(victim: Candidate) -> None:
        accounts.add(victim.project, victim.gpus)
        nodes.take(victim.nodes)

    # 1. Take them one by one, in order, until the job fits.
    chosen: list[Candidate] = []
    left_out = False
    for candidate in sorted(candidates):
        if candidate.ground is Ground.RECLAIM and not accounts.borrows(candidate.project):
            left_out = True
            continue
        remove(candidate)
        chosen.append(candidate)
        if fits():
            break
    else:
        return [], left_out
    # 2. From the last but one back to the first, spare each one that need not go after all.
    for candidate in reversed(chosen[:-1]):
        put_back(candidate)
        if fits():
            chosen.remove(candidate)
        else:
            remove(candidate)
    return chosen, left_out
