"""`odesim.ensemble`: one System, many members, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.ensemble_request import choose_members, dataset, make_ensemble_request, make_execution
from odesim.api.request import (
    check_array_kind,
    check_sensitivities,
    span_of_steps,
    warn_below_between,
    warn_below_tolerance,
    with_sensitivities,
)
from odesim.base.arrays import Array, on_host
from odesim.base.backends import ENSEMBLE, find_backend
from odesim.base.cluster import Cluster
from odesim.base.datasets import with_accessor
from odesim.base.device import check_fits, check_saves_fit, device_errors, first_device
from odesim.base.errors import ParamError, counted
from odesim.base.options import MAX_EVENTS, RunOptions, Values, Work, pick, versions
from odesim.base.signals import stop_signals, time_limit
from odesim.ensembles.ledger import MemoryLedger, chunk_size, shard_chunks
from odesim.ensembles.members import Members
from odesim.ensembles.reduce import COUNTED, HALF, HISTOGRAM, LEVELS, QUANTILES, ReducingLedger, check_reduce
from odesim.ensembles.request import EnsembleRequest
from odesim.inputs.arguments import check_arguments
from odesim.inputs.events import ADDED, event_attributes, events_until_rest, with_events
from odesim.inputs.registry import load_model, load_with_origin
from odesim.run.choose import make_engine, members_at_once
from odesim.run.chunks import Execution, run_chunks
from odesim.run.problem import dimensions
from odesim.run.threads import empty_there
from odesim.run.unreachable import looked_at
from odesim.store.paths import Destination
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray
    from distributed import Client

    from odesim.api.stored import EnsembleRun

LOOKED_AT = 4096  # members whose saved states are looked at for such as fall below atol: a warning needs one, and all may be gigabytes
TOGETHER = 4  # chunks of each thread of the processor between two moments at which threads wait for each other


@check_arguments
def ensemble(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    save: int | str | ArrayLike | None = None,
    method: str = "auto",
    step: float | None = None,
    rtol: float = 1e-6,
    atol: float | Mapping[str, ArrayLike] = 1e-9,
    backend: str = "numba",
    dtype: str = "float64",
    strict: bool = False,
    seed: int = 0,
    halvings: int = 0,
    max_steps: int = 1_000_000,
    stop_at: ArrayLike = (),
    max_step: float | None = None,
    first_step: float | None = None,
    events: str | Iterable[str] = (),
    until_rest: bool = False,
    observe: str | Iterable[str] = (),
    max_events: int = MAX_EVENTS,
    clock: str = "ordinary",
    sensitivities: str | Iterable[str] = (),
    arrays: str = "numpy",
    threads: int = 1,
    vary: Mapping[str, Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    zipped: Mapping[str, Any] | None = None,
    members: int | None = None,
    design: str = "random",
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    shard: tuple[int, int] | None = None,
    fail_fast: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
    client: Client | None = None,
    max_seconds: float | None = None,
    reduce: str | Iterable[str] = (),
) -> xarray.Dataset:
    """Many members of a model, each integrated as by `integrate`, as one Dataset.

    Parameters
    ----------
    model, sizes, span, rtol, atol, events
        As of `integrate`.
    params, initial : {name: number, nested list or array}
        Values of all members; an array with one axis more than its parameter has a row for each.
    save : int, "log:N" or array
        Saved times; default: the end.
    method : str
        "auto" chooses for each member: the explicit method of the tolerance, or rodas5p where stability limits the steps, or max_steps are
        too few and it gets further.
    seed : int
        Of all random numbers.
    threads : int
        The bits do not depend on it.
    vary : {name: "uniform(a,b)", "loguniform(a,b)", "normal(m,s)" or array}
        Random numbers for every entry, or a row for each member.
    grid, zipped : {name: points}
        All combinations of points; points taken together. A list, an array or a text such as "linspace(0,1,5)".
    members : int
        How many random ones; with a grid at each of its points.
    out : path
        The run is stored in this folder chunk by chunk, and the Dataset reads it when used.
    reduce : str or list of str
        Statistics of all members in their place: "mean", "var", "min", "max", "quantiles", "histogram", at the saved times; with
        "time_mean", "time_min", "time_max" those of what each member has over time too.

    Returns
    -------
    xarray.Dataset
        The states (member, time, index names), the observables of observe, status (member,), a place in attrs["status_names"], t_end,
        steps, rejected, method.

    Other Parameters
    ----------------
    steps, step, dtype, halvings, max_steps, stop_at, max_step, first_step, until_rest
        As of `integrate`.
    backend : "numba" or "cuda"
        cuda: a thread of an NVIDIA GPU for each member, up to 64 states, by any adaptive method or an explicit one with a fixed step;
        several GPUs share the members.
    strict : bool
        The bits of `integrate`, on every machine.
    observe : str or list of str
        Observables to keep, or "all".
    max_events : int
        Occurrences of each event that are kept; 0 looks only for terminal ones.
    clock : "ordinary" or "rescaled"
        rescaled saves times t, and has variables blow_up_t, blow_up_error (member,).
    sensitivities : str or list of str
        dv_dp is the derivative of the state v by the parameter p, with dimensions (member, time, axes of v, axes of p); dv_du_start that by
        the initial value of the state u.
    arrays : "numpy" or "cupy"
        cupy, without out, leaves the states on the first GPU.
    design : "random", "sobol", "halton" or "latin"
        The others place members evenly, by scipy.stats.qmc with rng=seed, a dimension for each entry in the order of vary; with a grid the
        same ones at each of its points.
    overwrite, resume : bool
        Replace the run at out; continue it.
    shard : (int, int)
        (i, n) computes part i of n.
    fail_fast : bool
        Stop after the first chunk with a failed member.
    progress : callable
        Called with members done, all members, failed ones.
    client : distributed.Client
        Its workers integrate chunks and write them into out, a folder that all machines share.
    max_seconds : float
        Ends the run as Ctrl-C and SIGTERM do: the chunks that are done are kept.

    Raises
    ------
    OdesimError
        One sentence, if the request is wrong.

    Notes
    -----
    A member that ended early has NaN after its end; STATE_end is the state at t_end; status -1 is a member that is not done. The bits of a
    member depend on its own numbers alone, never on other members or threads.

    For each event NAME_t (member, occurrence), NAME_count and, for events of components, NAME_index (the number of the component in C
    order, -1: none). Letters other than a-z, 0-9 and _ in the name of an event become _.

    reduce gives NAME_mean, NAME_var, NAME_min, NAME_max (time, ...), NAME_quantiles (quantile, time, ...), NAME_histogram (bin, time, ...)
    with NAME_edges (edge, time, ...), NAME_time_max_mean (...), and NAME_count, how many members have a number there. Quantiles are off by
    at most 1/64 of their distance from the median of the first members, and NaN where it is 3e26 times their spread; a histogram counts
    exactly.

    Examples
    --------
    >>> draws = {"mu": "uniform(1,2)"}
    >>> members = odesim.ensemble("joma.nonlinear", vary=draws, members=100, sizes={"M": 3})
    >>> members["v"].dims, int((members["status"] == 0).sum())
    (('member', 'time', 'l'), 100)
    """
    arguments = locals()
    values, options = ensemble_arguments(**arguments)
    execution = make_execution(pick(Work, arguments), progress, Cluster(client) if client else None)
    find_backend(backend, ENSEMBLE)
    check_array_kind(arrays, options)
    if out is not None:
        if reduce:
            raise ParamError("reduce keeps statistics and no member, and out stores members: give one of them")
        if arrays == "cupy":
            raise ParamError("arrays='cupy' leaves results on the GPU, and out writes them to a disk: give one of them")
        from odesim.store.read import open_run

        place = Path(out)
        run_ensemble(model, values, options, Destination(place, overwrite, resume, shard), execution)
        return open_run(place)
    for name, there in (("overwrite", overwrite), ("resume", resume), ("shard", shard), ("fail_fast", fail_fast), ("client", client)):
        if there:
            raise ParamError(f"{name} needs the folder of a run: out='run.zarr'")
    system = load_model(model)
    values = until_rest_of(system, values, options)
    chosen, request = members_and_request(system, values, options)
    if reduce:
        names = check_reduce(reduce)
        check_one_law(values)
        return reduced(chosen, request, names, execution, width_of(execution, options))
    result, texts = in_memory(chosen, request, arrays, execution), values.events
    return result.assign_attrs({ADDED: [texts] if isinstance(texts, str) else list(texts)}) if texts else result


def width_of(execution: Execution, options: RunOptions) -> int:
    """How many chunks are integrated at once."""
    return 1 if execution.threads == 1 or options.on.gpu else TOGETHER * execution.threads


def in_memory(chosen: Members, request: EnsembleRequest, arrays: str, execution: Execution) -> xarray.Dataset:
    """Integrates all members and holds them in memory. arrays: "numpy", or "cupy" for states that stay on the first GPU."""
    stays, count = arrays == "cupy", chosen.source.count
    if not stays:
        check_saves_fit(count * len(request.times), request.layout.size, 8)
    check_fits("what is kept beside the states", {"events and observables": count * request.outputs.numbers(len(request.times))}, 8)
    engine = make_engine(request, chosen)
    engine.prepare()
    # in the type that they are to have: nothing of their size is made when they are done
    room = request.allocate(count, partial(empty_there, dtype=request.dtype)) if stays else request.allocate(count)
    held = MemoryLedger(room, chunk_size(count, request.member_bytes) * width_of(execution, request.options))
    with time_limit(execution.max_seconds), stop_signals() as stop_requested:
        chunks = shard_chunks(count, held.chunk)
        tally = run_chunks(
            held, chosen, lambda _: engine, chunks, replace(execution, stop_requested=stop_requested), at_once=members_at_once(engine)
        )
    what = f"the states of {counted(count, 'member')} of {request.system.name}"
    with device_errors(what, "fewer members or saved times"), first_device() if stays else nullcontext():
        members = held.all_members()
        warn_below_between(looked_at(request.system)[1], members.y[:LOOKED_AT], request.layout, request.options, request.dtype)
        result = dataset(request, chosen, members)
    if tally.not_numbers:
        result.attrs["not_numbers"] = [str(missing) for missing in tally.not_numbers.values()]
    return result


def run_ensemble(
    model: str | PathLike[str] | System, values: Values, options: RunOptions, to: Destination, execution: Execution
) -> EnsembleRun:
    """Integrates an ensemble into a folder; the result as an EnsembleRun. Raises an OdesimError."""
    from odesim.api.stored import begin_stored
    from odesim.inputs.registry import carried_model
    from odesim.store.paths import check_new_run

    if not to.joins:
        check_new_run(to.path, overwrite=to.overwrite)  # before a pilot is computed
    system, original = load_with_origin(model)
    values = until_rest_of(system, values, options)
    travels = carried_model(system, original) if execution.cluster else None
    original = {**original, **event_attributes(with_events(system, values.events), values.events)}
    return begin_stored(original, *members_and_request(system, values, options), to, execution, travels)


def ensemble_arguments(**arguments: Any) -> tuple[Values, RunOptions]:
    """What is computed and how, of the arguments of `ensemble`; the others are left out."""
    return pick(Values, arguments), pick(RunOptions, arguments)


def until_rest_of(system: System, values: Values, options: RunOptions) -> Values:
    """The values with the event of until_rest among their events."""
    return replace(values, events=events_until_rest(system, values.events, values.until_rest, options.rtol))


def members_and_request(system: System, values: Values, options: RunOptions) -> tuple[Members, EnsembleRequest]:
    """The members and the request of an ensemble. Raises an OdesimError."""
    system = with_events(system, values.events)
    names = {name for part in (values.initial, values.vary, values.grid, values.zipped) for name in part}
    system, still = with_sensitivities(system, values.sensitivities, names)
    here = {name: on_host(getattr(values, name)) for name in ("params", "initial", "vary", "grid", "zipped")}
    span = span_of_steps(system, values.span, values.steps)
    values = replace(values, **{**here, "initial": {**still, **here["initial"]}, "span": span})
    chosen = choose_members(system, values, options.seed)
    check_sensitivities(system, chosen.shared)
    request = make_ensemble_request(system, chosen, options, save=values.save, observe=values.observe, max_events=values.max_events)
    warn_below_tolerance(system, chosen.shared, request.options)
    return chosen, request


def check_one_law(values: Values) -> None:
    """Raises ParamError for a design with points: members of several points have no law in common."""
    if values.grid or values.zipped:
        raise ParamError("reduce joins all members, and the points of a grid are to be kept apart: run an ensemble for each point")


def reduced(
    members: Members, request: EnsembleRequest, names: tuple[tuple[str, ...], tuple[str, ...]], execution: Execution, together: int
) -> xarray.Dataset:
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
