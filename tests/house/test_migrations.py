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

OWN = [
    config.label
    for config in apps.get_app_configs()
    if config.name.startswith(("portal", "collectors"))
]


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
    environment = os.environ | {"SEKISHO_DATA_DIR": str(tmp_path), "DATABASE_URL": ""}

    def migrate(*arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--skip-checks", "-v0", *arguments],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]

    migrate()
    migrate("contenttypes", "zero")  # everything of ours stands on it, by way of accounts
    migrate()
