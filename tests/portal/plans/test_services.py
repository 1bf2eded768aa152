import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app
from pytest_django import DjangoCaptureOnCommitCallbacks

from planner.__main__ import main
from planner.scenario import dumps, parse
from portal.accounts.models import User
from portal.plans import runs, scenarios, services, simulate, tasks
from portal.plans.models import Plan, PlanState, Workload
from portal.policy.services import change_quota
from tests import worlds
from tests.portal.plans.conftest import Make
from tests.worlds import NOW, World

DAY = timedelta(days=1)
POOL = "tokyo-a-h100"


def nominal(plan: Plan, side: str) -> int:
    rows = getattr(plan, side)["quota"]
    gpus = {(row["project"], row["pool"]): row["nominal"] for row in rows}
    return int(gpus["speech", POOL])


def raise_quota(world: World, project: str = "vision", gpus: int = 20, **terms: object) -> None:
    change_quota(
        project=world.projects[project], pool=world.pools[POOL], nominal_gpus=gpus,
        **{"starts_at": NOW, "by": None, "because": "", "now": NOW} | terms,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_plan_freezes_what_is_in_force_and_what_is_asked_for(make: Make, aiko: User) -> None:
    plan = make(aiko)

    assert (nominal(plan, "baseline"), nominal(plan, "proposal")) == (24, 40)
    assert (plan.state, plan.created_by) == ("queued", aiko)
    assert plan.project is not None
    assert plan.project.name == "speech"
    assert plan.title == "speech · tokyo-a-h100 · +16 GPU"
    assert "job" not in plan.baseline
    assert plan.workload.job_count == 20 * 5  # today has not ended
    whole = scenarios.thaw(plan.proposal, bytes(plan.workload.jobs))
    assert len(whole.jobs) == 100
    assert (plan.replications, plan.days) == (20, 7)


@pytest.fixture
def at_once() -> Iterator[None]:
    """Tasks run where they are sent from."""
    tasks.run.app.conf.task_always_eager = True
    yield
    tasks.run.app.conf.task_always_eager = False


@pytest.mark.usefixtures("at_once")
def test_a_queued_plan_runs_in_a_worker_to_its_end(
    make: Make, aiko: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    assert tasks.run.app.main == "sekisho"

    with django_capture_on_commit_callbacks(execute=True) as launched:
        plan = make(aiko)

    assert len(launched) == 1
    plan.refresh_from_db()
    assert plan.state == PlanState.DONE
    assert plan.done_replications == plan.replications == 20
    assert plan.outcome is not None
    assert plan.outcome["replications"] == 20
    waits = {
        (row["project"], row["lane"]): row
        for row in plan.outcome["effects"]
        if row["measure"] == "wait_p95_seconds"
    }
    speech = waits["speech", "primary"]
    assert speech["verdict"] == "better"
    assert speech["low"] <= speech["difference"] <= speech["high"] < 0


def test_the_downloaded_files_give_the_figures_of_the_plan_again(
    make: Make, aiko: User, tmp_path: Path
) -> None:
    plan = make(aiko)
    simulate.run(plan_id=plan.pk)
    plan.refresh_from_db()
    for side in ("baseline", "proposal"):
        whole = scenarios.thaw(getattr(plan, side), bytes(plan.workload.jobs))
        (tmp_path / f"{side}.json").write_text(dumps(whole, fmt="json"), encoding="utf-8")
    out = tmp_path / "out.json"

    status = main(
        [
            "compare",
            str(tmp_path / "baseline.json"),
            str(tmp_path / "proposal.json"),
            "--json",
            str(out),
        ]
    )

    assert status == 0
    assert json.loads(out.read_text()) == plan.outcome


def test_one_plan_claimed_by_two_workers_runs_once(make: Make, aiko: User) -> None:
    plan = make(aiko)

    first = runs.claim(plan_id=plan.pk, now=NOW)
    second = runs.claim(plan_id=plan.pk, now=NOW + timedelta(seconds=1))

    assert first is not None
    assert second is None
    assert runs.finish(plan=first, outcome={"effects": []}, now=NOW)
    simulate.run(plan_id=plan.pk)
    plan.refresh_from_db()
    assert plan.outcome == {"effects": []}


def test_the_same_question_is_answered_by_the_same_plan(make: Make, aiko: User, ben: User) -> None:
    plan = make(aiko)

    assert make(ben).pk == plan.pk
    simulate.run(plan_id=plan.pk)
    assert make(ben).pk == plan.pk
    assert make(aiko, extra_gpus=8).pk != plan.pk
    assert Workload.objects.count() == 1


def test_a_failed_or_cancelled_plan_is_no_answer(make: Make, aiko: User) -> None:
    plan = make(aiko)
    services.cancel(plan=plan, now=NOW)

    assert make(aiko).pk != plan.pk


def test_new_work_makes_a_new_plan(make: Make, aiko: User, observed: World) -> None:
    plan = make(aiko)
    worlds.job("late record", submit_at=NOW - 2 * DAY)

    assert make(aiko).pk != plan.pk
    assert Workload.objects.count() == 2


def test_a_plan_for_later_stands_on_the_policy_of_then(
    make: Make, aiko: User, observed: World
) -> None:
    raise_quota(observed, "speech", 32, starts_at=NOW + DAY)

    plan = services.queue_quota_change(
        project=observed.projects["speech"], pool=observed.pools[POOL], extra_gpus=16,
        starts_at=NOW + 2 * DAY, by=aiko, now=NOW,
    )  # fmt: skip

    assert (nominal(plan, "baseline"), nominal(plan, "proposal")) == (32, 48)
    assert plan.policy_at == NOW + 2 * DAY
    assert not services.is_stale(plan=plan, now=NOW)
    assert not services.is_stale(plan=plan, now=NOW + DAY)


def test_a_plan_is_stale_once_the_policy_has_moved(make: Make, aiko: User, observed: World) -> None:
    plan = make(aiko)
    assert not services.is_stale(plan=plan, now=NOW)
    assert not services.is_stale(plan=plan, now=NOW + 3 * DAY)  # time alone moves nothing

    raise_quota(observed, "vision")

    assert services.is_stale(plan=plan, now=NOW)


def test_a_plan_is_stale_once_the_fleet_has_moved(make: Make, aiko: User, observed: World) -> None:
    plan = make(aiko)
    pool = observed.pools["osaka-a-a100"]
    pool.nodes = 3
    pool.save()

    assert services.is_stale(plan=plan, now=NOW)


def test_a_plan_whose_proposal_came_into_force_is_not_stale(
    make: Make, aiko: User, observed: World
) -> None:
    plan = make(aiko)
    raise_quota(observed, "speech", 40)

    assert not services.is_stale(plan=plan, now=NOW)


def test_fewer_gpus_never_go_below_none(make: Make, aiko: User) -> None:
    assert nominal(make(aiko, extra_gpus=-100), "proposal") == 0


def test_a_cancelled_plan_stops_at_the_next_replication(
    make: Make, aiko: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make(aiko)
    beat = runs.heartbeat

    def cancel_after_two(**terms: object) -> bool:
        if terms["done"] == 2:
            assert services.cancel(plan=plan, now=NOW)
        return beat(**terms)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "heartbeat", cancel_after_two)
    simulate.run(plan_id=plan.pk)

    plan.refresh_from_db()
    assert (plan.state, plan.done_replications, plan.outcome) == ("cancelled", 1, None)
    assert not services.cancel(plan=plan, now=NOW)


def test_a_plan_whose_worker_died_is_handed_out_again_and_the_dead_one_changes_nothing(
    make: Make, aiko: User
) -> None:
    plan = make(aiko)
    dead = runs.claim(plan_id=plan.pk, now=NOW)
    assert dead is not None
    assert runs.release_abandoned(now=NOW + runs.SILENCE) == []

    later = NOW + runs.SILENCE + timedelta(seconds=1)
    assert runs.release_abandoned(now=later) == [plan.pk]
    assert runs.release_abandoned(now=later) == []

    alive = runs.claim(plan_id=plan.pk, now=later)
    assert alive is not None
    assert not runs.heartbeat(plan=dead, done=20, now=later)
    assert not runs.finish(plan=dead, outcome={"effects": []}, now=later)
    assert runs.heartbeat(plan=alive, done=3, now=later)
    plan.refresh_from_db()
    assert (plan.state, plan.done_replications) == ("running", 3)


def test_a_plan_that_never_reached_a_worker_is_handed_out_again(make: Make, aiko: User) -> None:
    plan = make(aiko)
    Plan.objects.update(created_at=NOW)

    assert runs.release_abandoned(now=NOW + timedelta(seconds=30)) == []
    assert runs.release_abandoned(now=NOW + timedelta(minutes=5)) == [plan.pk]
    assert runs.release_abandoned(now=NOW + timedelta(minutes=6)) == []
    assert Plan.objects.get(pk=plan.pk).state == PlanState.QUEUED


@pytest.mark.usefixtures("at_once")
def test_the_sweep_runs_what_was_abandoned(make: Make, aiko: User) -> None:
    plan = make(aiko)
    runs.claim(plan_id=plan.pk, now=NOW)
    Plan.objects.update(heartbeat_at=NOW - DAY, replications=3)

    tasks.requeue()

    plan.refresh_from_db()
    assert (plan.state, plan.done_replications) == ("done", 3)


def test_a_scenario_that_the_planner_refuses_fails_the_plan_with_its_words(
    make: Make, aiko: User
) -> None:
    plan = make(aiko)
    Plan.objects.update(baseline=plan.baseline | {"nonsense": 1})

    simulate.run(plan_id=plan.pk)

    plan.refresh_from_db()
    assert plan.state == PlanState.FAILED
    assert re.search(r"nonsense.*is not a key", plan.error)


def test_an_error_nobody_expected_fails_the_plan_and_reaches_the_log(
    make: Make, aiko: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_scenarios: object, **_terms: object) -> None:
        raise ZeroDivisionError("once")

    plan = make(aiko)
    monkeypatch.setattr(simulate, "replicate", broken)

    with pytest.raises(ZeroDivisionError):
        simulate.run(plan_id=plan.pk)

    plan.refresh_from_db()
    assert (plan.state, plan.error) == ("failed", "ZeroDivisionError: once")


def test_without_observed_jobs_a_plan_still_ends(world: World, aiko: User) -> None:
    plan = services.queue_quota_change(
        project=world.projects["speech"], pool=world.pools[POOL], extra_gpus=16, starts_at=NOW,
        by=aiko, now=NOW,
    )  # fmt: skip
    simulate.run(plan_id=plan.pk)

    plan.refresh_from_db()
    assert plan.state == PlanState.DONE


def test_the_same_change_can_be_simulated_again_on_the_new_base(
    make: Make, aiko: User, ben: User, observed: World
) -> None:
    plan = make(aiko)
    assert services.again(plan=plan, by=ben, now=NOW).pk == plan.pk
    raise_quota(observed, "speech", 32)

    fresh = services.again(plan=plan, by=ben, now=NOW)

    assert (nominal(fresh, "baseline"), nominal(fresh, "proposal")) == (32, 48)
    assert parse(fresh.baseline).quotas != parse(plan.baseline).quotas
    assert not services.is_stale(plan=fresh, now=NOW)


def test_plans_go_to_the_queue_of_simulations() -> None:
    route = tasks.run.app.amqp.router.route({}, "plans.run")
    assert route["queue"].name == "simulate"
    assert current_app.main == "sekisho"
