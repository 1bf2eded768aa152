"""Every page that the navigation leads to: light, dark, on a phone, in Japanese; no complaints."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Open, Picture

pytestmark = [pytest.mark.journey, pytest.mark.xdist_group("journeys"), pytest.mark.timeout(900)]

PHONE = 360
VIEWS: dict[str, dict[str, object]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "phone": {"width": PHONE},
    "japanese": {"locale": "ja-JP"},
}
STARTS = ["/pools/tokyo-a-h100/", "/projects/speech/", "/collection/"]
JAPANESE = re.compile(r"[ぁ-んァ-ヶ一-龠]")


def paths(page: Page) -> list[str]:
    """Where the navigation leads, and a page of each kind below it."""
    links = page.get_by_role("navigation").get_by_role("link").all()
    hrefs = [link.get_attribute("href") or "/" for link in links]
    return list(dict.fromkeys([*hrefs, *STARTS]))


def file_name(path: str) -> str:
    return path.strip("/").replace("/", "-") or "overview"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["aiko", "ben"])
def test_every_page_is_sound(name: str, view: str, open_as: Open, picture: Picture) -> None:
    page = open_as(name, **VIEWS[view])

    for path in paths(page):
        if path.startswith("/admin"):
            continue
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        picture(page, f"{view}-{name}-{file_name(path)}")
        if view == "phone":
            wide = page.evaluate("document.scrollingElement.scrollWidth")
            assert wide <= PHONE, f"{path} is {wide} px wide on a phone"
        if view == "japanese":
            assert page.locator("html").get_attribute("lang") == "ja"
            heading = page.get_by_role("heading", level=1).inner_text()
            # A pool or project is called by its name in every language.
            assert JAPANESE.search(heading) or heading == file_name(path).split("-", 1)[1], path
            assert JAPANESE.search(page.get_by_role("main").inner_text()), path


def test_the_sign_in_page_is_sound(open_as: Open, picture: Picture) -> None:
    for view, options in VIEWS.items():
        page = open_as(None, **options)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        picture(page, f"{view}-sign-in")
