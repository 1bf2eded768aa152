import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.telemetry.histograms import added, interval, is_more_than, quantile, share_within

TEN = {"1": 2.0, "10": 6.0, "100": 10.0, "+Inf": 10.0}


def test_a_quantile_is_interpolated_inside_its_bucket() -> None:
    assert quantile(TEN, 0.5) == pytest.approx(1 + 9 * 3 / 4)  # the 5th: 3rd of 4 in (1, 10]
    assert quantile(TEN, 1.0) == pytest.approx(100)
    assert not is_more_than(TEN, 1.0)


def test_events_above_the_highest_bound_are_said_to_be_more_than_it() -> None:
    buckets = {"1": 0.0, "40960": 1.0, "+Inf": 4.0}
    assert quantile(buckets, 0.95) == 40960
    assert is_more_than(buckets, 0.95)
    assert not is_more_than(buckets, 0.1)


def test_a_quantile_lies_in_a_bucket_and_nobody_knows_where() -> None:
    assert interval(TEN, 0.5) == (1, 10)  # the 5th of 10: the 3rd to 6th lie above 1, up to 10
    assert interval(TEN, 0.1) == (0, 1)
    assert interval({"1": 0.0, "40960": 1.0, "+Inf": 4.0}, 0.95) == (40960, None)
    assert interval(None, 0.5) is None


@given(
    waits=st.lists(st.floats(0, 200, allow_nan=False), min_size=1, max_size=60),
    q=st.floats(0.01, 1),
)
def test_the_interval_holds_the_quantile_of_the_waits_themselves(
    waits: list[float], q: float
) -> None:
    bounds = [1.0, 5.0, 20.0, 100.0]
    buckets = {f"{bound:g}": float(sum(wait <= bound for wait in waits)) for bound in bounds}
    found = interval({**buckets, "+Inf": float(len(waits))}, q)
    # The smallest wait that at least the share q of the waits does not exceed.
    exact = sorted(waits)[math.ceil(q * len(waits)) - 1]
    assert found is not None
    assert found.lower <= exact <= (math.inf if found.upper is None else found.upper)


def test_no_events_have_no_quantile() -> None:
    assert quantile({"1": 0.0, "+Inf": 0.0}, 0.5) is None
    assert quantile(None, 0.5) is None
    assert quantile({"1": 3.0}, 0.5) is None  # without +Inf the total is unknown
    assert share_within({"320": 0.0, "+Inf": 0.0}, 320) is None


def test_buckets_of_two_prometheus_versions_add_up() -> None:
    assert added([{"10": 1.0, "+Inf": 2.0}, {"10.0": 3.0, "+Inf": 4.0}, None]) == {
        "10": 4.0,
        "+Inf": 6.0,
    }
    assert added([None]) is None


def test_large_bounds_stay_apart() -> None:
    assert added([{"10485760": 1.0, "10485761": 2.0}]) == {"10485760.0": 1.0, "10485761.0": 2.0}


def test_the_share_within_a_bound_is_exact() -> None:
    assert share_within(TEN, 10) == pytest.approx(0.6)
    assert share_within(TEN, 11) is None  # not a bound: not guessed


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a share"):
        quantile(TEN, 95)


def test_only_bounds_that_all_parts_have_are_kept() -> None:
    coarse = {"10240": 5.0, "+Inf": 7.0}
    fine = {"10240.0": 5.0, "20480": 6.0, "40960": 7.0, "+Inf": 7.0}
    # Of 14 events 10 lie within 10,240 s; of the coarse part's 2 beyond nobody knows how far.
    assert added([coarse, fine]) == {"10240": 10.0, "+Inf": 14.0}
    # A part without events tells nothing of bounds.
    assert added([{"10": 0.0, "+Inf": 0.0}, fine]) == {
        "10240": 5.0, "20480": 6.0, "40960": 7.0, "+Inf": 7.0,
    }  # fmt: skip
    assert added([{"10": 0.0, "+Inf": 0.0}]) == {"10": 0.0, "+Inf": 0.0}
