"""What is computed of an ensemble: its members, its request, and its results as a Dataset."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.api.request import check_run_options, options_for
from odesim.base.backends import ENSEMBLE
from odesim.base.cluster import Cluster
from odesim.base.datasets import register
from odesim.base.device import cupy_here
from odesim.base.errors import ParamError, SolveError
from odesim.base.options import MAX_EVENTS, RunOptions, Values, Work, versions
from odesim.base.signals import check_seconds
from odesim.ensembles.design import Design, Table, design_members, part_kinds
from odesim.ensembles.ledger import Progress
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.request import METHOD_NAMES, RESERVED_NAMES, Chunk, EnsembleRequest, check_observe, make_outputs, meanings
from odesim.inputs.arguments import check_count
from odesim.inputs.schema import make_schema
from odesim.inputs.times import stop_times
from odesim.run.choose import auto_rule
from odesim.run.chunks import Execution
from odesim.run.clocked import rescaled_system
from odesim.run.integrate import METHOD_NAMES as CHOICES
from odesim.run.integrate import no_such_method
from odesim.run.lane_run import strict_obstacle
from odesim.run.lanes import no_strict
from odesim.run.modes import held_of
from odesim.run.noise import channel_sizes, noise_system, times_of
from odesim.run.observables import observed_shapes
from odesim.run.problem import compiled_for, dimensions, guarded_system, with_slack
from odesim.stepper.codes import STATUSES
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import check_options
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS

if TYPE_CHECKING:
    import xarray


def choose_members(system: System, values: Values, seed: int) -> Members:
    """Members of a design, or of arrays with a leading member axis. Raises ParamError."""
    numbers: dict[str, Any] = {"sizes": values.sizes, "span": values.span, "seed": seed}
    if not values.has_design:
        return make_members(system, values.params, values.initial, **numbers)
    plan = make_schema(system)
    ranks = {slot.name: slot.rank for slot in (*plan.params, *plan.states)}
    arrays = {**values.params, **values.initial}
    held = {n: v for n, v in arrays.items() if n in ranks and isinstance(v, np.ndarray | list | tuple) and np.ndim(v) == ranks[n] + 1}
    params, initial = ({n: v for n, v in part.items() if n not in held} for part in (values.params, values.initial))
    twice = [n for n in held if n in values.vary]
    if twice:
        raise ParamError(f"{twice[0]} is given twice: as an array of members, and in vary")
    return design_members(system, replace(values, params=params, initial=initial, vary={**held, **values.vary}), seed)


def as_design(members: Members) -> Design:
    """The source of members as a Design; arrays in memory become its tables."""
    source = members.source
    if isinstance(source, Design):
        return source
    rows = {name: np.asarray(values) for name, values in source.rows(0, source.count).items()}
    return Design(tuple(Table(name, values, values.shape[1:]) for name, values in rows.items()), source.count)


def make_ensemble_request(
    system: System, members: Members, options: RunOptions, *, save: Any = None, observe: Any = (), max_events: int = MAX_EVENTS
) -> EnsembleRequest:
    """The checked request of an ensemble. Raises an OdesimError."""
    names, most = check_observe(system, observe), check_count("max_events", max_events)
    options = options_for(system, options, members.shared)
    chosen = "tsit5" if options.method == "auto" and options.step is not None else options.method
    if chosen not in CHOICES and not system.discrete:
        raise SolveError(no_such_method(options.method))
    if options.step is None and chosen in METHODS and not METHODS[chosen].adaptive:
        raise SolveError(f"{chosen} has no error estimate: give a fixed step")
    check_options(options)
    check_run_options(options, ENSEMBLE)
    if options.on.gpu:
        cupy_here()
    system = guarded_system(system, options)
    shared = with_slack(system, members.shared, options)
    times = np.array([shared.t1]) if save is None else times_of(system, save, shared, options)
    checked = replace(options, method=chosen, stop_at=stop_times(options.stop_at, shared.t0, shared.t1))
    compiled = compiled_of(system, shared.sizes, checked)
    seen = observed_shapes(compiled, names, shared)
    outputs = make_outputs(
        system, compiled.layout(shared.sizes), compiled.lengths(*shared.sizes.items()).events, seen, most, options.rescaled
    )
    if system.noise:
        running, channels = compiled_of(noise_system(system, checked), shared.sizes, checked), channel_sizes(system, shared.sizes)
        more: dict[str, Any] = {"outputs": outputs, "running": running, "channels": channels}
        return EnsembleRequest(compiled, shared.sizes, shared.t0, shared.t1, times, checked, **more)
    held = held_of(rescaled_system(system) if options.rescaled else system, options.step)
    runs: dict[str, Any] = {"rescaled" if options.rescaled else "running": compiled_of(held.system, shared.sizes, checked)}
    request = EnsembleRequest(compiled, shared.sizes, shared.t0, shared.t1, times, checked, outputs=outputs, held=held, **runs)
    if options.strict and chosen in ROSENBROCK and (what := strict_obstacle(request, shared, members.varying)):
        raise SolveError(no_strict(chosen, what))
    return replace(request, auto=auto_rule(request)) if options.method == "auto" else request


def compiled_of(system: System, sizes: Mapping[str, int], options: RunOptions) -> CompiledRHS:
    """The right-hand side from which kernels for members are generated: for a GPU too it is compiled for the processor."""
    return compiled_for(system, sizes, RunOptions().backend, options.dtype, options.strict)


def make_execution(work: Work, progress: Progress | None, cluster: Cluster | None) -> Execution:
    """How members are distributed: over threads here, or over the workers of a cluster. Raises ParamError."""
    count = check_count("threads", work.threads)
    if cluster is not None and count > 1:
        raise ParamError(f"the workers of a cluster have threads of their own (dask worker --nthreads N): leave out threads {count}")
    return Execution(count, progress, work.fail_fast, cluster=cluster, max_seconds=check_seconds(work.max_seconds))


def dataset(request: EnsembleRequest, members: Members, chunk: Chunk) -> "xarray.Dataset":
    """The members as an xarray Dataset, with each member's own values."""
    import xarray as xr

    dims, source, system, outputs = dimensions(request.system), members.source, request.system, request.outputs
    labels = source.labels(0, source.count) if isinstance(source, Design) else source.rows(0, source.count)
    data: dict[str, Any] = {}
    for name, values in request.layout.split(chunk.y).items():
        data[name] = (("member", "time", *dims[name]), values.astype(request.dtype, copy=False))
    axes, types = outputs.axes(dims, request.layout.names), outputs.types(request.dtype)
    more = {name: (("member", *axes[name]), values.astype(types[name][0], copy=False)) for name, values in outputs.arrays(chunk).items()}
    ledger = {name: ("member", getattr(chunk, name)) for name in ("status", "t_end", "steps", "rejected", "method")}
    data |= {name: more[name] for name in outputs.observed.names} | ledger | more  # the order of a stored run
    coords: dict[str, Any] = {"member": np.arange(len(chunk.status)), "time": request.times}
    kinds = part_kinds(source.to_plain()) if isinstance(source, Design) else dict.fromkeys(labels, "table")
    for name, values in labels.items():
        label = label_of(system, name)
        coords[label] = (("member", *axis_names(system, name, label, values.ndim - 1)), values, {"design": kinds[name]})
    # netCDF has no null and no empty list
    about = {"model": system.name} | {
        n: json.dumps(v) if isinstance(v, dict) else v for n, v in request.options.numbers().items() if v is not None and v != []
    }
    about |= {"auto": request.auto} if request.auto else {}
    names = {"status_names": [str(s) for s in STATUSES], "status_meanings": meanings(system, request.options)}
    names["method_names"] = list(METHOD_NAMES)
    about |= {"sensitivities": list(system.sensitivities)} if system.sensitivities else {}
    lists = {"states": request.layout.names, "observables": outputs.observed.names, "ends": outputs.ends.names}
    about |= {name: list(names) for name, names in lists.items() if names} | ({"time_unit": system.time} if system.time else {})
    attrs = {**about, **names, "versions": str(versions())}
    register()
    return xr.Dataset(data, coords=coords, attrs=attrs)


def axis_names(system: System, name: str, label: str, rank: int) -> tuple[str, ...]:
    """Names of the axes of a member's own parameter or initial value: the System's index of that extent, if there is exactly one."""
    shapes = {**system.shapes, **{p.name: p.shape for p in system.params}}
    names = []
    for k in range(rank):
        fitting = [i.name for i, extent in system.axes.items() if extent == shapes[name][k]]
        names.append(fitting[0] if fitting and fitting[0] not in names else f"{label}_{k}")
    return tuple(names)


def label_of(system: System, name: str) -> str:
    """The name in the Dataset for the initial values of a state, distinct from states and status arrays."""
    taken = {*map(str, system.states), *RESERVED_NAMES}
    if name not in taken:
        return name
    taken |= {p.name for p in system.params}
    return next(label for label in (f"{name}_start{'_' * n}" for n in count()) if label not in taken)
