"""What came out of a plan, in sentences: who waits less, who more, by how much, and how sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from planner.compare import Effect
from portal.plans.selectors import Guarantee, Outcome
from portal.theme.templatetags.units import duration, gpu_hours, number

NAMED = 2  # so many groups of each kind are named in the sentence; the table has them all


def sentences(outcome: Outcome) -> list[SafeString]:
    """The verdict: waits first, then what evictions cost, then traffic between regions."""
    if not outcome.waits:
        return [
            SafeString(
                _(
                    "No jobs were observed, so nothing can be said about waits. Import job records "
                    "first."
                )
            )
        ]
    return [
        *_waits(outcome),
        *_total(
            outcome.loss,
            gpu_hours,
            more=_("Evictions cost <b>{by} a week more</b> (interval at 90 %: {low} to {high})."),
            less=_("Evictions cost <b>{by} a week less</b> (interval at 90 %: {low} to {high})."),
            unclear=_("What evictions cost does not change clearly."),
        ),
        *_total(
            outcome.traffic,
            gigabytes,
            more=_("Traffic between regions grows by <b>{by} a week</b> ({low} to {high})."),
            less=_("Traffic between regions shrinks by <b>{by} a week</b> ({low} to {high})."),
            unclear=_("Traffic between regions does not change clearly."),
        ),
    ]


def guarantee_sentences(guarantee: Guarantee) -> list[SafeString]:
    """What a pool promises against what it has, also with one failure domain down."""
    facts = {
        "pool": guarantee.pool,
        "accelerator": guarantee.accelerator,
        "before": guarantee.before,
        "after": guarantee.after,
        "gpus": guarantee.gpus,
        "over": guarantee.over,
        "domain": guarantee.domain,
        "left": guarantee.gpus_left,
        "needed": guarantee.after_with_domain_down,
        "was": guarantee.before_with_domain_down,
    }
    whole = (
        _("Guarantees on {pool}: {before} → <b>{after} of {gpus} GPUs, oversubscribed</b>.")
        if guarantee.over
        else _("Guarantees on {pool}: {before} → <b>{after} of {gpus} GPUs</b>.")
    )
    if not guarantee.gpus_left:
        down = _(
            "With {domain} down no {accelerator} is left: <b>{needed} guaranteed GPUs have nowhere "
            "to go</b> (was {was})."
        )
    elif guarantee.over_with_domain_down:
        down = _(
            "With {domain} down: <b>{needed} guaranteed of {left} {accelerator} that are left, "
            "oversubscribed</b> (was {was})."
        )
    else:
        down = _(
            "With {domain} down: {needed} guaranteed of {left} {accelerator} that are left "
            "(was {was})."
        )
    return [format_html(whole, **facts), format_html(down, **facts)]


def gigabytes(value: float) -> str:
    """Gigabytes, in terabytes from 1,000 on."""
    if abs(value) >= 1000:
        return _("%(figure)s TB") % {"figure": number(value / 1000, 1)}
    return _("%(figure)s GB") % {"figure": number(value)}


def _waits(outcome: Outcome) -> Iterator[SafeString]:
    better = [row for row in reversed(outcome.clear) if row.verdict == "better"]
    worse = [row for row in outcome.clear if row.verdict == "worse"]
    if not better and not worse:
        yield SafeString(
            _("Nobody waits clearly longer or shorter.")
            if outcome.projects is None
            else _("None of your own projects waits clearly longer or shorter.")
        )
        yield from _others(outcome)
        return
    for rows, named, of_all in (
        (
            better,
            _(
                "<b>{project}</b> {lane} runs wait about <b>{by} less</b> "
                "(p95; interval at 90 %: {low} to {high} less)."
            ),
            _(
                "{lane} runs of all tenants together wait about <b>{by} less</b> "
                "(p95; interval at 90 %: {low} to {high} less)."
            ),
        ),
        (
            worse,
            _(
                "<b>{project}</b> {lane} runs wait about <b>{by} more</b> "
                "(p95; interval at 90 %: {low} to {high} more)."
            ),
            _(
                "{lane} runs of all tenants together wait about <b>{by} more</b> "
                "(p95; interval at 90 %: {low} to {high} more)."
            ),
        ),
    ):
        for row in rows[:NAMED]:
            low, high = sorted((abs(row.low or 0), abs(row.high or 0)))
            yield format_html(
                named if row.project else of_all,
                project=row.project,
                lane=row.lane,
                by=duration(abs(row.difference)),
                low=duration(low),
                high=duration(high),
            )
    if more := len(worse[NAMED:]):
        text = ngettext(
            "One more group waits longer: see the table.",
            "%(count)d more groups wait longer: see the table.",
            more,
        )
        yield SafeString(text % {"count": more})
    if not worse:
        yield SafeString(
            _("Nobody waits clearly longer.")
            if outcome.projects is None
            else _("None of your own projects waits clearly longer.")
        )
    yield from _others(outcome)


def _others(outcome: Outcome) -> Iterator[SafeString]:
    """What happens to those a lead may not see by name: how many, so that no harm is hidden."""
    if count := outcome.others_worse:
        text = ngettext(
            "One project and lane of somebody else <b>waits clearly longer</b>.",
            "%(count)d projects and lanes of others <b>wait clearly longer</b>.",
            count,
        )
        yield SafeString(text % {"count": count})
    if count := outcome.others_better:
        text = ngettext(
            "One project and lane of somebody else waits clearly less.",
            "%(count)d projects and lanes of others wait clearly less.",
            count,
        )
        yield SafeString(text % {"count": count})


def _total(
    effect: Effect | None, unit: Callable[[float], str], *, more: str, less: str, unclear: str
) -> Iterator[SafeString]:
    if effect is None or effect.low is None or effect.high is None or effect.verdict == "unclear":
        yield SafeString(unclear)
        return
    low, high = sorted((abs(effect.low), abs(effect.high)))
    yield format_html(
        more if effect.difference > 0 else less,
        by=unit(abs(effect.difference)),
        low=unit(low),
        high=unit(high),
    )
