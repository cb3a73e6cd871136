"""What an ensemble in memory and one on disk have in common: the request, the engine, names of axes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.api.options import RESCALED, check_clock
from odesim.base.gpu import cupy_here
from odesim.engines.choose import auto_rule
from odesim.engines.guards import guarded_system, with_slack
from odesim.engines.lanes.engine import no_strict
from odesim.engines.lanes.strict_run import strict_obstacle
from odesim.engines.observables import observed_shapes
from odesim.engines.problem import compiled_parts, rescaled_system
from odesim.engines.switching import held_of
from odesim.ensembles.design import Design, Table
from odesim.ensembles.design_options import design_members
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.outputs import MAX_EVENTS, check_max_events, check_observe, make_outputs
from odesim.ensembles.request import EnsembleRequest
from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.schema import make_schema
from odesim.inputs.times import save_times, stop_times
from odesim.solve import ROSENBROCK
from odesim.solve.integrate import METHOD_NAMES
from odesim.solve.methods import METHODS
from odesim.solve.options import check_options
from odesim.symbolic.system import System

BACKENDS = ("numba", "cuda")


def choose_members(
    system: System,
    params: Mapping[str, Any],
    initial: Mapping[str, Any],
    vary: Mapping[str, Any],
    grid: Mapping[str, Any],
    zipped: Mapping[str, Any],
    members: int | None,
    **numbers: Any,
) -> Members:
    """Members of a design, or of arrays with a leading axis alone. numbers: sizes, span, seed. Raises ParamError."""
    if not (vary or grid or zipped or members is not None):
        return make_members(system, params, initial, **numbers)
    plan = make_schema(system)
    ranks = {slot.name: slot.rank for slot in (*plan.params, *plan.states)}
    given = {**params, **initial}
    held = {n: v for n, v in given.items() if n in ranks and isinstance(v, np.ndarray | list | tuple) and np.ndim(v) == ranks[n] + 1}
    shared = ({n: v for n, v in values.items() if n not in held} for values in (params, initial))
    twice = [n for n in held if n in vary]
    if twice:
        raise ParamError(f"{twice[0]} is given twice: as an array of members, and in vary")
    params, initial = shared
    vary = {**held, **vary}
    return design_members(system, vary=vary, grid=grid, zipped=zipped, members=members, params=params, initial=initial, **numbers)


def as_design(members: Members) -> Design:
    """The source of the members as a Design: arrays in memory are its tables."""
    source = members.source
    if isinstance(source, Design):
        return source
    rows = {name: np.asarray(values) for name, values in source.rows(0, source.count).items()}
    return Design(tuple(Table(name, values, values.shape[1:]) for name, values in rows.items()), source.count)


def make_request(
    system: System,
    members: Members,
    save: Any,
    method: str,
    step: float | None,
    rtol: float,
    atol: float,
    backend: str,
    dtype: str,
    strict: bool,
    max_steps: int,
    observe: Any = (),
    max_events: int = MAX_EVENTS,
    clock: str = "ordinary",
    stop_at: Any = (),
    max_step: float | None = None,
) -> EnsembleRequest:
    """The request, checked. Raises an OdesimError."""
    names, most = check_observe(system, observe), check_max_events(max_events)
    chosen = "tsit5" if method == "auto" and step is not None else method
    if chosen not in METHOD_NAMES:
        raise SolveError(no_such("method", method, METHOD_NAMES))
    if step is None and chosen in METHODS and not METHODS[chosen].adaptive:
        raise SolveError(f"{chosen} has no error estimate: give a fixed step")
    check_options(step, rtol, atol, max_steps, max_step)
    check_clock(clock, stop_at, max_step)
    if backend not in BACKENDS:
        raise ParamError(no_such("backend", backend, BACKENDS, "an ensemble"))
    if backend == "cuda":
        cupy_here()
    system = guarded_system(system)
    shared = with_slack(system, members.shared, rtol, atol, dtype)
    times = np.array([shared.t1]) if save is None else save_times(save, shared.t0, shared.t1)
    compiled, _, _ = compiled_parts(system, "numba", dtype, strict)  # what a GPU runs is made of it too
    seen = observed_shapes(compiled, names, shared)
    own = clock == RESCALED
    kept = make_outputs(system, compiled.layout(shared.sizes), compiled.event_shapes(shared.sizes), seen, most, own)
    request = EnsembleRequest(
        compiled, shared.sizes, shared.t0, shared.t1, times, chosen, rtol, atol, max_steps, step, kept, backend=backend
    )
    request = replace(request, max_step=max_step)
    if own:
        held = held_of(rescaled_system(system))
        request = replace(request, held=held, clock=compiled_parts(held.system, "numba", dtype, strict)[0])
    else:
        held, stops = held_of(system), stop_times(stop_at, shared.t0, shared.t1)
        request = replace(request, held=held, running=compiled_parts(held.system, "numba", dtype, strict)[0], stop_at=stops)
    if strict and chosen in ROSENBROCK and (what := strict_obstacle(request, shared, members.source.names)):
        raise SolveError(no_strict(chosen, what))
    return replace(request, auto=auto_rule(request)) if method == "auto" else request


def check_threads(threads: Any) -> int:
    """threads as an int of at least 1. Raises ParamError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
        raise ParamError(f"threads must be a whole number, 1 to 1024, not {threads!r}")
    return int(threads)
