"""Kueue's own test tables, row by row: the same victims and numbers, or the reason why not."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from planner import simulate
from planner.policy.priority import INFINITE_SHARE, DominantShares
from planner.policy.quota import Accounts, Quota
from planner.simulation import ENGINES
from tests.planner.kueue import page
from tests.planner.kueue.rows import AT_SECONDS, Row, scenario, tables

# Rows by file as they were found in Kueue, so that none is left out without a word.
FOUND = {
    "clusterqueue_test.go": 25,
    "fair_sharing_test.go": 15,
    "preemption_fair_test.go": 41,
    "preemption_test.go": 47,
    "resource_node_test.go": 3,
    "resource_test.go": 8,
    "snapshot_test.go": 30,
}
GROUNDS = {"InClusterQueue": "preemption", "InCohortReclamation": "reclaim"}
TABLES = tables()
ROWS = [row for table in TABLES for row in table.rows]
TOLD = [row for row in ROWS if row.not_expressible is None]
EVICTIONS = [row for row in TOLD if "running" in row.data and "ours" in row.expect]
ORDERINGS = [row for row in TOLD if "order" in row.expect]
SHARES = [row for row in TOLD if "share" in row.expect.get("ours", {})]
QUOTAS = [row for row in TOLD if row not in EVICTIONS + ORDERINGS + SHARES]


def _name(row: Row) -> str:
    return f"{row.test}: {row.source}"


def _evicted(row: Row, engine: str, gpus: int | None = None) -> dict[str, str]:
    """Run the row, see that everybody runs when the newcomer comes, and say who goes then."""
    trace = simulate(scenario(row, gpus), engine=engine)
    jobs = trace.jobs.set_index("id")
    for work in row.data["running"]:
        assert jobs.loc[work["name"], "first_start_seconds"] == work.get("since", 0)
    evictions = trace.evictions
    assert (evictions["at_seconds"] == AT_SECONDS).all()
    assert (evictions["preemptor"] == row.data["incoming"]["name"]).all()
    return dict(zip(evictions["victim"], evictions["ground"].map(str), strict=True))


# --- Nothing is left out, nothing is unexplained ---------------------------------------------


def test_every_row_found_in_kueue_is_here_once() -> None:
    for table in TABLES:
        by_test = {test: [row for row in table.rows if row.test == test] for test in table.found}
        assert {test: len(rows) for test, rows in by_test.items()} == table.found
        assert len({(row.test, row.source) for row in table.rows}) == FOUND[table.file]
        assert len(table.rows) == FOUND[table.file]
    assert {table.file for table in TABLES} == set(FOUND)


@pytest.mark.parametrize("row", EVICTIONS + QUOTAS + SHARES, ids=_name)
def test_a_difference_is_explained_where_there_is_one_and_nowhere_else(row: Row) -> None:
    assert (row.expect["difference"] is not None) == _differs(row)


def _differs(row: Row) -> bool:
    kueue, ours = row.expect["kueue"], row.expect["ours"]
    if row in EVICTIONS:
        return {name: GROUNDS.get(reason) for name, reason in kueue.items()} != dict(ours)
    if row in SHARES:
        shares = {
            name: share if share == "infinite" else math.ceil(1000 * Fraction(share))
            for name, share in ours["share"].items()
        }
        return bool(shares != kueue["share_per_mille"])
    available = {
        queue: {pool: numbers["available"] for pool, numbers in pools.items()}
        for queue, pools in ours.items()
    }
    return "available" in kueue and bool(available != kueue["available"])


def test_the_page_says_what_the_rows_say() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), f"run: {page.COMMAND}"


# --- Who is evicted --------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("row", EVICTIONS, ids=_name)
def test_the_newcomer_displaces_whom_the_row_says(row: Row, engine: str) -> None:
    assert _evicted(row, engine) == row.expect["ours"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("row", ORDERINGS, ids=_name)
def test_the_candidates_go_in_the_order_of_the_row(row: Row, engine: str) -> None:
    order: list[str] = row.expect["order"]
    for gpus in range(1, len(order)):
        assert set(_evicted(row, engine, gpus)) == set(order[:gpus])


# --- What quota leaves -----------------------------------------------------------------------


class _Books:
    """The accounts of every pool of a row, by name."""

    def __init__(self, row: Row) -> None:
        quotas = row.quotas()
        self.projects = list(dict.fromkeys(project for project, _, _, _ in quotas))
        cohort_of = {project: cohort for project, cohort, _, _ in quotas}
        self.cohorts = list(dict.fromkeys(cohort_of.values()))
        numbers = [self.cohorts.index(cohort_of[project]) for project in self.projects]
        self.pools = {
            pool: Accounts(
                numbers,
                [
                    (
                        self.projects.index(project),
                        Quota(project, pool, q["nominal"], q.get("borrowing"), q.get("lending")),
                    )
                    for project, _, where, q in quotas
                    if where == pool
                ],
            )
            for pool in dict.fromkeys(pool for _, _, pool, _ in quotas)
        }

    def add(self, project: str, pool: str, amount: int) -> None:
        self.pools[pool].add(self.projects.index(project), amount)

    def numbers(self, project: str, pool: str) -> dict[str, Any]:
        accounts, number = self.pools[pool], self.projects.index(project)
        return {
            "available": accounts.available(number),
            "most": accounts.most(number),
            "borrows": accounts.borrows(number),
        }

    def room(self, project: str, pool: str) -> int:
        """Return the most that fits now: found by asking, not by computing it."""
        accounts, number = self.pools[pool], self.projects.index(project)
        amounts = range(1, accounts.most(number) + 2)
        return next(amount - 1 for amount in amounts if not accounts.fits(number, amount))


def _booked(row: Row) -> _Books:
    books = _Books(row)
    for project, pools in row.data.get("usage", {}).items():
        for pool, amount in pools.items():
            books.add(project, pool, amount)
    workloads: dict[str, dict[str, Any]] = row.data.get("workloads", {})
    steps = [(name, 1) for name in workloads]
    steps += [(name, -1) for name in row.data.get("remove", [])]
    steps += [(name, 1) for name in row.data.get("add", [])]
    for name, sign in steps:
        work = workloads[name]
        books.add(work["queue"], work["pool"], sign * work["amount"])
    return books


@pytest.mark.parametrize("row", QUOTAS, ids=_name)
def test_what_is_available_at_most_and_borrowed_is_exact(row: Row) -> None:
    books = _booked(row)

    assert row.expect["ours"] == {
        queue: {pool: books.numbers(queue, pool) for pool in described["quota"]}
        for queue, described in row.queues.items()
    }


@pytest.mark.parametrize("row", [row for row in QUOTAS if row.test == "TestAvailable"], ids=_name)
def test_just_what_kueue_calls_available_fits(row: Row) -> None:
    kueue, empty, booked = row.expect["kueue"], _Books(row), _booked(row)
    for books, key in ((empty, "most"), (booked, "available")):
        assert kueue[key] == {
            queue: {pool: books.room(queue, pool) for pool in described["quota"]}
            for queue, described in row.queues.items()
        }


@pytest.mark.parametrize(
    "row", [row for row in QUOTAS if "subtree_quota" in row.expect["kueue"]], ids=_name
)
def test_a_cohort_has_the_capacity_and_the_use_that_kueue_counts(row: Row) -> None:
    kueue, books = row.expect["kueue"], _booked(row)
    for cohort, pools in kueue["subtree_quota"].items():
        number = books.cohorts.index(cohort)
        assert pools == {pool: books.pools[pool].capacity[number] for pool in pools}
        assert kueue["usage"][cohort] == {
            pool: books.pools[pool].shared_use[number] for pool in pools
        }


@pytest.mark.parametrize("row", SHARES, ids=_name)
def test_a_project_has_the_dominant_share_of_the_row(row: Row) -> None:
    """Shares come in units that all projects have in common: a yardstick has a share of 1."""
    yard = {
        "yardstick": {"cohort": "a yard", "quota": {"yard": {"nominal": 0}}},
        "lender": {"cohort": "a yard", "quota": {"yard": {"nominal": 1}}},
    }
    queues = row.queues | yard
    books = _booked(replace(row, data=row.data | {"queues": queues}))
    books.add("yardstick", "yard", 1)
    weights = [Fraction(queues[name].get("weight", "1")) for name in books.projects]
    shares = DominantShares(list(books.pools.values()), weights)
    for number in range(len(books.projects)):
        shares.forget(number)

    def share(name: str) -> str:
        units = shares.of(books.projects.index(name))
        one = shares.of(books.projects.index("yardstick"))
        return "infinite" if units == INFINITE_SHARE else str(Fraction(int(units), int(one)))

    assert row.expect["ours"]["share"] == {
        name: share(name) for name in row.expect["ours"]["share"]
    }
