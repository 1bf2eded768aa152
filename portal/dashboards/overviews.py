"""Puts together what the pages over everything show: all regions, all projects, the collection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from portal.dashboards import pages, project_pages, selectors, windows
from portal.dashboards.attention import Attention
from portal.dashboards.pages import Figures, Row, record
from portal.dashboards.selectors import Freshness
from portal.dashboards.windows import Window
from portal.fleet.models import Region
from portal.policy import selectors as policy
from portal.tenants.models import Project


@dataclass(frozen=True, slots=True)
class Place:
    """A region on a card."""

    region: Region
    label: str
    zone: ZoneInfo
    figures: Figures
    freshness: list[Freshness]
    live: bool
    coverage: float | None
    attentions: list[Attention]
    held: float | None


def all_regions(*, now: datetime) -> list[Place]:
    """Every region over the last seven days, as its own page shows it."""
    found = []
    for region in Region.objects.all():
        zone = ZoneInfo(region.timezone)
        window = windows.window(windows.DEFAULT, now=now, zone=zone)
        page = pages.region_page(region=region, window=window, now=now, csv_url="")
        held = pages.known_sum([row["used"] for row in page.pools])
        found.append(
            Place(
                region, region.local_name, zone, page.figures, page.freshness, page.live,
                page.coverage, page.attentions, held,
            )
        )  # fmt: skip
    return found


def project_rows(*, projects: list[Project], window: Window, now: datetime) -> list[Row]:
    """One row a project: quota in sum, what it holds, its waits, what still waits, what it lost."""
    names = [project.name for project in projects]
    pools = selectors.pools_of()
    held = project_pages.held_everywhere(regions={pool.domain.region for pool in pools}, now=now)
    table = selectors.quota_table(
        quotas=policy.quotas_in_force(at=now, projects=names),
        held=held.frame,
        gpus={pool.name: pool.gpus for pool in pools},
    )
    done = selectors.work(window=window, now=now, projects=names)
    waits, evicted, waiting = done.waits("project"), done.evicted, done.waiting
    rows = []
    for project in projects:
        mine = table[table["project"] == project.name]
        sums = {
            column: mine[column].astype("float64").sum(min_count=1)
            for column in ("used", "borrowed", "nominal_gpus", "limit")
        }
        lost = evicted[evicted["project"] == project.name]["lost_gpu_seconds"].sum()
        rows.append(
            {
                "project": project,
                "waits": record(waits, project.name),
                "waiting": int((waiting["project"] == project.name).sum()),
                "lost": float(lost),
                **{
                    name: None if math.isnan(value) else float(value)
                    for name, value in sums.items()
                },
            }
        )
    return rows
