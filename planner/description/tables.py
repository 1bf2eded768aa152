"""Jobs in a table beside the scenario, CSV or Parquet: read in chunks, straight into columns.

A chunk is checked column by column. Rows that fail there go to `JobRow`, which judges jobs inline
too: it says what is wrong with them, or takes them after all.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from planner.description.chunks import (
    CHUNK_ROWS,
    REQUIRED,
    Chunk,
    csv_cell,
    csv_chunks,
    is_plain,
    parquet_cell,
    parquet_chunks,
    plain_chunks,
)
from planner.description.models import LARGEST, JobRow, problems_of
from planner.description.problems import Problem, Problems, ScenarioError
from planner.work import JobTable, Kind, Numbers, texts

# The smallest number a column may hold, and what stands for an absent one (None: it must not be).
_WHOLES: dict[str, tuple[int, int | None]] = {
    "submit_seconds": (0, None),
    "gpus": (1, None),
    "work_seconds": (0, None),
    "limit_seconds": (0, -1),
    "checkpoint_interval_seconds": (0, 0),
    "restart_seconds": (0, 0),
}
_MOST_DIGITS = len(str(LARGEST))
_JUDGED = {"in_file": True}

Progress = Callable[[int], None]


class ReadJobs(NamedTuple):
    """The jobs of a table, the line of each in the file, and what is wrong with the others."""

    table: JobTable
    lines: Numbers
    problems: Problems


def read_jobs(path: Path, progress: Progress | None = None) -> ReadJobs:
    """Read a jobs table; an empty cell is an absent value.

    `progress` is told how many rows have been read. Raises `ScenarioError` when the table cannot
    be read, or has columns that jobs do not have.
    """
    if path.suffix == ".parquet":
        return _read(path, parquet_chunks, parquet_cell, progress)
    if path.suffix != ".csv":
        raise ScenarioError([Problem("", "", "expected a .csv or .parquet table", str(path))])
    if is_plain(path):
        try:
            found = _read(path, plain_chunks, csv_cell, progress)
        except (
            pa.ArrowInvalid,
            UnicodeDecodeError,
            csv.Error,
        ):  # a row with too many cells, say: read again, to tell which
            pass
        else:
            return found
    return _read(path, csv_chunks, csv_cell, progress)


def _read(
    path: Path,
    chunks: Callable[[Path, Problems], Iterator[Chunk]],
    cell: Callable[[str, Any], Any],
    progress: Progress | None,
) -> ReadJobs:
    problems = Problems()
    columns = _Columns(str(path), cell, problems)
    rows = 0
    for chunk in chunks(path, problems):
        columns.add(chunk)
        before, rows = rows, rows + len(chunk.lines)
        if progress is not None and before // CHUNK_ROWS < rows // CHUNK_ROWS:
            progress(rows)
    return columns.done()


# --- From cells to columns -----------------------------------------------------------------------


class _Places(dict[Any, int]):
    """Gives each cell the place of its value; -1 where there is no such value."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.value = value
        self.values_seen: dict[Any, int] = {}

    def __missing__(self, cell: Any) -> int:
        value = self.value(cell)
        self[cell] = place = -1 if value is None else self.place(value)
        return place

    def place(self, value: Any) -> int:
        return self.values_seen.setdefault(value, len(self.values_seen))

    def of(self, codes: Numbers, cells: Sequence[Any]) -> Numbers:
        places = np.fromiter(map(self.__getitem__, cells), dtype=np.int32, count=len(cells))
        return places[codes]


