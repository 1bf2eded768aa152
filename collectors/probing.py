"""What a region's Prometheus can give: which signals answer, which metrics are absent. Pure.

Names of metrics are read from the queries; how many series each has, and how many each query
answers, is asked by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import promql_parser

from collectors.catalogue import Catalogue, Question

# Presets of versions of one exporter are alike: a few say enough.
MOST_OTHERS = 3
_INNER = ("lhs", "rhs", "expr", "vector_selector", "param")


class State(StrEnum):
    """How it stands with a signal."""

    GIVEN = "given"
    OTHER_LABELS = "other-labels"
    ABSENT = "absent"
    EMPTY = "empty"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a query: series that the region's matchers let pass, and series in all."""

    name: str
    here: int
    anywhere: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What one query answered: how many series, or why none."""

    series: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """How it stands with one signal, which preset asks for it, and which others could."""

    signal: str
    preset: str
    state: State
    series: int
    error: str
    metrics: tuple[Metric, ...]
    fallback: str
    others: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The metrics of which there is no series for this region."""
        return [metric.name for metric in self.metrics if not metric.here]


@dataclass(frozen=True, slots=True)
class More:
    """A signal that is not asked for, and the presets that could give it here."""

    signal: str
    presets: tuple[str, ...]


def metric_names(query: str) -> set[str]:
    """The names of the metrics that a PromQL query reads. Raises ValueError when it is none."""
    return set(_names(promql_parser.parse(query)))


def of_question(question: Question) -> set[str]:
    """The metrics that a signal's queries read."""
    return {name for query in question.queries(step_seconds=300) for name in metric_names(query)}


def every_metric(catalogue: Catalogue) -> set[str]:
    """The metrics that any preset of the catalogue reads, or any region's own query."""
    asked = [
        *(one for name in catalogue.presets for one in _of_preset(catalogue, name).values()),
        *(one for region in catalogue.regions for one in catalogue.asked_in(region)),
    ]
    return {name for question in asked for name in of_question(question)}


def counting(names: set[str], matchers: str) -> str:
    """The query that counts the series of each of these metrics."""
    return f'count by (__name__) ({{__name__=~"{"|".join(sorted(names))}", {matchers}}})'


def judge(
    catalogue: Catalogue,
    region: str,
    *,
    here: Mapping[str, int],
    anywhere: Mapping[str, int],
    answers: Mapping[str, Asked],
) -> list[Found]:
    """How it stands with every signal that is asked for in a region.

    `here` and `anywhere` count series by metric, with the region's matchers and without; `answers`
    holds what each signal's query gave.
    """
    found = []
    for question in catalogue.asked_in(region):
        answer = answers.get(question.name, Asked())
        metrics = tuple(
            Metric(name, here.get(name, 0), anywhere.get(name, 0))
            for name in sorted(of_question(question))
        )
        state = _state(answer, metrics)
        given = state in (State.GIVEN, State.FAILED)
        found.append(
            Found(
                signal=question.name,
                preset=asked_by(catalogue, region, question.name),
                state=state,
                series=answer.series,
                error=answer.error,
                metrics=metrics,
                fallback="" if given else (question.asked.fallback or ""),
                others=() if given else _others(catalogue, region, question.name, here),
            )
        )
    return found


def more(catalogue: Catalogue, region: str, *, here: Mapping[str, int]) -> list[More]:
    """Signals that are not asked for in a region though its Prometheus could give them."""
    asked = {question.name for question in catalogue.asked_in(region)}
    found = []
    for signal in catalogue.signals:
        if signal not in asked:
            others = _others(catalogue, region, signal, here)
            if others:
                found.append(More(signal, others))
    return found


def asked_by(catalogue: Catalogue, region: str, signal: str) -> str:
    """The preset whose query is sent for a signal; "" when it is the region's own."""
    sent = next(one for one in catalogue.asked_in(region) if one.name == signal).asked
    presets = reversed(catalogue.presets_of(region))
    return next((name for name in presets if catalogue.of_preset(name).get(signal) == sent), "")


def _state(answer: Asked, metrics: tuple[Metric, ...]) -> State:
    if answer.error:
        return State.FAILED
    if answer.series:
        return State.GIVEN
    if any(metric.anywhere and not metric.here for metric in metrics):
        return State.OTHER_LABELS
    return State.EMPTY if all(metric.here for metric in metrics) else State.ABSENT


def _others(
    catalogue: Catalogue, region: str, signal: str, here: Mapping[str, int]
) -> tuple[str, ...]:
    used = catalogue.presets_of(region)
    able = (
        name
        for name in catalogue.presets
        if name not in used
        and (question := _of_preset(catalogue, name).get(signal)) is not None
        and all(here.get(metric) for metric in of_question(question))
    )
    return tuple(able)[:MOST_OTHERS]


def _of_preset(catalogue: Catalogue, name: str) -> dict[str, Question]:
    return {
        signal: Question(signal, catalogue.signals[signal], asked, {})
        for signal, asked in catalogue.of_preset(name).items()
    }


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, promql_parser.VectorSelector) and part.name:
        yield part.name
    for inner in _INNER:
        if (found := getattr(part, inner, None)) is not None:
            yield from _names(found)
    for argument in getattr(part, "args", None) or ():
        yield from _names(argument)
