"""Every text of the stylesheet can be read on every ground it stands on, in light and in dark."""

import itertools
import re

import pytest

from tests.conftest import ROOT

TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = {
    name: {"light": light, "dark": dark}
    for name, light, dark in TOKEN.findall(
        (ROOT / "portal/theme/static/theme/sekisho.css").read_text("utf-8")
    )
}
TEXTS = ("ink", "soft", "accent", "good", "warn", "bad")
GROUNDS = ("paper", "card", "wash")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str, scheme: str) -> float:
    low, high = sorted(luminance(TOKENS[name][scheme]) for name in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_every_ground(scheme: str) -> None:
    pairs = [*itertools.product(TEXTS, GROUNDS), ("on-accent", "accent"), ("paper", "ink")]

    weak = {pair: contrast(*pair, scheme) for pair in pairs if contrast(*pair, scheme) < 4.5}

    assert not weak


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_controls_and_the_colours_of_lanes_stand_out_from_the_card(scheme: str) -> None:
    drawn = ("edge", "emergency", "primary", "exploratory", "background")

    weak = {name: contrast(name, "card", scheme) for name in drawn}

    assert not {name: ratio for name, ratio in weak.items() if ratio < 3}


def test_black_on_white_is_twenty_one_to_one() -> None:
    assert (luminance("#ffffff") + 0.05) / (luminance("#000000") + 0.05) == pytest.approx(21)
