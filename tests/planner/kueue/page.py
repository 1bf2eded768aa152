"""Writes the page that compares us with Kueue: `python -m tests.planner.kueue.page`.

`docs/reference/kueue-conformance.md` is generated from the rows; a test compares it with this.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.planner.kueue.rows import Row, Table, tables

COMMAND = "python -m tests.planner.kueue.page"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "kueue-conformance.md"

HEAD = f"""\
# Against Kueue's own tests

[Kueue](https://github.com/kubernetes-sigs/kueue) admits and evicts batch work on Kubernetes by
quotas, cohorts and priorities, as the planner does by the rules of one flat cohort. The tables of
its own tests are told here as scenarios of ours: a queue is a project, a flavor a pool of one-GPU
nodes, a unit of CPU a GPU, a priority a lane. `withinClusterQueue` becomes the lower lanes that the
newcomer's lane preempts, `reclaimWithinCohort` becomes `policy.reclaim`. Every row is run by every
engine (`tests/planner/test_kueue_rows.py`); where our rules say something else, what they say was
worked out by hand first, and the difference has its reason below.

The facts of the rows (quotas, workloads, priorities, who is evicted) come from
kubernetes-sigs/kueue, Copyright The Kubernetes Authors, under the
[Apache License 2.0](http://www.apache.org/licenses/LICENSE-2.0); the wording is ours. They are kept
in `tests/planner/kueue/`, from which this page is made (`{COMMAND}`).

"""


def text() -> str:
    """Return the page as it is to be."""
    every = tables()
    return "\n".join([HEAD + _overview(every), *[_section(table) for table in every]])


def _kind(row: Row) -> str:
    if row.not_expressible is not None:
        return "not expressible"
    return "different" if row.expect.get("difference") else "same"


def _overview(every: list[Table]) -> str:
    lines = [
        "| Kueue's file | Rows | Same | Different | Not expressible |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    total: Counter[str] = Counter()
    for table in every:
        kinds = Counter(_kind(row) for row in table.rows)
        total += kinds
        lines.append(_counts(f"`{table.file}`", kinds))
    return "\n".join([*lines, _counts("**All**", total), ""])


def _counts(title: str, kinds: Counter[str]) -> str:
    counts = [kinds.total(), kinds["same"], kinds["different"], kinds["not expressible"]]
    return f"| {title} | " + " | ".join(map(str, counts)) + " |"


def _section(table: Table) -> str:
    origin = table.origin
    rows: dict[str, list[Row]] = {"different": [], "same": [], "not expressible": []}
    for row in table.rows:
        rows[_kind(row)].append(row)
    parts = [
        f"## {table.file}\n",
        f"{origin['repository']}, `{origin['path']}` at commit `{origin['commit']}`.\n",
        _listing(
            "Different",
            ["Row there", "Kueue", "Ours", "Why"],
            [[_title(r), *_sides(r), _noted(r, r.expect["difference"])] for r in rows["different"]],
        ),
        _listing(
            "Same",
            ["Row there", "What it shows", "Both say"],
            [[_title(r), _noted(r, r.data["name"] + "."), _sides(r)[1]] for r in rows["same"]],
        ),
        _listing(
            "Not expressible",
            ["Row there", "Why"],
            [[_title(r), r.not_expressible or ""] for r in rows["not expressible"]],
        ),
    ]
    if table.without_named_rows:
        others = [f"`{test}` ({what})" for test, what in table.without_named_rows.items()]
        parts.append(f"Left aside, having no table of named rows: {', '.join(others)}.\n")
    return "\n".join(part for part in parts if part)


def _listing(title: str, columns: list[str], cells: list[list[str]]) -> str:
    if not cells:
        return ""
    lines = [columns, ["---"] * len(columns), *cells]
    return f"### {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _title(row: Row) -> str:
    return f"{row.test}: {row.source}" if row.source != row.test else row.test


def _noted(row: Row, sentence: str) -> str:
    return " ".join([sentence, *([row.data["note"]] if "note" in row.data else [])])


def _sides(row: Row) -> tuple[str, str]:
    """Say in a few words what Kueue expects, and what we do."""
    expect = row.expect
    if "order" in expect:
        order = ", then ".join(f"`{name}`" for name in expect["order"])
        return order, order
    kueue, ours = expect["kueue"], expect["ours"]
    if "share" in ours:
        return _pairs(kueue["share_per_mille"], " ‰"), _pairs(ours["share"])
    if "running" in row.data:
        return _victims(kueue), _victims(ours)
    return (
        ", ".join(
            f"`{queue}` {pool} {available} of {kueue['most'][queue][pool]}"
            for queue, pools in kueue.get("available", {}).items()
            for pool, available in pools.items()
        ),
        ", ".join(
            f"`{queue}` {pool} {numbers['available']} of {numbers['most']}"
            for queue, pools in ours.items()
            for pool, numbers in pools.items()
        ),
    )


def _pairs(values: dict[str, object], unit: str = "") -> str:
    return ", ".join(f"`{name}` {value}{unit if value else ''}" for name, value in values.items())


def _victims(evicted: dict[str, str]) -> str:
    return ", ".join(f"`{name}` ({ground})" for name, ground in evicted.items()) or "nobody"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
