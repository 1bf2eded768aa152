"""The definitions as a file: one row per column of the report."""

import io
from collections.abc import Callable

import pandas as pd
from django.test import Client
from django.utils.translation import override

from portal.accounts.models import User
from portal.reports import definitions, fairness

SignIn = Callable[[User], Client]


def test_every_figure_of_the_file_is_defined(aiko: User, signed_in: SignIn) -> None:
    response = signed_in(aiko).get("/weeks/definitions.csv")

    assert response.status_code == 200
    assert definitions.version() in response["Content-Disposition"]
    file = pd.read_csv(io.BytesIO(response.content))
    figures = [column for column in fairness.COLUMNS if column not in {"scope", "name", "tenant"}]
    assert list(file["column"].dropna()) == figures
    assert file["meaning"].notna().all()


def test_the_version_does_not_depend_on_the_language() -> None:
    english = definitions.version()
    with override("ja"):
        assert definitions.version() == english
