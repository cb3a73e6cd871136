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
from odesim.ensembles.reduce import HALF, LEVELS, QUANTILES, ReducingLedger
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
    members: Members, request: EnsembleRequest, statistics: tuple[str, ...], execution: Execution, together: int
) -> "xarray.Dataset":  # fmt: skip
    """The statistics of all members as a Dataset: NAME_mean, NAME_var (time, ...), NAME_quantiles (quantile, time, ...), NAME_count.

    together: chunks that are integrated at once. A member counts at the times that it reached.
    """
    import xarray as xr

    count, times, outputs, layout = members.source.count, len(request.times), request.outputs, request.layout
    columns = times * (layout.size + outputs.observed.size)
    quantiles = QUANTILES in statistics
    check_fits("the counts of quantiles; save fewer times", {"counts": columns * 2 * HALF * quantiles}, 4)
    engine = make_engine(request, members)
    engine.prepare()
    block = chunk_size(count, request.member_bytes)
    ledger = ReducingLedger(count, columns, block * together, block, quantiles=quantiles)
    with time_limit(execution.max_seconds), stop_signals() as stop_requested:
        how, chunks = replace(execution, stop_requested=stop_requested), shard_chunks(count, ledger.chunk)
        tally = run_chunks(ledger, members, lambda _: engine, chunks, how, at_once=members_at_once(engine))

    def parts(flat: Array) -> dict[str, Array]:
        """{name: (..., time, *shape)} of columns (..., T n + T q)."""
        states, seen = np.split(flat, [times * layout.size], axis=-1)
        rows = [part.reshape(*flat.shape[:-1], times, -1) for part in (states, seen)]
        return {**layout.split(rows[0]), **outputs.observed.split(rows[1])}

    dims = dimensions(request.system)
    axes = {name: dims[name] for name in layout.names} | {
        name: dims[of] for name, of in zip(outputs.observed.names, outputs.observe, strict=True)
    }
    data: dict[str, Any] = {}
    for statistic in statistics:
        first = ("quantile",) if statistic == QUANTILES else ()
        data |= {f"{name}_{statistic}": ((*first, "time", *axes[name]), part) for name, part in parts(ledger.statistic(statistic)).items()}
    data |= {f"{name}_count": (("time", *axes[name]), part.astype(np.int64)) for name, part in parts(ledger.n).items()}
    coords = {"time": request.times} | ({"quantile": list(LEVELS)} if quantiles else {})
    options = {name: v for name, v in request.options.numbers().items() if v is not None and v != []}
    about = {"model": request.system.name, **options, "members": count, "time_unit": request.system.time}
    about["statistics"] = ",".join(statistics)
    counts = {"statuses": {s: n for s, n in tally.counts.items() if n}, "versions": versions()}
    return with_accessor(xr.Dataset(data, coords=coords, attrs={**about, **counts}))
