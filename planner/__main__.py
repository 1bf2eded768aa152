"""The command line: simulate, compare, explain, check, bench, warm."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from planner import benchmarks, recording, simulate
from planner.compare import Comparison, compare
from planner.description.problems import ScenarioError
from planner.explain import LANGUAGES, explain, explain_order
from planner.measures import fairness, goodput, ledger, locality, waits
from planner.scenario import Scenario, read
from planner.simulation import ENGINES
from planner.trace import Trace

DONE, FAILED, WRONG_INPUT = 0, 1, 2


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame ready for JSON; what is absent becomes None."""
    columns = [
        [None if absent else value for value, absent in zip(column, column.isna(), strict=True)]
        for _, column in frame.astype(object).items()
    ]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _read(path: Path) -> Scenario:
    if not sys.stderr.isatty():
        return read(path)
    told = False

    def tell(rows: int) -> None:
        nonlocal told
        told = True
        print(f"\r{path}: {rows:,} jobs read", end="", file=sys.stderr, flush=True)

    try:
        return read(path, progress=tell)
    finally:
        if told:
            print(file=sys.stderr)


def _measures(trace: Trace) -> dict[str, Any]:
    return {
        "waits_by_lane": records(waits.by(trace, ("lane",))),
        "total_waits_by_lane": records(waits.by(trace, ("lane",), which="total")),
        "waits_by_project": records(waits.by(trace, ("project", "lane"))),
        "goodput_by_lane": records(goodput.by(trace, ("lane",))),
        "goodput_by_pool": records(goodput.by(trace, ("pool",))),
        "ledger": records(ledger.pairs(trace)),
        "locality_by_project": records(locality.by_project(trace)),
        "fairness_by_project": records(fairness.delivered(trace)),
    }


