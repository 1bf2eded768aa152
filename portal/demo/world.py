"""The demo world's rows: fleet, tenants, people, and the policy that is in force."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from planner.scenario import Scenario
from portal.accounts.models import Office, User
from portal.demo.story import HISTORY, WARM_UP, Story
from portal.fleet.models import Domain, Link, Outage, Pool, Region, Storage
from portal.policy.models import (
    CheckpointRule,
    EvictionRule,
    Lane,
    LaneAssignment,
    LaneProtection,
    LaneRank,
    LaneRecovery,
    PlacementRule,
    PreemptionRight,
    ProjectWeight,
    QueueOrder,
    Quota,
    TenantWeight,
)
from portal.tenants.models import Membership, Project, Role, Tenant

PASSWORD = "demo-sekisho"  # noqa: S105 - shown on the sign-in page of the demo, and only there
LABELS = {
    "tokyo": ("Tokyo", "東京"),
    "osaka": ("Osaka", "大阪"),
    "emergency": ("emergency", "緊急"),
    "primary": ("primary", "主要"),
    "exploratory": ("exploratory", "探索"),
    "background": ("background", "背景"),
}
PROJECT_LABELS = {"nlp": "NLP", "recommend": "Recommendations", "proteins": "Protein folding"}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who can sign in to the demo, and what they are there."""

    name: str
    is_what: str
    office: str = Office.NONE
    tenant: str = ""
    project: str = ""

    @property
    def email(self) -> str:
        """The address they sign in with."""
        return f"{self.name}@example.org"


PEOPLE = (
    Person("aiko", "leads speech, a project of Kaguya", tenant="kaguya", project="speech"),
    Person("ben", "ops: reviews regions and decides requests", office=Office.OPS),
    Person("emi", "administers the tenant Kaguya", tenant="kaguya"),
    Person("dana", "auditor: reads everything, changes nothing", office=Office.AUDITOR),
    Person("chidi", "leads robotics, a project of Raijin", tenant="raijin", project="robotics"),
)
# Half-way through the story music got GPUs that maps did not need.
MOVED_GPUS, MOVED_FROM, MOVED_TO, MOVED_IN = 4, "maps", "music", "tokyo-a-a100"
MOVED_BECAUSE = "moved 4 GPUs of tokyo-a-a100 from maps to music"


@transaction.atomic
def create(story: Story) -> None:
    """Writes the whole world, everything in force from the story's first second on."""
    scenario = story.trace.scenario
    _fleet(scenario)
    _tenants(scenario)
    _policy(scenario, since=story.start)
    _quotas(story)
    _people()
    Outage.objects.create(
        domain=Domain.objects.get(name=scenario.outages[0].domain),
        kind="incident",
        starts_at=story.outage[0],
        ends_at=story.outage[1],
        note="Cooling failed in one hall.",
    )


def _fleet(scenario: Scenario) -> None:
    regions = {
        region.name: Region.objects.create(
            name=region.name,
            label=LABELS[region.name][0],
            label_ja=LABELS[region.name][1],
            timezone=region.timezone,
        )
        for region in scenario.regions
    }
    for link in scenario.links:
        one, other = sorted((regions[name] for name in link.between), key=lambda row: row.pk)
        Link.objects.create(region=one, other_region=other, gbps=link.gbps)
    domains = {
        domain.name: Domain.objects.create(name=domain.name, region=regions[domain.region])
        for domain in scenario.domains
    }
    storages = {
        storage.name: Storage.objects.create(
            name=storage.name,
            region=regions[storage.region] if storage.region else None,
            domain=domains[storage.domain] if storage.domain else None,
            write_gb_per_second=storage.write_gb_per_second,
        )
        for storage in scenario.storages
    }
    for pool in scenario.pools:
        Pool.objects.create(
            name=pool.name,
            domain=domains[pool.domain],
            accelerator=pool.accelerator,
            nodes=pool.nodes,
            gpus_per_node=pool.gpus_per_node,
            storage=storages[pool.storage] if pool.storage else None,
            purpose=pool.purpose.value,
            premium=pool.premium,
        )


