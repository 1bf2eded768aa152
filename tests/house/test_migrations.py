"""Migrations match the models and can all be undone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

from tests.conftest import ROOT

WITH_MIGRATIONS = sorted({app for app, _name in MigrationLoader(None).disk_migrations})
OWN = [
    config.label
    for config in apps.get_app_configs()
    if config.name.startswith(("portal", "collectors")) and config.label in WITH_MIGRATIONS
]

THERE_AND_BACK = """
import sys
import portal.wsgi
from django.core.management import call_command
from django.db import connection

call_command("migrate", verbosity=0, skip_checks=True)
for app in sys.argv[1:]:
    call_command("migrate", app, "zero", verbosity=0, skip_checks=True)
ours = tuple(f"{app}_" for app in sys.argv[1:])
left = [name for name in connection.introspection.table_names() if name.startswith(ours)]
call_command("migrate", verbosity=0, skip_checks=True)
print(len(left), "tables of ours were left")
"""


@pytest.mark.django_db
def test_no_model_has_changed_without_a_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_operation_of_every_migration_can_be_undone() -> None:
    graph = MigrationLoader(None, ignore_no_migrations=True).disk_migrations

    one_way = [
        f"{app}.{name}: {operation.describe()}"
        for (app, name), migration in graph.items()
        if app in OWN
        for operation in migration.operations
        if not operation.reversible
    ]

    assert not one_way


def test_all_migrations_run_forward_back_to_nothing_and_forward_again(tmp_path: Path) -> None:
    """In a database of its own: a test run's database must not lose its tables."""
    environment = os.environ | {"SEKISHO_DATA_DIR": str(tmp_path), "DATABASE_URL": ""}
    done = subprocess.run(
        [sys.executable, "-c", THERE_AND_BACK, *OWN],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "0 tables of ours were left"
