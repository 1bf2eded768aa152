"""The compose file says what production needs. No engine runs here: its structure is checked."""

import re
from typing import Any

import pytest
import yaml

from portal import env
from tests.conftest import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if service["image"] == "sekisho"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_every_part_of_the_stack_is_there() -> None:
    assert set(SERVICES) == {
        "migrate", "web", "worker", "simulate", "beat", "postgres", "redis", "prometheus",
    }  # fmt: skip
    assert SERVICES["prometheus"]["profiles"] == ["prometheus"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_restarts_and_says_how_it_is(name: str) -> None:
    service = SERVICES[name]

    assert service["restart"] in {"unless-stopped", "on-failure"}
    # web inherits the image's HEALTHCHECK.
    assert "healthcheck" in service or name == "web"
    assert "HEALTHCHECK" in DOCKERFILE


@pytest.mark.parametrize("name", OWN)
def test_our_processes_may_write_only_to_their_volume_and_own_nothing(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "\nUSER sekisho\n" in DOCKERFILE


@pytest.mark.parametrize("name", OWN)
def test_every_setting_given_to_our_processes_is_in_the_registry(name: str) -> None:
    known = {setting.name for setting in env.REGISTRY} | {"WORKER"}

    assert set(SERVICES[name]["environment"]) <= known


def test_no_secret_has_a_default() -> None:
    secrets = {"SEKISHO_SECRET_KEY", "POSTGRES_PASSWORD"}
    uses = re.findall(r"\$\{([A-Z_]+)(:?[-?])([^}]*)\}", TEXT)

    assert secrets <= {name for name, _kind, _text in uses}
    assert all(kind == ":?" for name, kind, _text in uses if name in secrets)
    assert not [name for name, kind, text in uses if "TOKEN" in name and kind == ":-" and text]


def test_the_workers_serve_every_queue_between_them() -> None:
    served = [
        queue
        for name in ("worker", "simulate")
        for part in SERVICES[name]["command"]
        if part.startswith("--queues=")
        for queue in part.removeprefix("--queues=").split(",")
    ]

    assert sorted(served) == ["collect", "report", "simulate"]


def test_every_volume_and_dependency_named_exists() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or source.startswith(("$", "."))
