"""Tasks bind to our Celery app, in the web process too, and go to the queue meant for them."""

import json
import subprocess
import sys

import pytest

from portal import celery
from tests.conftest import ROOT

QUEUES = {celery.COLLECT, celery.SIMULATE, celery.REPORT}
WEB_PROCESS = """
import json, portal.wsgi
from celery import shared_task, current_app
from portal.celery import app

@shared_task
def probe(): ...

print(json.dumps([current_app.main, probe.app.main, app.conf.task_ignore_result]))
"""


def own_tasks() -> dict[str, str]:
    """Every task of ours: its name and the module that defines it."""
    celery.app.loader.import_default_modules()
    return {
        name: task.__module__
        for name, task in celery.app.tasks.items()
        if not name.startswith("celery.")
    }


def test_a_shared_task_in_the_web_process_belongs_to_our_app() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WEB_PROCESS], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["sekisho", "sekisho", True]


def test_every_task_is_named_for_its_slice_and_not_for_its_module() -> None:
    for name, module in own_tasks().items():
        slice_name = module.removeprefix("portal.").partition(".")[0]
        assert name.startswith(f"{slice_name}."), f"{name} lives in {module}"
        assert ".tasks." not in name


def test_every_task_goes_to_a_queue_that_a_worker_serves() -> None:
    router = celery.app.amqp.router

    for name in own_tasks():
        assert router.route({}, name)["queue"].name in QUEUES


@pytest.mark.parametrize("entry", celery.app.conf.beat_schedule)
def test_the_schedule_names_a_task_that_exists_and_lets_late_ones_expire(entry: str) -> None:
    scheduled = celery.app.conf.beat_schedule[entry]

    assert scheduled["task"] in own_tasks()
    assert scheduled["options"]["expires"] > 0
