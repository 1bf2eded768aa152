"""Whether guarantees can be kept: from plain tables, so for what is in force and for plans."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd


def oversubscription(pools: pd.DataFrame, nominal: Mapping[tuple[str, str], int]) -> pd.DataFrame:
    """Compares what each pool has with what it guarantees, also with one failure domain down.

    `pools`: pool, region, domain, accelerator, gpus; `nominal`: quota by (project, pool).

    *Guaranteed* is the sum of the nominal quotas in a pool. *With a domain down*, the guarantees of
    its pools must fit beside the guarantees of the pools with the same accelerator elsewhere:
    needed is the guaranteed sum over all pools with this accelerator, and there is what those
    outside the downed domain have. `worst_domain_down` is the domain whose loss leaves the fewest
    GPUs of the pool's accelerator. Borrowing and residency are not looked at.

    Adds guaranteed_gpus, ratio, over, worst_domain_down, guaranteed_gpus_with_domain_down,
    gpus_with_domain_down, over_with_domain_down.
    """
    frame = pools.copy()
    guaranteed: dict[str, int] = dict.fromkeys(frame["pool"], 0)
    for (_project, pool), gpus in nominal.items():
        guaranteed[pool] += gpus
    frame["guaranteed_gpus"] = [guaranteed[pool] for pool in frame["pool"]]
    frame["ratio"] = frame["guaranteed_gpus"] / frame["gpus"]
    frame["over"] = frame["guaranteed_gpus"] > frame["gpus"]

    of_class = frame.groupby("accelerator")
    in_domain = frame.groupby(["accelerator", "domain"], sort=False)["gpus"].sum()
    # Needed is the same whichever domain is down, so the one with most GPUs leaves the least.
    worst = {name: in_domain[name].idxmax() for name in frame["accelerator"].unique()}
    lost = [in_domain[name, worst[name]] for name in frame["accelerator"]]
    frame["worst_domain_down"] = frame["accelerator"].map(worst)
    frame["guaranteed_gpus_with_domain_down"] = of_class["guaranteed_gpus"].transform("sum")
    frame["gpus_with_domain_down"] = of_class["gpus"].transform("sum") - lost
    frame["over_with_domain_down"] = (
        frame["guaranteed_gpus_with_domain_down"] > frame["gpus_with_domain_down"]
    )
    return frame
