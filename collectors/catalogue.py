"""The catalogue: which PromQL is asked for each signal of a region, read and checked. Pure.

`read` lays a site's own file over the built-in one and lists everything that is wrong with it:
where, what, and what was expected.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from collectors.form import (
    BUCKET_BOUND,
    DEFAULT,
    Asked,
    Catalogue,
    Column,
    Kind,
    Preset,
    Question,
    Signal,
    SourceUnit,
    Unit,
)
from collectors.promql import INCREASE, PLACEHOLDERS, USED, increases, matchers, with_parts

__all__ = [
    "BUCKET_BOUND", "BUILT_IN", "DEFAULT", "Asked", "Catalogue", "CatalogueError", "Column", "Kind",
    "Preset", "Problem", "Question", "Signal", "SourceUnit", "Unit", "check", "increases",
    "matchers", "read",
]  # fmt: skip

KNOWN = ", ".join(f"${name}" for name in PLACEHOLDERS) + " or a part"
BUILT_IN = Path(__file__).with_name("catalogue.toml")


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
        yield from _parts(catalogue, name)
        for signal, asked in catalogue.of_preset(name).items():
            # What is inherited was checked where it stands, unless other parts are written into it.
            if signal in preset.signals or preset.parts:
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


def _parts(catalogue: Catalogue, name: str) -> Iterator[Problem]:
    preset, base = catalogue.presets[name], catalogue.presets[name].extends
    inherited = catalogue.of_preset(base) if base in catalogue.presets else {}
    for lacking in preset.lacks:
        if lacking not in inherited:
            what = f"{lacking!r} is not there to be left out"
            yield Problem(f"presets.{name}.lacks", what, "signals of the preset that is extended")
    known: dict[str, str] = {}
    for link in reversed(catalogue.chain(name)):
        known.update(catalogue.presets[link].parts)
    for part, text in preset.parts.items():
        where = f"presets.{name}.parts.{part}"
        if part in PLACEHOLDERS:
            yield Problem(where, f"${part} is taken", "another name")
        if part in USED.findall(with_parts(text, {**known, part: f"${part}"})):
            yield Problem(where, "uses itself", "no circle")
        for used in sorted(set(USED.findall(text)) - set(PLACEHOLDERS) - set(known)):
            yield Problem(where, f"${used} is unknown", KNOWN)


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
        for used in sorted(set(USED.findall(query)) - set(PLACEHOLDERS)):
            yield Problem(f"{where}.{key}", f"${used} is unknown", KNOWN)
        if signal.kind is Kind.GAUGE and _asked_increases(query):
            yield Problem(f"{where}.{key}", "takes an increase", "a gauge as it stands")
        if signal.kind is not Kind.GAUGE and not _taken_once(query):
            yield Problem(
                f"{where}.{key}", "has no increase", "$increase(metric{$selector, ...}), no rate()"
            )


def _taken_once(query: str) -> bool:
    found = len(INCREASE.findall(query))
    asked = _asked_increases(query)
    rates = re.search(r"(?<!\$)\b(i?rate|increase|i?delta)\s*\(", query)
    return query == "$selector" or (0 < found == asked and rates is None)


def _asked_increases(query: str) -> int:
    return sum(name in ("increase", "rise") for name in USED.findall(query))


def _one_of(names: Mapping[str, object] | list[Column]) -> str:
    return "one of " + ", ".join(sorted(str(name) for name in names))
