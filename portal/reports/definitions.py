"""What each figure of the weekly report means: printed under the tables and in its own file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pandas as pd
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

Text = str | Promise


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the report: its name in the file, its heading on the page, unit and meaning."""

    column: str
    heading: Text
    unit: str
    meaning: Text


METRICS = (
    Metric(
        "entitled_gpu_hours",
        _("entitled"),
        "GPU·h",
        _(
            "Nominal quota in force × time, added up over every change of quota in the week. Quota"
            " is given by project and pool, so a lane has none. Empty: no quota."
        ),
    ),
    Metric(
        "delivered_gpu_hours",
        _("delivered"),
        "GPU·h",
        _(
            "GPUs held by running attempts × the time they were held inside the week, whatever came"
            " of it. An attempt over the edge of the week counts with the part inside."
        ),
    ),
    Metric(
        "delivered_entitled_ratio",
        _("delivered ÷ entitled"),
        "ratio",
        _(
            "Above 1 the project borrowed more than it left idle. Below 1 it either did not ask"
            " for more or was made to wait: read it beside the waits. Empty without entitlement."
        ),
    ),
    Metric(
        "share_ratio",
        _("share"),
        "ratio",
        _("Part of all GPU-hours that the fleet delivered in the week."),
    ),
    Metric(
        "jain_index",
        _("Jain's index"),
        "index",
        _(
            "(Σx)² ÷ (n·Σx²) over x = delivered ÷ entitled of the n projects with entitlement:"
            " 1 when all got the same part of theirs, 1/n when one got everything."
        ),
    ),
    Metric(
        "useful_gpu_hours",
        _("useful"),
        "GPU·h",
        _(
            "The part of delivered that became work which was kept: without lost work, checkpoint"
            " writes, restarts and staging. Spread evenly over an attempt that crosses the edge."
        ),
    ),
    Metric(
        "idle_entitlement_gpu_hours",
        _("idle entitlement"),
        "GPU·h",
        _(
            "Entitlement not held by its own project, second by second and pool by pool. Others may"
            " have borrowed it meanwhile."
        ),
    ),
    Metric(
        "jobs_started",
        _("started"),
        "count",
        _("Jobs whose first start lies in the week."),
    ),
    Metric(
        "first_wait_p50_minutes",
        _("p50 wait"),
        "min",
        _(
            "Median wait from submission to first start: of the jobs that started in the week, that"
            " still waited at its end (with their age then) or left the queue unstarted. In the"
            " table of pools a job belongs to the pool of its first start. ≥: some still wait."
        ),
    ),
    Metric(
        "first_wait_p90_minutes",
        _("p90 wait"),
        "min",
        _("The wait that nine of ten of the same jobs did not exceed, interpolated linearly."),
    ),
    Metric(
        "first_wait_longest_minutes",
        _("longest wait"),
        "min",
        _("The longest of the same waits."),
    ),
    Metric(
        "still_waiting",
        _("still waiting"),
        "count",
        _("Jobs that had not started when the week, or what is known of it, ended."),
    ),
    Metric(
        "waited_job_hours",
        _("waited in all"),
        "job·h",
        _(
            "Time inside the week in which jobs were in the queue and held nothing, first waits and"
            " waits after an interruption alike, added up over jobs."
        ),
    ),
    Metric(
        "preemptions_suffered",
        _("preempted"),
        "count",
        _("Attempts ended in the week by preemption or by the reclaim of borrowed GPUs."),
    ),
    Metric(
        "preemptions_caused",
        _("preempted others"),
        "count",
        _("The same evictions, counted where the job that took the GPUs belongs."),
    ),
    Metric(
        "outage_interruptions",
        _("cut by outages"),
        "count",
        _("Attempts ended in the week because a pool, a domain or a region was out."),
    ),
    Metric(
        "requeues",
        _("re-queued"),
        "count",
        _("Interrupted attempts, of either kind, whose job went back to the queue."),
    ),
    Metric(
        "lost_gpu_hours",
        _("lost"),
        "GPU·h",
        _(
            "Work since the last checkpoint that an interruption destroyed; the whole loss belongs"
            " to the week of the interruption."
        ),
    ),
    Metric(
        "delivered_change_gpu_hours",
        _("change of delivered"),
        "GPU·h",
        _(
            "Against the week before, from the rounded figures of both weeks. While the week is"
            " open: against the same part of the week before. Empty: one of the two is unknown."
        ),
    ),
    Metric(
        "delivered_entitled_change_ratio",
        _("change of delivered ÷ entitled"),
        "ratio",
        _("As above."),
    ),
    Metric(
        "first_wait_p90_change_minutes",
        _("change of p90 wait"),
        "min",
        _("As above."),
    ),
    Metric(
        "lost_change_gpu_hours",
        _("change of lost"),
        "GPU·h",
        _("As above."),
    ),
)

ROUNDING = _(
    "GPU-hours and job-hours are rounded to 0.1, ratios and the index to 0.001, waits to whole"
    " minutes, halves up, once, after everything is added up: page and file show the same digits."
    " Rounded rows may therefore add up to a little more or less than their rounded total."
)


def frame() -> pd.DataFrame:
    """The definitions in the reader's language: column, unit, meaning."""
    rows = [(metric.column, metric.unit, str(metric.meaning)) for metric in METRICS]
    rows.append(("", "", str(ROUNDING)))
    return pd.DataFrame(rows, columns=["column", "unit", "meaning"])


def version() -> str:
    """Ten characters that change when a definition changes; printed with every report."""
    with override("en"):
        text = frame().to_json(orient="values", force_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
