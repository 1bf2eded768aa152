"""The catalogue: which PromQL is asked for each signal of a region, read and checked. Pure.

`read` lays a site's own file over the built-in one and lists everything that is wrong with it:
where, what, and what was expected.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

BUILT_IN = Path(__file__).with_name("catalogue.toml")
DEFAULT = "default"
BUCKET_BOUND = "bound"
PLACEHOLDERS = ("increase", "selector", "step")

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", max_length=63)]
LabelName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Query = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Kind(StrEnum):
    """How samples of a signal behave, and so how they are added up."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Unit(StrEnum):
    """What a signal counts in."""

    GPUS = "gpus"
    JOBS = "jobs"
    EVENTS = "events"
    SECONDS = "seconds"
    BYTES = "bytes"
    RATIO = "ratio"


class Column(StrEnum):
    """What tells the lines of a signal apart."""

    POOL = "pool"
    PROJECT = "project"
    LANE = "lane"
    STORAGE = "storage"
    DETAIL = "detail"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Signal(_Table):
    """What is measured: its kind, unit, columns and meaning."""

    kind: Kind
    unit: Unit
    columns: list[Column]
    meaning: Sentence
    trap: Sentence


class Asked(_Table):
    """How one exporter says a signal: the query and which label fills which column."""

    query: Query
    labels: dict[LabelName, Column]
    sum_query: Query | None = None


class Preset(_Table):
    """The signals of one exporter; may extend another preset and replace some of its queries."""

    meaning: Sentence
    source: str = ""
    extends: Name | None = None
    signals: dict[Name, Asked] = {}


class RegionTable(_Table):
    """What is asked in a region: presets in order (later ones win), matchers, own queries."""

    presets: list[Name] | None = None
    selector: dict[LabelName, str] | None = None
    max_points: Annotated[int, Field(strict=True, gt=0, le=11_000)] = 2_016
    signals: dict[Name, Asked] = {}


class Catalogue(_Table):
    """Everything that can be asked, checked."""

    signals: dict[Name, Signal]
    presets: dict[Name, Preset]
    regions: dict[Name, RegionTable]

    def asked_in(self, region: str) -> list[Question]:
        """The questions for a region, in the catalogue's order of signals."""
        table = self._region(region)
        asked: dict[str, Asked] = {}
        for preset in table.presets or []:
            asked.update(self._of_preset(preset))
        asked.update(table.signals)
        matchers = {"region": region} if table.selector is None else table.selector
        return [
            Question(name, self.signals[name], asked[name], matchers)
            for name in self.signals
            if name in asked
        ]

    def max_points(self, region: str) -> int:
        """How many points of a series one request may ask for."""
        return self._region(region).max_points

    def _region(self, region: str) -> RegionTable:
        default = self.regions.get(DEFAULT, RegionTable())
        own = self.regions.get(region)
        if own is None:
            return default
        # What the region's own table sets replaces the default; its queries come on top.
        said = {key: getattr(own, key) for key in own.model_fields_set}
        return default.model_copy(update={**said, "signals": {**default.signals, **own.signals}})

    def _of_preset(self, name: str) -> dict[str, Asked]:
        preset = self.presets[name]
        inherited = {} if preset.extends is None else self._of_preset(preset.extends)
        return {**inherited, **preset.signals}


