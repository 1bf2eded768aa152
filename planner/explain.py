"""Why a job waits, and why one job goes before another: facts, and sentences made of them.

>>> from planner.explain import explain, explain_order
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from planner.description.problems import Problem, ScenarioError, shown
from planner.description.record import Scenario
from planner.explanation.facts import Life, Moment, Precedence
from planner.explanation.life import live, look
from planner.explanation.order import decide
from planner.explanation.order_sentences import precedence
from planner.explanation.sentences import Teller
from planner.explanation.wording import LANGUAGES, Language

__all__ = ["LANGUAGES", "Explanation", "Language", "explain", "explain_order"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The facts that answer one question about a scenario, and how to say them."""

    scenario: str
    start: datetime
    facts: Moment | Life | Precedence

    def lines(self, language: Language = "en") -> list[str]:
        """Say it in sentences, one a line; lines that only give details are indented."""
        teller = Teller(language, self.start)
        if isinstance(self.facts, Moment):
            return list(teller.moment(self.facts))
        if isinstance(self.facts, Life):
            return list(teller.life(self.facts))
        return list(precedence(self.facts, language, self.start))

    def to_mapping(self) -> dict[str, Any]:
        """Return the facts and the sentences ready for JSON; absent values are None."""
        return {
            "scenario": self.scenario,
            "question": type(self.facts).__name__.lower(),
            "facts": asdict(self.facts),
            "sentences": {language: self.lines(language) for language in LANGUAGES},
        }


def explain(scenario: Scenario, job: str, *, at_seconds: int | None = None) -> Explanation:
    """Explain how a job stands at a second, and why; without one, its whole life.

    A second counts after the pass of the last instant until then. Raises `ScenarioError` for a
    job that is not there, and for a second outside the run.
    """
    position = _position(scenario, job)
    _check(scenario, at_seconds)
    facts = live(scenario, position) if at_seconds is None else look(scenario, position, at_seconds)
    return Explanation(scenario.name, scenario.start, facts)


def explain_order(
    scenario: Scenario, job: str, other: str, *, at_seconds: int | None = None
) -> Explanation:
    """Explain why a job went before another one, or say that it did not.

    It is about the job's last start until a second; without one, about its first start while the
    other waited, too. Raises `ScenarioError` as `explain` does.
    """
    positions = _position(scenario, job), _position(scenario, other, "--before")
    if job == other:
        expected = "expected another job than --job"
        raise ScenarioError([Problem("--before", shown(other), expected, scenario.name)])
    _check(scenario, at_seconds)
    facts = decide(scenario, *positions, at_seconds=at_seconds)
    return Explanation(scenario.name, scenario.start, facts)


def _position(scenario: Scenario, job: str, option: str = "--job") -> int:
    """Return a job's place in the file."""
    ids = [str(each) for each in scenario.table.ids]
    if job in ids:
        return ids.index(job)
    near = get_close_matches(job, ids)
    expected = "expected the id of a job"
    if near:
        expected += f"; near it are {', '.join(near)}"
    raise ScenarioError([Problem(option, shown(job), expected, scenario.name)])


def _check(scenario: Scenario, at_seconds: int | None) -> None:
    """Refuse a second at which nothing is known."""
    horizon = scenario.horizon_seconds
    if at_seconds is None:
        return
    if at_seconds < 0 or (horizon is not None and at_seconds > horizon):
        upper = "" if horizon is None else f" to {horizon}, the horizon"
        expected = f"expected 0{upper or ' or more'}"
        raise ScenarioError([Problem("--at", str(at_seconds), expected, scenario.name)])
