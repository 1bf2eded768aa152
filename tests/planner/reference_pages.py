"""Writes the pages of reasons and of scenario files.

Run `python -m tests.planner.reference_pages`.
"""

from __future__ import annotations

import typing
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from planner.description.models import ScenarioFile
from planner.description.writing import plain
from planner.vocabulary import SENTENCES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
REASONS = REFERENCE / "reasons.md"
SCENARIO_FILE = REFERENCE / "scenario-file.md"
MADE = "Made by `python -m tests.planner.reference_pages`; a test compares the two."


def reasons() -> str:
    """The page of all reasons, in both languages."""
    rows = "\n".join(
        f"| `{reason}` | {text.en} | {text.ja} |" for reason, text in SENTENCES.items()
    )
    return (
        f"# Reasons\n\nWhy a job waits, or why it can never run. {MADE}\n\n"
        f"| Reason | English | 日本語 |\n| --- | --- | --- |\n{rows}\n"
    )


def scenario_file() -> str:
    """The page of all tables and keys that a scenario file may have."""
    tables = []
    for name, field in ScenarioFile.model_fields.items():
        row = _row_of(field.annotation)
        if row is not None:
            tables.append((name, row, typing.get_origin(field.annotation) is tuple))
    top = [
        (name, field)
        for name, field in ScenarioFile.model_fields.items()
        if _row_of(field.annotation) is None
    ]
    text = f"# The scenario file\n\nTOML, or the same structure in JSON. {MADE}\n\n"
    text += "`jobs` may name a CSV or Parquet table with the columns of `[[job]]` instead.\n\n"
    text += _table("Top level", top)
    for name, row, many in tables:
        text += _table(f"`[[{name}]]`" if many else f"`[{name}]`", list(row.model_fields.items()))
        for inner, field in row.model_fields.items():
            within = _row_of(field.annotation)
            if within is not None:
                text += _table(f"`[{name}.{inner}]`", list(within.model_fields.items()))
    return text.rstrip() + "\n"


def _row_of(annotation: Any) -> type[BaseModel] | None:
    for kind in (annotation, *typing.get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _table(title: str, fields: list[tuple[str, Any]]) -> str:
    rows = "\n".join(
        f"| `{name}` | {_kind(field)} | {_default(field)} |"
        for name, field in fields
        if _row_of(field.annotation) is None
    )
    return f"## {title}\n\n| Key | Value | Default |\n| --- | --- | --- |\n{rows}\n\n"


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = plain(field.default)
    if value is None or value is PydanticUndefined:
        return "absent"
    return "none" if value == [] else f"`{value}`"


_NAMES = {
    "int": "whole number",
    "str": "text",
    "Decimal": "decimal number",
    "bool": "true or false",
    "datetime": "date and time with offset",
}


def _kind(field: Any) -> str:
    """Say in words what a key may hold; `X | None` is X, for absent is no value."""
    kinds = [
        typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
        for kind in typing.get_args(field.annotation) or (field.annotation,)
        if kind is not type(None)
    ]
    if typing.get_origin(field.annotation) is tuple or typing.get_origin(kinds[0]) is tuple:
        return "array of text"
    if isinstance(kinds[0], type) and issubclass(kinds[0], StrEnum):
        return " · ".join(f"`{word}`" for word in kinds[0])
    return _NAMES[kinds[0].__name__]


if __name__ == "__main__":
    REASONS.write_text(reasons(), encoding="utf-8")
    SCENARIO_FILE.write_text(scenario_file(), encoding="utf-8")
