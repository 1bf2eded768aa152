"""What is wrong with an input, said so that a person can put it right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 20  # in the text of an error
KEPT = 1_000  # of what is wrong with a table of millions of jobs; the others are counted


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


class Problems:
    """What has been found so far: the first thousand as they are, and how many there are."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self.kept: list[Problem] = []
        self.count = 0
        self.extend(problems)

    def __bool__(self) -> bool:
        return self.count > 0

    def append(self, problem: Problem) -> None:
        """Add one; beyond the first thousand it is only counted."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(problem)

    def count_more(self, number: int) -> bool:
        """Only count so many, if no more are kept; say whether it was done."""
        full = len(self.kept) == KEPT
        self.count += number if full else 0
        return full

    def extend(self, problems: Iterable[Problem] | Problems) -> None:
        """Add those of another find."""
        if isinstance(problems, Problems):
            self.kept += problems.kept[: KEPT - len(self.kept)]
            self.count += problems.count
        else:
            for problem in problems:
                self.append(problem)


class ScenarioError(ValueError):
    """A scenario cannot be used; the text lists the first twenty problems and counts the others.

    `problems` holds the first thousand, `count` says how many there are.
    """

    def __init__(self, problems: Iterable[Problem] | Problems) -> None:
        found = problems if isinstance(problems, Problems) else Problems(problems)
        self.problems = tuple(found.kept)
        self.count = found.count
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if self.count > SHOWN:
            lines.append(f"and {self.count - SHOWN} more")
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
