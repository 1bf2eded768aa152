"""The Japanese catalogue is complete: every string that the site shows has its translation."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest

from tests.conftest import ROOT

CATALOGUE = Path("portal/locale/ja/LC_MESSAGES/django.po")
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}")


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> polib.POFile:
    """The catalogue as makemessages would leave it, made in a copy of the sources."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in ("planner", "collectors", "portal", "templates"):
        shutil.copytree(
            ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.mo")
        )
    for name in ("manage.py", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy / name)
    (copy / "portal" / "locale").mkdir(exist_ok=True)
    made = subprocess.run(
        [
            sys.executable, "manage.py", "makemessages", "--locale", "ja", "--no-obsolete",
            "--no-location", "--ignore", "var",
        ],
        cwd=copy, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-2000:]
    return polib.pofile(str(copy / CATALOGUE))


def test_every_string_is_translated_and_none_is_guessed(extracted: polib.POFile) -> None:
    untranslated = [entry.msgid for entry in extracted.untranslated_entries()]
    guessed = [entry.msgid for entry in extracted.fuzzy_entries()]

    assert len(extracted) > 100
    assert not untranslated, f"{len(untranslated)} without a translation"
    assert not guessed, f"{len(guessed)} marked fuzzy"


def test_a_translation_keeps_every_placeholder(extracted: polib.POFile) -> None:
    wrong = []
    for entry in extracted.translated_entries():
        wanted = set(PLACEHOLDER.findall(entry.msgid_plural or entry.msgid))
        given = [entry.msgstr] if entry.msgstr else list(entry.msgstr_plural.values())
        wrong += [text for text in given if set(PLACEHOLDER.findall(text)) != wanted]

    assert not wrong


def test_the_committed_catalogue_holds_nothing_that_is_no_longer_shown(
    extracted: polib.POFile,
) -> None:
    committed = polib.pofile(str(ROOT / CATALOGUE))
    shown = {(entry.msgctxt, entry.msgid) for entry in extracted}

    assert not [entry.msgid for entry in committed if (entry.msgctxt, entry.msgid) not in shown]


def test_the_committed_catalogue_compiles_as_the_makefile_compiles_it(tmp_path: Path) -> None:
    """A header marked fuzzy makes the compiler skip the whole language, with a zero exit."""
    shutil.copytree(ROOT / CATALOGUE.parent, tmp_path / "ja" / "LC_MESSAGES")
    (tmp_path / "ja" / "LC_MESSAGES" / "django.mo").unlink(missing_ok=True)

    subprocess.run(
        [Path(sys.executable).with_name("pybabel"), "compile", "-d", tmp_path, "-D", "django"],
        capture_output=True, check=True,
    )  # fmt: skip

    compiled = polib.mofile(str(tmp_path / "ja" / "LC_MESSAGES" / "django.mo"))
    assert {entry.msgid for entry in compiled} >= {"Overview", "Sign out"}
