"""The planner is a library of its own: it knows nothing of the web, of queues, or of charts."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOREIGN = (
    "django",
    "celery",
    "redis",
    "kombu",
    "plotly",
    "requests",
    "portal",
    "collectors",
    "simpy",
)
PROGRAM = """
import importlib, pkgutil, sys
import planner
for module in pkgutil.walk_packages(planner.__path__, "planner."):
    importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
print(*sorted(name for name in sys.modules if name.startswith("planner.")))
"""


def test_a_fresh_interpreter_that_imports_all_of_the_planner_knows_nothing_foreign() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    packages, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert packages.isdisjoint(FOREIGN)
    for file in (ROOT / "planner").rglob("*.py"):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        assert name == "planner" or name in modules


def test_no_module_of_the_planner_is_too_long_to_read() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for file in (ROOT / "planner").rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}
