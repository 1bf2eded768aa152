"""What the demo's projects run: a synthetic workload, drawn day by day from one seed.

Each day has a generator of its own, so that a story told further has the same beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from planner.work import Job

DAY = 86_400
SHORTEST, LONGEST = 300, 5 * DAY

# How busy an hour is (JST), and a weekday from Monday on: people submit by day, sweeps by night.
HOURS = np.array(
    [5, 4, 3, 2, 2, 2, 3, 4, 6, 11, 13, 12, 8, 11, 13, 13, 12, 11, 12, 11, 9, 8, 7, 6], dtype=float
)
WEEKDAYS = (1.15, 1.2, 1.2, 1.15, 1.05, 0.65, 0.6)


@dataclass(frozen=True, slots=True)
class Stream:
    """One habit of a project: what it submits, how large, how long, and how much of it.

    `gpus` is the mean number of GPUs it keeps busy; `sizes` are the gangs it asks for, with their
    odds; `median_hours` and `spread` describe the lognormal run times.
    """

    project: str
    lane: str
    gpus: float
    sizes: Mapping[int, float]
    median_hours: float
    spread: float = 0.9
    accelerator: str | None = None
    data_region: str | None = None
    data_gb: int = 0
    checkpoint_minutes: int = 30
    checkpoint_gb_per_gpu: int = 12
    restart_seconds: int = 120
    limit_factor: float = 1.5

    @property
    def mean_gpu_seconds(self) -> float:
        """What one job of the stream holds on average."""
        size = sum(gpus * odds for gpus, odds in self.sizes.items()) / sum(self.sizes.values())
        return float(size * self.median_hours * 3600 * np.exp(self.spread**2 / 2))


SMALL = {1: 2, 2: 3, 4: 3}
NODE = {4: 2, 8: 5, 16: 1}
LARGE = {8: 4, 16: 4, 24: 1}

STREAMS: tuple[Stream, ...] = (
    # Kaguya: trains in Tokyo, beside its data.
    Stream("speech", "primary", 19, LARGE, 9, data_region="tokyo", data_gb=900),
    Stream("speech", "exploratory", 4, NODE, 4, data_region="tokyo", data_gb=300),
    Stream("speech", "emergency", 0.6, {8: 1}, 2, 0.5, data_region="tokyo"),
    Stream("vision", "primary", 13, NODE, 8, data_region="tokyo", data_gb=2500),
    Stream("vision", "exploratory", 6, {2: 1, 4: 3, 8: 2}, 5, data_region="tokyo", data_gb=400),
    Stream("vision", "background", 3, SMALL, 4, data_region="tokyo"),
    Stream("nlp", "primary", 19, {8: 2, 16: 4, 32: 0.2}, 9, accelerator="H100"),
    Stream("nlp", "exploratory", 6, {4: 2, 8: 3}, 4, accelerator="H100"),
    # Raijin: its data lies in Osaka, and its runs in Tokyo bring it along.
    Stream("robotics", "primary", 18, {8: 4, 16: 3}, 7, data_region="osaka", data_gb=4000),
    Stream("robotics", "emergency", 1, {8: 2, 16: 1}, 2, 0.6, data_region="osaka"),
    Stream("robotics", "exploratory", 5, NODE, 3, data_region="osaka", data_gb=800),
    Stream("control", "primary", 8, {4: 3, 8: 2}, 6, data_region="osaka"),
    Stream("control", "exploratory", 7.5, {1: 2, 2: 3, 4: 3}, 5, data_region="osaka"),
    # Hokuto: borrows whatever lies idle, in both places.
    Stream("driving", "primary", 31, {8: 4, 16: 3}, 10, data_gb=3000),
    Stream("driving", "background", 6, {4: 2, 8: 3}, 5, checkpoint_minutes=0),
    Stream("maps", "primary", 7, {4: 2, 8: 2}, 5, data_region="tokyo", data_gb=500),
    Stream("maps", "background", 5.5, SMALL, 4, checkpoint_minutes=0),
    # Sakura: few, long and large runs.
    Stream("proteins", "primary", 13, {8: 2, 16: 3}, 14, 0.6, data_region="osaka", data_gb=1500),
    Stream("imaging", "primary", 12, {4: 2, 8: 3}, 8, data_region="tokyo", data_gb=1200),
    Stream("imaging", "exploratory", 6, SMALL, 5),
    # Mikan: serves, and calls everything it trains urgent.
    Stream(
        "search", "primary", 8.5, {1: 2, 2: 3}, 40, 0.5, accelerator="L40S", checkpoint_minutes=0
    ),
    Stream("recommend", "primary", 6.5, {1: 2, 2: 3}, 36, 0.5, "L40S", checkpoint_minutes=0),
    Stream("recommend", "emergency", 10, {4: 2, 8: 3}, 5, accelerator="H100"),
    # Tsubame: weather may not borrow, and waits beside a borrower.
    Stream("weather", "primary", 6.9, {4: 1, 8: 2}, 6, 0.7, data_region="osaka", data_gb=6000),
    Stream("music", "exploratory", 8, {1: 1, 2: 2, 4: 2, 8: 1}, 6, data_region="tokyo"),
    Stream("music", "background", 3, SMALL, 4, checkpoint_minutes=0),
    Stream("avatars", "primary", 6, {1: 1, 2: 1}, 30, 0.5, accelerator="L40S"),
    Stream("avatars", "exploratory", 4, SMALL, 6, accelerator="L40S"),
)


def jobs(*, days: int, seed: int) -> tuple[Job, ...]:
    """The jobs of the first `days` days, in the order they are submitted."""
    drawn = [job for day in range(days) for job in _day(day, seed)]
    return tuple(sorted(drawn, key=lambda job: (job.submit_seconds, job.id)))


def _day(day: int, seed: int) -> Iterator[Job]:
    odds = HOURS / HOURS.sum()
    for number, stream in enumerate(STREAMS):
        rng = np.random.default_rng([seed, day, number])
        weekday = WEEKDAYS[day % 7]
        for serial in range(
            int(rng.poisson(stream.gpus * DAY / stream.mean_gpu_seconds * weekday))
        ):
            hour = int(rng.choice(24, p=odds))
            gpus = int(
                rng.choice(
                    list(stream.sizes),
                    p=np.array([*stream.sizes.values()]) / sum(stream.sizes.values()),
                )
            )
            hours = stream.median_hours * float(np.exp(stream.spread * rng.standard_normal()))
            work = min(max(int(hours * 3600), SHORTEST), LONGEST)
            yield Job(
                id=f"{stream.project}-{day:03d}-{number:02d}{serial:02d}",
                submit_seconds=day * DAY + hour * 3600 + int(rng.integers(3600)),
                project=stream.project,
                lane=stream.lane,
                gpus=gpus,
                work_seconds=work,
                limit_seconds=int(work * stream.limit_factor),
                accelerator=stream.accelerator,
                data_region=stream.data_region,
                data_gb=Decimal(int(stream.data_gb * rng.uniform(0.5, 1.5))),
                checkpoint_interval_seconds=stream.checkpoint_minutes * 60,
                checkpoint_gb=Decimal(stream.checkpoint_gb_per_gpu * gpus),
                restart_seconds=stream.restart_seconds,
            )
