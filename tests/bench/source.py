"""Measures reading a raw answer: 2,000 series of 1,440 points, beside the library's own frames.

Each way runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from prometheus_api_client import MetricRangeDataFrame

from collectors.answers import Reader, joined
from tests.bench.engine import Line

ROOT = Path(__file__).parents[2]
SERIES, POINTS = 2_000, 1_440
TIMES = 3


def lines() -> Iterator[Line]:
    """Our reading first, then the library's classes over the same answer."""
    with tempfile.TemporaryDirectory(prefix="sekisho-bench-") as folder:
        body = Path(folder) / "body.json"
        body.write_bytes(answer())
        for name, how in (("ours", "columns by label"), ("library", "MetricRangeDataFrame")):
            runs = [_in_its_own_process(name, body) for _ in range(TIMES)]
            seconds, megabytes = (median(column) for column in zip(*runs, strict=True))
            yield Line(
                f"raw answer, {how}",
                f"{seconds:.2f} s",
                f"{SERIES:,} series × {POINTS:,} points, {megabytes:,.0f} MB at its peak",
            )


def answer() -> bytes:
    """A body as a Prometheus sends it; every hundredth value is NaN."""
    result = [
        {
            "metric": {"region": "tokyo", "pool": f"pool-{one % 64}", "UUID": f"GPU-{one:08d}"},
            "values": [
                [
                    1_764_500_000 + 60 * point,
                    "NaN" if point % 100 == 0 else f"{math.sin(one + point) + 1:.6f}",
                ]
                for point in range(POINTS)
            ],
        }
        for one in range(SERIES)
    ]
    body = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(body).encode()


def ours(content: bytes) -> int:
    """As the collectors read it."""
    reader = Reader("http://bench")
    return len(joined([reader.part(reader.matrix(content))]).frame)


def library(content: bytes) -> int:
    """As prometheus-api-client would."""
    return len(MetricRangeDataFrame(json.loads(content)["data"]["result"]))


def _in_its_own_process(name: str, body: Path) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.source", name, str(body)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def _measured(way: Callable[[bytes], int], body: Path) -> tuple[float, float]:
    """Seconds, and by how much the peak of memory (MB) rose over what the body itself takes."""
    content = body.read_bytes()
    before = _peak_megabytes()
    start = time.perf_counter()
    way(content)
    seconds = time.perf_counter() - start
    return seconds, _peak_megabytes() - before


def _peak_megabytes() -> float:
    """This process's own; getrusage would tell that of the process which started it."""
    status = Path("/proc/self/status").read_text()
    return float(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


if __name__ == "__main__":
    took, rose = _measured({"ours": ours, "library": library}[sys.argv[1]], Path(sys.argv[2]))
    sys.stdout.write(f"{took} {rose}\n")
