"""Dana opens the week and downloads it: the file's figures are the screen's."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Open, Picture

pytestmark = [pytest.mark.journey, pytest.mark.xdist_group("journeys")]

Figures = dict[tuple[str, str], dict[str, str]]


def in_file(path: Path) -> Figures:
    """The file's rows by scope and name."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return {(row["scope"], row["name"]): row for row in csv.DictReader(lines)}


def on_screen(page: Page) -> Figures:
    """The page's cells by scope, row name and the column that its heading is defined as."""
    found: Figures = page.evaluate(
        """() => {
          const terms = [...document.querySelectorAll("dl.meanings dt")];
          const columns = Object.fromEntries(terms.map((term) => [
            term.firstChild.textContent.trim(), term.querySelector("code").textContent]));
          const cells = [];
          for (const section of document.querySelectorAll("section[id^='by-']"))
            for (const table of section.querySelectorAll("table")) {
              const heads = [...table.querySelectorAll("thead th a")].map(
                (head) => columns[head.textContent.trim()]);
              for (const row of table.querySelectorAll("tbody tr"))
                [...row.querySelectorAll("td data")].forEach((cell, at) => cells.push([
                  section.id.slice(3), row.dataset.name,
                  heads[at], cell.getAttribute("value"), cell.textContent.trim()]));
            }
          return cells;
        }"""
    )
    figures: Figures = {}
    for scope, label, column, value, _text in found:  # type: ignore[misc]
        figures.setdefault((scope, label), {})[column] = value
    return figures


@pytest.mark.timeout(900)  # the first of the journeys waits for the stack
def test_the_weeks_file_holds_the_figures_of_the_screen(
    open_as: Open, picture: Picture, tmp_path: Path
) -> None:
    page = open_as("dana")
    page.get_by_role("navigation").get_by_role("link", name=re.compile("week", re.I)).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"Week \d{4}-W\d{2}"))
    expect(page.get_by_role("main")).to_contain_text("Asia/Tokyo")
    picture(page, "reader-1-week")

    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)

    assert re.fullmatch(r"sekisho-\d{4}-W\d{2}\.csv", path.name)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    screen, file = on_screen(page), in_file(path)
    compared = 0
    for (scope, name), cells in screen.items():
        for column, value in cells.items():
            assert file[(scope, name)][column] == value, (scope, name, column)
            compared += 1
    assert compared > 100
    assert {scope for scope, _name in screen} >= {"project", "lane", "pool"}
