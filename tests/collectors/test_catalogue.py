from dataclasses import replace
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from collectors import catalogue, reference
from collectors.catalogue import CatalogueError, Question
from collectors.promql import USED
from tests.conftest import ROOT

PROMISED = {
    "gpu_reporting_gpus": ("gauge", {"pool"}),
    "gpu_engine_active_gpus": ("gauge", {"pool", "detail"}),
    "gpu_resident_gpus": ("gauge", {"pool"}),
    "gpu_fault_gpus": ("gauge", {"pool", "detail"}),
    "gpu_attributed_gpus": ("gauge", {"pool", "project"}),
    "gpu_attributed_active_gpus": ("gauge", {"pool", "project"}),
    "quota_used_gpus": ("gauge", {"pool", "project"}),
    "quota_nominal_gpus": ("gauge", {"pool", "project"}),
    "quota_borrowing_limit_gpus": ("gauge", {"pool", "project"}),
    "quota_lending_limit_gpus": ("gauge", {"pool", "project"}),
    "quota_unlimited_ratio": ("gauge", {"pool", "project", "detail"}),
    "pending_jobs": ("gauge", {"project", "lane", "detail"}),
    "pending_gpus": ("gauge", {"project", "lane"}),
    "source_up_ratio": ("gauge", {"detail"}),
    "admitted_jobs": ("counter", {"project", "lane"}),
    "finished_jobs": ("counter", {"project", "lane"}),
    "evicted_jobs": ("counter", {"project", "lane", "detail"}),
    "evicted_once_jobs": ("counter", {"project", "lane", "detail"}),
    "preempted_jobs": ("counter", {"project", "detail"}),
    "checkpoint_written_bytes": ("counter", {"pool", "storage", "lane"}),
    "checkpoint_failures": ("counter", {"pool", "storage", "lane"}),
    "wait_seconds": ("histogram", {"project", "lane"}),
    "checkpoint_write_seconds": ("histogram", {"pool", "storage", "lane"}),
}


def test_the_signals_that_pages_and_reports_read_are_asked_for() -> None:
    asked = {question.name: question for question in catalogue.read().asked_in("tokyo")}
    assert {
        name: (str(question.signal.kind), set(question.columns.values()))
        for name, question in asked.items()
    } == PROMISED


def test_every_query_of_every_preset_is_promql() -> None:
    whole = catalogue.read()
    for preset in whole.presets:
        for signal, asked in whole.of_preset(preset).items():
            question = Question(signal, whole.signals[signal], asked, {"region": "tokyo"})
            for query in question.queries(step_seconds=300):
                promql_parser.parse(query)
                assert USED.findall(query) == [], (preset, signal)
                assert 'region="tokyo"' in query, (preset, signal)


def test_a_region_with_a_quote_in_its_name_cannot_change_the_query() -> None:
    hostile = 'x"} or up{job="\\\n'
    text = f"up{{{catalogue.matchers({'region': hostile})}}}"
    parsed = promql_parser.parse(text)
    assert isinstance(parsed, promql_parser.VectorSelector)
    (matcher,) = parsed.matchers.matchers
    assert (matcher.name, matcher.value) == ("region", hostile)
    promql_parser.parse(f"up{{{catalogue.matchers({})}}}")


def test_a_version_follows_the_query_and_not_the_region() -> None:
    def version(region: str, site: str = "") -> str:
        tables = catalogue.read().model_dump(mode="json", exclude_none=True)
        if site:
            tables["presets"]["kueue"]["signals"]["pending_jobs"]["query"] += site
        (found,) = [q for q in catalogue.check(tables).asked_in(region) if q.name == "pending_jobs"]
        return found.version

    assert version("tokyo") == version("osaka")
    assert version("tokyo") != version("tokyo", " > 0")
    assert len(version("tokyo")) <= 16
    # A selector of the site's own asks for something else: the half of the region, say.
    asked = catalogue.read().asked_in("tokyo")[0]
    half = replace(asked, matchers={"region": "tokyo", "cluster": "one-of-two"})
    assert half.version != asked.version
    assert replace(asked, matchers={"region": "osaka"}).version == asked.version


