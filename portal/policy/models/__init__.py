"""The five dimensions of policy, one file each, mirroring planner/policy/."""

from portal.policy.models.checkpoint import CheckpointRule, LaneRecovery, Recovery
from portal.policy.models.lanes import (
    Backfill,
    Lane,
    LaneAssignment,
    LaneAssignmentPool,
    LaneRank,
    Order,
    ProjectWeight,
    Queueing,
    QueueOrder,
    TenantWeight,
)
from portal.policy.models.placement import Placement, PlacementRule
from portal.policy.models.preemption import (
    EvictionRule,
    LaneProtection,
    PreemptionRight,
    Reclaim,
    Victims,
)
from portal.policy.models.quota import Quota

__all__ = [
    "Backfill",
    "CheckpointRule",
    "EvictionRule",
    "Lane",
    "LaneAssignment",
    "LaneAssignmentPool",
    "LaneProtection",
    "LaneRank",
    "LaneRecovery",
    "Order",
    "Placement",
    "PlacementRule",
    "PreemptionRight",
    "ProjectWeight",
    "QueueOrder",
    "Queueing",
    "Quota",
    "Reclaim",
    "Recovery",
    "TenantWeight",
    "Victims",
]
