"""The tree itself: sizes, pins, and what may not be written down."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from portal import version
from tests.conftest import ROOT

PYTHON = sorted(
    path
    for folder in ("planner", "collectors", "portal", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
# Entry points, and Django's own hook for what may be imported only when the apps are ready.
# Django calls for checks when every app is loaded, and not before.
LATE_IMPORTS = {"manage.py", "portal/apps.py", "collectors/apps.py"}


def test_no_module_is_longer_than_600_lines() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in PYTHON
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }

    assert not long


def test_nothing_is_imported_inside_a_function() -> None:
    late = set()
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node)
            ):
                late.add(path.relative_to(ROOT).as_posix())

    assert late <= LATE_IMPORTS


def test_the_pins_name_no_place_to_fetch_from() -> None:
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|@ file", PINS)


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    names = {re.match(r"[A-Za-z0-9-]+", entry)[0].lower() for entry in wanted}  # type: ignore[index]
    pinned = {line.partition("==")[0] for line in PINS.splitlines()}

    assert names <= pinned


def test_the_version_is_the_changelogs_topmost() -> None:
    text = version.CHANGELOG.read_text(encoding="utf-8")

    assert version.newest("# Changelog\n\n## 1.2.3 (soon)\n\n## 1.2.2\n") == "1.2.3"
    assert f"## {version.VERSION}" in text
    with pytest.raises(ValueError, match="names no version"):
        version.newest("# Changelog\n")


def test_packaging_reads_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "portal.version.VERSION"}


def test_no_script_or_style_of_others_is_kept_in_the_tree() -> None:
    """They are served from the installed packages."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.min.js", "*.min.css", "node_modules", "uv.lock"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert tracked.stdout == ""


@pytest.mark.parametrize("target", ["demo", "demo-reset", "test", "lint", "types", "contracts"])
def test_the_makefile_has_the_targets_that_the_readme_promises(target: str) -> None:
    makefile = Path(ROOT / "Makefile").read_text(encoding="utf-8")

    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), (
        "`make help` says nothing of it"
    )
