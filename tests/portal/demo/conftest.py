"""One story for all tests of the demo: telling it takes seconds."""

from datetime import UTC, date, datetime

import pytest

from portal.demo import story

FIRST_DAY = date(2026, 11, 30)
NOW = datetime(2026, 11, 30, 5, 20, tzinfo=UTC)  # a Monday, 14:20 in Tokyo


@pytest.fixture(scope="session")
def told() -> story.Story:
    """The story of a demo first started on FIRST_DAY."""
    return story.tell(first_day=FIRST_DAY, now=NOW)