def _site(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_site_replaces_a_query_in_one_region_without_python(tmp_path: Path) -> None:
    site = _site(
        tmp_path,
        """
        [regions.osaka]
        selector = { cluster = "osa-1" }
        max_points = 500
        [regions.osaka.signals.pending_jobs]
        labels = { partition = "project" }
        query = "max by (partition) (slurm_partition_jobs_pending{$selector})"
        """,
    )
    whole = catalogue.read(site)
    osaka = {q.name: q for q in whole.asked_in("osaka")}
    assert osaka["pending_jobs"].queries(step_seconds=300) == [
        'max by (partition) (slurm_partition_jobs_pending{cluster="osa-1"})'
    ]
    assert osaka.keys() == PROMISED.keys()  # the rest as everywhere
    assert 'cluster="osa-1"' in osaka["source_up_ratio"].queries(step_seconds=300)[0]
    assert "kueue" in {q.name: q for q in whole.asked_in("tokyo")}["pending_jobs"].asked.query
    assert (whole.max_points("osaka"), whole.max_points("tokyo")) == (500, 2016)


def test_a_preset_extends_another_and_a_region_picks_its_presets(tmp_path: Path) -> None:
    site = _site(
        tmp_path,
        """
        [presets.ours]
        meaning = "Ours."
        extends = "kueue"
        [presets.ours.signals.pending_jobs]
        labels = { queue = "project" }
        query = "max by (queue) (ours{$selector})"
        [regions.default]
        presets = ["ours"]
        """,
    )
    asked = {q.name: q for q in catalogue.read(site).asked_in("tokyo")}
    assert "wait_seconds" in asked
    assert "gpu_reporting_gpus" not in asked
    assert asked["pending_jobs"].columns == {"queue": "project"}


def test_a_preset_writes_parts_into_its_queries_and_another_replaces_one(tmp_path: Path) -> None:
    site = _site(
        tmp_path,
        """
        [presets.base]
        meaning = "Base."
        parts = { all = "jobs{$selector, state=~'$states'}", states = "PD" }
        [presets.base.signals.pending_jobs]
        labels = { account = "project" }
        query = "sum by (account) ($all)"
        [presets.base.signals.pending_gpus]
        labels = { account = "project" }
        query = "sum by (account) (gpus{$selector})"
        [presets.newer]
        meaning = "Newer."
        extends = "base"
        parts = { states = "PD|CF" }
        lacks = ["pending_gpus"]
        [regions.default]
        presets = ["base"]
        [regions.osaka]
        presets = ["newer"]
        """,
    )
    whole = catalogue.read(site)
    asked = {
        region: {q.name: q.queries(step_seconds=300) for q in whole.asked_in(region)}
        for region in ("tokyo", "osaka")
    }
    matchers = "region=\"{}\", state=~'{}'"
    assert asked == {
        "tokyo": {
            "pending_jobs": [f"sum by (account) (jobs{{{matchers.format('tokyo', 'PD')}}})"],
            "pending_gpus": ['sum by (account) (gpus{region="tokyo"})'],
        },
        "osaka": {
            "pending_jobs": [f"sum by (account) (jobs{{{matchers.format('osaka', 'PD|CF')}}})"]
        },
    }


WRONG: list[tuple[str, str, str, str]] = [
    (
        "a wrong key",
        "[signals.pending_jobs]\nkinds = 'gauge'",
        "signals.pending_jobs.kinds",
        "no key",
    ),
    ("a wrong table", "[presents.x]\nmeaning = 'x'", "presents", "no key"),
    ("a wrong type", "[regions.x]\npresets = 'kueue'", "regions.x.presets", "list"),
    ("a number as text", "[regions.x]\nmax_points = '5'", "regions.x.max_points", "integer"),
    (
        "a wrong unit",
        "[signals.pending_jobs]\nunit = 'gpuz'",
        "signals.pending_jobs.unit",
        "'gpus'",
    ),
    ("a wrong kind", "[signals.pending_jobs]\nkind = 'x'", "signals.pending_jobs.kind", "'gauge'"),
    ("a negative number", "[regions.x]\nmax_points = -1", "regions.x.max_points", "greater than 0"),
    ("too many points", "[regions.x]\nmax_points = 11001", "regions.x.max_points", "11000"),
    ("an unknown preset", "[regions.x]\npresets = ['kueu']", "regions.x.presets", "one of"),
    ("a preset twice", "[regions.x]\npresets = ['up', 'up']", "regions.x.presets", "once"),
    ("a duplicate key", "[regions.x]\nmax_points = 1\nmax_points = 2", "TOML", "once"),
    ("no TOML", "[regions", "TOML", "TOML"),
    (
        "a cycle",
        "[presets.a]\nmeaning='a'\nextends='b'\n[presets.b]\nmeaning='b'\nextends='a'",
        "presets.a.extends",
        "a → b → a",
    ),
    (
        "an unknown base",
        "[presets.a]\nmeaning='a'\nextends='nothing'",
        "presets.a.extends",
        "'nothing' is unknown",
    ),
    (
        "an unknown signal",
        "[presets.kueue.signals.waits]\nquery='x{$selector}'\nlabels={}",
        "presets.kueue.signals.waits",
        "unknown",
    ),
    (
        "an unknown column",
        "[presets.kueue.signals.pending_gpus]\nlabels={a='pool'}",
        "presets.kueue.signals.pending_gpus.labels",
        "no column",
    ),
    (
        "a column filled twice",
        "[presets.kueue.signals.pending_gpus]\nlabels={a='lane', b='lane'}",
        "presets.kueue.signals.pending_gpus.labels",
        "twice",
    ),
    (
        "a query for all regions at once",
        "[presets.up.signals.source_up_ratio]\nquery='avg by (job) (up)'",
        "presets.up.signals.source_up_ratio.query",
        "$selector",
    ),
    (
        "an unknown placeholder",
        "[presets.up.signals.source_up_ratio]\nquery='up{$selector}[$window]'",
        "presets.up.signals.source_up_ratio.query",
        "$window",
    ),
    (
        "an increase of an increase",
        "[presets.kueue.signals.admitted_jobs]\nquery='increase(x{$selector}[5m])'",
        "presets.kueue.signals.admitted_jobs.query",
        "$increase(metric",
    ),
    (
        "a histogram without its sum",
        "[regions.x.signals.wait_seconds]\nquery='x{$selector}'\nlabels={}",
        "regions.x.signals.wait_seconds.sum_query",
        "missing",
    ),
    (
        "a part that nobody wrote",
        "[presets.up.signals.source_up_ratio]\nquery='avg by (job) (up{$selector} * $weight)'",
        "presets.up.signals.source_up_ratio.query",
        "$weight is unknown",
    ),
    (
        "a part that uses an unknown one",
        "[presets.up.parts]\ntargets = 'up{$selector} * $weight'",
        "presets.up.parts.targets",
        "$weight is unknown",
    ),
    (
        "parts in a circle",
        "[presets.up.parts]\na = '$b'\nb = '$a'",
        "presets.up.parts.a",
        "no circle",
    ),
    (
        "a part with a taken name",
        "[presets.up.parts]\nstep = '5m'",
        "presets.up.parts.step",
        "taken",
    ),
    ("a part with a bad name", "[presets.up.parts]\n'A b' = '5m'", "presets.up.parts.A b", "match"),
    (
        "a part that takes the matchers out of what is inherited",
        """
        [presets.ours]
        meaning = "x"
        extends = "base"
        parts = { all = "up" }
        [presets.base]
        meaning = "x"
        parts = { all = "up{$selector}" }
        [presets.base.signals.source_up_ratio]
        query = "avg by (job) ($all)"
        labels = { job = "detail" }
        """,
        "presets.ours.signals.source_up_ratio.query",
        "$selector",
    ),
    (
        "lacking what was never there",
        "[presets.ours]\nmeaning='x'\nextends='up'\nlacks=['pending_jobs']",
        "presets.ours.lacks",
        "'pending_jobs' is not there",
    ),
    (
        "an unknown unit at the source",
        "[presets.up.signals.source_up_ratio]\nsource_unit='furlongs'",
        "presets.up.signals.source_up_ratio.source_unit",
        "'percent'",
    ),
    (
        "a label that the collector needs",
        "[presets.kueue.signals.pending_gpus]\nlabels={value='lane'}",
        "presets.kueue.signals.pending_gpus.labels",
        "taken",
    ),
]


@pytest.mark.parametrize(
    ("text", "where", "said"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG]
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, text: str, where: str, said: str
) -> None:
    path = _site(tmp_path, text)
    with pytest.raises(CatalogueError) as caught:
        catalogue.read(path)
    assert where in [problem.where for problem in caught.value.problems]
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_everything_that_is_wrong_is_listed_at_once(tmp_path: Path) -> None:
    text = "[regions.x]\nmax_points = -1\nselektor = {}\n[signals.a]\nkind = 'b'"
    with pytest.raises(CatalogueError) as caught:
        catalogue.read(_site(tmp_path, text))
    wheres = [problem.where for problem in caught.value.problems]
    assert {
        "regions.x.max_points",
        "regions.x.selektor",
        "signals.a.kind",
        "signals.a.unit",
    } <= set(wheres)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="no such file"):
        catalogue.read(tmp_path / "none.toml")


def test_the_reference_page_is_what_the_catalogue_says() -> None:
    written = (ROOT / "docs" / "reference" / "catalogue.md").read_text("utf-8")
    assert written == reference.page(catalogue.read()), (
        "run: python -m collectors.reference > docs/reference/catalogue.md"
    )


def test_the_built_in_catalogue_says_what_can_go_wrong() -> None:
    signal: Any
    whole = catalogue.read()
    for name, signal in whole.signals.items():
        assert signal.meaning.endswith("."), name
        assert signal.trap.endswith("."), name
    for name, preset in whole.presets.items():
        assert preset.meaning.endswith("."), name
        for said in [one.trap or one.fallback for one in preset.signals.values()]:
            assert said is None or said.endswith("."), name
