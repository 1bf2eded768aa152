import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection


@pytest.mark.django_db(transaction=True)
def test_every_app_migrates_back_to_nothing_and_forth_again() -> None:
    own = [config.label for config in apps.get_app_configs() if config.name.startswith("portal.")]
    with_models = [label for label in own if any(apps.get_app_config(label).get_models())]
    tables = set(connection.introspection.table_names())
    assert len(with_models) >= 7
    try:
        for label in with_models:
            call_command("migrate", label, "zero", verbosity=0)
        left = set(connection.introspection.table_names())
        assert not [name for name in left if name.startswith(tuple(f"{x}_" for x in with_models))]
    finally:
        call_command("migrate", verbosity=0)
    assert set(connection.introspection.table_names()) == tables
