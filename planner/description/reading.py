"""From a file, or a mapping of the same structure, to a scenario; or to a list of what is wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from planner.description.checks import Checks
from planner.description.models import ScenarioFile, problems_of
from planner.description.problems import Problem, Problems, ScenarioError, shown
from planner.description.record import Scenario
from planner.description.tables import Progress, read_jobs
from planner.fleet import Domain, Link, Outage, Pool, Region, Storage
from planner.policy import PolicySettings
from planner.policy.multifactor import Multifactor
from planner.policy.priority import Lane
from planner.policy.quota import Assignment, Quota
from planner.work import Job, JobTable, Project, Tenant


def read(path: Path, progress: Progress | None = None) -> Scenario:
    """Read a scenario from a `.toml` or `.json` file, and its jobs from the table it names.

    `progress` is told, now and then, how many rows of that table have been read. Raises
    `ScenarioError` with everything that is wrong: file, place, value, expectation.
    """
    path = Path(path)
    source = str(path)
    content = _load(path)
    if not isinstance(content, dict):
        raise ScenarioError([Problem("", shown(content), "expected a table", source)])
    if "jobs" not in content:
        return _build(content, source, in_file=True)
    name = content.pop("jobs")
    if not isinstance(name, str):
        raise ScenarioError(
            [Problem("jobs", shown(name), "expected the name of a table of jobs", source)]
        )
    if "job" in content:
        expected = "expected either a table of jobs or [[job]], not both"
        raise ScenarioError([Problem("jobs", shown(name), expected, source)])
    table = path.parent / name
    if not table.is_file():
        raise ScenarioError(
            [Problem("jobs", shown(name), f"expected a file; {table} is none", source)]
        )
    return _build(content, source, in_file=True, table=table, progress=progress)


def parse(mapping: Mapping[str, Any], *, source: str = "scenario") -> Scenario:
    """Make a scenario of a mapping with the structure of the file, jobs inline under `job`.

    Decimals may be given as Decimal, int, float (its shortest spelling counts) or text. Raises
    `ScenarioError`; `source` is what its messages call the input.
    """
    return _build(mapping, source, in_file=False)


def _load(path: Path) -> Any:
    source = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text, parse_float=Decimal)
        if path.suffix == ".json":
            return json.loads(
                text, parse_float=Decimal, object_pairs_hook=_no_twins, parse_constant=Decimal
            )
    except OSError as error:
        raise ScenarioError(
            [Problem("", "", f"cannot be read: {error.strerror}", source)]
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, not JSON
        raise ScenarioError([Problem("", "", f"cannot be read: {error}", source)]) from error
    raise ScenarioError([Problem("", "", "expected a .toml or .json file", source)])


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        keys = [key for key, _ in pairs]
        twins = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"keys that appear twice in one table: {', '.join(twins)}")
    return table


def _build(
    mapping: Mapping[str, Any],
    source: str,
    *,
    in_file: bool,
    table: Path | None = None,
    progress: Progress | None = None,
) -> Scenario:
    problems = Problems()
    content: ScenarioFile | None = None
    try:
        content = ScenarioFile.model_validate(dict(mapping), context={"in_file": in_file})
    except ValidationError as error:
        problems.extend(problems_of(error, source))
    found = read_jobs(table, progress) if table else None
    if found:
        problems.extend(found.problems)
    if content is None or problems:
        raise ScenarioError(problems)
    if found is None:
        jobs = JobTable.of([Job(**_columns(row)) for row in content.job])
    else:
        jobs = found.table
    scenario = _scenario(content, jobs)

    def place(number: int, column: str) -> tuple[str, str]:
        if found is None:
            return f"job[{number}].{column}", source
        return f"line {found.lines[number]}, column {column}", str(table)

    problems = Checks(scenario, source, place).all()
    if problems:
        raise ScenarioError(problems)
    return scenario


def _columns(row: BaseModel) -> dict[str, Any]:
    return dict(row.__dict__)


def _scenario(content: ScenarioFile, jobs: JobTable) -> Scenario:
    return Scenario(
        name=content.name,
        start=content.start,
        horizon_seconds=content.horizon_seconds,
        seed=content.seed,
        policy=PolicySettings(
            **_columns(content.policy)
            | {"multifactor": Multifactor(**_columns(content.policy.multifactor))}
        ),
        regions=tuple(Region(**_columns(row)) for row in content.region),
        links=tuple(Link(**_columns(row)) for row in content.link),
        domains=tuple(Domain(**_columns(row)) for row in content.domain),
        storages=tuple(Storage(**_columns(row)) for row in content.storage),
        pools=tuple(Pool(**_columns(row)) for row in content.pool),
        lanes=tuple(Lane(**_columns(row)) for row in content.lane),
        tenants=tuple(Tenant(**_columns(row)) for row in content.tenant),
        projects=tuple(Project(**_columns(row)) for row in content.project),
        quotas=tuple(Quota(**_columns(row)) for row in content.quota),
        assignments=tuple(Assignment(**_columns(row)) for row in content.assignment),
        outages=tuple(Outage(**_columns(row)) for row in content.outage),
        jobs=jobs,
    )
