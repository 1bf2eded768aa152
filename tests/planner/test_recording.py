"""What a run leaves behind survives being written to files."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from hypothesis import HealthCheck, given, settings

from planner import recording, simulate
from planner.__main__ import main
from planner.scenario import parse
from tests.planner.drawing import scenario_mappings


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings())
def test_what_is_saved_is_what_is_loaded(mapping: dict[str, Any]) -> None:
    trace = simulate(parse(mapping))
    with TemporaryDirectory() as folder:
        recording.save(trace, Path(folder))
        loaded = recording.load(Path(folder))
    for name in recording.Recording._fields:
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(trace, name), obj=name)


def test_the_command_line_saves_a_run(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "planner" / "examples" / "lend-to-speech.toml"
    assert main(["simulate", str(example), "--parquet", str(tmp_path / "run")]) == 0
    assert len(recording.load(tmp_path / "run").jobs) > 0
