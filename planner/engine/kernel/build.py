"""From a scenario to the kernel's records: all by number, every duration in whole seconds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from planner.description.record import Scenario
from planner.engine.columns import Columns, last_second
from planner.engine.kernel import layout as k
from planner.engine.kernel.hardware import durations, nodes, outages
from planner.engine.kernel.lines import Key, line_up, rows_of
from planner.policy.multifactor import normalised_shares
from planner.policy.priority import lanes_in_turn
from planner.policy.quota import UNLIMITED
from planner.vocabulary import (
    Backfill,
    Order,
    Placement,
    Queueing,
    Reason,
    Reclaim,
    Recovery,
    Victims,
)
from planner.work import JobTable

# Places of the words in the kernel's codes.
ORDERS = (Order.FIFO, Order.FAIR_SHARE, Order.MULTIFACTOR)
PLACEMENTS = (Placement.LISTED, Placement.LOCALITY, Placement.PACK, Placement.SPREAD)
RECLAIMS = (Reclaim.NEVER, Reclaim.LOWER_LANE, Reclaim.ANY)
RECOVERIES = (Recovery.REQUEUE, Recovery.SUSPEND, Recovery.CANCEL)
REASONS = (
    Reason.POOL_OUTAGE,
    Reason.LANE_LIMIT_REACHED,
    Reason.WAITING_FOR_QUOTA,
    Reason.BORROWING_LIMIT_REACHED,
    Reason.WAITING_FOR_CAPACITY,
    Reason.FRAGMENTED,
    Reason.BEHIND_IN_QUEUE,
    Reason.BACKING_OFF,
    Reason.SUSPENDED,
    Reason.LANE_NOT_ASSIGNED,
    Reason.NO_QUOTA,
    Reason.NO_MATCHING_ACCELERATOR,
    Reason.RESIDENCY_FORBIDS,
    Reason.NO_LINK,
    Reason.EXCEEDS_POOL,
    Reason.EXCEEDS_MAX_QUOTA,
)
_NO_END = 1 << 53
_EXACT = 1 << 62  # products of whole numbers stay below it


class TooFine(Exception):  # noqa: N818 - what is the case, not an error of the caller
    """The weights cannot be compared exactly in 64 bits, so this scenario needs the reference."""


class _Shapes(NamedTuple):
    shape_of_job: np.ndarray[Any, Any]
    reason_of_job: np.ndarray[Any, Any]
    keys: list[Key]


def build(scenario: Scenario) -> k.State:
    """Return the state of a run before its first event; `TooFine` when 64 bits are too few."""
    return _Builder(scenario).state()


class _Builder:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.columns = Columns(scenario)
        self.table: JobTable = scenario.table

    def state(self) -> k.State:
        scenario, table = self.scenario, self.table
        shapes = self._shapes()
        arrays: dict[str, Any] = {
            "submit": table.submit_seconds,
            "work": table.work_seconds,
            "limit": np.where(table.limit_seconds < 0, table.work_seconds, table.limit_seconds),
            "interval": table.checkpoint_interval_seconds,
            "restart": table.restart_seconds,
            "kind": table.kind,
        }
        arrays |= self._order()
        arrays |= durations(scenario, table.kinds)
        arrays |= nodes(scenario, self.columns)
        arrays |= self._quota()
        arrays |= self._lanes()
        arrays |= line_up(scenario, self.columns, shapes.keys, arrays["rows"], self.row_number)
        arrays |= self._projects(arrays["rows"], arrays["queues"])
        arrays |= outages(scenario, self.columns)
        arrays |= self._job_states(shapes)
        arrays |= self._lists(arrays)
        arrays["rule"] = self._rules(len(scenario.lanes))
        return k.State(**arrays)

    # --- Jobs --------------------------------------------------------------------------------

    def _order(self) -> dict[str, Any]:
        submit = self.table.submit_seconds
        number = len(submit)
        in_order = number < 2 or bool((submit[1:] >= submit[:-1]).all())
        order = np.arange(number, dtype=np.int32)
        if not in_order:
            order = np.argsort(submit, kind="stable").astype(np.int32)
        turn = np.empty(number, np.int32)
        turn[order] = np.arange(number, dtype=np.int32)
        horizon = self.scenario.horizon_seconds
        if horizon is not None:
            order = order[: int(np.searchsorted(submit[order], horizon, side="right"))]
        return {"order": order, "turn": turn}

    def _shapes(self) -> _Shapes:
        """Find which jobs are interchangeable, and those that no pool can ever hold."""
        table, columns = self.table, self.columns
        project_of = _codes(table.project_names, columns.project_number)[table.project]
        lane_of = _codes(table.lane_names, columns.lane_number)[table.lane]
        wheres: dict[object, int] = {}
        where_of_kind = np.array(
            [
                wheres.setdefault(
                    (kind.accelerator, kind.pools, kind.regions, kind.data_region), len(wheres)
                )
                for kind in table.kinds
            ],
            dtype=np.int64,
        )
        sizes, size_values = pd.factorize(table.gpus)
        lanes = len(self.scenario.lanes)
        key = (project_of * lanes + lane_of) * max(1, len(wheres))
        if len(where_of_kind):
            key = key + where_of_kind[table.kind]
        key = key * max(1, len(size_values)) + sizes
        codes, uniques = pd.factorize(key)
        example = np.empty(len(uniques), np.int64)
        example[codes[::-1]] = np.arange(len(codes))[::-1]
        accounts = columns.accounts()
        pools = self.scenario.pools
        numbers: dict[Key, int] = {}
        shape_of = np.full(len(uniques), -1, np.int32)
        reason_of = np.full(len(uniques), -1, np.int8)
        # By place: the pools that are open to a job there, and how large it may be in each.
        known: dict[int, tuple[list[tuple[int, int, int]], Reason | None]] = {}
        places = (uniques // max(1, len(size_values))).tolist()
        examples = zip(
            places,
            project_of[example].tolist(),
            lane_of[example].tolist(),
            table.gpus[example].tolist(),
            example.tolist(),
            strict=True,
        )
        in_file_order = self.scenario.policy.placement is not Placement.LISTED
        for at, (place, project, lane, gpus, position) in enumerate(examples):
            if place not in known:
                open_to, reason = columns.allowed(table[position])
                limit = columns.lane_limit(project, lane)
                if in_file_order:  # what else is equal goes by the order of the file
                    open_to = tuple(sorted(open_to))
                most = [
                    (p, pools[p].gpus, min(pools[p].gpus, limit, accounts[p].most(project)))
                    for p in open_to
                ]
                known[place] = most, reason
            most, reason = known[place]
            found = tuple(p for p, _, may in most if gpus <= may)
            if reason is None and not found:
                fits = any(gpus <= size for _, size, _ in most)
                reason = Reason.EXCEEDS_MAX_QUOTA if fits else Reason.EXCEEDS_POOL
            if reason is not None:
                reason_of[at] = REASONS.index(reason)
            else:
                shape_of[at] = numbers.setdefault((project, lane, gpus, found), len(numbers))
        return _Shapes(shape_of[codes], reason_of[codes], list(numbers))

    def _job_states(self, shapes: _Shapes) -> dict[str, Any]:
        jobs = rows_of(len(self.table), k.JOB)
        for name in ("first_start", "end", "attempt", "next", "prev", "node", "rest", "sp"):
            jobs[name] = -1
        jobs["shape_id"] = shapes.shape_of_job
        jobs["reason"] = shapes.reason_of_job
        jobs["state"] = np.where(shapes.shape_of_job < 0, k.UNSCHEDULABLE, k.NOT_YET)
        return {"jobs": jobs}

    # --- Quota -------------------------------------------------------------------------------

    def _quota(self) -> dict[str, Any]:
        """Lay out the rows of quota by project, and the cohorts by pool."""
        scenario, columns = self.scenario, self.columns
        quotas = sorted(
            (
                (columns.project_number[q.project], columns.pool_number[q.pool], q)
                for q in scenario.quotas
            ),
            key=lambda row: row[:2],
        )
        pairs = sorted({(pool, columns.cohort_of[project]) for project, pool, _ in quotas})
        cohort_number = {pair: number for number, pair in enumerate(pairs)}
        cohorts, rows = rows_of(len(pairs), k.COHORT), rows_of(len(quotas), k.ROW)
        self.row_number: dict[tuple[int, int], int] = {}
        for r, (project, pool, quota) in enumerate(quotas):
            row = rows[r]
            self.row_number[project, pool] = r
            row["project"], row["pool"] = project, pool
            row["cohort"] = cohort = cohort_number[pool, columns.cohort_of[project]]
            lending, borrowing = quota.lending_limit, quota.borrowing_limit
            guaranteed = 0 if lending is None else max(0, quota.nominal - lending)
            row["nominal"], row["guaranteed"] = quota.nominal, guaranteed
            row["ceiling"] = UNLIMITED if borrowing is None else quota.nominal + borrowing
            cohorts[cohort]["capacity"] += quota.nominal - guaranteed
            cohorts[cohort]["most_guaranteed"] = max(guaranteed, cohorts[cohort]["most_guaranteed"])
        cohorts["noted_room"] = cohorts["capacity"]
        self._share_units(rows, cohorts)
        return {"rows": rows, "cohorts": cohorts, "_pairs": pairs}

    def _share_units(self, rows: Any, cohorts: Any) -> None:
        """Write what one borrowed GPU adds to the dominant share, as a fraction."""
        known: dict[tuple[int, Fraction], tuple[int, int]] = {}
        largest_num = largest_den = 1
        for row in rows:
            capacity = int(cohorts[row["cohort"]]["capacity"])
            weight = self.columns.weights[int(row["project"])]
            if (capacity, weight) not in known:
                unit = 1 / (capacity * weight) if capacity and weight else None
                known[capacity, weight] = (
                    (1, 0) if unit is None else (unit.numerator, unit.denominator)
                )
            num, den = known[capacity, weight]
            borrowed = self.scenario.pools[int(row["pool"])].gpus
            largest_num, largest_den = max(largest_num, num * borrowed), max(largest_den, den)
            if largest_num * largest_den >= _EXACT:
                raise TooFine
            row["num"], row["den"] = num, den

    def _projects(self, rows: Any, queues: Any) -> dict[str, Any]:
        scenario = self.scenario
        projects = rows_of(len(scenario.projects), k.PROJECT)
        numbers = np.arange(len(projects))
        projects["row_lo"] = np.searchsorted(rows["project"], numbers, side="left")
        projects["row_hi"] = np.searchsorted(rows["project"], numbers, side="right")
        projects["queue_lo"] = np.searchsorted(queues["project"], numbers, side="left")
        projects["queue_hi"] = np.searchsorted(queues["project"], numbers, side="right")
        projects["share_den"] = 1
        projects["normalised_share"] = normalised_shares(scenario.projects, scenario.tenants)
        domains = len(scenario.domains) if scenario.policy.placement is Placement.SPREAD else 0
        return {
            "projects": projects,
            "domain_use": np.zeros((len(projects) if domains else 1, max(1, domains)), np.int64),
        }

    # --- Lanes and queues --------------------------------------------------------------------

    def _lanes(self) -> dict[str, Any]:
        scenario, columns = self.scenario, self.columns
        lanes = rows_of(len(scenario.lanes), k.LANE)
        preempts = np.zeros((len(lanes), len(lanes)), np.int8)
        highest = max((lane.rank for lane in scenario.lanes), default=0)
        for number, lane in enumerate(scenario.lanes):
            row, rights = lanes[number], columns.rights[number]
            row["rank"], row["protect"] = lane.rank, lane.protect_seconds
            row["rank_ratio"] = lane.rank / highest if highest else 0.0
            row["backoff"] = lane.backoff_seconds
            row["backoff_limit"] = _or_none(lane.backoff_limit_seconds)
            row["max_requeues"] = _or_none(lane.max_requeues)
            row["recovery"] = RECOVERIES.index(lane.recovery)
            row["rights"] = rights.any
            row["strict"] = lane.queueing is Queueing.STRICT
            for other in rights.preempts:
                preempts[number, other] = 1
        lanes["ask_from"] = k.NEVER
        factors = scenario.policy.multifactor
        return {
            "lanes": lanes,
            "preempts": preempts,
            "lane_order": np.array(lanes_in_turn(scenario.lanes), dtype=np.int64),
            "multifactor": np.array(
                [
                    factors.age_weight,
                    factors.fair_share_weight,
                    factors.size_weight,
                    factors.lane_weight,
                    factors.max_age_seconds,
                    factors.half_life_seconds,
                ],
                dtype=np.float64,
            ),
        }

    # --- The rest ----------------------------------------------------------------------------

    def _lists(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Make the lists a run works with, and the records it leaves, with room to begin with."""
        scenario, jobs = self.scenario, len(self.table)
        arrays["lanes"]["queue_lo"] = arrays.pop("_queue_lo")
        pairs = np.array([pool for pool, _ in arrays.pop("_pairs")], dtype=np.int64)
        numbers = np.arange(len(scenario.pools))
        arrays["pools"]["cohort_lo"] = np.searchsorted(pairs, numbers, side="left")
        arrays["pools"]["cohort_hi"] = np.searchsorted(pairs, numbers, side="right")
        arrays["pools"]["size_lo"] = np.searchsorted(arrays["sizes"]["pool"], numbers, side="left")
        shapes, queues, kins = len(arrays["shapes"]), len(arrays["queues"]), len(arrays["kins"])
        most_running = min(jobs, max((pool.gpus for pool in scenario.pools), default=0)) + 1
        all_running = min(jobs, sum(pool.gpus for pool in scenario.pools))
        backs_off = any(lane.backoff_seconds for lane in scenario.lanes)
        evicts = bool(scenario.outages) or any(right.any for right in self.columns.rights)
        log = rows_of(2 * kins + 1024 + jobs // 2, k.CHANGE)
        log["time"], log["next"], log["reason"] = -1, -1, -1
        st = np.zeros(k.SCALARS, np.int64)
        st[k.LOG] = kins
        by_score = scenario.policy.order is Order.MULTIFACTOR
        attempts = jobs + 1024 + (jobs // 8 if evicts else 0)
        return {
            "st": st,
            "changed": np.zeros(len(scenario.pools), np.int64),
            "to_note": np.zeros(len(scenario.pools), np.int64),
            **{name: np.zeros(shapes, np.int64) for name in ("fresh", "candidates")},
            **{name: np.zeros(kins, np.int64) for name in ("entered", "touched")},
            **{
                name: np.zeros(queues, np.int64)
                for name in ("released", "note_queues", "note_heads")
            },
            "note_rows": np.zeros(len(arrays["rows"]), np.int64),
            "evicted": np.zeros(jobs if evicts else 1, np.int64),
            "running_candidates": rows_of(most_running, k.CANDIDATE),
            "chosen": np.zeros(most_running, np.int64),
            "pool_order": np.zeros(len(scenario.pools), np.int64),
            "completions": rows_of(2 * all_running + 64, k.EVENT),
            "back_offs": rows_of(jobs if backs_off else 1, k.EVENT),
            "attempts": rows_of(attempts, k.ATTEMPT),
            "scores": np.zeros((attempts if by_score else 1, 4)),
            "spells": rows_of(jobs + 1024 + 2 * queues, k.SPELL),
            "evictions": rows_of(1024, k.EVICTION),
            "log": log,
        }

    def _rules(self, lanes: int) -> np.ndarray[Any, Any]:
        scenario = self.scenario
        policy = scenario.policy
        rule = np.zeros(k.RULES, np.int64)
        rule[k.ORDER] = ORDERS.index(policy.order)
        rule[k.PLACEMENT] = PLACEMENTS.index(policy.placement)
        rule[k.BY_LOSS] = policy.victims is Victims.LEAST_LOST_WORK
        rule[k.RECLAIMS] = RECLAIMS.index(policy.reclaim)
        rule[k.EASY] = policy.backfill is Backfill.EASY
        horizon = scenario.horizon_seconds
        rule[k.HORIZON] = k.NEVER if horizon is None else horizon
        rule[k.LAST_SECOND] = last_second(scenario)
        rule[k.LANES] = lanes
        return rule


def _or_none(value: int | None) -> int:
    return -1 if value is None else value


def _codes(names: Sequence[str], numbers: dict[str, int]) -> np.ndarray[Any, Any]:
    return np.array([numbers[name] for name in names], dtype=np.int64)
