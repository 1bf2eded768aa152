"""The form of the catalogue: signals, how exporters say them, what is asked in a region. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from collectors.promql import increases, matchers, with_parts

DEFAULT = "default"
BUCKET_BOUND = "bound"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", max_length=63)]
PartName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
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


class SourceUnit(StrEnum):
    """What an exporter counts in; the query brings it to the unit of the signal."""

    GPUS = "gpus"
    MILLI_GPUS = "milli-gpus"
    JOBS = "jobs"
    EVENTS = "events"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    UNIX_SECONDS = "seconds since 1970"
    BYTES = "bytes"
    MEBIBYTES = "mebibytes"
    RATIO = "ratio"
    PERCENT = "percent"


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
    # Left out: the unit of the signal.
    source_unit: SourceUnit | None = None
    # What can go wrong with this exporter, beside what the signal says of all.
    trap: Sentence | None = None
    # What is known instead where the exporter does not publish it.
    fallback: Sentence | None = None


class Preset(_Table):
    """The signals of one exporter; may extend another preset and replace some of its queries."""

    meaning: Sentence
    # Of the exporter, as in "0.18 to 0.20".
    versions: str = ""
    source: str = ""
    extends: Name | None = None
    # PromQL that several queries share: $name in a query. A preset that extends may replace it.
    parts: dict[PartName, Query] = {}
    # Signals of the extended preset that this exporter does not give.
    lacks: list[Name] = []
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
        for preset in self.presets_of(region):
            asked.update(self.of_preset(preset))
        asked.update(table.signals)
        return [
            Question(name, self.signals[name], asked[name], self.selector(region))
            for name in self.signals
            if name in asked
        ]

    def presets_of(self, region: str) -> list[str]:
        """The presets of a region, in the order in which later ones win."""
        return list(self._region(region).presets or [])

    def selector(self, region: str) -> Mapping[str, str]:
        """The matchers that every query of a region carries."""
        own = self._region(region).selector
        return {"region": region} if own is None else own

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

    def of_preset(self, name: str) -> dict[str, Asked]:
        """What a preset asks for each signal, its own and the extended ones, written out."""
        parts: dict[str, str] = {}
        asked: dict[str, Asked] = {}
        for link in reversed(self.chain(name)):
            parts.update(self.presets[link].parts)
            asked.update(self.presets[link].signals)
            for lacking in self.presets[link].lacks:
                asked.pop(lacking, None)
        return {signal: _written(one, parts) for signal, one in asked.items()}

    def chain(self, name: str) -> list[str]:
        """The preset, the one it extends, and so on, up to a name that is unknown or was there."""
        chain: list[str] = []
        current: str | None = name
        while current is not None and current in self.presets and current not in chain:
            chain.append(current)
            current = self.presets[current].extends
        return chain


def _written(asked: Asked, parts: Mapping[str, str]) -> Asked:
    sum_query = None if asked.sum_query is None else with_parts(asked.sum_query, parts)
    return asked.model_copy(
        update={"query": with_parts(asked.query, parts), "sum_query": sum_query}
    )


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
        # A region's name asks for the same of each; a site's own selector for something else.
        selector = "" if set(self.matchers) == {"region"} else matchers(self.matchers)
        text = "\n".join(
            [self.signal.kind, repr(sorted(self.columns.items())), *self._queries(selector, "5m")]
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
