"""Tables of jobs in pieces: CSV and Parquet, cell by cell as they are written."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

from planner.description.models import JobRow
from planner.description.problems import Problem, Problems, ScenarioError

CHUNK_ROWS = 100_000
REQUIRED = tuple(name for name, field in JobRow.model_fields.items() if field.is_required())
_COLUMNS = tuple(JobRow.model_fields)
_LISTS = ("pools", "regions")
_DECIMALS = ("data_gb", "checkpoint_gb")
_TEXTS = ("id", "project", "lane", "accelerator", "data_region")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,1000}")
_UTF8 = "expected text in UTF-8; the file seems to be in another encoding, say Shift-JIS"
_FEW_ROWS = 4_000  # rows as Python lists: more of them no longer fit a processor's cache
_BLOCK_BYTES = 2 << 20
# Empty lines, and what only Python takes for blanks.
_ODD = (b"\n\n", b"\n\r", b"\r\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_QUOTED = re.compile(rb'(?<=[,\r\n])"[^"\r\n]*"(?=[,\r\n]|\Z)')


class Chunk(NamedTuple):
    """Some rows of a table: their lines in the file, and their cells by column."""

    lines: Sequence[int]
    cells: dict[str, Any]  # Arrow arrays; an absent value is null
    as_text: bool = True  # numbers are written out, as in CSV


# --- CSV -----------------------------------------------------------------------------------------


def is_plain(path: Path) -> bool:
    """Say whether every line is a row, and every cell stands there as it is meant."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            lines = b"\n" + block.removeprefix(b"\xef\xbb\xbf") + file.readline()
            quoted = lines.count(b'"')
            if any(odd in lines for odd in _ODD) or (
                quoted and quoted != 2 * len(_QUOTED.findall(lines))
            ):
                return False
    return True


def plain_chunks(path: Path, _problems: Problems) -> Iterator[Chunk]:
    """Read a table in which each line is a row; any row that does not fit is an error."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = [name.strip() for name in next(csv.reader(file), [])]
    _check_columns(names, str(path))
    with pv.open_csv(
        path,
        read_options=pv.ReadOptions(block_size=_BLOCK_BYTES, column_names=names, skip_rows=1),
        convert_options=pv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    ) as batches:
        line = 2
        for batch in batches:
            cells = {
                name: _cells(pc.utf8_trim_whitespace(column))
                for name, column in zip(names, batch.columns, strict=True)
            }
            yield Chunk(range(line, line + len(batch)), cells)
            line += len(batch)


def csv_chunks(path: Path, problems: Problems) -> Iterator[Chunk]:
    """Read any table, and say of each row that does not fit where it stands."""
    source = str(path)
    # What is not UTF-8 stays in its cell, so that it can be said where it stands.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, strict=True)
        names: list[str] | None = None
        more = True
        while more:
            more = False
            lines: list[int] = []
            rows: list[list[str]] = []
            try:
                if names is None:
                    names = [_bytes_told(name.strip()) for name in next(reader, [])]
                    _check_columns(names, source)
                for cells in reader:
                    if len(cells) == len(names):
                        told = [_bytes_told(cell) for cell in cells]
                        if told != cells:
                            problems.extend(
                                Problem(
                                    f"line {reader.line_num}, column {name}", cell, _UTF8, source
                                )
                                for name, cell, raw in zip(names, told, cells, strict=True)
                                if cell != raw
                            )
                            continue
                        lines.append(reader.line_num)
                        rows.append(cells)
                        if len(rows) == _FEW_ROWS:
                            more = True
                            break
                    elif cells:
                        expected = f"expected {len(names)} cells, found {len(cells)}"
                        problems.append(Problem(f"line {reader.line_num}", "", expected, source))
            except csv.Error as error:
                problems.append(Problem(f"line {reader.line_num}", "", str(error), source))
            if rows and names:
                columns = zip(names, zip(*rows, strict=True), strict=True)
                yield Chunk(
                    lines,
                    {
                        name: _cells(pa.array(map(str.strip, column), pa.string()))
                        for name, column in columns
                    },
                )


def _bytes_told(cell: str) -> str:
    """The cell, with bytes that are not UTF-8 written out: \\x93."""
    if cell.isascii():
        return cell
    return cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _cells(column: Any) -> Any:
    return pc.if_else(pc.equal(column, ""), None, column)


def csv_cell(name: str, text: str | None) -> Any:
    """Turn a cell into the value the file would hold; what cannot be turned stays text."""
    if text is None or name in _TEXTS:
        return text
    if name in _LISTS:
        return [item.strip() for item in text.split(";")]
    if name in _DECIMALS:
        try:
            return Decimal(text)
        except InvalidOperation:
            return text
    # int() would take "1_000" and other spellings that other readers of the table do not know.
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text


# --- Parquet -------------------------------------------------------------------------------------


def parquet_chunks(path: Path, _problems: Problems) -> Iterator[Chunk]:
    """Read a Parquet table; its first row counts as line 1."""
    source = str(path)
    try:
        with pq.ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            _check_columns(names, source)
            row = 1
            for batch in file.iter_batches(batch_size=CHUNK_ROWS):
                cells = {
                    name: _parquet_cells(name, column, source)
                    for name, column in zip(names, batch.columns, strict=True)
                }
                yield Chunk(range(row, row + len(batch)), cells, as_text=False)
                row += len(batch)
    except (OSError, pa.ArrowException) as error:
        raise ScenarioError([Problem("", "", f"cannot be read: {error}", source)]) from error


def _parquet_cells(name: str, column: Any, source: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column)
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if pa.types.is_nested(kind) and not (is_list and pa.types.is_string(kind.value_type)):
        expected = "expected a column of plain values or of lists of text"
        raise ScenarioError([Problem(f"column {name}", str(kind), expected, source)])
    return column


def parquet_cell(name: str, value: Any) -> Any:
    """Return the value the file would hold; a list may be written as text."""
    return csv_cell(name, value) if isinstance(value, str) and name in _LISTS else value


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
        for name in REQUIRED
        if name not in names
    ]
    if problems:
        raise ScenarioError(problems)
