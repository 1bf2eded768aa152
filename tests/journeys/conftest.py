"""A real browser for the journeys, which hears every complaint of every page."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    expect,
    sync_playwright,
)

from tests.conftest import ROOT
from tests.journeys.stack import Stack, running

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PICTURES = ROOT / "var" / "screenshots"
PATIENCE_MILLISECONDS = 20_000  # CI shares its cores: on a quiet machine nothing takes a second
expect.set_options(timeout=PATIENCE_MILLISECONDS)


# Package scope: the browser's event loop must have ended before other tests use the database.
@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole product, running, with a seeded demo world; or the one at JOURNEYS_URL."""
    if url := os.environ.get("JOURNEYS_URL"):
        yield Stack(url, tmp_path_factory.mktemp("journeys"))
        return
    with running(tmp_path_factory.mktemp("journeys")) as running_stack:
        yield running_stack


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or CHROMIUM, args=ARGUMENTS
        )
        yield chromium
        chromium.close()


Open = Callable[..., Page]
Picture = Callable[[Page, str], Path]


@dataclass
class Listener:
    """Collects what a page complains of: console errors, exceptions, answers of 400 and above."""

    complaints: list[str] = field(default_factory=list)

    def hear(self, page: Page) -> None:
        """Listens to a page from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        # A violation of the content security policy is one of these too.
        if message.type in {"error", "warning"}:
            self.complaints.append(
                f"{message.type} on {message.location.get('url')}: {message.text}"
            )

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} from {response.url}")


@pytest.fixture
def open_as(browser: Browser, stack: Stack) -> Iterator[Open]:
    """Opens a page signed in as one of the demo's people; fails if any page complained."""
    listener = Listener()
    contexts: list[BrowserContext] = []

    def open_page(
        name: str | None, *, width: int = 1280, scheme: str = "light", locale: str = "en-GB"
    ) -> Page:
        context = browser.new_context(
            base_url=stack.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            locale=locale,
            timezone_id="Asia/Tokyo",
        )
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        contexts.append(context)
        page = context.new_page()
        listener.hear(page)
        page.goto("/accounts/login/")
        if name:
            form = page.locator("form", has=page.locator(f"input[value='{name}@example.org']"))
            form.get_by_role("button").click()
            page.wait_for_url(f"{stack.url}/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not listener.complaints, "\n".join(listener.complaints)


@pytest.fixture
def picture() -> Picture:
    """Keeps a picture of the whole page in var/screenshots/."""

    def take(page: Page, name: str) -> Path:
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        for chart in page.locator(".chart").all():
            expect(chart).to_have_class(re.compile("js-plotly-plot"))
        page.screenshot(path=path, full_page=True)
        return path

    return take
