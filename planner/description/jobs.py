"""Jobs written: as rows of the file, as the text that is hashed, as a table beside the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from planner.work import Job, JobTable, Kind

_SLICE = 100_000
_DEFAULTS = Kind._field_defaults


def plain_decimal(value: Decimal) -> int | float:
    """Return the number as JSON would hold it."""
    # At most 15 digits are read, so the float comes back as the decimal that was written.
    return int(value) if value == value.to_integral_value() else float(value)


def _kind_row(kind: Kind) -> dict[str, Any]:
    row = {}
    for name, value in kind._asdict().items():
        if value != _DEFAULTS[name]:
            row[name] = plain_decimal(value) if isinstance(value, Decimal) else value
    return row


def _rows(table: JobTable) -> Iterator[tuple[Any, ...]]:
    columns = (
        table.ids,
        table.submit_seconds,
        table.project,
        table.lane,
        table.gpus,
        table.work_seconds,
        table.limit_seconds,
        table.checkpoint_interval_seconds,
        table.restart_seconds,
        table.kind,
    )
    for first in range(0, len(table), _SLICE):
        part = (column[first : first + _SLICE].tolist() for column in columns)
        yield from zip(*part, strict=True)


def job_rows(table: JobTable) -> Iterator[dict[str, Any]]:
    """Write each job as a row of the file; what the format supplies by itself is left out."""
    kinds = [_kind_row(kind) for kind in table.kinds]
    for job, submit, project, lane, gpus, work, limit, interval, restart, number in _rows(table):
        row = {
            "id": job,
            "submit_seconds": submit,
            "project": table.project_names[project],
            "lane": table.lane_names[lane],
            "gpus": gpus,
            "work_seconds": work,
        }
        if limit >= 0:
            row["limit_seconds"] = limit
        kind = kinds[number]
        for name, value in kind.items():
            row[name] = list(value) if isinstance(value, tuple) else value
        if interval:
            row["checkpoint_interval_seconds"] = interval
        if "checkpoint_gb" in kind:  # it stands after the interval
            row["checkpoint_gb"] = row.pop("checkpoint_gb")
        if restart:
            row["restart_seconds"] = restart
        yield row


def hashed_rows(table: JobTable) -> Iterator[str]:
    """Write the jobs as JSON with sorted keys and no blanks: a million in seconds."""

    def of_kinds(*names: str) -> list[str]:
        texts = []
        for row in map(_kind_row, table.kinds):
            items = ((name, row[name]) for name in names if name in row)
            texts.append("".join(f'"{name}":{_json(value)},' for name, value in items))
        return texts

    first, second = of_kinds("accelerator", "checkpoint_gb"), of_kinds("data_gb", "data_region")
    pools, regions = of_kinds("pools"), of_kinds("regions")
    projects, lanes = list(map(_json, table.project_names)), list(map(_json, table.lane_names))
    for job, submit, project, lane, gpus, work, limit, interval, restart, kind in _rows(table):
        every = f'"checkpoint_interval_seconds":{interval},' if interval else ""
        least = f'"limit_seconds":{limit},' if limit >= 0 else ""
        again = f'"restart_seconds":{restart},' if restart else ""
        yield (
            f'{{{first[kind]}{every}{second[kind]}"gpus":{gpus},"id":{encode_basestring(job)},'
            f'"lane":{lanes[lane]},{least}{pools[kind]}"project":{projects[project]},'
            f'{regions[kind]}{again}"submit_seconds":{submit},"work_seconds":{work}}}'
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_table(table: JobTable, path: Path) -> None:
    """Write the jobs as `.csv` or `.parquet`.

    Raises `ValueError` for names that a cell of CSV cannot hold: with blanks around them, or a
    semicolon in the name of a pool or region.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path.name}: expected a .csv or .parquet table")
    as_text = path.suffix == ".csv"
    if as_text:
        _check_cells(table)
    slices = (table[first : first + _SLICE] for first in range(0, len(table), _SLICE))
    empty = _arrow(table[:0], as_text=as_text)
    writer = pv.CSVWriter if as_text else pq.ParquetWriter
    with writer(path, empty.schema) as file:
        for part in slices:
            file.write_table(_arrow(part, as_text=as_text))


def _arrow(table: JobTable, *, as_text: bool) -> Any:
    def each(codes: Any, values: list[Any], kind: Any) -> Any:
        return pa.array(values, kind).take(pa.array(codes))

    def of_kind(value: Callable[[Kind], Any], kind: Any) -> Any:
        return each(table.kind, [value(each) for each in table.kinds], kind)

    def names(value: Callable[[Kind], tuple[str, ...] | None]) -> Any:
        if as_text:
            return of_kind(lambda kind: ";".join(value(kind) or ()) or None, pa.string())
        return of_kind(value, pa.list_(pa.string()))

    columns = {
        "id": pa.array(table.ids.tolist(), pa.string()),
        "submit_seconds": table.submit_seconds,
        "project": each(table.project, list(table.project_names), pa.string()),
        "lane": each(table.lane, list(table.lane_names), pa.string()),
        "gpus": table.gpus,
        "work_seconds": table.work_seconds,
        "limit_seconds": pa.array(table.limit_seconds, mask=table.limit_seconds < 0),
        "accelerator": of_kind(lambda kind: kind.accelerator, pa.string()),
        "pools": names(lambda kind: kind.pools),
        "regions": names(lambda kind: kind.regions),
        "data_region": of_kind(lambda kind: kind.data_region, pa.string()),
        "data_gb": of_kind(lambda kind: float(kind.data_gb), pa.float64()),
        "checkpoint_interval_seconds": table.checkpoint_interval_seconds,
        "checkpoint_gb": of_kind(lambda kind: float(kind.checkpoint_gb), pa.float64()),
        "restart_seconds": table.restart_seconds,
    }
    assert tuple(columns) == tuple(Job.__slots__)  # noqa: S101 - no field is forgotten
    return pa.table(columns)


def _check_cells(table: JobTable) -> None:
    names = {name for kind in table.kinds for name in (*(kind.pools or ()), *(kind.regions or ()))}
    others = {name for kind in table.kinds for name in (kind.accelerator, kind.data_region) if name}
    every = names.union(others, table.project_names, table.lane_names)
    bad = [name for name in every if name != name.strip()] + [name for name in names if ";" in name]
    bad += (each for each in table.ids if each != each.strip())
    if bad:
        raise ValueError(f"{bad[0]!r} cannot stand in a cell of CSV; expected a .parquet table")
