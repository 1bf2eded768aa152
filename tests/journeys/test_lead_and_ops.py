"""Aiko asks for quota and sees what it would do; Ben decides; Aiko sees it in force."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Open, Picture

pytestmark = [pytest.mark.journey, pytest.mark.xdist_group("journeys")]

PROJECT, POOL, EXTRA = "speech", "tokyo-a-h100", 16
SIMULATION_SECONDS = 60  # "within seconds" on a quiet machine; CI shares its cores


def choose(page: Page, field: str, words: str) -> None:
    """Picks the option of a select that contains the words."""
    select = page.get_by_label(field, exact=True)
    option = select.locator("option").filter(has_text=re.compile(re.escape(words), re.I)).first
    select.select_option(value=option.get_attribute("value"))


def nominal_gpus(page: Page) -> int:
    """The nominal quota of the pool that a request page shows as requested or granted."""
    row = page.get_by_role("row", name=re.compile("^nominal"))
    return int(row.get_by_role("cell").last.inner_text())


@pytest.mark.timeout(900)  # the first of the journeys waits for the stack
def test_a_lead_asks_and_sees_the_effect_on_everybody(open_as: Open, picture: Picture) -> None:
    page = open_as("aiko")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    picture(page, "lead-1-overview")

    # Own quota and waits.
    page.goto(f"/projects/{PROJECT}/")
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile(PROJECT, re.I))
    expect(page.get_by_role("main")).to_contain_text(re.compile("quota", re.I))
    expect(page.get_by_role("main")).to_contain_text(re.compile("wait", re.I))
    expect(page.get_by_role("main")).to_contain_text(POOL)
    picture(page, "lead-2-project")

    # Asks; the effect appears while the form is filled in.
    page.get_by_role("navigation").get_by_role("link", name=re.compile("requests", re.I)).click()
    page.get_by_role("link", name="Ask for quota").first.click()
    choose(page, "project", PROJECT)
    choose(page, "pool", POOL)
    page.get_by_label("for how long").select_option(label="4 weeks")
    asked_at = time.monotonic()
    page.get_by_label("GPUs more").fill(str(EXTRA))
    effect = page.locator("#effect")
    expect(effect).to_contain_text("Will it run?")
    expect(effect).to_contain_text("90 % interval", timeout=SIMULATION_SECONDS * 1000)
    assert time.monotonic() - asked_at < SIMULATION_SECONDS
    expect(effect.get_by_role("table").first).to_be_visible()
    picture(page, "lead-3-form-with-effect")

    page.get_by_label("why").fill("A longer sequence length; the run ends before the new year.")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("main")).to_contain_text("Waits for a decision by operations")
    picture(page, "lead-4-submitted")

    # Nobody decides their own request.
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)


@pytest.mark.timeout(900)  # the first of the journeys waits for the stack
def test_ops_sees_what_is_the_matter_and_decides(open_as: Open, picture: Picture) -> None:
    page = open_as("ben")
    picture(page, "ops-1-overview")

    # The region: use, waits and checkpoint latency on one time axis; pools; what is stale.
    page.get_by_role("navigation", name="Regions").get_by_role("link", name="Tokyo").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Tokyo")
    chart = page.locator(".chart").first
    expect(chart).to_have_class(re.compile("js-plotly-plot"))
    for words in ("use", "wait", "checkpoint"):
        expect(page.locator(".exhibit").first).to_contain_text(re.compile(words, re.I))
    expect(page.get_by_role("link", name=POOL).first).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("coverage"))).to_be_visible()
    picture(page, "ops-2-region")

    # The request: current, requested, effect on every tenant and lane.
    page.get_by_role("navigation").get_by_role("link", name=re.compile("requests", re.I)).click()
    waiting = page.get_by_role("region", name=re.compile("Waiting for a decision"))
    row = waiting.get_by_role("row").filter(has_text=PROJECT).filter(has_text=POOL)
    row.get_by_role("link").first.click()
    main = page.get_by_role("main")
    expect(page.get_by_role("columnheader", name="now", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="requested", exact=True)).to_be_visible()
    expect(main).to_contain_text("90 % interval", timeout=SIMULATION_SECONDS * 1000)
    expect(main).to_contain_text("If approved")
    expect(main).to_contain_text(re.compile(r"down: \d+ guaranteed of \d+ H100"))
    expect(main).to_contain_text("Approving sets")
    picture(page, "ops-3-request")
    requested = nominal_gpus(page)

    page.get_by_role("button", name="Approve", exact=True).click()
    expect(main).to_contain_text(f"In force: the nominal quota is {requested}")
    picture(page, "ops-4-approved")
    request_url = page.url

    # The lead sees it.
    lead = open_as("aiko")
    lead.goto(request_url)
    expect(lead.get_by_role("main")).to_contain_text(f"In force: the nominal quota is {requested}")
    lead.goto(f"/projects/{PROJECT}/")
    expect(lead.get_by_role("main")).to_contain_text(str(requested))
    picture(lead, "ops-5-lead-sees-it")
