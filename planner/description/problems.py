"""What is wrong with an input, said so that a person can put it right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where it stands, what stands there, what was expected."""

    path: str
    value: str
    expected: str
    source: str

    def __str__(self) -> str:
        where = f"{self.source}: {self.path}" if self.path else self.source
        found = f" = {self.value}" if self.value else ""
        return f"{where}{found}: {self.expected}"


class ScenarioError(ValueError):
    """A scenario cannot be used; the text lists every problem, the first twenty in full."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"and {len(self.problems) - SHOWN} more")
        super().__init__("\n".join(lines))


def shown(value: object) -> str:
    """Write a value as it could stand in the file, cut short when it is long."""
    if isinstance(value, str):
        text = '"' + value + '"'
    elif value is None:
        text = "nothing"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, dict):
        text = "{" + ", ".join(str(key) for key in value) + "}"
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(shown(item) for item in value) + "]"
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
