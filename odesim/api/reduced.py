"""`odesim.ensemble(reduce=...)`: statistics over members at the saved times, while the members come and go."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.datasets import with_accessor
from odesim.base.device import check_fits
from odesim.base.errors import ParamError
from odesim.base.options import Values, versions
from odesim.base.signals import stop_signals, time_limit
from odesim.ensembles.ledger import chunk_size, shard_chunks
from odesim.ensembles.members import Members
from odesim.ensembles.reduce import COUNTED, HALF, HISTOGRAM, LEVELS, QUANTILES, ReducingLedger
from odesim.ensembles.request import EnsembleRequest
from odesim.run.choose import make_engine, members_at_once
from odesim.run.chunks import Execution, run_chunks
from odesim.run.problem import dimensions

if TYPE_CHECKING:
    import xarray


def check_one_law(values: Values) -> None:
    """Raises ParamError for a design with points: members of several points have no law in common."""
    if values.grid or values.zipped:
        raise ParamError("reduce joins all members, and the points of a grid are to be kept apart: run an ensemble for each point")


def reduced(
    members: Members, request: EnsembleRequest, names: tuple[tuple[str, ...], tuple[str, ...]], execution: Execution, together: int
) -> "xarray.Dataset":
    """The statistics of all members as a Dataset: NAME_mean, NAME_var, ... (time, ...), NAME_quantiles (quantile, time, ...), NAME_count.

    names: of statistics, and of what they are taken of besides, which a member has once: NAME_time_max_mean (...). together: chunks that
    are integrated at once. A member counts at the times that it reached. Raises ParamError.
    """
    import xarray as xr

    (statistics, over_time), outputs, layout = names, request.outputs, request.layout
    count, times, states, seen = members.source.count, len(request.times), layout.size, outputs.observed.size
    if over_time and times < 2:
        raise ParamError(f"{over_time[0]} is over the saved times, and there is one: save more")
    columns, counted = (times + len(over_time)) * (states + seen), any(name in COUNTED for name in statistics)
    check_fits("the counts of quantiles and histograms; save fewer times", {"counts": columns * 2 * HALF * counted}, 4)
    engine = make_engine(request, members)
    engine.prepare()
    block = chunk_size(count, request.member_bytes)
    ledger = ReducingLedger(count, columns, block * together, block, statistics, request.times, over_time)
    with time_limit(execution.max_seconds), stop_signals() as stop_requested:
        how, chunks = replace(execution, stop_requested=stop_requested), shard_chunks(count, ledger.chunk)
        tally = run_chunks(ledger, members, lambda _: engine, chunks, how, at_once=members_at_once(engine))

    dims = dimensions(request.system)
    axes = {name: dims[name] for name in layout.names} | {
        name: dims[of] for name, of in zip(outputs.observed.names, outputs.observe, strict=True)
    }

    def variables(statistic: str, flat: Array, *first: str) -> dict[str, Any]:
        """{name: (dimensions, values)} of columns (..., columns)."""
        ends = np.cumsum([times * states, times * seen, *[states, seen] * len(over_time)])
        arrays: dict[str, Any] = {}
        for k, part in enumerate(np.split(flat, ends[:-1], axis=-1)):
            what = f"_{over_time[k // 2 - 1]}" if k > 1 else ""
            rows = part if what else part.reshape(*flat.shape[:-1], times, -1)
            for name, values in (outputs.observed if k % 2 else layout).split(rows).items():
                arrays[f"{name}{what}_{statistic}"] = ((*first, *([] if what else ["time"]), *axes[name]), values)
        return arrays

    data: dict[str, Any] = {}
    for statistic in statistics:
        first = {QUANTILES: ("quantile",), HISTOGRAM: ("bin",)}.get(statistic, ())
        data |= variables(statistic, ledger.statistic(statistic), *first)
    if HISTOGRAM in statistics:
        data |= variables("edges", ledger.edges(), "edge")
    data |= variables("count", ledger.n.astype(np.int64))
    coords = {"time": request.times} | ({"quantile": list(LEVELS)} if QUANTILES in statistics else {})
    options = {name: v for name, v in request.options.numbers().items() if v is not None and v != []}
    about = {"model": request.system.name, **options, "members": count, "time_unit": request.system.time}
    about["statistics"] = ",".join((*statistics, *over_time))
    counts = {"statuses": {s: n for s, n in tally.counts.items() if n}, "versions": versions()}
    return with_accessor(xr.Dataset(data, coords=coords, attrs={**about, **counts}))
