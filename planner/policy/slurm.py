"""Slurm's own order, for those who come from it: its multifactor priority and its Fair Tree.

A part of priority. Our `multifactor` takes over the age factor, the decayed usage and 2^(-U/S) of
Slurm's classic fair share, a size factor (GPUs of a pool, where Slurm takes the mean of nodes and
CPUs) and one factor for the lane (where Slurm has partition and QOS). It does not take over Fair
Tree, TRES weights, association and nice values, nor the truncation to whole numbers.

Source: SchedMD/slurm, priority_multifactor.c (`_get_priority_internal`) and fair_tree.c; checked
against a slurmctld 22.05.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

LARGEST = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Weights:
    """The `PriorityWeight...` settings; those of TRES by name."""

    age: int = 0
    association: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Factors:
    """What a job is multiplied into the weights with, each from 0 to 1."""

    age: Fraction = Fraction(0)
    association: Fraction = Fraction(0)
    fair_share: Fraction = Fraction(0)
    job_size: Fraction = Fraction(0)
    partition: Fraction = Fraction(0)
    qos: Fraction = Fraction(0)
    tres: Mapping[str, Fraction] = field(default_factory=dict)


def priority(weights: Weights, factors: Factors, *, site: int = 0, nice: int = 0) -> int:
    """Return a job's priority: the weighted sum, truncated, from 1 to 2^32 - 1."""
    total = (
        site
        + weights.age * factors.age
        + weights.association * factors.association
        + weights.fair_share * factors.fair_share
        + weights.job_size * factors.job_size
        + weights.partition * factors.partition
        + weights.qos * factors.qos
        + sum(weight * factors.tres.get(name, 0) for name, weight in weights.tres.items())
        - nice
    )
    return min(LARGEST, max(1, int(total)))


def age_factor(waited_seconds: int, max_age_seconds: int) -> Fraction:
    """Return how much of the greatest age that counts a job has reached."""
    return min(Fraction(1), Fraction(waited_seconds, max_age_seconds))


def job_size_factor(*, nodes: int, all_nodes: int, cpus: int, all_cpus: int) -> Fraction:
    """Return the size of a job with `PriorityFavorSmall=NO`: the mean of nodes and CPUs."""
    return (Fraction(nodes, all_nodes) + Fraction(cpus, all_cpus)) / 2


@dataclass(frozen=True, slots=True)
class Association:
    """An account, or a user in one: shares and use. `shares` None: the user counts as `parent`."""

    name: str
    shares: int | None
    usage: Fraction
    children: tuple[Association, ...] | None = None  # None: a user


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a user stands: the level fair share among siblings (None: infinite), and the rank."""

    level_fair_share: Fraction | None
    fair_share: Fraction


def level_fair_shares(siblings: Sequence[Association]) -> list[Fraction | None]:
    """Return S / U of each sibling; None, infinite, for one that has used nothing."""
    shares = sum(one.shares or 0 for one in siblings)
    usage = sum((one.usage for one in siblings), Fraction(0))
    return [
        None
        if one.shares is None or not one.shares or not one.usage
        else Fraction(one.shares, shares) / (one.usage / usage)
        for one in siblings
    ]


def fair_tree(root: Sequence[Association]) -> dict[str, Standing]:
    """Rank all users: siblings by level fair share, depth first, so that no account is overtaken.

    A user's fair share is rank / users, the best being 1. Tied siblings share a rank and the next
    one is skipped; tied accounts merge their children; a user tied with an account takes that
    account's best rank.
    """
    return _Ranking(root).standings


class _Ranking:
    def __init__(self, root: Sequence[Association]) -> None:
        self.standings: dict[str, Standing] = {}
        self.users = _count(root)
        self.rank = self.untied = self.users
        self._level(list(zip(root, level_fair_shares(root), strict=True)), tied=False)

    def _level(self, siblings: list[tuple[Association, Fraction | None]], *, tied: bool) -> None:
        siblings.sort(key=lambda pair: (_descending(pair[1]), pair[0].children is not None))
        at = 0
        while at < len(siblings):
            one, level = siblings[at]
            tied = tied if at == 0 else level == siblings[at - 1][1]
            at += 1
            if one.children is None:
                if not tied:
                    self.rank = self.untied
                self.untied -= 1
                self.standings[one.name] = Standing(level, Fraction(self.rank, self.users))
                continue
            below = list(one.children)
            merged = list(zip(below, level_fair_shares(below), strict=True))
            while at < len(siblings) and siblings[at][1] == level:
                more = list(siblings[at][0].children or ())
                merged += zip(more, level_fair_shares(more), strict=True)
                at += 1
            self._level(merged, tied=tied)


def _descending(level: Fraction | None) -> tuple[int, Fraction]:
    return (0, Fraction(0)) if level is None else (1, -level)


def _count(associations: Sequence[Association]) -> int:
    return sum(1 if one.children is None else _count(one.children) for one in associations)
