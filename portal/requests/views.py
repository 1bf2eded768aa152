"""Asking for quota and deciding what was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.access import viewer
from portal.accounts.models import User
from portal.plans import services as plans
from portal.plans import verdicts
from portal.plans.views import outcome_context
from portal.requests import rules, selectors, services, transitions
from portal.requests.forms import AskForm, DecideForm, SayForm
from portal.requests.models import QuotaRequest, RequestState, Verb
from portal.requests.steps import RefusedError
from portal.requests.transitions import Actor
from portal.tenants.selectors import requestable_projects

PER_PAGE = 50


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """The requests one may see: what waits first, oldest on top, then all that was decided."""
    user = viewer(request)
    decided = Paginator(selectors.others(user), PER_PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "requests/index.html",
        {
            "now": timezone.now(),
            "pending": selectors.pending(user),
            "decided": decided,
            "may_ask": requestable_projects(user).exists(),
        },
    )


@require_http_methods(["GET", "POST"])
def draft(request: HttpRequest) -> HttpResponse:
    """The form of a new request; posted, it shows the effect or keeps a draft."""
    user, now = _asker(request), timezone.now()
    if request.method == "GET":
        return _form_page(request, AskForm(user=user, now=now, initial=_wished(request, user)))
    form = AskForm(request.POST, user=user, now=now)
    if "keep" not in request.POST:
        form = form.without_reason()
        return _form_page(request, form, _effect(form, user) if form.is_valid() else None)
    if form.is_valid():
        try:
            kept = services.draft(**_whose(form), **form.terms(), by=user, now=now)
        except RefusedError as refused:
            form.add_error(None, _said(refused))
        else:
            messages.success(request, _("Kept as a draft. Nobody decides it until you submit it."))
            return redirect("requests:detail", pk=kept.pk)
    return _form_page(request, form)


@require_POST
def submit(request: HttpRequest) -> HttpResponse:
    """Submits the form of a new request."""
    user, now = _asker(request), timezone.now()
    form = AskForm(request.POST, user=user, now=now)
    if form.is_valid():
        try:
            asked = services.ask(**_whose(form), **form.terms(), by=user, now=now)
        except RefusedError as refused:
            form.add_error(None, _said(refused))
        else:
            messages.success(request, _("Submitted. You find it here until it is decided."))
            return redirect("requests:detail", pk=asked.pk)
    return _form_page(request, form)


@require_POST
def effect(request: HttpRequest) -> HttpResponse:
    """What the form's values would do to everybody: queues the simulation, shows it as it runs."""
    user, now = _asker(request), timezone.now()
    form = AskForm(request.POST, user=user, now=now).without_reason()
    context = _effect(form, user) if form.is_valid() else {"form": form}
    return render(request, "requests/_effect.html", context)


@require_GET
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One request: who and why, what would change, for whom, and the decision."""
    user, now = viewer(request), timezone.now()
    asked = services.open_review(request=_visible(user, pk), by=user, now=now)
    return _detail_page(request, asked, user)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Changes a draft or a request that was not decided yet."""
    user, now = viewer(request), timezone.now()
    asked = _visible(user, pk)
    if Actor.ASKER not in selectors.actors(user, asked):
        raise PermissionDenied
    if not transitions.allowed(Verb.EDIT, asked.state, [Actor.ASKER]):
        messages.error(request, _("This request can no longer be changed."))
        return redirect("requests:detail", pk=pk)
    data = request.POST if request.method == "POST" else None
    form = AskForm(data, user=user, now=now, request=asked)
    if form.is_valid():
        try:
            asked = services.edit(request=asked, **form.terms(), by=user, now=now)
            if "submit" in request.POST and asked.state == RequestState.DRAFT:
                asked = services.submit(request=asked, by=user, now=now)
        except RefusedError as refused:
            form.add_error(None, _said(refused))
        else:
            messages.success(request, _("Changed."))
            return redirect("requests:detail", pk=pk)
    return _form_page(request, form, template="requests/edit.html", asked=asked)


@require_POST
def simulate(request: HttpRequest, pk: int) -> HttpResponse:
    """Simulates a pending request again, against what is in force now."""
    return _act(
        request, pk, Verb.SIMULATE, services.simulate, _("Simulating against what is in force now.")
    )


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks or answers on the trail."""
    return _act(request, pk, Verb.COMMENT, services.comment, "", needs="text")


@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Approves, approves in part, or denies."""
    user, now = viewer(request), timezone.now()
    asked = _visible(user, pk)
    form = DecideForm(request.POST)
    if Actor.OPS not in selectors.actors(user, asked):
        raise PermissionDenied(_("Nobody decides their own request."))
    if not form.is_valid():
        return _detail_page(request, asked, user, form, status=422)
    said = form.cleaned_data
    common: dict[str, Any] = {"request": asked, "by": user, "now": now, "seen": said["seen"]}
    try:
        if said["decision"] == DecideForm.DENY:
            services.deny(**common, reason=said["reason"])
        else:
            part = said["granted_extra_gpus"] if said["decision"] == DecideForm.PART else None
            services.approve(**common, reason=said["reason"], granted_extra_gpus=part)
    except RefusedError as refused:
        asked.refresh_from_db()
        return _detail_page(request, asked, user, form, refused=refused, status=409)
    return redirect("requests:detail", pk=pk)


