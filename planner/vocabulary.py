"""The words the whole product speaks: one spelling each, and a sentence where people need one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Order(StrEnum):
    """Who of one lane is looked at first."""

    FIFO = "fifo"
    FAIR_SHARE = "fair-share"
    MULTIFACTOR = "multifactor"


class Placement(StrEnum):
    """Which of the allowed pools is tried first."""

    LISTED = "listed"
    LOCALITY = "locality"
    PACK = "pack"
    SPREAD = "spread"


class Victims(StrEnum):
    """Which of the jobs that may be displaced goes first."""

    YOUNGEST = "youngest"
    LEAST_LOST_WORK = "least-lost-work"


class Reclaim(StrEnum):
    """Whose borrowed GPUs a project may take back for its own nominal quota."""

    NEVER = "never"
    LOWER_LANE = "lower-lane"
    ANY = "any"


class Backfill(StrEnum):
    """Whether a later job may start before an earlier one that is too large for now."""

    NONE = "none"
    EASY = "easy"


class Recovery(StrEnum):
    """What happens to a job that is displaced."""

    REQUEUE = "requeue"
    SUSPEND = "suspend"
    CANCEL = "cancel"


class Queueing(StrEnum):
    """Whether the first job of a queue holds up the ones behind it."""

    STRICT = "strict"
    BEST_EFFORT = "best-effort"


class Purpose(StrEnum):
    """What a pool is meant for."""

    TRAINING = "training"
    SERVING = "serving"
    INTERACTIVE = "interactive"


class JobState(StrEnum):
    """Where a job stands when the run ends."""

    FINISHED = "finished"
    RUNNING = "running"
    WAITING = "waiting"
    SUSPENDED = "suspended"
    CANCELLED = "cancelled"
    UNSCHEDULABLE = "unschedulable"


class AttemptEnd(StrEnum):
    """How one attempt of a job ended."""

    FINISHED = "finished"
    EVICTED = "evicted"
    RUNNING = "running"


class Ground(StrEnum):
    """On what ground a running job was evicted."""

    PREEMPTION = "preemption"
    RECLAIM = "reclaim"
    OUTAGE = "outage"


class Reason(StrEnum):
    """Why a job waits, or why it can never run."""

    WAITING_FOR_QUOTA = "WaitingForQuota"
    BORROWING_LIMIT_REACHED = "BorrowingLimitReached"
    LANE_LIMIT_REACHED = "LaneLimitReached"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    FRAGMENTED = "Fragmented"
    BEHIND_IN_QUEUE = "BehindInQueue"
    BACKING_OFF = "BackingOff"
    SUSPENDED = "Suspended"
    POOL_OUTAGE = "PoolOutage"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    EXCEEDS_POOL = "ExceedsPool"
    NO_QUOTA = "NoQuota"
    LANE_NOT_ASSIGNED = "LaneNotAssigned"
    NO_MATCHING_ACCELERATOR = "NoMatchingAccelerator"
    RESIDENCY_FORBIDS = "ResidencyForbids"
    NO_LINK = "NoLink"


class Sentence(NamedTuple):
    """One thing said to people, in each language of the product."""

    en: str
    ja: str


SENTENCES: Mapping[Reason, Sentence] = MappingProxyType(
    {
        Reason.WAITING_FOR_QUOTA: Sentence(
            "The project's quota and its cohort have fewer GPUs left than this job asks for.",
            "プロジェクトのクォータとコホートの残りが、このジョブの要求するGPU数に足りません。",
        ),
        Reason.BORROWING_LIMIT_REACHED: Sentence(
            "With this job the project would borrow more GPUs than its borrowing limit allows.",
            "このジョブを実行すると、プロジェクトの借用上限を超えます。",
        ),
        Reason.LANE_LIMIT_REACHED: Sentence(
            "With this job the project would hold more GPUs in this lane than it is assigned.",
            "このジョブを実行すると、このレーンでプロジェクトに割り当てられたGPU数の上限を超えます。",
        ),
        Reason.WAITING_FOR_CAPACITY: Sentence(
            "The quota is there, but too few GPUs are free.",
            "クォータには余裕がありますが、空いているGPUが足りません。",
        ),
        Reason.FRAGMENTED: Sentence(
            "Enough GPUs are free in sum, but not together on the nodes this job needs.",
            "空きGPUの合計は足りていますが、ノードをまたいで分散しているため、"
            "このジョブに必要なまとまりで確保できません。",
        ),
        Reason.BEHIND_IN_QUEUE: Sentence(
            "A job ahead of this one has to start first.",
            "先に並んでいるジョブの開始を待っています。",
        ),
        Reason.BACKING_OFF: Sentence(
            "The job was evicted and waits out its back-off before it queues again.",
            "退避されたあと、再びキューに入るまでの待機時間中です。",
        ),
        Reason.SUSPENDED: Sentence(
            "The job is suspended: it keeps its progress and waits to be resumed.",
            "一時停止中です。進捗は保持されており、再開を待っています。",
        ),
        Reason.POOL_OUTAGE: Sentence(
            "Every pool this job may use is in an outage.",
            "このジョブが使えるプールがすべて停止中です。",
        ),
        Reason.EXCEEDS_MAX_QUOTA: Sentence(
            "The job asks for more GPUs than its project could ever hold.",
            "プロジェクトが持ちうるGPU数の上限を超えて要求しています。",
        ),
        Reason.EXCEEDS_POOL: Sentence(
            "The job asks for more GPUs than any allowed pool has.",
            "使用できるどのプールの規模よりも多くのGPUを要求しています。",
        ),
        Reason.NO_QUOTA: Sentence(
            "The project has no quota in any pool this job may use.",
            "このジョブが使えるプールに、プロジェクトのクォータがありません。",
        ),
        Reason.LANE_NOT_ASSIGNED: Sentence(
            "The project has not been assigned this lane.",
            "プロジェクトにこのレーンが割り当てられていません。",
        ),
        Reason.NO_MATCHING_ACCELERATOR: Sentence(
            "No pool open to the project has the accelerator this job asks for.",
            "プロジェクトが使えるプールに、要求されたアクセラレーターがありません。",
        ),
        Reason.RESIDENCY_FORBIDS: Sentence(
            "The data of this job may not be where the remaining pools are.",
            "データの所在地に関する制約により、残りのプールでは実行できません。",
        ),
        Reason.NO_LINK: Sentence(
            "No link leads from the data of this job to the remaining pools.",
            "データのあるリージョンから、残りのプールへの回線がありません。",
        ),
    }
)
