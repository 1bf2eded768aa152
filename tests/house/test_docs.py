"""The documentation's links resolve, decisions have their form, the README stays one screen."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
FORM = ["Summary", "Goals", "Non-goals", "Decision", "Alternatives", "Consequences"]
SCREEN_LINES = 60


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_to_a_file_resolves(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    broken = [
        link for link in links if "://" not in link and not (page.parent / link).resolve().exists()
    ]

    assert not broken


@pytest.mark.parametrize("page", DECISIONS, ids=_name)
def test_a_decision_has_its_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert re.fullmatch(r"\d{4}-[a-z-]+", page.stem)
    assert text.startswith(f"# {page.stem[:4]} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == FORM


def test_each_decision_has_a_number_of_its_own() -> None:
    numbers = [page.stem[:4] for page in DECISIONS]

    assert len(set(numbers)) == len(numbers)


def test_every_page_of_the_docs_is_reached_from_their_first_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}

    assert [page for page in sorted(pages - {"README.md"}) if page not in index] == []


def test_the_readme_is_one_screen_and_its_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([a-z-]+)", readme))

    assert len(readme.splitlines()) <= SCREEN_LINES
    assert {"demo", "test"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
