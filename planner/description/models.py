"""The shape of a scenario file: what each key may hold, before names are compared with names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from planner.description.problems import Problem, shown
from planner.vocabulary import (
    Backfill,
    Order,
    Placement,
    Purpose,
    Queueing,
    Reclaim,
    Recovery,
    Victims,
)

FORMAT = 1
LARGEST = 2**53  # whole numbers up to here are the same in JSON, in floats and in 64 bits
DIGITS = 15  # decimals up to here come back from a float as they were written

_Choice = TypeVar("_Choice", bound=StrEnum)


def _expected(text: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "{text}", {"text": text})


def _decimal(value: object, info: ValidationInfo) -> Decimal:
    """Take a decimal as it is written; a float counts as its shortest spelling."""
    in_file = bool(info.context and info.context.get("in_file"))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise _expected("expected a number")
    if isinstance(value, str) and in_file:
        raise _expected("expected a number, without quotation marks")
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except InvalidOperation:
        raise _expected("expected a number") from None
    if not number.is_finite():
        raise _expected("expected a finite number")
    number = number.normalize() if number else Decimal(0)
    if len(number.as_tuple().digits) > DIGITS:
        raise _expected(f"expected at most {DIGITS} significant digits")
    if abs(number.adjusted()) > DIGITS:
        raise _expected(f"expected a number between 1e-{DIGITS} and 1e{DIGITS}")
    return number


def _array(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, tuple):
        return value
    raise _expected("expected an array")


def _one_of(choices: type[_Choice]) -> Callable[[object], _Choice]:
    def choose(value: object) -> _Choice:
        try:
            if isinstance(value, str):
                return choices(value)
        except ValueError:
            pass
        raise _expected("expected one of " + ", ".join(shown(str(item)) for item in choices))

    return choose


def _instant(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, datetime):
        raise _expected("expected a date and time like 2026-11-30T00:00:00+09:00")
    if value.utcoffset() is None:
        raise _expected("expected an offset from UTC, like 2026-11-30T00:00:00+09:00")
    return value


def _format(value: object) -> int:
    if value != FORMAT or isinstance(value, bool):
        raise _expected(f"expected {FORMAT}, the format that this version reads")
    return FORMAT


Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Nodes = Annotated[int, Field(ge=1, le=1_000_000)]
GpusPerNode = Annotated[int, Field(ge=1, le=1_024)]
Weight = Annotated[int, Field(ge=0, le=2**32 - 1)]
Exact = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0)]
Speed = Annotated[Decimal, BeforeValidator(_decimal), Field(gt=0)]
Names = Annotated[tuple[Text, ...], BeforeValidator(_array)]
SomeNames = Annotated[tuple[Text, ...], BeforeValidator(_array), Field(min_length=1)]


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class RegionRow(_Row):
    """`[[region]]`."""

    name: Text
    timezone: Text


class LinkRow(_Row):
    """`[[link]]`."""

    between: Annotated[tuple[Text, Text], BeforeValidator(_array)]
    gbps: Speed


class DomainRow(_Row):
    """`[[domain]]`."""

    name: Text
    region: Text


class StorageRow(_Row):
    """`[[storage]]`."""

    name: Text
    write_gb_per_second: Speed
    region: Text | None = None
    domain: Text | None = None


class PoolRow(_Row):
    """`[[pool]]`."""

    name: Text
    domain: Text
    accelerator: Text
    nodes: Nodes
    gpus_per_node: GpusPerNode
    storage: Text | None = None
    purpose: Annotated[Purpose, BeforeValidator(_one_of(Purpose))] = Purpose.TRAINING
    premium: bool = False


class LaneRow(_Row):
    """`[[lane]]`."""

    name: Text
    rank: Whole
    preempts: Names = ()
    recovery: Annotated[Recovery, BeforeValidator(_one_of(Recovery))] = Recovery.REQUEUE
    protect_seconds: Whole = 0
    backoff_seconds: Whole = 0
    backoff_limit_seconds: Whole | None = None
    max_requeues: Whole | None = None
    queueing: Annotated[Queueing, BeforeValidator(_one_of(Queueing))] = Queueing.BEST_EFFORT


class TenantRow(_Row):
    """`[[tenant]]`."""

    name: Text
    weight: Exact = Decimal(1)


class ProjectRow(_Row):
    """`[[project]]`."""

    name: Text
    tenant: Text
    weight: Exact = Decimal(1)
    cohort: Text = "all"


class QuotaRow(_Row):
    """`[[quota]]`."""

    project: Text
    pool: Text
    nominal: Whole
    borrowing_limit: Whole | None = None
    lending_limit: Whole | None = None


class AssignmentRow(_Row):
    """`[[assignment]]`."""

    project: Text
    lane: Text
    pools: SomeNames | None = None
    max_gpus: Whole | None = None


class OutageRow(_Row):
    """`[[outage]]`."""

    start_seconds: Whole
    duration_seconds: Count
    domain: Text | None = None
    pool: Text | None = None
    region: Text | None = None


class JobRow(_Row):
    """`[[job]]`, or a line of the jobs table."""

    id: Text
    submit_seconds: Whole
    project: Text
    lane: Text
    gpus: Count
    work_seconds: Whole
    limit_seconds: Whole | None = None
    accelerator: Text | None = None
    pools: SomeNames | None = None
    regions: SomeNames | None = None
    data_region: Text | None = None
    data_gb: Exact = Decimal(0)
    checkpoint_interval_seconds: Whole = 0
    checkpoint_gb: Exact = Decimal(0)
    restart_seconds: Whole = 0


class MultifactorTable(_Row):
    """`[policy.multifactor]`."""

    age_weight: Weight = 1000
    fair_share_weight: Weight = 1000
    size_weight: Weight = 1000
    lane_weight: Weight = 1000
    max_age_seconds: Count = 604_800
    half_life_seconds: Count = 604_800


class PolicyTable(_Row):
    """`[policy]`."""

    order: Annotated[Order, BeforeValidator(_one_of(Order))] = Order.FAIR_SHARE
    placement: Annotated[Placement, BeforeValidator(_one_of(Placement))] = Placement.LOCALITY
    victims: Annotated[Victims, BeforeValidator(_one_of(Victims))] = Victims.YOUNGEST
    reclaim: Annotated[Reclaim, BeforeValidator(_one_of(Reclaim))] = Reclaim.NEVER
    backfill: Annotated[Backfill, BeforeValidator(_one_of(Backfill))] = Backfill.NONE
    multifactor: MultifactorTable = MultifactorTable()


def _rows(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(value)
    raise _expected("expected an array of tables")


_R = TypeVar("_R")
Rows = Annotated[tuple[_R, ...], BeforeValidator(_rows)]


class ScenarioFile(_Row):
    """The whole file. `jobs`, the name of a table beside it, has been followed before this."""

    format: Annotated[int, BeforeValidator(_format)]
    name: Text
    start: Annotated[datetime, BeforeValidator(_instant)]
    horizon_seconds: Whole | None = None
    seed: Annotated[int, Field(ge=-LARGEST, le=LARGEST)] = 0
    policy: PolicyTable = PolicyTable()
    region: Rows[RegionRow] = ()
    link: Rows[LinkRow] = ()
    domain: Rows[DomainRow] = ()
    storage: Rows[StorageRow] = ()
    pool: Rows[PoolRow] = ()
    lane: Rows[LaneRow] = ()
    tenant: Rows[TenantRow] = ()
    project: Rows[ProjectRow] = ()
    quota: Rows[QuotaRow] = ()
    assignment: Rows[AssignmentRow] = ()
    outage: Rows[OutageRow] = ()
    job: Rows[JobRow] = ()


_TEXTS: dict[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not a key of the format",
    "string_type": "expected text",
    "string_too_short": "expected text that is not empty",
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
    "model_type": "expected a table",
    "model_attributes_type": "expected a table",
    "too_short": "expected at least one",
    "tuple_type": "expected an array",
}


def expectation(error: Any) -> str:
    """Say what pydantic expected, in the words of the format."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "expected":
        return str(context["text"])
    if kind == "greater_than_equal":
        return f"expected {context['ge']} or more"
    if kind == "greater_than":
        return f"expected more than {context['gt']}"
    if kind == "less_than_equal":
        return f"expected {context['le']} or less"
    return _TEXTS.get(kind, str(error["msg"]).lower())


def problems_of(error: ValidationError, source: str) -> list[Problem]:
    """Return what is wrong, each with its place in the file."""
    problems = []
    for item in error.errors(include_url=False):
        absent = item["type"] == "missing"
        value = "" if absent else shown(item["input"])
        problems.append(Problem(_path(item["loc"]), value, expectation(item), source))
    return problems


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