def _simulate(arguments: argparse.Namespace) -> None:
    trace = simulate(_read(arguments.scenario), engine=arguments.engine)
    if arguments.json:
        content = {
            "scenario": trace.scenario.name,
            "jobs": records(trace.jobs),
            "attempts": records(trace.attempts),
            "measures": _measures(trace),
        }
        _write(arguments.json, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    if arguments.jobs:
        _write(arguments.jobs, trace.jobs.to_csv(index=False, lineterminator="\n"))
    if arguments.parquet:
        recording.save(trace, arguments.parquet)
    states = trace.jobs["state"].value_counts()
    print(f"{trace.scenario.name}: {len(trace.jobs)} jobs, {trace.end_seconds} s")
    print(", ".join(f"{count} {state}" for state, count in states.items()) or "no jobs")
    table = waits.by(trace, ("lane",))
    if len(table):
        print(table.to_string(index=False))


def _compare(arguments: argparse.Namespace) -> None:
    baseline, proposal = _read(arguments.baseline), _read(arguments.proposal)

    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total} replications", end="", file=sys.stderr)

    comparison = compare(baseline, proposal, replications=arguments.replications, progress=tell)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if arguments.json:
        content = comparison.to_mapping()
        _write(arguments.json, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    _show(comparison)


def _show(comparison: Comparison) -> None:
    print(f"{comparison.replications} replications of {comparison.days} days")
    print(f"interval: {comparison.interval}")
    for effect in comparison.effects:
        about = " ".join(
            name
            for name in (effect.project, effect.lane, effect.pool, effect.domain)
            if name is not None
        )
        spread = (
            "no interval"
            if effect.low is None or effect.high is None
            else f"{effect.low:+,.6g} to {effect.high:+,.6g}"
        )
        least = "at least " if effect.at_least else ""
        print(
            f"{effect.measure} [{about or 'all'}]: {least}{effect.before:,.6g} -> "
            f"{effect.after:,.6g} {effect.unit} ({spread}): {effect.verdict}"
        )


def _explain(arguments: argparse.Namespace) -> None:
    scenario, job, at = _read(arguments.scenario), arguments.job, arguments.at
    if arguments.before is None:
        explanation = explain(scenario, job, at_seconds=at)
    else:
        explanation = explain_order(scenario, job, arguments.before, at_seconds=at)
    if arguments.json:
        content = json.dumps(explanation.to_mapping(), ensure_ascii=False, indent=1)
        _write(arguments.json, content + "\n")
    print("\n".join(explanation.lines(arguments.language)))


def _check(arguments: argparse.Namespace) -> None:
    scenario = _read(arguments.scenario)
    print(
        f"{scenario.name}: {len(scenario.pools)} pools, {len(scenario.projects)} projects, "
        f"{len(scenario.lanes)} lanes, {len(scenario.jobs)} jobs: nothing wrong"
    )


def _bench(arguments: argparse.Namespace) -> None:
    runs = list(benchmarks.suite([arguments.jobs], time.perf_counter))
    for run in runs:
        print(
            f"{run.name}: {run.run_seconds:.3f} s in the engine, "
            f"{run.seconds_per_event * 1e9:,.0f} ns an event, longest queue {run.longest_queue:,}, "
            f"{run.bytes_per_job:,.0f} bytes a job; "
            f"{run.prepare_seconds:.3f} s to prepare, {run.tell_seconds:.3f} s to tell"
        )
    if arguments.json:
        content = [run._asdict() for run in runs]
        _write(arguments.json, json.dumps(content, indent=1) + "\n")


def _warm(_arguments: argparse.Namespace) -> None:
    words = "Compiling the engine: half a minute, once for a version of the code.\n"
    said = threading.Timer(2, sys.stderr.write, (words,))  # from the cache it takes less
    said.start()
    benchmarks.warm()
    said.cancel()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return number


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    main = argparse.ArgumentParser(prog="python -m planner", description=__doc__)
    commands = main.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("simulate", help="run a scenario and record what happens")
    command.add_argument("scenario", type=Path)
    command.add_argument("--engine", choices=ENGINES, default=None, help=f"default: {ENGINES[0]}")
    command.add_argument("--json", type=Path, metavar="FILE", help="jobs, attempts and measures")
    command.add_argument("--jobs", type=Path, metavar="FILE", help="the jobs as CSV")
    command.add_argument("--parquet", type=Path, metavar="DIR", help="all records as Parquet")
    command.set_defaults(run=_simulate)
    command = commands.add_parser("compare", help="say what a proposal changes")
    command.add_argument("baseline", type=Path)
    command.add_argument("proposal", type=Path)
    command.add_argument("--replications", type=_positive, default=20)
    command.add_argument("--json", type=Path, metavar="FILE", help="every effect")
    command.set_defaults(run=_compare)
    command = commands.add_parser("explain", help="say why a job waits, or why one goes first")
    command.add_argument("scenario", type=Path)
    command.add_argument("--job", required=True, metavar="ID")
    command.add_argument(
        "--at", type=int, metavar="SECONDS", help="at this second only, instead of its whole life"
    )
    command.add_argument("--before", metavar="OTHER", help="say why it went before this job")
    command.add_argument("--language", choices=LANGUAGES, default=LANGUAGES[0])
    command.add_argument("--json", type=Path, metavar="FILE", help="the facts and the sentences")
    command.set_defaults(run=_explain)
    command = commands.add_parser("check", help="read and validate only")
    command.add_argument("scenario", type=Path)
    command.set_defaults(run=_check)
    command = commands.add_parser("bench", help="measure the engine on a made-up fleet")
    command.add_argument("--jobs", type=_positive, default=100_000)
    command.add_argument("--json", type=Path, metavar="FILE", help="every figure")
    command.set_defaults(run=_bench)
    command = commands.add_parser("warm", help="compile the engine ahead, so that no run has to")
    command.set_defaults(run=_warm)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 when done, 2 when the input is wrong, 1 for anything else."""
    parsed = parser().parse_args(arguments)
    try:
        parsed.run(parsed)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(main())
