"""Jobs in a table beside the scenario: CSV always, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from decimal import Decimal, InvalidOperation
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from planner.description.models import JobRow
from planner.description.problems import Problem, ScenarioError, shown

_LISTS = ("pools", "regions")
_DECIMALS = ("data_gb", "checkpoint_gb")
_TEXTS = ("id", "project", "lane", "accelerator", "data_region")
_COLUMNS = tuple(JobRow.model_fields)
_REQUIRED = tuple(name for name, field in JobRow.model_fields.items() if field.is_required())


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a jobs table; an empty cell is an absent value.

    Returns one mapping per line, as the file would hold them inline. Raises `ScenarioError` when
    the table cannot be read, or has columns that jobs do not have.
    """
    if path.suffix == ".csv":
        return _read_csv(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    raise ScenarioError([Problem("", "", "expected a .csv or .parquet table", str(path))])


def _check_columns(names: list[str], source: str) -> None:
    problems = [
        Problem(f"line 1, column {name or '(empty)'}", "", "is not a column of jobs", source)
        for name in names
        if name not in _COLUMNS
    ]
    problems += [
        Problem(f"line 1, column {name}", "", "is there more than once", source)
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    problems += [
        Problem("line 1", "", f"expected a column {name}", source)
        for name in _REQUIRED
        if name not in names
    ]
    if problems:
        raise ScenarioError(problems)


def _read_csv(path: Path) -> list[dict[str, Any]]:
    source = str(path)
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            names = [name.strip() for name in next(lines, [])]
            _check_columns(names, source)
            for cells in lines:
                if not cells:
                    continue
                if len(cells) != len(names):
                    expected = f"expected {len(names)} cells, found {len(cells)}"
                    problems.append(Problem(f"line {lines.line_num}", "", expected, source))
                    continue
                row: dict[str, Any] = {"": lines.line_num}
                for name, cell in zip(names, cells, strict=True):
                    if cell.strip():
                        row[name] = _cell(name, cell.strip())
                rows.append(row)
        except (csv.Error, UnicodeDecodeError) as error:
            problems.append(Problem(f"line {lines.line_num}", "", str(error), source))
    if problems:
        raise ScenarioError(problems)
    return rows


def _cell(name: str, text: str) -> Any:
    """Turn a cell into the value the file would hold; what cannot be turned stays text."""
    if name in _TEXTS:
        return text
    if name in _LISTS:
        return [item.strip() for item in text.split(";")]
    if name in _DECIMALS:
        try:
            return Decimal(text)
        except InvalidOperation:
            return text
    # int() would take "1_000" and other spellings that other readers of the table do not know.
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else text


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    source = str(path)
    if find_spec("pyarrow") is None:
        expected = "needs pyarrow, which is not installed; expected a .csv table"
        raise ScenarioError([Problem("", "", expected, source)])
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ScenarioError([Problem("", "", shown(str(error)), source)]) from error
    _check_columns([str(name) for name in frame.columns], source)
    rows: list[dict[str, Any]] = []
    for number, record in enumerate(frame.to_dict("records"), start=1):
        row: dict[str, Any] = {"": number}
        for name, value in record.items():
            if isinstance(value, str) and str(name) in _LISTS:
                row[str(name)] = _cell(str(name), value)
            elif value is not None and value == value:  # not a NaN
                row[str(name)] = value.item() if hasattr(value, "item") else value
        rows.append(row)
    return rows
