import pytest

from portal.telemetry.histograms import added, is_more_than, quantile, share_within

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
