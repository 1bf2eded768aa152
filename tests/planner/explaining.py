"""What the tests of `explain` share: quota rows to bend, and one question asked."""

from typing import Any

from planner.explain import explain
from planner.explanation.facts import Moment
from planner.scenario import Scenario


def quotas(speech: int, vision: int, **of_speech: int) -> list[dict[str, Any]]:
    """The quota of both projects in the one pool of the small scenario."""
    return [
        {"project": "speech", "pool": "h100", "nominal": speech} | of_speech,
        {"project": "vision", "pool": "h100", "nominal": vision},
    ]


def at(plan: Scenario, name: str, seconds: int) -> tuple[Moment, list[str], list[str]]:
    """Ask how a job stood at a second: the facts, and the sentences in both languages."""
    explanation = explain(plan, name, at_seconds=seconds)
    assert isinstance(explanation.facts, Moment)
    return explanation.facts, explanation.lines("en"), explanation.lines("ja")
