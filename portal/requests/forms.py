"""The form in which a change is asked for, and the forms in which it is decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.requests import selectors
from portal.requests.models import QuotaRequest
from portal.tenants.models import Project
from portal.tenants.selectors import requestable_projects

MOST_GPUS = 100_000
GOOD, UNTIL = "good", "until"


class PoolField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in its stubs only
    """A pool, shown with what it is made of."""

    def label_from_instance(self, obj: Pool) -> str:
        """The pool's name, its GPUs and their kind."""
        return f"{obj.name} · {obj.gpus} {obj.accelerator}"


class AskForm(forms.Form):
    """What is asked for: whose quota, in which pool, how much, from when, for how long, and why.

    Cleaned data also holds `starts_at` and `ends_at`: days are cut in the pool's own region.
    """

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"), empty_label=None)
    pool = PoolField(Pool.objects.none(), label=_("pool"), empty_label=None)
    extra_gpus = forms.IntegerField(
        label=_("GPUs more"),
        min_value=-MOST_GPUS,
        max_value=MOST_GPUS,
        initial=8,
        help_text=_("A negative number gives GPUs back."),
    )
    starts_on = forms.DateField(
        label=_("from"),
        required=False,
        help_text=_("The start of that day where the pool stands. Empty: as soon as approved."),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    how_long = forms.ChoiceField(
        label=_("for how long"),
        initial="4",
        choices=[
            ("1", _("1 week")),
            ("2", _("2 weeks")),
            ("4", _("4 weeks")),
            ("8", _("8 weeks")),
            (UNTIL, _("until the day below")),
            (GOOD, _("for good")),
        ],
    )
    until = forms.DateField(
        label=_("until"),
        required=False,
        help_text=_("The quota goes back at the start of that day."),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    justification = forms.CharField(
        label=_("why"),
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("What depends on it, and what happens without."),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        user: User,
        now: datetime,
        request: QuotaRequest | None = None,
        **kwargs: Any,
    ) -> None:
        self.now = now
        if request is not None:
            kwargs["initial"] = _initial(request, now) | kwargs.get("initial", {})
        super().__init__(data, label_suffix="", **kwargs)
        projects = requestable_projects(user)
        if request is not None:
            projects = projects.filter(pk=request.project_id)
        self._choice("project").queryset = projects
        self._offer_pools(projects, request)

    def without_reason(self) -> AskForm:
        """The same form when only its effect is asked for: why is not needed yet."""
        self.fields["justification"].required = False
        return self

    def clean(self) -> dict[str, Any]:
        """Turns the days into instants, in the zone of the pool's region."""
        cleaned = super().clean() or {}
        if cleaned.get("extra_gpus") == 0:
            self.add_error("extra_gpus", _("Ask for at least one GPU more or less."))
        pool = cleaned.get("pool")
        if pool is None or "starts_on" in self.errors or "until" in self.errors:
            return cleaned
        zone = ZoneInfo(pool.domain.region.timezone)
        on = cleaned.get("starts_on")
        starts_at = self.now if on is None else _midnight(on, zone)
        if on is not None and starts_at < self.now:
            if on < self.now.astimezone(zone).date():
                self.add_error("starts_on", _("This day is over. Leave it empty to start at once."))
            starts_at = self.now
        ends_at = self._end(cleaned, starts_at, zone)
        if ends_at is not None and ends_at <= starts_at:
            self.add_error("until", _("The end must lie after the start, and in the future."))
        return {**cleaned, "starts_at": starts_at, "ends_at": ends_at}

    def terms(self) -> dict[str, Any]:
        """What services.draft and services.edit take of it, but for the project and the pool."""
        names = ("extra_gpus", "starts_at", "ends_at", "justification")
        return {name: self.cleaned_data[name] for name in names}

    def _end(self, cleaned: dict[str, Any], starts_at: datetime, zone: ZoneInfo) -> datetime | None:
        how_long = cleaned.get("how_long", GOOD)
        if how_long == GOOD:
            return None
        if how_long == UNTIL:
            if not cleaned.get("until"):
                self.add_error("until", _("Name the day on which the quota goes back."))
                return None
            return _midnight(cleaned["until"], zone)
        # To the full hour: "back on 28 Dec 12:00" is easier to remember than 11:42:07.
        end = starts_at + timedelta(weeks=int(how_long))
        full = end.replace(minute=0, second=0, microsecond=0)
        return full if full == end else full + timedelta(hours=1)

    def _choice(self, name: str) -> forms.ModelChoiceField[Any]:
        return cast("forms.ModelChoiceField[Any]", self.fields[name])

    def _offer_pools(self, projects: QuerySet[Project], request: QuotaRequest | None) -> None:
        """Pools with quota for the person's projects first, then the others for training."""
        field = self._choice("pool")
        pools = selectors.requestable_pools(projects, now=self.now).select_related("domain__region")
        if request is not None:
            pools = pools.filter(pk=request.pool_id)
        field.queryset = pools
        held = selectors.pools_held(projects, now=self.now)
        groups = [
            (_("with quota"), [pool for pool in pools if pool.pk in held]),
            (_("other pools"), [pool for pool in pools if pool.pk not in held]),
        ]
        field.choices = [
            (title, [(pool.pk, field.label_from_instance(pool)) for pool in members])
            for title, members in groups
            if members
        ]


class DecideForm(forms.Form):
    """Approve, approve in part, or deny; a part needs its number and a denial its reason."""

    APPROVE, PART, DENY = "approve", "part", "deny"
    decision = forms.ChoiceField(
        choices=[(APPROVE, _("approve")), (PART, _("approve in part")), (DENY, _("deny"))]
    )
    granted_extra_gpus = forms.IntegerField(
        label=_("GPUs granted"), required=False, min_value=-MOST_GPUS, max_value=MOST_GPUS
    )
    reason = forms.CharField(
        label=_("reason"), required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 2})
    )
    seen = forms.IntegerField(widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Asks for the number of a part and the reason of a denial."""
        cleaned = super().clean() or {}
        if cleaned.get("decision") == self.PART and cleaned.get("granted_extra_gpus") is None:
            self.add_error("granted_extra_gpus", _("Say how many GPUs you grant."))
        if cleaned.get("decision") == self.DENY and not cleaned.get("reason"):
            self.add_error("reason", _("Say why: a request is denied only with a reason."))
        return cleaned


class SayForm(forms.Form):
    """A comment, or the reason of a step that needs one."""

    text = forms.CharField(max_length=2000, widget=forms.Textarea(attrs={"rows": 2}))


def _midnight(day: Any, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def _initial(request: QuotaRequest, now: datetime) -> dict[str, Any]:
    zone = ZoneInfo(request.pool.domain.region.timezone)
    starts_on = request.starts_at.astimezone(zone).date() if request.starts_at > now else None
    how_long, until = GOOD, None
    if request.ends_at is not None:
        how_long, until = UNTIL, request.ends_at.astimezone(zone).date()
        # Only whole days fit the field; a period of whole weeks is said as such.
        weeks, rest = divmod(request.ends_at - request.starts_at, timedelta(weeks=1))
        if rest <= timedelta(hours=1) and weeks in {1, 2, 4, 8}:
            how_long, until = str(weeks), None
    return {
        "project": request.project_id,
        "pool": request.pool_id,
        "extra_gpus": request.extra_gpus,
        "starts_on": starts_on,
        "how_long": how_long,
        "until": until,
        "justification": request.justification,
    }
