"""The records of a run as Parquet files, and back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from planner.trace import Trace


class Recording(NamedTuple):
    """The four frames of a trace, without the scenario they came from."""

    jobs: pd.DataFrame
    attempts: pd.DataFrame
    spells: pd.DataFrame
    evictions: pd.DataFrame


def save(trace: Trace, folder: Path) -> None:
    """Write `jobs`, `attempts`, `spells` and `evictions` as Parquet into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in Recording._fields:
        getattr(trace, name).to_parquet(folder / f"{name}.parquet", index=False)


def load(folder: Path) -> Recording:
    """Read what `save` wrote: the same frames, types and absent values included."""
    return Recording(*(pd.read_parquet(folder / f"{name}.parquet") for name in Recording._fields))
