"""The catalogue as a page for people; `python -m collectors.reference` writes it out."""

from __future__ import annotations

import sys

from collectors import catalogue
from collectors.catalogue import Catalogue, Question

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

Counters and histograms write `$increase(metric{$selector, ...})` where others write `increase()`; a
histogram keeps the label `le` and has a `sum_query`. A signal of one's own is a `[signals.NAME]`
table with `kind`, `unit`, `columns`, `meaning`, `trap`. `manage.py collect` lists everything that
is wrong in the file, ends with status 2 and writes nothing. A changed query has another version;
figures of the old one are kept, and where an hour has both, the newer counts.

## The contract for trainers

A trainer that publishes these metrics, with the labels `region`, `pool`, `tenant`, `lane` and
`storage`, has its checkpoints shown:

- `trainer_checkpoint_write_duration_seconds`, a histogram with the label `phase` (`blocking` or
  `total`) and buckets from 0.5 to 1280 s;
- `trainer_checkpoint_bytes_total` and `trainer_checkpoint_failures_total`, counters.
"""


def page(whole: Catalogue) -> str:
    """The reference page in Markdown."""
    questions = {question.name: question for question in whole.asked_in("REGION")}
    parts = [HEAD, "## Signals\n"]
    for name, signal in whole.signals.items():
        columns = ", ".join(f"`{column}`" for column in signal.columns)
        parts.append(
            f"### `{name}`\n\n{signal.meaning} *{signal.trap}*\n\n"
            f"A {signal.kind} in {signal.unit}, by {columns}."
        )
        if name in questions:
            parts.append(_asked(whole, questions[name]))
    parts.append("## Presets\n")
    for name, preset in whole.presets.items():
        source = f" ({preset.source})" if preset.source else ""
        parts.append(f"- `{name}`: {preset.meaning}{source}")
    return "\n".join(parts) + "\n"


def _asked(whole: Catalogue, question: Question) -> str:
    by = [name for name, preset in whole.presets.items() if question.name in preset.signals]
    queries = question.queries(step_seconds=3600)
    blocks = "\n\n".join(f"```promql\n{query}\n```" for query in queries)
    return f"Preset {', '.join(by)}, version `{question.version}`:\n\n{blocks}\n"


if __name__ == "__main__":
    sys.stdout.write(page(catalogue.read()))
