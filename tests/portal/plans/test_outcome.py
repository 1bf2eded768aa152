from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.plans import runs, selectors, services, verdicts
from portal.plans.models import Plan
from portal.policy.models import Quota
from tests.portal.plans.conftest import Make
from tests.worlds import NOW, World

SignIn = Callable[[User], Client]


def page(client: Client, plan: Plan) -> str:
    response = client.get(reverse("plans:outcome", args=[plan.pk]))
    assert response.status_code == 200
    return response.content.decode()


def test_a_waiting_plan_asks_again_every_second_and_can_be_called_off(
    make: Make, aiko: User, signed_in: SignIn
) -> None:
    plan = make(aiko)

    html = page(signed_in(aiko), plan)

    assert f'hx-get="/plans/{plan.pk}/outcome" hx-trigger="every 1s"' in html
    assert "Waiting for a worker" in html
    assert f'action="/plans/{plan.pk}/cancel"' in html


def test_a_running_plan_says_how_far_it_is(make: Make, aiko: User, signed_in: SignIn) -> None:
    plan = make(aiko)
    running = runs.claim(plan_id=plan.pk, now=NOW)
    assert running is not None
    runs.heartbeat(plan=running, done=12, now=NOW)

    html = page(signed_in(aiko), plan)

    assert "12 of 20 replications" in html
    assert 'max="20" value="12"' in html


def test_a_done_plan_says_first_who_waits_less_and_how_sure_that_is(
    done: Plan, aiko: User, signed_in: SignIn
) -> None:
    html = page(signed_in(aiko), done)

    assert "hx-trigger" not in html
    assert "<b>speech</b> primary runs wait about <b>" in html
    assert html.index("runs wait about") < html.index("<table")
    assert "6 replications of 7 days, drawn from the 20 observed days" in html
    assert "90 % interval" in html
    assert "planner 0." in html
    assert "simulated just now" in html
    assert '<svg class="ci better"' in html
    assert " style=" not in html
    assert "<script" not in html


def test_a_lead_sees_own_projects_by_name_and_others_only_in_sums(
    done: Plan, aiko: User, signed_in: SignIn
) -> None:
    html = page(signed_in(aiko), done)

    assert "robotics" not in html
    assert "vision" not in html
    assert "all tenants" in html


def test_harm_to_others_is_told_to_a_lead_as_a_number(
    done: Plan, aiko: User, ben: User, signed_in: SignIn
) -> None:
    everything = selectors.outcome(plan=done, user=ben)
    assert everything is not None
    harmed = [row for row in everything.waits if row.verdict == "worse" and row.project != "speech"]
    own = selectors.outcome(plan=done, user=aiko)
    assert own is not None

    assert own.others_worse == len(harmed) > 0
    assert everything.others_worse == 0
    html = page(signed_in(aiko), done)
    assert "wait clearly longer</b>" in html or "waits clearly longer</b>" in html
    assert "Nobody" not in html


def test_a_tenant_admin_sees_the_projects_of_the_tenant(
    done: Plan, emi: User, signed_in: SignIn
) -> None:
    html = page(signed_in(emi), done)

    assert "vision" in html
    assert "robotics" not in html


def test_ops_and_auditors_see_the_effect_on_every_project(
    done: Plan, ben: User, dana: User, signed_in: SignIn
) -> None:
    for overseer in (ben, dana):
        html = page(signed_in(overseer), done)
        assert "<b>robotics</b>" in html
        assert "<b>vision</b>" in html
        assert "<b>all tenants</b>" not in html


def test_whoever_is_worse_off_comes_first(done: Plan, ben: User) -> None:
    found = selectors.outcome(plan=done, user=ben)
    assert found is not None

    verdicts_in_order = [row.verdict for row in found.waits]

    assert verdicts_in_order == sorted(verdicts_in_order, key=["worse", "unclear", "better"].index)
    worse = [row.difference for row in found.waits if row.verdict == "worse"]
    assert worse == sorted(worse, reverse=True)
    assert "worse" in verdicts_in_order
    assert "better" in verdicts_in_order
    for row in found.unclear:
        assert row.low is None or row.low <= 0 <= (row.high or 0) or row.jobs < 5 * 6


def test_where_the_interval_crosses_zero_there_is_no_clear_effect(
    done: Plan, ben: User, signed_in: SignIn
) -> None:
    assert done.outcome is not None
    for row in done.outcome["effects"]:
        if row["project"] == "robotics" and row["measure"] == "wait_p95_seconds":
            row.update(low=-60.0, difference=5.0, high=70.0, verdict="unclear")
    done.save()

    html = page(signed_in(ben), done)

    assert "2 groups without a clear effect" in html
    assert html.count("no clear effect") >= 2


