"""Reading and writing: what is taken, what is refused, and what people are told about it."""

import copy
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from planner.scenario import (
    Change,
    Scenario,
    ScenarioError,
    content_hash,
    diff,
    dumps,
    parse,
    read,
    to_mapping,
    write,
)
from planner.vocabulary import Placement
from tests.planner.building import job, mapping, scenario
from tests.planner.drawing import scenario_mappings

EXAMPLES = sorted((Path(__file__).parents[2] / "planner" / "examples").glob("*.toml"))
DELETE = object()


def _changed(path: str, value: object) -> dict[str, Any]:
    """Return the small scenario with one value put in (or taken out) at a path."""
    content = copy.deepcopy(mapping(job("a")))
    steps: list[str | int] = [
        int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)
    ]
    target: Any = content
    for step in steps[:-1]:
        target = target[step]
    if value is DELETE:
        del target[steps[-1]]
    else:
        target[steps[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("format", 2, "expected 1, the format that this version reads"),
        ("name", DELETE, "is missing"),
        ("start", "2026-11-30T00:00:00", "expected an offset from UTC"),
        ("start", "tomorrow", "expected a date and time"),
        ("horizon_seconds", -1, "expected 0 or more"),
        ("policy.order", "lifo", 'expected one of "fifo", "fair-share", "multifactor"'),
        ("policy.colour", "red", "is not a key of the format"),
        ("region[0].timezone", "Asia/Tokio", "expected a time zone like Asia/Tokyo"),
        ("link[0].between", ["tokyo", "tokyo"], "expected two different regions"),
        ("link[0].between[1]", "fukuoka", "expected the name of a region: tokyo, osaka"),
        ("link[0].gbps", 0, "expected more than 0"),
        ("link[0].gbps", float("nan"), "expected a finite number"),
        ("link[0].gbps", "fast", "expected a number"),
        ("domain[0].region", "fukuoka", "expected the name of a region"),
        ("domain[1].name", "tokyo-a", "expected a domain of its own"),
        ("storage[0].domain", "osaka-b", "expected the name of a domain"),
        ("pool[0].nodes", 0, "expected 1 or more"),
        ("pool[0].nodes", 2.0, "expected a whole number"),
        ("pool[0].premium", 1, "expected true or false"),
        ("pool[0].storage", "tape", "expected the name of a storage: ckpt"),
        ("pool[0].purpose", "fun", "expected one of"),
        ("lane[1].preempts", ["emergency"], "expected a lane of lower rank than 50"),
        ("lane[0].preempts", ["emergency"], "expected a lane of lower rank than 100"),
        ("lane[0].preempts", ["primary", "primary"], "expected each name once"),
        ("lane[0].preempts", "primary", "expected an array"),
        ("lane[0].rank", True, "expected a whole number"),
        ("project[0].tenant", "nobody", "expected the name of a tenant: kaguya, hikari"),
        ("project[0].weight", -1, "expected 0 or more"),
        ("quota[1].nominal", -4, "expected 0 or more"),
        ("quota[1].nominal", True, "expected a whole number"),
        ("quota[1].project", "speech", "expected one row for each project and pool"),
        ("quota[0].pool", "a100", "expected the name of a pool: h100"),
        ("job[0].lane", "express", "expected the name of a lane: emergency, primary"),
        ("job[0].gpus", 0, "expected 1 or more"),
        ("job[0].gpus", "8", "expected a whole number"),
        ("job[0].pools", [], "expected at least one"),
        ("job[0].regions", ["tokyo", "tokyo"], "expected each name once"),
        ("job[0].data_gb", 1.0000000000000002, "expected at most 15 significant digits"),
        ("job[0].submit_seconds", 2**63, "or less"),
        ("region", {"name": "tokyo"}, "expected an array of tables"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_what_was_expected(
    path: str, value: object, expected: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(_changed(path, value), source="plan.toml")
    problems = caught.value.problems
    assert any(expected in problem.expected for problem in problems), str(caught.value)
    assert all(problem.source == "plan.toml" for problem in problems)
    assert path.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0] in problems[0].path
    assert str(caught.value).startswith("plan.toml: ")


def test_an_outage_names_exactly_one_thing() -> None:
    both = {"pool": "h100", "domain": "tokyo-a", "start_seconds": 0, "duration_seconds": 1}
    neither = {"start_seconds": 0, "duration_seconds": 1}
    with pytest.raises(ScenarioError) as caught:
        scenario(outage=[both, neither])
    assert [problem.path for problem in caught.value.problems] == ["outage[0]", "outage[1]"]


def test_every_problem_is_listed_the_first_twenty_in_full() -> None:
    jobs = [job(f"j{i}", lane="express") for i in range(23)]
    with pytest.raises(ScenarioError) as caught:
        scenario(*jobs)
    assert len(caught.value.problems) == 23
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[0].startswith('scenario: job[0].lane = "express": expected the name of a lane')
    assert lines[-1] == "and 3 more"


def test_two_jobs_do_not_share_an_id() -> None:
    with pytest.raises(ScenarioError, match=r'job\[1\]\.id = "a": expected an id of its own'):
        scenario(job("a"), job("a"))


def test_decimals_are_taken_as_they_are_written(tmp_path: Path) -> None:
    text = dumps(scenario(job("a"))).replace("gbps = 40", "gbps = 0.1")
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    assert read(path).links[0].gbps == Decimal("0.1")
    assert parse(_changed("link[0].gbps", 0.1)).links[0].gbps == Decimal("0.1")
    assert parse(_changed("link[0].gbps", "0.1")).links[0].gbps == Decimal("0.1")


def test_a_file_does_not_put_numbers_in_quotation_marks(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(_changed("link[0].gbps", "40")), encoding="utf-8")
    with pytest.raises(ScenarioError, match="without quotation marks"):
        read(path)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_written_file_reads_back_equal(tmp_path: Path, suffix: Literal["toml", "json"]) -> None:
    odd = 'quote " backslash \\ tab \t delete \x7f 日本語 \u2028'
    original = scenario(
        job("a", data_region="osaka", data_gb=1.5, pools=["h100"], regions=["tokyo"]),
        job("b", submit=7, checkpoint_gb=33.3, checkpoint_interval_seconds=60, limit_seconds=9),
        name=odd,
        horizon_seconds=1000,
        seed=-3,
        outage=[{"region": "tokyo", "start_seconds": 5, "duration_seconds": 6}],
        assignment=[{"project": "speech", "lane": "primary", "pools": ["h100"], "max_gpus": 0}],
    )
    path = tmp_path / f"plan.{suffix}"
    path.write_text(dumps(original, suffix), encoding="utf-8")
    assert read(path) == original
    assert content_hash(read(path)) == content_hash(original)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_reads_and_survives_json(path: Path) -> None:
    example = read(path)
    assert parse(json.loads(json.dumps(to_mapping(example)))) == example
    assert example.jobs


def test_the_hash_is_of_the_content_alone() -> None:
    one = scenario(job("a"))
    elsewhere = one.start.astimezone(timezone(timedelta(hours=-5)))
    assert content_hash(dataclasses.replace(one, start=elsewhere)) == content_hash(one)
    assert content_hash(scenario(job("b"))) != content_hash(one)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", content_hash(one))


# --- Tables of jobs


def _with_table(tmp_path: Path, table: str) -> Path:
    content = mapping()
    del content["job"]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(content | {"jobs": "jobs.csv"}), encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(table, encoding="utf-8")
    return path


def test_jobs_come_from_a_table_beside_the_file(tmp_path: Path) -> None:
    path = _with_table(
        tmp_path,
        "id,submit_seconds,project,lane,gpus,work_seconds,pools,data_region,data_gb\n"
        "a,0,speech,primary,8,60,h100,,\n"
        '"b, the second",5,vision,primary,1,7,,osaka,0.1\n',
    )
    first, second = read(path).jobs
    assert (first.id, first.pools, first.data_gb) == ("a", ("h100",), Decimal(0))
    assert (second.id, second.data_region, second.data_gb) == (
        "b, the second",
        "osaka",
        Decimal("0.1"),
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("a,0,speech,primary,eight,60", 'line 2, column gpus = "eight": expected a whole number'),
        ("a,0,speech,primary,1_0,60", 'line 2, column gpus = "1_0": expected a whole number'),
        ("a,0,speech,primary,8,-1", "line 2, column work_seconds = -1: expected 0 or more"),
        ("a,0,speech,primary,8,", "line 2, column work_seconds: is missing"),
        ("a,0,speech,primary,8", "line 2: expected 6 cells, found 5"),
        ("a,0,nobody,primary,8,1", 'line 2, column project = "nobody": expected the name of a'),
        ("a,0,speech,primary,8,1\n\na,0,speech,primary,8,1", "line 4, column id"),
    ],
)
def test_a_wrong_cell_is_named_by_file_line_and_column(
    tmp_path: Path, rows: str, expected: str
) -> None:
    header = "id,submit_seconds,project,lane,gpus,work_seconds\n"
    with pytest.raises(ScenarioError) as caught:
        read(_with_table(tmp_path, header + rows + "\n"))
    assert f"{tmp_path / 'jobs.csv'}: {expected}" in str(caught.value)


def test_unknown_and_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(_with_table(tmp_path, "id,submit_seconds,project,lane,gpus,colour\n"))
    assert "column colour: is not a column of jobs" in str(caught.value)
    assert "expected a column work_seconds" in str(caught.value)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = _with_table(tmp_path, "")
    (tmp_path / "jobs.csv").unlink()
    with pytest.raises(ScenarioError, match=r'jobs = "jobs\.csv": expected a file'):
        read(path)


def test_files_that_are_no_scenario_are_refused(tmp_path: Path) -> None:
    for name, text in {
        "a.toml": "name = ",
        "b.json": '{"name": 1, "name": 2}',
        "c.yaml": "name: x",
        "d.json": "[]",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ScenarioError, match=re.escape(name)):
            read(tmp_path / name)
    with pytest.raises(ScenarioError, match="cannot be read"):
        read(tmp_path / "absent.toml")


# --- Differences


def _quota(one: Scenario, number: int, **values: Any) -> Scenario:
    quotas = list(one.quotas)
    quotas[number] = dataclasses.replace(quotas[number], **values)
    return dataclasses.replace(one, quotas=tuple(quotas))


def test_a_difference_is_put_under_its_dimension() -> None:
    before = scenario(job("a"))
    after = _quota(before, 0, nominal=12, lending_limit=4)
    lanes = (
        dataclasses.replace(before.lanes[0], rank=90, preempts=(), backoff_seconds=5),
        before.lanes[1],
    )
    policy = dataclasses.replace(before.policy, placement=Placement.SPREAD)
    after = dataclasses.replace(after, lanes=lanes, policy=policy, jobs=())
    changes = diff(before, after)
    assert [(change.dimension, change.path) for change in changes] == [
        ("priority", "lane[emergency].rank"),
        ("quota", "quota[speech, h100].nominal"),
        ("quota", "quota[speech, h100].lending_limit"),
        ("placement", "policy.placement"),
        ("preemption", "lane[emergency].preempts"),
        ("checkpoint", "lane[emergency].backoff_seconds"),
        ("work", "job[a]"),
    ]
    assert Change("quota", "quota[speech, h100].nominal", 8, 12) in changes
    assert Change("preemption", "lane[emergency].preempts", ["primary"], []) in changes


def test_equal_scenarios_do_not_differ_whatever_they_are_called() -> None:
    assert diff(scenario(job("a")), scenario(job("a"), name="other")) == []


def test_a_new_row_and_a_changed_order_are_differences() -> None:
    before = scenario(job("a"))
    fewer = dataclasses.replace(before, quotas=before.quotas[:1])
    (change,) = diff(fewer, before)
    assert (change.dimension, change.path, change.before) == ("quota", "quota[vision, h100]", None)
    assert change.after["nominal"] == 8
    turned = dataclasses.replace(before, quotas=before.quotas[::-1])
    assert [change.path for change in diff(before, turned)] == ["quota (order)"]


# --- Written and read


FORMS = [
    (suffix, table) for suffix in ("toml", "json") for table in (None, "jobs.csv", "jobs.parquet")
]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings())
def test_what_is_written_in_any_form_reads_back_the_same(content: dict[str, Any]) -> None:
    original = parse(content)
    with TemporaryDirectory() as folder:
        for suffix, table in FORMS:
            path = Path(folder) / f"plan.{suffix}"
            write(original, path, jobs=table)
            assert read(path) == original
            assert content_hash(read(path)) == content_hash(original)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario_mappings())