def _tenants(scenario: Scenario) -> None:
    for tenant in scenario.tenants:
        Tenant.objects.create(name=tenant.name, label=tenant.name.title())
    for project in scenario.projects:
        Project.objects.create(
            name=project.name,
            label=PROJECT_LABELS.get(project.name, project.name.title()),
            tenant=Tenant.objects.get(name=project.tenant),
        )


def _policy(scenario: Scenario, *, since: datetime) -> None:
    policy = scenario.policy
    QueueOrder.objects.create(
        order=policy.order.value, backfill=policy.backfill.value, starts_at=since
    )
    PlacementRule.objects.create(placement=policy.placement.value, starts_at=since)
    EvictionRule.objects.create(
        victims=policy.victims.value, reclaim=policy.reclaim.value, starts_at=since
    )
    lanes = {
        lane.name: Lane.objects.create(name=lane.name, label_ja=LABELS[lane.name][1])
        for lane in scenario.lanes
    }
    for lane in scenario.lanes:
        row = lanes[lane.name]
        LaneRank.objects.create(
            lane=row, rank=lane.rank, queueing=lane.queueing.value, starts_at=since
        )
        LaneProtection.objects.create(
            lane=row, protect_seconds=lane.protect_seconds, starts_at=since
        )
        LaneRecovery.objects.create(
            lane=row,
            recovery=lane.recovery.value,
            backoff_seconds=lane.backoff_seconds,
            backoff_limit_seconds=lane.backoff_limit_seconds or 3600,
            max_requeues=lane.max_requeues,
            starts_at=since,
        )
        for over in lane.preempts:
            PreemptionRight.objects.create(lane=row, over=lanes[over], starts_at=since)
    for tenant in scenario.tenants:
        TenantWeight.objects.create(
            tenant=Tenant.objects.get(name=tenant.name), weight=tenant.weight, starts_at=since
        )
    used = {(job.project, job.lane) for job in scenario.jobs}
    for project in scenario.projects:
        row_ = Project.objects.get(name=project.name)
        ProjectWeight.objects.create(
            project=row_, weight=project.weight, cohort=project.cohort, starts_at=since
        )
        sizes = [job for job in scenario.jobs if job.project == project.name]
        usual = max(sizes, key=lambda job: job.checkpoint_interval_seconds)
        CheckpointRule.objects.create(
            project=row_,
            interval_seconds=usual.checkpoint_interval_seconds,
            checkpoint_gb=usual.checkpoint_gb,
            restart_seconds=usual.restart_seconds,
            starts_at=since,
        )
        for lane in scenario.lanes:
            if (project.name, lane.name) in used:
                LaneAssignment.objects.create(project=row_, lane=lanes[lane.name], starts_at=since)


def _quotas(story: Story) -> None:
    moved_at = story.start + (WARM_UP + HISTORY) / 2
    before = {MOVED_FROM: MOVED_GPUS, MOVED_TO: -MOVED_GPUS}
    for quota in story.trace.scenario.quotas:
        project = Project.objects.get(name=quota.project)
        pool = Pool.objects.get(name=quota.pool)
        limits = {
            "borrowing_limit_gpus": quota.borrowing_limit,
            "lending_limit_gpus": quota.lending_limit,
        }
        differed = before.get(quota.project, 0) if quota.pool == MOVED_IN else 0
        Quota.objects.create(
            project=project,
            pool=pool,
            nominal_gpus=quota.nominal + differed,
            starts_at=story.start,
            **limits,
        )
        if differed:
            Quota.objects.create(
                project=project,
                pool=pool,
                nominal_gpus=quota.nominal,
                starts_at=moved_at,
                because=MOVED_BECAUSE,
                **limits,
            )


def _people() -> None:
    for person in PEOPLE:
        user = User.objects.create_user(
            username=person.name,
            email=person.email,
            password=PASSWORD,
            first_name=person.name.title(),
            office=person.office,
        )
        if person.tenant:
            project = Project.objects.get(name=person.project) if person.project else None
            Membership.objects.create(
                user=user,
                tenant=Tenant.objects.get(name=person.tenant),
                project=project,
                role=Role.LEAD if project else Role.ADMIN,
            )
