"""The version of Sekisho: the topmost one in CHANGELOG.md, and written nowhere else."""

import re
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"


def newest(changelog: str) -> str:
    """The first version that a changelog's headings name; ValueError when there is none."""
    found = re.search(r"^## (\d+\.\d+\.\d+)\b", changelog, re.MULTILINE)
    if not found:
        raise ValueError("CHANGELOG.md names no version; expected a heading such as '## 1.2.3'")
    return found[1]


VERSION = newest(CHANGELOG.read_text(encoding="utf-8"))