def test_the_hash_is_that_of_the_whole_file_as_sorted_json(content: dict[str, Any]) -> None:
    original = parse(content)
    rows = to_mapping(original) | {"start": original.start.astimezone(UTC).isoformat()}
    text = json.dumps(rows, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert content_hash(original) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("table", ["jobs.csv", "jobs.parquet"])
@pytest.mark.parametrize("jobs", [0, 1])
def test_odd_names_survive_in_a_table(tmp_path: Path, table: str, jobs: int) -> None:
    odd = 'quote " comma , line \n 日本語 ; \x7f'
    original = scenario(*[job(odd, data_region="osaka", data_gb=1e15)] * jobs)
    write(original, tmp_path / "plan.json", jobs=table)
    assert read(tmp_path / "plan.json") == original


def test_a_name_that_csv_cannot_hold_is_refused_and_parquet_holds_it(tmp_path: Path) -> None:
    original = scenario(job(" a "))
    with pytest.raises(ValueError, match="' a ' cannot stand in a cell of CSV"):
        write(original, tmp_path / "plan.toml", jobs="jobs.csv")
    write(original, tmp_path / "plan.toml", jobs="jobs.parquet")
    assert read(tmp_path / "plan.toml") == original


# --- Tables as people write them

HEADER = "id,submit_seconds,project,lane,gpus,work_seconds,data_gb\n"


def _rows(number: int, **cells: str) -> str:
    row = {"lane": "primary", "gpus": "8", "work": "60", "gb": "0.1"} | cells
    return "".join(
        f"j{i},{i},speech,{row['lane']},{row['gpus']},{row['work']},{row['gb']}\n"
        for i in range(number)
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("speech", '"speech"'),
        lambda text: text.replace(",", " , "),
        lambda text: text.replace("j1,", '"j1",'),
        lambda text: text.replace(",8,", ",008,"),
        lambda text: text.replace("0.1", "1e-1"),
    ],
)
def test_the_same_table_may_be_spelled_in_many_ways(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    plain = read(_with_table(tmp_path, HEADER + _rows(5)))
    path = _with_table(tmp_path, "")
    (tmp_path / "jobs.csv").write_bytes(change(HEADER + _rows(5)).encode())
    assert len(plain.jobs) == 5
    assert read(path) == plain


@pytest.mark.parametrize("ending", ["", "j9,9,speech,primary,8,60\n", '"j9\n9",9,speech,'])
@pytest.mark.parametrize("blank", ["", "\n", '"a\nb",0,speech,primary,8,60,1\n'])
def test_the_line_of_a_wrong_cell_is_right_whatever_stands_around_it(
    tmp_path: Path, blank: str, ending: str
) -> None:
    table = HEADER + _rows(3) + blank + "x,1,speech,primary,many,60,1\n" + ending
    line = table[: table.index("x,1")].count("\n") + 1
    with pytest.raises(ScenarioError) as caught:
        read(_with_table(tmp_path, table))
    texts = [str(problem) for problem in caught.value.problems]
    assert any(f'line {line}, column gpus = "many": expected a whole' in text for text in texts)
    assert len(texts) == 1 + bool(ending)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"gpus": "0"}, "column gpus = 0: expected 1 or more"),
        ({"lane": "express"}, 'column lane = "express": expected the name of a lane'),
        ({"gb": "much"}, 'column data_gb = "much": expected a number'),
    ],
)
def test_thousands_of_bad_rows_are_counted_and_twenty_are_named(
    tmp_path: Path, cells: dict[str, str], expected: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(_with_table(tmp_path, HEADER + _rows(2345, **cells)))
    lines = str(caught.value).splitlines()
    assert caught.value.count == 2345
    assert len(lines) == 21
    assert all(expected in line for line in lines[:20])
    assert [f"line {i}," in line for i, line in enumerate(lines[:20], start=2)] == [True] * 20
    assert lines[20] == "and 2325 more"


def test_an_id_that_stands_far_above_is_found_again(tmp_path: Path) -> None:
    table = HEADER + _rows(9000) + "j4,1,speech,primary,8,60,1\n"
    with pytest.raises(ScenarioError) as caught:
        read(_with_table(tmp_path, table))
    (problem,) = caught.value.problems
    assert (problem.path, problem.value) == ("line 9002, column id", '"j4"')


def test_whole_numbers_are_exact_up_to_the_largest_and_refused_beyond(tmp_path: Path) -> None:
    largest = read(_with_table(tmp_path, HEADER + _rows(1, work=str(2**53))))
    assert largest.jobs[0].work_seconds == 2**53
    for beyond in (2**53 + 1, 2**63, 10**30):
        with pytest.raises(ScenarioError, match="expected 9007199254740992 or less"):
            read(_with_table(tmp_path, HEADER + _rows(1, work=str(beyond))))
    assert read(_with_table(tmp_path, HEADER + _rows(1, gb="12345.6789012345"))).jobs[
        0
    ].data_gb == Decimal("12345.6789012345")


@pytest.mark.parametrize("nodes", [(0, 8, 1), (1_000_001, 8, 0), (1, 1_025, 0)])
def test_a_pool_has_at_most_a_million_nodes_of_1024_gpus(nodes: tuple[int, int, int]) -> None:
    content = mapping()
    content["pool"][0] |= {"nodes": nodes[0], "gpus_per_node": nodes[1]}
    with pytest.raises(ScenarioError, match="or less" if not nodes[2] else "1 or more"):
        parse(content)
    content["pool"][0] |= {"nodes": 1_000_000, "gpus_per_node": 1_024}
    assert parse(content).pools[0].gpus == 1_024_000_000


def test_a_table_may_be_empty_but_not_without_a_header(tmp_path: Path) -> None:
    assert len(read(_with_table(tmp_path, HEADER)).jobs) == 0
    assert len(read(_with_table(tmp_path, HEADER + "\n\n")).jobs) == 0
    with pytest.raises(ScenarioError, match="expected a column id"):
        read(_with_table(tmp_path, ""))


def test_a_table_that_is_no_text_or_no_parquet_is_refused(tmp_path: Path) -> None:
    path = _with_table(tmp_path, "")
    (tmp_path / "jobs.csv").write_bytes(HEADER.encode() + b"\xff\xfe\n")
    with pytest.raises(ScenarioError, match="line 2: expected 7 cells, found 1"):
        read(path)
    (tmp_path / "jobs.parquet").write_bytes(b"no parquet")
    path.write_text(path.read_text().replace("jobs.csv", "jobs.parquet"))
    with pytest.raises(ScenarioError, match=r"jobs\.parquet: cannot be read"):
        read(path)


def test_a_table_in_another_encoding_is_told_cell_by_cell_and_read_to_its_end(
    tmp_path: Path,
) -> None:
    header = "id,submit_seconds,project,lane,gpus,work_seconds\n"
    path = _with_table(tmp_path, "")
    rows = "a,0,speech,primary,8,60\nジョブ1,0,speech,primary,8,60\nb,x,speech,primary,0,60\n"
    (tmp_path / "jobs.csv").write_bytes((header + rows).encode("shift-jis"))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    said = str(caught.value)
    assert r"jobs.csv: line 3, column id = \x83W\x83\x87\x83u1: expected text in UTF-8" in said
    assert 'jobs.csv: line 4, column submit_seconds = "x": expected a whole number' in said
    assert "jobs.csv: line 4, column gpus = 0: expected 1 or more" in said
    (tmp_path / "jobs.csv").write_bytes((header.replace("id", "識別子") + rows).encode("shift-jis"))
    with pytest.raises(ScenarioError, match=r"line 1, column \\x8e.*: is not a column of jobs"):
        read(path)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("gpus", [8.0, 1.0], "line 1, column gpus = 8.0: expected a whole number"),
        ("gpus", [8, None], "line 2, column gpus: is missing"),
        ("gpus", [8, -1], "line 2, column gpus = -1: expected 1 or more"),
        ("gpus", ["8", "1"], 'line 1, column gpus = "8": expected a whole number'),
        ("gpus", [True, True], "line 1, column gpus = true: expected a whole number"),
        ("id", [1, 2], "line 1, column id = 1: expected text"),
        ("id", ["a", ""], 'line 2, column id = "": expected text that is not empty'),
        ("project", ["speech", None], "line 2, column project: is missing"),
        ("data_gb", ["1", "2"], "expected a number, without quotation marks"),
        ("pools", [["h100"], []], "line 2, column pools = []: expected at least one"),
        ("pools", [[1], [2]], "column pools"),
    ],
)
def test_a_wrong_value_of_a_parquet_table_is_named(
    tmp_path: Path, column: str, values: list[Any], expected: str
) -> None:
    path = _with_table(tmp_path, "")
    path.write_text(path.read_text().replace("jobs.csv", "jobs.parquet"))
    columns: dict[str, list[Any]] = {
        "id": ["a", "b"],
        "submit_seconds": [0, 1],
        "project": ["speech"] * 2,
        "lane": ["primary"] * 2,
        "gpus": [8, 8],
        "work_seconds": [60, 60],
        "limit_seconds": [None, 7],
        "pools": [["h100"], None],
        "data_gb": [0.1, float("nan")],
    }
    pq.write_table(pa.table(columns), tmp_path / "jobs.parquet")
    first, second = read(path).jobs
    assert (first.limit_seconds, first.pools, first.data_gb) == (None, ("h100",), Decimal("0.1"))
    assert (second.limit_seconds, second.pools, second.data_gb) == (7, None, Decimal(0))
    pq.write_table(pa.table(columns | {column: values}), tmp_path / "jobs.parquet")
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert expected in str(caught.value)


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[int] = []
    scenario = read(_with_table(tmp_path, HEADER + _rows(250_000)), progress=told.append)
    assert len(scenario.jobs) == 250_000
    assert len(told) == 2
    assert 100_000 <= told[0] < told[1] <= 250_000


def test_five_thousand_pools_and_a_quota_for_nobody() -> None:
    content = mapping()
    (pool,) = content["pool"][:1]
    content["pool"] = [pool | {"name": f"p{i}"} for i in range(5000)]
    content["quota"] = [{"project": "speech", "pool": f"p{i}", "nominal": 0} for i in range(5000)]
    assert len(parse(content).pools) == 5000
    content["quota"].append({"project": "speech", "pool": "gone", "nominal": 0})
    with pytest.raises(ScenarioError, match=r'quota\[5000\]\.pool = "gone"'):
        parse(content)
