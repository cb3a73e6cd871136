"""Checks common to ensembles in memory and on disk: members, request, right-hand side, threads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.api.discrete import options_for
from odesim.api.options import check_run_options
from odesim.base.backends import ENSEMBLE
from odesim.base.cluster import Cluster
from odesim.base.gpu import cupy_here
from odesim.base.run_options import RunOptions
from odesim.codegen.compiled import CompiledRHS
from odesim.engines.choose import auto_rule
from odesim.engines.guards import guarded_system, with_slack
from odesim.engines.lanes.engine import no_strict
from odesim.engines.lanes.single_run import strict_obstacle
from odesim.engines.observables import observed_shapes
from odesim.engines.problem import compiled_for, rescaled_system
from odesim.engines.run import Execution
from odesim.engines.switching import held_of
from odesim.ensembles.design import Design, EnsembleArguments, Table, design_members
from odesim.ensembles.ledger import Progress
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.request import MAX_EVENTS, EnsembleRequest, check_max_events, check_observe, make_outputs
from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.schema import make_schema
from odesim.inputs.times import save_times, stop_times
from odesim.solve import ROSENBROCK
from odesim.solve.integrate import METHOD_NAMES
from odesim.stepper.methods import METHODS
from odesim.stepper.options import check_options
from odesim.symbolic.system import System


def choose_members(system: System, asked: EnsembleArguments, seed: int) -> Members:
    """Members of a design, or of arrays with a leading member axis. Raises ParamError."""
    numbers: dict[str, Any] = {"sizes": asked.sizes, "span": asked.span, "seed": seed}
    if not asked.has_design:
        return make_members(system, asked.params, asked.initial, **numbers)
    plan = make_schema(system)
    ranks = {slot.name: slot.rank for slot in (*plan.params, *plan.states)}
    given = {**asked.params, **asked.initial}
    held = {n: v for n, v in given.items() if n in ranks and isinstance(v, np.ndarray | list | tuple) and np.ndim(v) == ranks[n] + 1}
    params, initial = ({n: v for n, v in values.items() if n not in held} for values in (asked.params, asked.initial))
    twice = [n for n in held if n in asked.vary]
    if twice:
        raise ParamError(f"{twice[0]} is given twice: as an array of members, and in vary")
    return design_members(system, replace(asked, params=params, initial=initial, vary={**held, **asked.vary}), seed)


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
    names, most = check_observe(system, observe), check_max_events(max_events)
    options = options_for(system, options, members.shared.t0, members.shared.t1)
    chosen = "tsit5" if options.method == "auto" and options.step is not None else options.method
    if chosen not in METHOD_NAMES and not system.discrete:
        raise SolveError(no_such("method", options.method, METHOD_NAMES))
    if options.step is None and chosen in METHODS and not METHODS[chosen].adaptive:
        raise SolveError(f"{chosen} has no error estimate: give a fixed step")
    check_options(options)
    check_run_options(options, ENSEMBLE)
    if options.on.gpu:
        cupy_here()
    system = guarded_system(system)
    shared = with_slack(system, members.shared, options.rtol, options.atol, options.dtype)
    times = np.array([shared.t1]) if save is None else save_times(save, shared.t0, shared.t1, whole=system.discrete)
    asked = replace(options, method=chosen, stop_at=stop_times(options.stop_at, shared.t0, shared.t1))
    compiled = compiled_of(system, shared.sizes, asked)
    seen = observed_shapes(compiled, names, shared)
    outputs = make_outputs(system, compiled.layout(shared.sizes), compiled.event_shapes(shared.sizes), seen, most, options.rescaled)
    held = held_of(rescaled_system(system) if options.rescaled else system, options.step)
    runs: dict[str, Any] = {"rescaled" if options.rescaled else "running": compiled_of(held.system, shared.sizes, asked)}
    request = EnsembleRequest(compiled, shared.sizes, shared.t0, shared.t1, times, asked, outputs=outputs, held=held, **runs)
    if options.strict and chosen in ROSENBROCK and (what := strict_obstacle(request, shared, members.own)):
        raise SolveError(no_strict(chosen, what))
    return replace(request, auto=auto_rule(request)) if options.method == "auto" else request


def compiled_of(system: System, sizes: Mapping[str, int], options: RunOptions) -> CompiledRHS:
    """The right-hand side from which kernels for members are generated: for a GPU too it is compiled for the processor."""
    return compiled_for(system, sizes, RunOptions().backend, options.dtype, options.strict)


def make_execution(threads: Any, progress: Progress | None, fail_fast: bool, cluster: Cluster | None) -> Execution:
    """How members are distributed: over threads here, or over the workers of a cluster. Raises ParamError."""
    count = check_threads(threads)
    if cluster is not None and count > 1:
        raise ParamError(f"the workers of a cluster have threads of their own (dask worker --nthreads N): leave out threads {count}")
    return Execution(count, progress, fail_fast, cluster=cluster)


def check_threads(threads: Any) -> int:
    """threads as an int of at least 1. Raises ParamError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
        raise ParamError(f"threads must be a whole number, 1 to 1024, not {threads!r}")
    return int(threads)
