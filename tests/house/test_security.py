"""What every answer carries, whoever asked and whatever went wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.accounts.models import User
from tests.conftest import ROOT

BIG = 4_000_000


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/", 200),
        ("/weeks/definitions.csv", 200),
        ("/healthz", 200),
        ("/accounts/login/", 302),
        ("/admin/", 302),
        ("/admin/login/", 403),
        ("/plans/1/download", 403),
        ("/nowhere/", 404),
        ("/static/theme/sekisho.css", 200),
    ],
)
def test_every_answer_says_what_a_page_may_load(
    client: Client, aiko: User, address: str, status: int
) -> None:
    client.force_login(aiko)

    answer = client.get(address)

    assert answer.status_code == status
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("address", ["", "accounts/user/", "accounts/user/add/", "policy/quota/"])
def test_the_administration_keeps_to_the_policy(client: Client, ben: User, address: str) -> None:
    ben.is_staff = ben.is_superuser = True
    ben.save()
    client.force_login(ben)

    answer = client.get(f"/admin/{address}")
    page = answer.content.decode()

    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "<style" not in page
    assert " onclick=" not in page
    assert "<script>" not in page
    assert 'rel="icon"' in page


@pytest.mark.django_db
def test_an_unknown_host_gets_nothing() -> None:
    answer = Client().get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


def test_large_forms_are_refused_and_files_never_reach_the_disk(
    client: Client, aiko: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(aiko)
    monkeypatch.setattr(settings, "FILE_UPLOAD_TEMP_DIR", str(tmp_path / "is not there"))

    assert client.post("/requests/new/effect/", {"justification": "x" * BIG}).status_code == 400
    # Would fail with an error if a file in the missing folder were opened.
    answer = client.post("/requests/new/effect/", {"f": SimpleUploadedFile("a", b"x" * BIG)})
    assert answer.status_code == 200


@pytest.mark.parametrize("address", ["/i18n/setlang/", "/theme/scheme/"])
@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example"])
@pytest.mark.django_db
def test_the_switches_lead_nowhere_else(client: Client, address: str, target: str) -> None:
    terms = {"next": target, "language": "ja", "scheme": "dark"}
    answer = client.post(address, terms, headers={"Referer": target})
    assert answer.status_code == 302
    assert "evil" not in answer["Location"]


def _start(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if "SEKISHO" not in name}
    return subprocess.run(
        [sys.executable, "-c", "import portal.wsgi"],
        cwd=ROOT,
        env=known | {"SEKISHO_DATA_DIR": str(tmp_path)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_web_server_does_not_start_without_a_key(tmp_path: Path) -> None:
    refused = _start(tmp_path)
    assert refused.returncode != 0
    assert "SEKISHO_SECRET_KEY is not set" in refused.stderr

    assert _start(tmp_path, SEKISHO_SECRET_KEY="k" * 50).returncode == 0
    assert _start(tmp_path, SEKISHO_DEMO="1").returncode == 0
