"""Before there is a demo world, there is nothing to tell."""

from portal.demo import services
from tests.portal.demo.conftest import NOW


def test_a_tick_without_a_demo_world_does_nothing(db: None) -> None:
    assert services.tick(now=NOW) == 0
