"""Reads access.toml: who gets what from every address."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path(__file__).parent / "access.toml"
CAST = ("lead", "stranger", "ops", "auditor", "anonymous")
SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Row:
    """One address asked in one way, and the status each of the cast gets."""

    url: str
    lead: int
    stranger: int
    ops: int
    auditor: int
    anonymous: int | str = SIGN_IN
    method: str = "GET"
    args: dict[str, str | int] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    query: str = ""

    @property
    def label(self) -> str:
        """How tests name the row."""
        named = ",".join(str(value) for value in self.args.values())
        return f"{self.method} {self.url}{self.query} {named}".rstrip()

    def expected(self, who: str) -> int | str:
        """The status, or SIGN_IN, for one of the cast."""
        status: int | str = getattr(self, who)
        return status


def rows() -> list[Row]:
    """The whole table."""
    return [Row(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]]