class _Columns:
    """The columns as far as they have been read."""

    def __init__(self, source: str, cell: Callable[[str, Any], Any], problems: Problems) -> None:
        self.source, self.cell, self.problems = source, cell, problems
        self.parts: dict[str, list[Any]] = {
            name: [] for name in ("line", "id", *_WHOLES, "project", "lane", "kind")
        }
        self.project, self.lane = _Places(_name), _Places(_name)
        self.kind = _Places(self._kind)
        self.kind_columns: tuple[str, ...] = ()

    def add(self, chunk: Chunk) -> None:
        rows, cells = len(chunk.lines), chunk.cells
        self.kind_columns = tuple(name for name in Kind._fields if name in cells)
        arrays: dict[str, Any] = {"line": np.array(chunk.lines, dtype=np.int64)}
        bad = np.zeros(rows, dtype=bool)
        for name, (smallest, absent) in _WHOLES.items():
            if name in cells:
                arrays[name], wrong = _wholes(cells[name], smallest, absent, as_text=chunk.as_text)
                bad |= wrong
            else:
                arrays[name] = np.full(rows, absent, dtype=np.int64)
        for name, places in (("project", self.project), ("lane", self.lane)):
            arrays[name] = places.of(*_codes(cells[name]))
        if self.kind_columns:
            arrays["kind"] = self.kind.of(*_codes_of([cells[name] for name in self.kind_columns]))
        else:
            arrays["kind"] = np.full(rows, self.kind.place(Kind()), dtype=np.int32)
        for name in ("project", "lane", "kind"):
            bad |= arrays[name] < 0
        ids = cells["id"].to_pylist()
        bad |= np.fromiter((_name(each) is None for each in ids), bool, count=rows)
        good = ~bad
        suspects = np.flatnonzero(bad)
        taken = {name: column.take(suspects).to_pylist() for name, column in cells.items()}
        for number, row in enumerate(suspects.tolist()):
            ids[row] = ""
            judged = self._judge(
                {name: column[number] for name, column in taken.items()}, chunk.lines[row]
            )
            if judged is not None:
                good[row] = True
                ids[row] = judged.id
                for name in _WHOLES:
                    value = getattr(judged, name)
                    arrays[name][row] = -1 if value is None else value
                arrays["project"][row] = self.project.place(judged.project)
                arrays["lane"][row] = self.lane.place(judged.lane)
                arrays["kind"][row] = self.kind.place(_kind_of(judged))
        arrays["id"] = texts(ids)
        whole = bool(good.all())
        for name, part in self.parts.items():
            part.append(arrays[name] if whole else arrays[name][good])

    def _kind(self, cells: tuple[Any, ...]) -> Kind | None:
        row: dict[str, Any] = dict.fromkeys(REQUIRED, "-")
        row |= {"submit_seconds": 0, "gpus": 1, "work_seconds": 0}
        for name, raw in zip(self.kind_columns, cells, strict=True):
            value = self.cell(name, raw)
            if value is not None:
                row[name] = value
        try:
            return _kind_of(JobRow.model_validate(row, context=_JUDGED))
        except ValidationError:
            return None  # each such row is judged, and named with its line

    def _judge(self, cells: dict[str, Any], line: int) -> JobRow | None:
        values = {name: self.cell(name, cell) for name, cell in cells.items()}
        content = {name: value for name, value in values.items() if value is not None}
        try:
            return JobRow.model_validate(content, context=_JUDGED)
        except ValidationError as error:
            if self.problems.count_more(error.error_count()):
                return None  # to say what is wrong takes longer than to find it
            for problem in problems_of(error, self.source):
                where = f"line {line}, column {problem.path}"
                self.problems.append(
                    Problem(where, problem.value, problem.expected, problem.source)
                )
            return None

    def done(self) -> ReadJobs:
        columns = {name: _joined(self.parts.pop(name), name) for name in tuple(self.parts)}
        table = JobTable(
            ids=columns.pop("id"),
            project_names=tuple(self.project.values_seen),
            lane_names=tuple(self.lane.values_seen),
            kinds=tuple(self.kind.values_seen),
            **{name: column for name, column in columns.items() if name != "line"},
        )
        return ReadJobs(table, columns["line"], self.problems)


def _joined(parts: list[Any], name: str) -> Any:
    if parts:
        return np.concatenate(parts)
    return texts([]) if name == "id" else np.zeros(0, np.int64)


def _name(cell: Any) -> str | None:
    return cell if type(cell) is str and cell else None


def _kind_of(row: JobRow) -> Kind:
    return Kind(*(getattr(row, name) for name in Kind._fields))


def _wholes(
    column: Any, smallest: int, absent: int | None, *, as_text: bool
) -> tuple[Numbers, np.ndarray[Any, np.dtype[np.bool]]]:
    """Return the whole numbers of a column, and which rows hold something else."""
    numbers = pa.nulls(len(column), pa.int64())
    if as_text:
        short = pc.less_equal(pc.binary_length(column), _MOST_DIGITS)
        plain = pc.and_(pc.ascii_is_decimal(column), short)
        numbers = pc.if_else(plain, column, None).cast(pa.int64())
    elif pa.types.is_integer(column.type):
        numbers = pc.if_else(pc.less_equal(column, LARGEST), column, None).cast(pa.int64())
    values = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
    wrong = (values < smallest) | (values > LARGEST)
    if absent is not None:
        is_absent = column.is_null().to_numpy(zero_copy_only=False)
        wrong &= ~is_absent
        values = np.where(is_absent, absent, values)
    return values.copy(), wrong


def _codes(column: Any) -> tuple[Numbers, list[Any]]:
    """Return the different cells of a column, and which of them stands in each row."""
    if pa.types.is_nested(column.type):
        places: dict[Any, int] = {}
        cells = [None if cell is None else tuple(cell) for cell in column.to_pylist()]
        codes = [places.setdefault(cell, len(places)) for cell in cells]
        return np.array(codes, dtype=np.int64), list(places)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _codes_of(columns: Sequence[Any]) -> tuple[Numbers, list[tuple[Any, ...]]]:
    """Return the different combinations of the cells of columns, and which stands in each row."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    encoded = [_codes(column) for column in columns]
    for codes, cells in encoded:
        if len(cells) > 1:
            combined = np.unique(combined * len(cells) + codes, return_inverse=True)[1]
    _, firsts, combined = np.unique(combined, return_index=True, return_inverse=True)
    return combined, [
        tuple(cells[codes[first]] for codes, cells in encoded) for first in firsts.tolist()
    ]