def test_guarantees_are_compared_with_the_pool_and_with_one_domain_down(
    done: Plan, aiko: User, signed_in: SignIn
) -> None:
    html = page(signed_in(aiko), done)

    assert "Guarantees on tokyo-a-h100: 64 → <b>80 of 64 GPUs, oversubscribed</b>." in html
    assert (
        "With tokyo-a down no H100 is left: <b>80 guaranteed GPUs have nowhere to go</b> (was 64)."
        in html
    )


def test_with_room_elsewhere_the_sentence_says_what_is_left() -> None:
    tight = selectors.Guarantee(
        pool="tokyo-a-h100", accelerator="H100", gpus=256, before=224, after=240,
        domain="tokyo-b", gpus_left=256, before_with_domain_down=292, after_with_domain_down=308,
    )  # fmt: skip

    whole, down = verdicts.guarantee_sentences(tight)

    assert whole == "Guarantees on tokyo-a-h100: 224 → <b>240 of 256 GPUs</b>."
    assert down == (
        "With tokyo-b down: <b>308 guaranteed of 256 H100 that are left, oversubscribed</b> "
        "(was 292)."
    )


def test_a_plan_whose_base_has_moved_says_so(
    done: Plan, aiko: User, observed: World, signed_in: SignIn
) -> None:
    client = signed_in(aiko)
    assert "The base has moved" not in page(client, done)

    Quota.objects.create(
        project=observed.projects["vision"], pool=observed.pools["tokyo-a-h100"], nominal_gpus=8,
        starts_at=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip

    assert "The base has moved since" in page(client, done)


def test_a_failed_plan_says_what_to_do_and_keeps_the_details_from_leads(
    make: Make, aiko: User, ben: User, signed_in: SignIn
) -> None:
    plan = make(aiko)
    running = runs.claim(plan_id=plan.pk, now=NOW)
    assert running is not None
    runs.fail(plan=running, error="robotics <b>broke</b>", now=NOW)

    html = page(signed_in(aiko), plan)

    assert "did not finish" in html
    assert f"tell ops the number of this plan, {plan.pk}" in html
    assert "robotics" not in html
    assert "robotics &lt;b&gt;broke" in page(signed_in(ben), plan)


def test_a_cancelled_plan_says_how_far_it_came(make: Make, aiko: User, signed_in: SignIn) -> None:
    plan = make(aiko)
    services.cancel(plan=plan, now=NOW)

    html = page(signed_in(aiko), plan)

    assert "Called off after 0 of 20 replications" in html
    assert "hx-trigger" not in html


def test_without_observed_jobs_nothing_is_claimed_about_waits(
    world: World, aiko: User, signed_in: SignIn
) -> None:
    plan = services.queue_quota_change(
        project=world.projects["speech"], pool=world.pools["tokyo-a-h100"], extra_gpus=16,
        starts_at=NOW, by=aiko, now=NOW,
    )  # fmt: skip
    from_nothing = runs.claim(plan_id=plan.pk, now=NOW)
    assert from_nothing is not None
    empty = {
        "effects": [], "replications": 20, "days": 7, "baseline_hash": "", "proposal_hash": "",
    }  # fmt: skip
    runs.finish(plan=from_nothing, outcome=empty, now=NOW)

    html = page(signed_in(aiko), plan)

    assert "No jobs were observed" in html
    assert "longer" not in html


def test_another_tenants_lead_finds_nothing(done: Plan, chidi: User, signed_in: SignIn) -> None:
    response = signed_in(chidi).get(reverse("plans:outcome", args=[done.pk]))
    assert response.status_code == 404


def test_an_auditor_is_offered_nothing_to_press(
    make: Make, aiko: User, dana: User, signed_in: SignIn
) -> None:
    assert "<button" not in page(signed_in(dana), make(aiko))


@pytest.mark.django_db
def test_nobody_sees_a_plan_without_signing_in() -> None:
    response = Client().get(reverse("plans:outcome", args=[1]))
    assert response.status_code == 302


def test_beside_the_guarantees_of_a_request_a_poll_does_not_say_them_again(
    done: Plan, ben: User, signed_in: SignIn
) -> None:
    client = signed_in(ben)

    assert "Guarantees on" in page(client, done)
    beside = client.get(reverse("plans:outcome", args=[done.pk]), {"guarantees": "beside"})
    assert "Guarantees on" not in beside.content.decode()
    assert 'data-state="done"' in beside.content.decode()
