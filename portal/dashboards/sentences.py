"""Says what needs attention, in the reader's language and with only the names they may see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext, ngettext

from portal.dashboards.attention import Attention, Kind
from portal.theme.templatetags.units import ago, duration, gpu_hours, local, number, ratio

ICONS = {"bad": "▲", "warn": "◆"}


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of the list: its mark, what it is about, the sentence, its label and its age."""

    level: str
    icon: str
    severity: str
    subject: str
    text: str
    label: str
    since: str
    pool: str
    project: str
    region: str
    place: str


def say(
    found: Collection[Attention],
    *,
    seen: Collection[str],
    zone: ZoneInfo,
    now: datetime,
    places: Mapping[str, str] | None = None,
) -> list[Said]:
    """The sentences of what was found. A project that is not in `seen` stays unnamed.

    `places` names the regions in the reader's language.

    What only concerns one project is left out for those who may not see it.
    """
    said = []
    for item in found:
        text = _SENTENCES[item.kind](item, seen, zone)
        if not text:
            continue
        label, since = _LABELS[item.kind](), ""
        if (
            item.kind in {Kind.STARVATION, Kind.MAY_NOT_BORROW, Kind.ALL_URGENT, Kind.STALE}
            and item.since
        ):
            since = gettext("since %(when)s") % {"when": local(item.since, zone)}
        elif item.until:
            since = ago(item.until, now)
        own = [name for name in item.projects if name in seen]
        said.append(
            Said(
                item.level, ICONS[item.level],
                gettext("urgent") if item.level == "bad" else gettext("warning"),
                item.pool, text, label, since, item.pool, own[0] if own else "", item.region,
                (places or {}).get(item.region, item.region),
            )
        )  # fmt: skip
    return said


def _starvation(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    values = {
        "n": item.values["jobs"],
        "lane": item.values["lane"],
        "wait": duration(item.values["seconds"]),
        "gpus": number(item.values["gpus"]),
        "borrower": item.projects[0],
    }
    n = int(item.values["jobs"] or 0)
    if item.projects[0] in seen:
        return ngettext(
            "%(n)d %(lane)s run waits %(wait)s or longer inside its own quota while "
            "%(borrower)s borrows %(gpus)s GPUs above its quota.",
            "%(n)d %(lane)s runs wait %(wait)s or longer inside their own quota while "
            "%(borrower)s borrows %(gpus)s GPUs above its quota.",
            n,
        ) % values  # fmt: skip
    return ngettext(
        "%(n)d %(lane)s run waits %(wait)s or longer inside its own quota while another "
        "project borrows %(gpus)s GPUs above its quota.",
        "%(n)d %(lane)s runs wait %(wait)s or longer inside their own quota while another "
        "project borrows %(gpus)s GPUs above its quota.",
        n,
    ) % values  # fmt: skip


def _may_not_borrow(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    n = int(item.values["jobs"] or 0)
    return ngettext(
        "%(n)d %(lane)s run waits %(wait)s or longer at a quota beyond which it may not borrow, "
        "while %(gpus)s GPUs are lent to another project.",
        "%(n)d %(lane)s runs wait %(wait)s or longer at a quota beyond which they may not borrow, "
        "while %(gpus)s GPUs are lent to another project.",
        n,
    ) % {
        "n": n,
        "lane": item.values["lane"],
        "wait": duration(item.values["seconds"]),
        "gpus": number(item.values["gpus"]),
    }  # fmt: skip


def _all_urgent(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    if item.projects[0] not in seen:
        return ""
    return gettext(
        "%(share)s of its %(jobs)s jobs are marked emergency: a lane for everything protects "
        "nothing."
    ) % {
        "project": item.projects[0],
        "share": ratio(item.values["share"]),
        "jobs": number(item.values["jobs"]),
    }


def _checkpoint_domain(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    n = int(item.values["jobs"] or 0)
    return ngettext(
        "Checkpoints go to %(storage)s, in the failure domain of the pool itself: with "
        "%(domain)s, the %(work)s of %(n)d running job would be lost too.",
        "Checkpoints go to %(storage)s, in the failure domain of the pool itself: with "
        "%(domain)s, the %(work)s of %(n)d running jobs would be lost too.",
        n,
    ) % {
        "storage": item.values["storage"],
        "domain": item.values["domain"],
        "work": gpu_hours(item.values["gpu_seconds"]),
        "n": n,
    }  # fmt: skip


def _storage_stall(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    values = {
        "from": local(item.since, zone),
        "long": duration((item.until - item.since).total_seconds())
        if item.until and item.since
        else "",
        "fall": ratio(item.values["fall"]),
        "peak": duration(item.values["peak_seconds"]),
        "usual": duration(item.values["usual_seconds"]),
        "n": number(item.values["evictions"]),
    }
    if item.values["fall"] is None:
        return (
            gettext(
                "From %(from)s, for %(long)s, checkpoint writes took up to %(peak)s (usually "
                "at most %(usual)s); use is not known for that time."
            )
            % values
        )
    if item.values["evictions"]:
        return (
            gettext(
                "From %(from)s, for %(long)s, use fell %(fall)s while checkpoint writes took "
                "up to %(peak)s (usually at most %(usual)s): storage, beside %(n)s evictions."
            )
            % values
        )
    return (
        gettext(
            "From %(from)s, for %(long)s, use fell %(fall)s because of storage, not of "
            "compute: checkpoint writes took up to %(peak)s (usually at most %(usual)s); "
            "nobody was preempted."
        )
        % values
    )


def _stale(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    values = {"age": duration(item.values["seconds"]), "names": item.values["names"]}
    if item.values["signals"] == item.values["all"]:
        return (
            gettext(
                "Prometheus has not answered for %(age)s: this page shows the last good data, "
                "not the present."
            )
            % values
        )
    return gettext("Some figures are up to %(age)s old: %(names)s.") % values


def _never(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    return gettext(
        "Nothing was ever collected here. Set the Prometheus address of this region and run "
        "the collector."
    )


def _coverage(item: Attention, seen: Collection[str], zone: ZoneInfo) -> str:
    return gettext(
        "Only %(ratio)s of this window was observed; means and sums stand on that part alone."
    ) % {"ratio": ratio(item.values["ratio"], 1)}


_SENTENCES: dict[Kind, Callable[[Attention, Collection[str], ZoneInfo], str]] = {
    Kind.STARVATION: _starvation,
    Kind.MAY_NOT_BORROW: _may_not_borrow,
    Kind.ALL_URGENT: _all_urgent,
    Kind.CHECKPOINT_DOMAIN: _checkpoint_domain,
    Kind.STORAGE_STALL: _storage_stall,
    Kind.STALE: _stale,
    Kind.NEVER: _never,
    Kind.COVERAGE: _coverage,
}
_LABELS: dict[Kind, Callable[[], str]] = {
    Kind.STARVATION: lambda: gettext("starvation"),
    Kind.MAY_NOT_BORROW: lambda: gettext("may not borrow"),
    Kind.ALL_URGENT: lambda: gettext("everything urgent"),
    Kind.CHECKPOINT_DOMAIN: lambda: gettext("failure domain"),
    Kind.STORAGE_STALL: lambda: gettext("storage stall"),
    Kind.STALE: lambda: gettext("stale data"),
    Kind.NEVER: lambda: gettext("no data"),
    Kind.COVERAGE: lambda: gettext("coverage"),
}
