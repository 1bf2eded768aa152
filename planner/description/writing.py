"""From a scenario back to the file it could have been read from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from planner.description.jobs import hashed_rows, job_rows, plain_decimal, write_table
from planner.description.models import FORMAT
from planner.description.record import Scenario
from planner.vocabulary import Order

Format = Literal["toml", "json"]
HASHED_AT_ONCE = 10_000  # jobs

# The tables of the file, in the order in which they are written, and the fields that hold them.
TABLES: tuple[tuple[str, str], ...] = (
    ("region", "regions"),
    ("link", "links"),
    ("domain", "domains"),
    ("storage", "storages"),
    ("pool", "pools"),
    ("lane", "lanes"),
    ("tenant", "tenants"),
    ("project", "projects"),
    ("quota", "quotas"),
    ("assignment", "assignments"),
    ("outage", "outages"),
    ("job", "jobs"),
)


def plain(value: Any) -> Any:
    """Return the value as JSON would hold it."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Decimal):
        return plain_decimal(value)
    if isinstance(value, tuple):
        return list(value)
    return value


_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple((field.name, field.default) for field in dataclasses.fields(kind))
    return _FIELDS[kind]


def _row(row: Any) -> dict[str, Any]:
    """Write one row; a value that the format supplies by itself is left out."""
    written = {}
    for name, default in _fields(type(row)):
        value = getattr(row, name)
        if value is not None and value != default:
            written[name] = plain(value)
    return written


def to_mapping(scenario: Scenario) -> dict[str, Any]:
    """Return the structure of the file, ready for JSON, with the jobs inline under `job`.

    `parse(to_mapping(s)) == s`.
    """
    mapping: dict[str, Any] = {
        "format": FORMAT,
        "name": scenario.name,
        "start": scenario.start.isoformat(),
    }
    if scenario.horizon_seconds is not None:
        mapping["horizon_seconds"] = scenario.horizon_seconds
    if scenario.seed:
        mapping["seed"] = scenario.seed
    policy = scenario.policy
    mapping["policy"] = {
        field.name: getattr(policy, field.name).value
        for field in dataclasses.fields(policy)
        if field.name != "multifactor"
    }
    if policy.order is Order.MULTIFACTOR:
        mapping["policy"]["multifactor"] = _row(policy.multifactor)
    for table, field in TABLES:
        rows = getattr(scenario, field)
        if rows:
            mapping[table] = list(job_rows(rows) if table == "job" else map(_row, rows))
    return mapping


def content_hash(scenario: Scenario) -> str:
    """Return `sha256:` and the hash of the content; equal scenarios have equal hashes."""
    mapping = to_mapping(dataclasses.replace(scenario, jobs=()))
    # The same instant may be written with different offsets.
    mapping["start"] = scenario.start.astimezone(UTC).isoformat()
    if scenario.jobs:
        mapping["job"] = None  # written job by job: the text of a million is long
    content = hashlib.sha256()
    opening = "{"
    for key in sorted(mapping):
        content.update(f'{opening}"{key}":'.encode())
        opening = ","
        if key != "job":
            text = json.dumps(
                mapping[key], ensure_ascii=False, sort_keys=True, separators=(",", ":")
            )
            content.update(text.encode())
            continue
        rows, before = hashed_rows(scenario.table), "["
        while some := ",".join(islice(rows, HASHED_AT_ONCE)):
            content.update(f"{before}{some}".encode())
            before = ","
        content.update(b"]")
    content.update(b"}")
    return "sha256:" + content.hexdigest()


def write(scenario: Scenario, path: Path, jobs: str | None = None) -> None:
    """Write a `.toml` or `.json` file, and its jobs into a table of that name beside it.

    The table is `.csv` or `.parquet`; without a name the jobs stand in the file itself.
    """
    fmt = path.suffix.removeprefix(".")
    if fmt not in ("toml", "json"):
        raise ValueError(f"{path.name}: expected a .toml or .json file")
    if jobs is not None:
        write_table(scenario.table, path.parent / jobs)
    path.write_text(dumps(scenario, cast("Format", fmt), jobs=jobs), encoding="utf-8")


def dumps(scenario: Scenario, fmt: Format = "toml", *, jobs: str | None = None) -> str:
    """Write the scenario as the text of a `.toml` or `.json` file.

    `jobs` names a table beside the file, which holds the jobs instead.
    """
    if jobs is None:
        mapping = to_mapping(scenario)
    else:
        mapping = to_mapping(dataclasses.replace(scenario, jobs=())) | {"jobs": jobs}
    if fmt == "json":
        return json.dumps(mapping, ensure_ascii=False, indent=1) + "\n"
    if fmt != "toml":
        raise ValueError(f"format {fmt!r}: expected toml or json")
    mapping["start"] = scenario.start
    return "\n".join(_toml(mapping)) + "\n"


def _toml(mapping: dict[str, Any]) -> Iterable[str]:
    for key, value in mapping.items():
        if not isinstance(value, dict | list):
            yield f"{key} = {_literal(value)}"
    for key, value in mapping.items():
        tables = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
        for table in tables:
            yield ""
            yield f"[{key}]" if isinstance(value, dict) else f"[[{key}]]"
            inner = {name: item for name, item in table.items() if isinstance(item, dict)}
            for name, item in table.items():
                if name not in inner:
                    yield f"{name} = {_literal(item)}"
            yield from _toml({f"{key}.{name}": item for name, item in inner.items()})


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for one character TOML does not allow bare.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