@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes back a request that was not decided yet."""
    return _act(request, pk, Verb.WITHDRAW, services.withdraw, _("Withdrawn."))


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes back an approval that is not in force yet."""
    return _act(
        request, pk, Verb.UNDO, services.undo, _("Undone. The request waits for a decision again.")
    )


@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends a granted change before its time."""
    return _act(
        request, pk, Verb.REVOKE, services.revoke, _("Revoked. The quota is back."), needs="reason"
    )


def _act(
    request: HttpRequest,
    pk: int,
    verb: Verb,
    service: Callable[..., object],
    done: str,
    *,
    needs: str | None = None,
) -> HttpResponse:
    """Takes a step that needs nothing, or one text, and says how it went."""
    user = viewer(request)
    asked = _visible(user, pk)
    if transitions.who(verb).isdisjoint(selectors.actors(user, asked)):
        raise PermissionDenied
    texts: dict[str, str] = {}
    if needs:
        form = SayForm(request.POST)
        if not form.is_valid():
            messages.error(request, " ".join(str(error) for error in form.errors["text"]))
            return redirect("requests:detail", pk=pk)
        texts[needs] = form.cleaned_data["text"]
    try:
        service(request=asked, by=user, now=timezone.now(), **texts)
    except RefusedError as refused:
        messages.error(request, _said(refused))
    else:
        if done:
            messages.success(request, done)
    return redirect("requests:detail", pk=pk)


def _asker(request: HttpRequest) -> User:
    user = viewer(request)
    if not requestable_projects(user).exists():
        raise PermissionDenied(_("Requests are made by project leads and tenant admins."))
    return user


def _visible(user: User, pk: int) -> QuotaRequest:
    return get_object_or_404(selectors.visible_requests(user), pk=pk)


def _wished(request: HttpRequest, user: User) -> dict[str, Any]:
    """The project and pool that a link to the form names (?project=speech&pool=tokyo-a-h100)."""
    wished: dict[str, Any] = {}
    project = requestable_projects(user).filter(name=request.GET.get("project", "")).first()
    if project is not None:
        wished["project"] = project.pk
    pools = selectors.requestable_pools(requestable_projects(user), now=timezone.now())
    pool = pools.filter(name=request.GET.get("pool", "")).first()
    if pool is not None:
        wished["pool"] = pool.pk
    return wished


def _whose(form: AskForm) -> dict[str, Any]:
    return {"project": form.cleaned_data["project"], "pool": form.cleaned_data["pool"]}


def _effect(form: AskForm, user: User) -> dict[str, Any]:
    """The context of the effect of a valid form."""
    said = form.cleaned_data
    terms = {**_whose(form), "extra_gpus": said["extra_gpus"]}
    fit = selectors.fit(**terms, now=form.now)
    never = fit.verdict == selectors.Fits.NEVER or fit.asked_gpus < 0
    context = {"form": form, "fit": fit, "pool": said["pool"], "now": form.now}
    if never:
        return context
    plan = plans.queue_quota_change(**terms, starts_at=said["starts_at"], by=user, now=form.now)
    services.call_off_earlier(plan=plan, by=user, now=form.now)
    return {**outcome_context(plan, user, form.now), **context}


def _form_page(
    request: HttpRequest,
    form: AskForm,
    effect: dict[str, Any] | None = None,
    *,
    template: str = "requests/draft.html",
    asked: QuotaRequest | None = None,
) -> HttpResponse:
    context = {"form": form, "asked": asked, **(effect or {})}
    return render(request, template, context, status=422 if form.errors else 200)


def _detail_page(
    request: HttpRequest,
    asked: QuotaRequest,
    user: User,
    form: DecideForm | None = None,
    *,
    refused: RefusedError | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of a request: as it is opened, and again when a decision was not accepted."""
    now = timezone.now()
    who = selectors.actors(user, asked)
    # The guarantees are said beside the quota, from what is in force now.
    shown = outcome_context(asked.plan, user, now, without_guarantees=True) if asked.plan else {}
    board = selectors.board(asked, now=now)
    context = {
        **shown,
        "guarantee_sentences": verdicts.guarantee_sentences(board.guarantee)
        if board.guarantee
        else [],
        "asked": asked,
        "refused": refused,
        "now": now,
        "may": {verb: transitions.allowed(verb, asked.state, who) for verb in Verb},
        "decides": form or DecideForm(initial={"granted_extra_gpus": asked.extra_gpus}),
        "mark": rules.mark(asked),
        "board": board,
        "before": selectors.granted_before(asked),
        "events": selectors.trail(asked),
    }
    return render(request, "requests/detail.html", context, status=status)


def _said(refused: RefusedError) -> str:
    """The sentence of a refusal, with a link to the request it speaks of."""
    if refused.other is None:
        return refused.sentence
    address = reverse("requests:detail", args=[refused.other.pk])
    return format_html('{} <a href="{}">{}</a>', refused.sentence, address, _("Open that request"))
