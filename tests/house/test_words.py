"""One word in four places: address, view, template and test are called the same."""

import inspect
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.access_table import rows
from tests.house.urlconf import Address, own_addresses

ADDRESSES = own_addresses()
SLICE_ADDRESSES = [address for address in ADDRESSES if address.slice_name]
# Addresses that are only posted to answer with the page or fragment of another word.
SHOWN = {row.url for row in rows() if row.method == "GET"}
# The site's own words, which belong to no slice: their views and tests are named here.
SITE_WORDS = {
    "healthz": "portal.health",
    "readyz": "portal.health",
    "metrics": "portal.metrics",
}


def _name(address: Address) -> str:
    return address.name


def test_every_address_belongs_to_a_slice_or_is_a_known_word_of_the_site() -> None:
    of_the_site = {address.name for address in ADDRESSES if not address.slice_name}

    assert of_the_site == set(SITE_WORDS)


@pytest.mark.parametrize("address", ADDRESSES, ids=_name)
def test_the_view_carries_the_word(address: Address) -> None:
    view = inspect.unwrap(address.view)
    home = SITE_WORDS.get(address.name, f"portal.{address.slice_name}.views")

    assert view.__name__ == address.word
    # A package `views/` may hold the word in a module of its own.
    assert view.__module__ == home or view.__module__.startswith(f"{home}.")


@pytest.mark.parametrize(
    "address", [address for address in SLICE_ADDRESSES if address.name in SHOWN], ids=_name
)
def test_a_template_that_the_view_names_carries_the_word(address: Address) -> None:
    """Views that only redirect or send files name none."""
    source = inspect.getsource(inspect.unwrap(address.view))
    named = set(re.findall(r"[\"']([a-z_]+/[a-z_]+\.html)[\"']", source))
    own = {
        f"{address.slice_name}/{address.word}.html",
        f"{address.slice_name}/_{address.word}.html",
    }

    assert not named or named & own, f"{address.name} renders {named}, none of {own}"
    for template in named:
        assert (ROOT / "templates" / template).is_file()


@pytest.mark.parametrize("address", SLICE_ADDRESSES, ids=_name)
def test_a_test_module_carries_the_word(address: Address) -> None:
    expected = ROOT / "tests" / "portal" / address.slice_name / f"test_{address.word}.py"

    assert expected.is_file(), f"{expected.relative_to(ROOT)} is missing"


def test_every_page_template_belongs_to_an_address() -> None:
    words = {f"{address.slice_name}/{address.word}.html" for address in SLICE_ADDRESSES}
    slices = {path.name for path in (ROOT / "portal").iterdir() if (path / "urls.py").is_file()}
    pages = {
        path.relative_to(ROOT / "templates").as_posix()
        for name in slices
        for path in Path(ROOT / "templates" / name).glob("*.html")
        if not path.name.startswith("_")
    }

    assert pages <= words, f"No address shows {sorted(pages - words)}"
