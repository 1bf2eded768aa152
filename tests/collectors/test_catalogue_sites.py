"""A site lays its own TOML over the presets that are built in, region by region."""

from __future__ import annotations

from pathlib import Path

import promql_parser
import pytest

from collectors import catalogue
from collectors.catalogue import Catalogue, Question

SITE = """
# Tokyo as it comes. Osaka: AMD, an older Kueue, pools as a label of the node. Nagoya: Volcano.
[regions.osaka]
presets = ["up", "amd-device-metrics-exporter", "kube-state-metrics-node-label", "kueue-0-16"]
selector = { cluster = "osa-1" }

[regions.osaka.signals.gpu_installed_gpus]
labels = { pool = "pool" }
query = "sum by (pool) (our_inventory_gpus{$selector})"

[regions.nagoya]
presets = ["dcgm-exporter-honor-labels", "volcano"]

[presets.kube-state-metrics-node-label.parts]
node_label = "label_cloud_google_com_gke_nodepool"

[presets.kueue.parts]
gpu = "example[.]com/accelerator"
"""


@pytest.fixture
def whole(tmp_path: Path) -> Catalogue:
    path = tmp_path / "site.toml"
    path.write_text(SITE, "utf-8")
    return catalogue.read(path)


def _asked(whole: Catalogue, region: str) -> dict[str, Question]:
    return {question.name: question for question in whole.asked_in(region)}


def _text(question: Question) -> str:
    return "\n".join(question.queries(step_seconds=300))


def test_each_region_is_asked_by_its_own_presets(whole: Catalogue) -> None:
    tokyo, osaka, nagoya = (_asked(whole, region) for region in ("tokyo", "osaka", "nagoya"))
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in _text(tokyo["gpu_engine_active_gpus"])
    assert "gpu_gfx_activity" in _text(osaka["gpu_engine_active_gpus"])
    assert "exported_namespace" in _text(tokyo["gpu_attributed_gpus"])
    assert "exported_namespace" not in _text(nagoya["gpu_attributed_gpus"])
    assert "volcano_queue_allocated" in _text(nagoya["quota_used_gpus"])
    # What an exporter does not give is not asked for.
    assert "pending_gpus" in tokyo
    assert "pending_gpus" not in osaka  # Kueue 0.16 counts none
    assert "gpu_attributed_gpus" not in osaka
    assert "wait_seconds" not in nagoya
    for question in [*tokyo.values(), *osaka.values(), *nagoya.values()]:
        for query in question.queries(step_seconds=300):
            promql_parser.parse(query)


def test_a_part_that_a_site_replaces_stands_in_all_queries_that_use_it(whole: Catalogue) -> None:
    tokyo, osaka = _asked(whole, "tokyo"), _asked(whole, "osaka")
    for signal in ("quota_used_gpus", "quota_nominal_gpus", "quota_borrowing_limit_gpus"):
        for asked in (tokyo, osaka):  # also in presets that extend the one with the part
            assert 'resource=~"example[.]com/accelerator"' in _text(asked[signal])
            assert "nvidia" not in _text(asked[signal])
    requested = _text(osaka["gpu_requested_gpus"])
    assert 'label_cloud_google_com_gke_nodepool!=""' in requested
    assert "label_pool" not in requested
    # Another query is another version of the figures; the rest stays as it was.
    built_in = _asked(catalogue.read(), "tokyo")
    changed = {name for name, asked in tokyo.items() if asked.version != built_in[name].version}
    assert changed == {
        "quota_used_gpus", "quota_nominal_gpus", "quota_borrowing_limit_gpus",
        "quota_lending_limit_gpus", "quota_unlimited_ratio", "pending_gpus",
    }  # fmt: skip


def test_a_query_of_a_region_wins_over_its_presets(whole: Catalogue) -> None:
    osaka = _asked(whole, "osaka")
    assert _text(osaka["gpu_installed_gpus"]) == (
        'sum by (pool) (our_inventory_gpus{cluster="osa-1"})'
    )
    assert 'cluster="osa-1"' in _text(osaka["quota_used_gpus"])
    assert "our_inventory" not in "".join(
        map(_text, [*_asked(whole, "tokyo").values(), *_asked(whole, "nagoya").values()])
    )


def test_every_built_in_preset_can_be_asked_in_a_region_of_its_own() -> None:
    tables = catalogue.read().model_dump(mode="json", exclude_none=True)
    names = list(tables["presets"])
    tables["regions"] = {f"r{n}": {"presets": [name]} for n, name in enumerate(names)}
    whole = catalogue.check(tables)
    for n, name in enumerate(names):
        assert _asked(whole, f"r{n}").keys() == whole.of_preset(name).keys() != set(), name
