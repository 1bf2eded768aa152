"""The settings registry, .env.example and the reference page say the same."""

import ast

import pytest

from portal import env
from tests.conftest import ROOT
from tests.house import settings_pages

REMEDY = "run: python -m tests.house.settings_pages"


def test_the_example_file_is_the_registrys() -> None:
    assert settings_pages.ENV_EXAMPLE.read_text(encoding="utf-8") == settings_pages.env_example(), (
        REMEDY
    )


def test_the_reference_page_is_the_registrys() -> None:
    assert settings_pages.REFERENCE.read_text(encoding="utf-8") == settings_pages.reference(), (
        REMEDY
    )


def test_every_default_can_be_read() -> None:
    for setting in env.REGISTRY:
        env.value(setting, {})


def test_a_value_that_cannot_be_read_names_the_setting_and_hides_a_secret() -> None:
    with pytest.raises(env.SettingError, match=r"SEKISHO_DEBUG is 'maybe'; expected 1 or 0"):
        env.value(env.DEBUG, {"SEKISHO_DEBUG": "maybe"})


def test_no_other_module_of_the_product_reads_the_environment() -> None:
    """`os.environ.setdefault` for Django's own variable is how entry points name the settings."""
    readers = []
    for folder in ("planner", "collectors", "portal"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                reads = (
                    isinstance(node, ast.Attribute)
                    and node.attr in {"environ", "getenv"}
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "os"
                )
                if reads:
                    readers.append(path.relative_to(ROOT).as_posix())

    allowed = {"portal/env.py", "portal/celery.py", "portal/wsgi.py"}
    # The demo's launcher hands its own environment on to the processes that it starts.
    launchers = {path for path in readers if path.startswith("portal/demo/")}
    assert set(readers) - launchers <= allowed
