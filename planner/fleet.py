"""What there is to run on: regions, links, failure domains, storage, pools, and their outages."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from planner.vocabulary import Purpose


@dataclass(frozen=True, slots=True)
class Region:
    """A place with its own time of day."""

    name: str
    timezone: str


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two regions, used in both directions; `gbps` is 10^9 bits a second."""

    between: tuple[str, str]
    gbps: Decimal


@dataclass(frozen=True, slots=True)
class Domain:
    """What fails together."""

    name: str
    region: str


@dataclass(frozen=True, slots=True)
class Storage:
    """Where checkpoints are written, and what it is lost with (neither key: it survives all)."""

    name: str
    write_gb_per_second: Decimal
    region: str | None = None
    domain: str | None = None

    def lost_with(self, outage: Outage, region_of_domain: dict[str, str]) -> bool:
        """Say whether what is written here is gone after this outage."""
        if self.domain is not None:
            home = region_of_domain[self.domain]
            return outage.domain == self.domain or outage.region == home
        return self.region is not None and outage.region == self.region


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal nodes of one accelerator in one failure domain."""

    name: str
    domain: str
    accelerator: str
    nodes: int
    gpus_per_node: int
    storage: str | None = None
    purpose: Purpose = Purpose.TRAINING
    premium: bool = False

    def __post_init__(self) -> None:
        """Take the word of the file for the purpose; anything else is a ValueError at once."""
        object.__setattr__(self, "purpose", Purpose(self.purpose))

    @property
    def gpus(self) -> int:
        """Count all GPUs of the pool."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which one pool, one domain or one region (exactly one of them) has no capacity."""

    start_seconds: int
    duration_seconds: int
    domain: str | None = None
    pool: str | None = None
    region: str | None = None
