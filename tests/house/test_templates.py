"""Every template compiles and keeps to the content security policy."""

import re
from pathlib import Path

import pytest
from django.template import engines

from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html")) + sorted(
    (ROOT / "portal").glob("*/templates/**/*.html")
)
# The policy allows nothing inline. Data blocks are no scripts; htmx's hx-on needs eval.
FORBIDDEN = {
    "an inline script": re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", re.I),
    "a style element": re.compile(r"<style\b", re.I),
    "a style attribute": re.compile(r"\sstyle\s*=", re.I),
    "an event attribute": re.compile(r"\s(on[a-z]+|hx-on[:\w-]*)\s*=", re.I),
    "a javascript: address": re.compile(r"javascript:", re.I),
    "something loaded from elsewhere": re.compile(
        r"<(script|link|img|iframe)[^>]+(src|href)=[\"'](https?:)?//", re.I
    ),
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", TEMPLATES, ids=_name)
def test_the_template_compiles(path: Path) -> None:
    root = next(parent for parent in path.parents if parent.name == "templates")

    engines["django"].get_template(path.relative_to(root).as_posix())


@pytest.mark.parametrize("path", TEMPLATES, ids=_name)
def test_the_template_holds_nothing_inline(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"))

    found = {
        what: match[0] for what, pattern in FORBIDDEN.items() if (match := pattern.search(text))
    }

    assert not found


@pytest.mark.parametrize(
    "bad",
    [
        "<script>alert(1)</script>",
        "<style>a{}</style>",
        '<b style="width: 1%">',
        '<a onclick="x()">',
        '<a hx-on:click="x()">',
        '<script src="//elsewhere.example/x.js"></script>',
    ],
)
def test_the_check_itself_sees_each_kind(bad: str) -> None:
    assert any(pattern.search(bad) for pattern in FORBIDDEN.values())
