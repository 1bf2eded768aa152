"""Placement: where a job runs, and which of the allowed places is tried first."""

from __future__ import annotations

Share = tuple[int, int]  # (number of the node, GPUs taken there)


class Nodes:
    """The nodes of one pool and what is free on them.

    A gang smaller than a node goes to one node, best fit; a larger one takes wholly free nodes,
    lowest numbers first, and puts the remainder on one other node, best fit.
    """

    __slots__ = ("free", "free_gpus", "nodes_with", "per_node")

    def __init__(self, nodes: int, gpus_per_node: int) -> None:
        self.per_node = gpus_per_node
        self.free = [gpus_per_node] * nodes
        self.free_gpus = nodes * gpus_per_node
        # How many nodes have 0, 1, 2 ... GPUs free: enough to know whether a gang fits.
        self.nodes_with = [0] * gpus_per_node + [nodes]

    def copy(self) -> Nodes:
        """Copy the state, so that an eviction can be tried without happening."""
        other = object.__new__(Nodes)
        other.per_node = self.per_node
        other.free = self.free[:]
        other.free_gpus = self.free_gpus
        other.nodes_with = self.nodes_with[:]
        return other

    def fits(self, gpus: int) -> bool:
        """Say whether an arrangement for the gang exists now."""
        if gpus > self.free_gpus:
            return False
        whole, rest = divmod(gpus, self.per_node)
        nodes_with = self.nodes_with
        if nodes_with[-1] < whole:
            return False
        if rest == 0 or nodes_with[-1] > whole:
            return True
        return any(nodes_with[rest : self.per_node])

    def choose(self, gpus: int) -> list[Share]:
        """Return the nodes the gang takes, given that it fits."""
        whole, rest = divmod(gpus, self.per_node)
        chosen: list[Share] = []
        if whole:
            start = 0
            for _ in range(whole):
                node = self.free.index(self.per_node, start)
                chosen.append((node, self.per_node))
                start = node + 1
        if rest:
            taken = {node for node, _ in chosen}
            # Nodes of equal free space are told apart by number only, so the first one of the
            # smallest sufficient size is the best fit.
            for size in range(rest, self.per_node + 1):
                if self.nodes_with[size] <= (whole if size == self.per_node else 0):
                    continue
                node = self.free.index(size)
                while node in taken:
                    node = self.free.index(size, node + 1)
                chosen.append((node, rest))
                break
        return chosen

    def take(self, shares: list[Share]) -> None:
        """Occupy GPUs on nodes."""
        for node, gpus in shares:
            before = self.free[node]
            self.free[node] = before - gpus
            self.nodes_with[before] -= 1
            self.nodes_with[before - gpus] += 1
            self.free_gpus -= gpus

    def give(self, shares: list[Share]) -> None:
        """Free GPUs on nodes."""
        for node, gpus in shares:
            before = self.free[node]
            self.free[node] = before + gpus
            self.nodes_with[before] -= 1
            self.nodes_with[before + gpus] += 1
            self.free_gpus += gpus


def near_data(*, at_home: bool, staging_seconds: int, free_gpus: int) -> tuple[int, ...]:
    """Rank a pool for `locality`: beside the data, then soonest staged, then most free."""
    return (not at_home, staging_seconds, -free_gpus)


def packed(*, nodes_fit: bool, free_gpus: int) -> tuple[int, ...]:
    """Rank a pool for `pack`: where it fits now, then fewest free."""
    return (not nodes_fit, free_gpus)


def spread_out(*, held_in_domain: int, free_gpus: int) -> tuple[int, ...]:
    """Rank a pool for `spread`: the failure domain with fewest of the project, then most free."""
    return (held_in_domain, -free_gpus)
