"""Slurm's order as a real slurmctld 22.05.8 gave it (A10): 8 pending jobs, 9 users."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from planner.policy.slurm import (
    Association,
    Factors,
    Weights,
    age_factor,
    fair_tree,
    job_size_factor,
    level_fair_shares,
    priority,
)

RECORDED = Path(__file__).parents[3] / "shared" / "traces" / "slurm"
recorded = pytest.mark.skipif(
    not RECORDED.exists(), reason=f"what slurmctld said is not here: {RECORDED}"
)
# slurm.conf of the recorded machine: one node of 64 CPUs.
WEIGHTS = Weights(
    age=1000, fair_share=10_000, job_size=1000, partition=1000, qos=2000, tres={"cpu": 500}
)
PARTITIONS, QOS, CPUS = {"train": 10, "urgent": 20}, {"high": 100, "std": 50, "low": 10}, 64
WAITED_SECONDS, MAX_AGE_SECONDS = 39, 86_400


def _rows(name: str) -> list[dict[str, str]]:
    with (RECORDED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="|"))


def _tree() -> tuple[Association, ...]:
    """Build the tree of `sshare -l`: the depth of a row is how far its account is indented."""
    parents: list[list[Association]] = [[]]
    rows = [row for row in _rows("sshare_l.txt") if row["RawShares"]]

    def build(at: int, depth: int) -> tuple[list[Association], int]:
        found: list[Association] = []
        while at < len(rows):
            row = rows[at]
            indent = len(row["Account"]) - len(row["Account"].lstrip())
            if indent < depth:
                break
            shares, usage = int(row["RawShares"]), Fraction(row["RawUsage"])
            at += 1
            if row["User"]:
                found.append(Association(row["User"], shares, usage))
            else:
                children, at = build(at, indent + 1)
                name = row["Account"].strip()
                found.append(Association(name, shares, usage, tuple(children)))
        return found, at

    parents[0], _ = build(0, 1)
    return tuple(parents[0])


@recorded
def test_all_users_rank_as_fair_tree_ranked_them() -> None:
    standings = fair_tree(_tree())
    users = {row["User"]: row for row in _rows("sshare_l.txt") if row["User"]}
    assert len(users) == len(standings) == 9
    for name, row in users.items():
        assert f"{float(standings[name].fair_share):.6f}" == row["FairShare"], name
        level = standings[name].level_fair_share
        if row["LevelFS"] == "inf":
            assert level is None
        else:
            # The recorded usage is cut to whole seconds, the level is not.
            assert float(level or 0) == pytest.approx(float(row["LevelFS"]), rel=0.005)


@recorded
def test_all_pending_jobs_have_the_priority_that_slurmctld_gave_them() -> None:
    shares = {name: at.fair_share for name, at in fair_tree(_tree()).items()}
    pending = [row for row in _rows("squeue.txt") if row["ST"] == "PD"]
    assert len(pending) == 8
    for row in pending:
        cpus = int(row["CPUS"])
        factors = Factors(
            age=age_factor(WAITED_SECONDS, MAX_AGE_SECONDS),
            fair_share=shares[row["USER"]],
            job_size=job_size_factor(nodes=1, all_nodes=1, cpus=cpus, all_cpus=CPUS),
            partition=Fraction(PARTITIONS[row["PARTITION"]], max(PARTITIONS.values())),
            qos=Fraction(QOS[row["QOS"]], max(QOS.values())),
            tres={"cpu": Fraction(cpus, CPUS)},
        )
        assert priority(WEIGHTS, factors, nice=int(row["NICE"])) == int(row["PRIORITY"]), row


def test_a_priority_is_never_held_nor_beyond_32_bits() -> None:
    assert priority(Weights(), Factors(), nice=500) == 1
    assert priority(Weights(age=2**32 - 1), Factors(age=Fraction(1)), site=10) == 2**32 - 1


def test_tied_accounts_merge_and_a_user_tied_with_an_account_takes_its_best_rank() -> None:
    one = Fraction(1)
    # Three siblings with 1 share and equal use: user u, accounts a and b.
    a = Association("a", 1, one, (Association("a1", 1, one), Association("a2", 3, one)))
    b = Association("b", 1, one, (Association("b1", 1, one), Association("b2", 1, Fraction(0))))
    standings = fair_tree((Association("u", 1, one), a, b))
    ranks = {name: standing.fair_share * 5 for name, standing in standings.items()}
    # b2 has used nothing: it leads the merged children, on the rank of the tie. Then a2 at 3/2,
    # then b1 at 1/2 over 1 = 1/2 and a1 at 1/4 over 1/2 = 1/2: tied.
    assert ranks == {"u": 5, "b2": 5, "a2": 3, "b1": 2, "a1": 2}


def test_the_figures_of_the_recorded_accounts() -> None:
    research = Association("research", 40, Fraction(1279), ())
    serving = Association("serving", 60, Fraction(3023), ())
    user = Association("root", 1, Fraction(0))
    first, second, third = level_fair_shares((research, serving, user))
    assert round(float(first or 0), 3) == 1.332
    assert round(float(second or 0), 4) == 0.8454
    assert third is None
