"""The clock of these tests stands still at NOW, for views too."""

import pytest

from tests.worlds import NOW


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views ask Django for the time; here it is always NOW."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
