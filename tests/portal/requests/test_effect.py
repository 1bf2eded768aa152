"""The effect of the form as it is filled in."""

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse

from portal.accounts.models import User
from portal.plans.models import Plan
from portal.requests.models import QuotaRequest
from portal.requests.selectors import Fits, fit
from portal.telemetry.models import HourRollup, Series
from tests.portal.requests.asking import form
from tests.worlds import NOW, World

SignedIn = Callable[[User], Client]

URL = reverse("requests:effect")


def test_the_values_are_simulated_and_the_fragment_asks_for_the_outcome(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    page = signed_in(aiko).post(URL, form(world, justification=""))

    plan = Plan.objects.get()
    assert reverse("plans:outcome", args=[plan.pk]) in page.content.decode()
    assert "<html" not in page.content.decode()
    assert not QuotaRequest.objects.exists()


def test_the_same_values_are_not_simulated_twice(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    client = signed_in(aiko)
    client.post(URL, form(world))
    client.post(URL, form(world, justification="another reason"))

    assert Plan.objects.count() == 1


def test_other_values_call_off_the_simulation_before_and_never_that_of_a_request(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    client = signed_in(aiko)
    client.post(reverse("requests:submit"), form(world, extra_gpus=4))
    client.post(URL, form(world, extra_gpus=8))
    client.post(URL, form(world, extra_gpus=12))

    of_request, first, last = Plan.objects.order_by("pk")
    assert QuotaRequest.objects.get().plan == of_request
    assert [plan.state for plan in (of_request, first, last)] == ["queued", "cancelled", "queued"]


def test_what_does_not_make_sense_yet_is_said_and_not_simulated(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    page = signed_in(aiko).post(URL, form(world, extra_gpus="many"))

    assert page.status_code == 200
    assert "Enter a whole number" in page.content.decode()
    assert not Plan.objects.exists()


def test_what_can_never_fit_is_said_and_not_simulated(
    world: World, aiko: User, signed_in: SignedIn
) -> None:
    page = signed_in(aiko).post(URL, form(world, extra_gpus=41))

    assert "tokyo-a-h100 has only 64 GPUs" in page.content.decode()
    assert not Plan.objects.exists()


def test_another_tenants_project_is_not_simulated(
    world: World, chidi: User, signed_in: SignedIn
) -> None:
    signed_in(chidi).post(URL, form(world))

    assert not Plan.objects.exists()


def test_an_auditor_simulates_no_request(world: World, dana: User, signed_in: SignedIn) -> None:
    assert signed_in(dana).post(URL, form(world)).status_code == 403


def test_whether_it_fits_is_unknown_without_samples_and_never_zero(world: World) -> None:
    seen = fit(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], extra_gpus=8, now=NOW
    )

    assert (seen.verdict, seen.used_gpus, seen.free_gpus) == (Fits.UNKNOWN, None, None)


def test_whether_it_fits_follows_the_newest_samples_of_the_pool(world: World) -> None:
    used(world, speech=20, robotics=28)
    terms: dict[str, Any] = {
        "project": world.projects["speech"],
        "pool": world.pools["tokyo-a-h100"],
        "now": NOW,
    }

    seen = fit(**terms, extra_gpus=16)
    assert (seen.verdict, seen.used_gpus, seen.free_gpus) == (Fits.NOW, 20, 16)
    assert fit(**terms, extra_gpus=17).verdict == Fits.WAIT
    assert fit(**terms, extra_gpus=41).verdict == Fits.NEVER
    assert fit(**terms, extra_gpus=-8).verdict == Fits.LESS


def used(world: World, **gpus: int) -> None:
    for project, value in gpus.items():
        series = Series.objects.create(
            region=world.regions["tokyo"], signal="quota_used_gpus", pool="tokyo-a-h100",
            project=project,
        )  # fmt: skip
        HourRollup.objects.create(
            series=series, hour=NOW.replace(minute=0), version="1", sum_value=value, count=1,
            last_value=value, last_at=NOW, observed=1, expected=12,
        )  # fmt: skip
