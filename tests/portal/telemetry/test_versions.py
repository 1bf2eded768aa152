from datetime import timedelta

from portal.telemetry import selectors
from portal.telemetry.models import Watermark
from tests import worlds
from tests.portal.telemetry.rows import gauge_hour, series
from tests.worlds import NOW

ONE = timedelta(hours=1)
HOUR = NOW - 6 * ONE
SIGNAL = "gpu_reporting_gpus"


def _mark(world: worlds.World, version: str, hour: int) -> None:
    Watermark.objects.create(
        region=world.regions["tokyo"], signal=SIGNAL, version=version,
        collected_until=HOUR + hour * ONE,
    )  # fmt: skip


def _means(world: worlds.World, *hours: tuple[int, float, str]) -> list[float]:
    line = series(world.regions["tokyo"], SIGNAL, pool="a")
    for hour, mean, version in hours:
        gauge_hour(line, HOUR + hour * ONE, mean, version=version)
    frame = selectors.hours(signal=SIGNAL, start=HOUR, end=NOW, by=[])
    return list(frame["sum_value"] / frame["count"])


def test_an_import_shows_only_where_nothing_was_collected(world: worlds.World) -> None:
    # The import came last, as one of an old archive does.
    assert _means(
        world, (1, 10, "a1"), (2, 20, "a1"), (0, 1, "import"), (1, 1, "import"), (3, 1, "import-7")
    ) == [1, 10, 20, 1]


def test_of_two_imports_the_newer_shows(world: worlds.World) -> None:
    # Batch 10 is newer than 9, though its text sorts before.
    assert _means(world, (0, 10, "import-10"), (0, 9, "import-9"), (0, 0, "import")) == [10]


def test_a_mapping_that_is_taken_back_shows_again(world: worlds.World) -> None:
    """A, B from hour 2 on, A again from hour 3: A is in use, so it counts in hour 2 too."""
    _mark(world, "a", 5)
    _mark(world, "b", 3)
    hours = [(1, 1, "a"), (2, 1, "a"), (2, 2, "b"), (3, 2, "b"), (3, 1, "a"), (4, 1, "a")]
    assert _means(world, *hours) == [1, 1, 1, 1]


def test_the_hours_from_which_a_signal_was_asked_otherwise(world: worlds.World) -> None:
    _mark(world, "a", 2)
    _mark(world, "b", 5)
    assert _means(world, (0, 9, "import"), (1, 1, "a"), (2, 1, "a"), (2, 2, "b"), (3, 2, "b")) == [
        9, 1, 2, 2,
    ]  # fmt: skip
    # Not from the import to what was collected: that is another source, not another mapping.
    assert selectors.changes(signal=SIGNAL, start=HOUR, end=NOW) == [HOUR + 2 * ONE]
    assert selectors.changes(signal=SIGNAL, start=HOUR + 2 * ONE, end=NOW) == []
    assert selectors.changes(signal=SIGNAL, start=HOUR, end=NOW, regions=["osaka"]) == []