@dataclass(frozen=True, slots=True)
class Question:
    """One signal asked of one region: the queries that are sent, and their version."""

    name: str
    signal: Signal
    asked: Asked
    matchers: Mapping[str, str]

    @property
    def columns(self) -> dict[str, str]:
        """Prometheus label → column."""
        return {label: str(column) for label, column in self.asked.labels.items()}

    @property
    def version(self) -> str:
        """A short hash of what is asked: figures of different versions are not the same figure."""
        text = "\n".join(
            [self.signal.kind, repr(sorted(self.columns.items())), *self._queries("", "5m")]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def queries(self, *, step_seconds: int) -> list[str]:
        """The queries as sent: one, or for a histogram its buckets and the sum of its values.

        A count's increase is that of a step; its length makes no other version.
        """
        return self._queries(matchers(self.matchers), f"{step_seconds}s")

    def _queries(self, selector: str, step: str) -> list[str]:
        kind, labels = self.signal.kind, list(self.asked.labels)
        made = [self.asked.query]
        if kind is Kind.COUNTER:
            made = [f"sum by ({', '.join(labels)}) (\n{increases(self.asked.query)}\n)"]
        if kind is Kind.HISTOGRAM:
            # Prometheus 3 writes 10.0 where 2 wrote 10: one spelling, in a label of its own.
            spelled = (
                f"label_replace(\n{increases(self.asked.query, buckets=True)},\n"
                f'"{BUCKET_BOUND}", "$1", "le", "(.+?)([.]0)?")'
            )
            made = [f"sum by ({', '.join([*labels, BUCKET_BOUND])}) ({spelled})"]
        if self.asked.sum_query:
            made.append(f"sum by ({', '.join(labels)}) (\n{increases(self.asked.sum_query)}\n)")
        return [query.replace("$selector", selector).replace("$step", step) for query in made]


INCREASE = re.compile(r"\$increase\(\s*([a-zA-Z_:][\w:]*)\{([^{}]*)\}\s*\)")


def increases(query: str, *, buckets: bool = False) -> str:
    """The query with each `$increase(metric{...})` written out.

    Exact where `increase()` extrapolates: the last value of the step less the last one known before
    it, up to a day back, so that a gap in between loses nothing. After a reset the count starts at
    zero. So it does for a series that is new, if others of its kind were there before: when none
    was, it may be the memory that is new, and the events old. A bucket is new only with its whole
    histogram: else it is its bound that is spelled anew.
    """

    def written(found: re.Match[str]) -> str:
        last, before, most = _over_steps(f"{found[1]}{{{found[2]}}}")
        new = f"({last} unless {before})"
        if buckets:
            last_all, before_all, _most = _over_steps(f'{found[1]}{{{found[2]}, le="+Inf"}}')
            new = f"({new} and ignoring (le) ({last_all} unless {before_all}))"
        return (
            f"({last} - {before} >= 0\n"
            f"or ({last} + {most} - {before} and {last} < {before})\n"
            f"or ({new} and on () group({before})))"
        )

    return INCREASE.sub(written, query)


def _over_steps(series: str) -> tuple[str, str, str]:
    """Of a step: its last value, the last one known before it, its highest."""
    return (
        f"last_over_time({series}[$step])",
        f"last_over_time({series}[1d] offset $step)",
        f"max_over_time({series}[$step])",
    )


def matchers(wanted: Mapping[str, str]) -> str:
    """Label matchers with their values escaped; with none, a matcher that lets all pass."""

    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return (
        ", ".join(f'{label}="{escaped(text)}"' for label, text in wanted.items())
        or 'instance=~".*"'
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what stands there, what was expected."""

    where: str
    what: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; expected {self.expected}"


class CatalogueError(ValueError):
    """The catalogue cannot be used; lists every problem."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        super().__init__("\n".join([f"{path} cannot be used:", *(f"  {p}" for p in problems)]))
        self.problems = problems


def read(site: Path | None = None) -> Catalogue:
    """The built-in catalogue, with a site's own laid over it: its keys replace or add to ours."""
    tables = tomllib.loads(BUILT_IN.read_text("utf-8"))
    if site is not None:
        tables = _laid_over(tables, _load(site))
    return check(tables, site or BUILT_IN)


def check(tables: Mapping[str, Any], path: Path = BUILT_IN) -> Catalogue:
    """The catalogue in parsed TOML; raises CatalogueError with every problem found."""
    try:
        catalogue = Catalogue.model_validate(tables)
    except ValidationError as error:
        raise CatalogueError(path, [_problem(one) for one in error.errors()]) from None
    problems = list(_crossed(catalogue))
    if problems:
        raise CatalogueError(path, problems)
    return catalogue


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CatalogueError(path, [Problem(str(path), "no such file", "a TOML file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(
            path, [Problem(str(path), f"cannot be read ({error})", "a TOML file in UTF-8")]
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(
            path, [Problem("TOML", str(error), "each key once, in TOML")]
        ) from None


def _laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    laid = dict(under)
    for key, value in over.items():
        below = laid.get(key)
        # Label maps are replaced whole: half of ours and half of a site's would match nothing.
        whole = key in ("labels", "selector")
        if isinstance(below, dict) and isinstance(value, dict) and not whole:
            laid[key] = _laid_over(below, value)
        else:
            laid[key] = value
    return laid


def _problem(error: Any) -> Problem:
    where = ".".join(str(part) for part in error["loc"] if part != "[key]") or "the file"
    given = error["input"]
    shown = "a table" if isinstance(given, dict) else repr(given)[:80]
    if error["type"] == "missing":
        return Problem(where, "is missing", "a value")
    if error["type"] == "extra_forbidden":
        return Problem(where, "is no key of this table", "one of the keys in the reference")
    message = error["msg"].removeprefix("Input should be ").removeprefix("String should ")
    return Problem(where, f"is {shown}", message)


def _crossed(catalogue: Catalogue) -> Iterator[Problem]:
    """What no single table can know: names of others, columns, placeholders, cycles."""
    for name, preset in catalogue.presets.items():
        where = f"presets.{name}"
        yield from _extends(catalogue, name)
        for signal, asked in preset.signals.items():
            yield from _asked(catalogue, f"{where}.signals.{signal}", signal, asked)
    for name, region in catalogue.regions.items():
        where = f"regions.{name}"
        listed = region.presets or []
        for preset_name in dict.fromkeys(listed):
            if preset_name not in catalogue.presets:
                yield Problem(
                    f"{where}.presets", f"{preset_name!r} is unknown", _one_of(catalogue.presets)
                )
            if listed.count(preset_name) > 1:
                yield Problem(
                    f"{where}.presets", f"{preset_name!r} stands twice", "each preset once"
                )
        for signal, asked in region.signals.items():
            yield from _asked(catalogue, f"{where}.signals.{signal}", signal, asked)


def _extends(catalogue: Catalogue, name: str) -> Iterator[Problem]:
    seen, current = [name], catalogue.presets[name].extends
    while current is not None:
        if current not in catalogue.presets:
            # Said once: where the unknown name stands.
            if len(seen) == 1:
                yield Problem(
                    f"presets.{name}.extends", f"{current!r} is unknown", _one_of(catalogue.presets)
                )
            return
        if current in seen:
            if current == name:
                chain = " → ".join([*seen, current])
                yield Problem(f"presets.{name}.extends", f"goes round: {chain}", "no cycle")
            return
        seen.append(current)
        current = catalogue.presets[current].extends


def _asked(catalogue: Catalogue, where: str, name: str, asked: Asked) -> Iterator[Problem]:
    signal = catalogue.signals.get(name)
    if signal is None:
        yield Problem(where, f"the signal {name!r} is unknown", _one_of(catalogue.signals))
        return
    for label in ("at", "value", "le", BUCKET_BOUND):
        if label in asked.labels:
            yield Problem(
                f"{where}.labels", f"{label!r} is taken", "a label that label_replace made"
            )
    filled = list(asked.labels.values())
    for column in dict.fromkeys(filled):
        if column not in signal.columns:
            yield Problem(
                f"{where}.labels", f"{column!s} is no column of {name}", _one_of(signal.columns)
            )
        if filled.count(column) > 1:
            yield Problem(f"{where}.labels", f"{column!s} is filled twice", "one label a column")
    if (signal.kind is Kind.HISTOGRAM) != (asked.sum_query is not None):
        given = "is missing" if asked.sum_query is None else "is given"
        yield Problem(
            f"{where}.sum_query", given, "a sum_query with every histogram, and only there"
        )
    for key, query in (("query", asked.query), ("sum_query", asked.sum_query or "$selector")):
        if "$selector" not in query:
            yield Problem(
                f"{where}.{key}", "has no $selector", "the region's matchers in {$selector}"
            )
        for used in sorted(set(re.findall(r"\$([a-zA-Z_]\w*)", query)) - set(PLACEHOLDERS)):
            yield Problem(f"{where}.{key}", f"${used} is unknown", "$increase, $selector or $step")
        if signal.kind is Kind.GAUGE and "$increase" in query:
            yield Problem(f"{where}.{key}", "takes an increase", "a gauge as it stands")
        if signal.kind is not Kind.GAUGE and not _taken_once(query):
            yield Problem(
                f"{where}.{key}", "has no increase", "$increase(metric{$selector, ...}), no rate()"
            )


def _taken_once(query: str) -> bool:
    found = len(INCREASE.findall(query))
    rates = re.search(r"(?<!\$)\b(i?rate|increase|i?delta)\s*\(", query)
    return query == "$selector" or (0 < found == query.count("$increase") and rates is None)


def _one_of(names: Mapping[str, object] | list[Column]) -> str:
    return "one of " + ", ".join(sorted(str(name) for name in names))
