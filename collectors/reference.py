"""The catalogue as a page for people; `python -m collectors.reference` writes it out."""

from __future__ import annotations

import sys

from collectors import catalogue
from collectors.catalogue import DEFAULT, Catalogue, Question

MATCHERS = {"region": "REGION"}

HEAD = """\
# Catalogue of signals

Made by `python -m collectors.reference > docs/reference/catalogue.md` from
`collectors/catalogue.toml`; a test compares the two.

Every five minutes Sekisho asks each region's Prometheus for these signals and keeps them as hours:
sums, counts, smallest, largest and newest values, and histogram buckets. These can be added up over
hours, pools and projects; ratios and quantiles are made when somebody asks. A gauge read at 12:00
belongs to the hour from 12:00; what a count grew by from 12:55 to 13:00 does too. An hour expects
12 readings and says how many it saw. What counts grew by is asked once for each whole hour (as
shown below), and for each five minutes of the hour that is under way (`300s` for `3600s`). Samples
that are NaN or infinite are counted and not kept.

## A site's own catalogue

`COLLECT_CATALOGUE` names a TOML file that is laid over the built-in one, key by key:

```toml
[regions.osaka]
presets = ["up", "dcgm-exporter", "kueue", "ours"]  # later ones win
selector = { cluster = "osa-1" }                    # instead of region="osaka"; {} for no matcher
max_points = 1000                                   # points of a series in one request

[presets.ours]
meaning = "Our relabelled Kueue."
extends = "kueue"

[presets.ours.signals.pending_jobs]
labels = { queue = "project", lane = "lane", status = "detail" }   # Prometheus label = column
query = "max by (queue, lane, status) (kueue_pending_workloads{$selector})"
```

Where queries of a preset share a piece of PromQL, it is one of its `parts` and stands in them as
`$name`. A preset that extends another may replace one, or say which signals its exporter `lacks`:

```toml
[presets.kueue.parts]
gpu = "example.com/gpu"            # the regions' quota is counted in another resource
```

What a query may say of itself: `source_unit` (what the exporter counts in, where it is not the unit
of the signal), `trap` (what can go wrong with this exporter), `fallback` (what is known instead
where it is not published).

Counters and histograms write `$increase(metric{$selector, ...})` where others write `increase()`; a
histogram keeps the label `le` and has a `sum_query`. Counts that outlive their exporter, as a
kernel's do, take `$rise(...)`: a new name is no new count there. A signal of one's own is a
`[signals.NAME]` table with `kind`, `unit`, `columns`, `meaning`, `trap`. `manage.py collect` lists
everything that is wrong in the file, ends with status 2 and writes nothing. A changed query, and a
changed selector other than the region's name, has another version; figures of the old one are kept,
and where an hour has both, the newer counts.

## What presets need

- **A pool on each GPU.** Exporters know hosts, not pools: put the label `pool` on their targets
  (`relabel_configs`), from a label of the node or from the host's name. kube-state-metrics is one
  target for all nodes: relabel its metrics, or take `kube-state-metrics-node-label`.
- **The region as a label of the targets**, or a `selector` of the site's own: external labels are
  not there when a Prometheus is asked itself.
- **A scrape at least every four minutes**: after five, Prometheus forgets a value.
- **dcgm-exporter**: `dcgm-exporter-honor-labels` where it is scraped with `honorLabels: true`. Both
  spellings of the host (`Hostname`, `hostname`) do.
- **Kueue**: the preset of its version; `metrics.enableClusterQueueResources` for quotas; for lanes
  of what waits, the feature gate `CustomMetricLabels` with a label `lane` (from 0.17 on).
- **Copies** (replicas of Prometheus or of an exporter) need no care: each device, queue and process
  is counted once.

## The contract for trainers

A trainer that publishes these metrics, with the labels `region`, `pool`, `tenant`, `lane` and
`storage`, has its checkpoints shown:

- `trainer_checkpoint_write_duration_seconds`, a histogram with the label `phase` (`blocking` or
  `total`) and buckets from 0.5 to 1280 s;
- `trainer_checkpoint_bytes_total` and `trainer_checkpoint_failures_total`, counters.
"""


def page(whole: Catalogue) -> str:
    """The reference page in Markdown."""
    parts = [HEAD, "## Signals\n"]
    for name, signal in whole.signals.items():
        columns = ", ".join(f"`{column}`" for column in signal.columns)
        columns = f"by {columns}" if columns else "of the region as a whole"
        givers = [preset for preset in whole.presets if name in whole.of_preset(preset)]
        given = ", ".join(f"[`{preset}`](#{preset})" for preset in givers) or "no preset"
        parts.append(
            f"### `{name}`\n\n{signal.meaning} *{signal.trap}*\n\n"
            f"A {signal.kind} in {signal.unit}, {columns}. Given by {given}.\n"
        )
    asked = whole.presets_of(DEFAULT)
    parts.append("## Presets\n\nAsked where a site says nothing else: ")
    parts[-1] += ", ".join(f"`{name}`" for name in asked) + ".\n"
    parts += [_preset(whole, name) for name in whole.presets]
    return "\n".join(parts)


def _preset(whole: Catalogue, name: str) -> str:
    preset = whole.presets[name]
    said = [preset.meaning]
    if preset.versions:
        said.append(f"Versions: {preset.versions}.")
    if preset.source:
        said.append(f"Source: {preset.source}.")
    inherited = {} if preset.extends is None else whole.of_preset(preset.extends)
    if preset.extends:
        said.append(f"As [`{preset.extends}`](#{preset.extends}), except for what follows.")
    if preset.lacks:
        said.append("Not given: " + ", ".join(f"`{lacking}`" for lacking in preset.lacks) + ".")
    parts = [f"### `{name}`\n\n" + " ".join(said) + "\n"]
    for signal, asked in whole.of_preset(name).items():
        if inherited.get(signal) != asked:
            parts.append(_asked(Question(signal, whole.signals[signal], asked, MATCHERS)))
    return "\n".join(parts)


def _asked(question: Question) -> str:
    asked, signal = question.asked, question.signal
    said = [f"In {asked.source_unit or signal.unit} there, in {signal.unit} here."]
    columns = (f"`{label}` → {column}" for label, column in asked.labels.items())
    said.append("Labels: " + (", ".join(columns) or "none") + ".")
    if asked.trap:
        said.append(f"*{asked.trap}*")
    if asked.fallback:
        said.append(f"Where it is not published: {asked.fallback}")
    blocks = "\n\n".join(
        f"```promql\n{query}\n```" for query in question.queries(step_seconds=3600)
    )
    heading = f"#### `{question.name}`, version `{question.version}`"
    return f"{heading}\n\n{' '.join(said)}\n\n{blocks}\n"


if __name__ == "__main__":
    sys.stdout.write(page(catalogue.read()))
