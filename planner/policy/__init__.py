"""Five dimensions of policy, one file each, and the table that chooses between their rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.policy.multifactor import Multifactor
from planner.vocabulary import Backfill, Order, Placement, Reclaim, Victims


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which rule is in force in each dimension."""

    order: Order = Order.FAIR_SHARE
    placement: Placement = Placement.LOCALITY
    victims: Victims = Victims.YOUNGEST
    reclaim: Reclaim = Reclaim.NEVER
    backfill: Backfill = Backfill.NONE
    multifactor: Multifactor = field(default_factory=Multifactor)

    def __post_init__(self) -> None:
        """Take the words of the file for the rules; anything else is a ValueError at once."""
        for name, words in (
            ("order", Order),
            ("placement", Placement),
            ("victims", Victims),
            ("reclaim", Reclaim),
            ("backfill", Backfill),
        ):
            # The engine compares by identity: a mere string would pass for some other rule.
            object.__setattr__(self, name, words(getattr(self, name)))
