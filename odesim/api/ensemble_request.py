"""What an ensemble in memory and one on disk have in common: the request, the engine, names of axes."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from odesim.api.integrate import RESCALED, check_clock, compiled_parts, rescaled_system
from odesim.base.gpu import cupy_here
from odesim.codegen.build.cache import module_name
from odesim.engines.gpu.engine import DeviceEngine, device_engine, source_of
from odesim.engines.hand_over import HandOver
from odesim.engines.lanes.engine import LaneEngine, kernel_name, lane_engine, lane_plan, method_obstacle, no_strict
from odesim.engines.lanes.kernel import stiff_key
from odesim.engines.lanes.rows import Plan
from odesim.engines.lanes.strict_run import strict_obstacle
from odesim.engines.observables import observed_key, observed_shapes
from odesim.engines.one_by_one import SingleEngine
from odesim.engines.rescaled import ClockEngine
from odesim.engines.switching import held_of
from odesim.ensembles.design import Design, Table
from odesim.ensembles.design_options import design_members
from odesim.ensembles.members import Members, make_members
from odesim.ensembles.outputs import FIXED, MOST_EVENTS, check_most, check_observe, make_kept
from odesim.ensembles.request import Request
from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.guards import guarded_system, with_slack
from odesim.inputs.schema import make_plan
from odesim.inputs.times import save_times, stop_times
from odesim.solve import ROSENBROCK
from odesim.solve.auto import PILOT, STIFF, explicit_name
from odesim.solve.explicit.run import check_options
from odesim.solve.integrate import METHOD_NAMES
from odesim.solve.methods import METHODS
from odesim.symbolic.system import System

BACKENDS = ("numba", "cuda")
AnyEngine = LaneEngine | SingleEngine | ClockEngine | DeviceEngine | HandOver


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
    plan = make_plan(system)
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
    max_events: int = MOST_EVENTS,
    clock: str = "ordinary",
    stop_at: Any = (),
    max_step: float | None = None,
) -> Request:
    """The request, checked. Raises an OdesimError."""
    names, most = check_observe(system, observe), check_most(max_events)
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
    kept = make_kept(system, compiled.layout(shared.sizes), compiled.event_shapes(shared.sizes), seen, most, own)
    request = Request(compiled, shared.sizes, shared.t0, shared.t1, times, chosen, rtol, atol, max_steps, step, kept, backend=backend)
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


def auto_rule(request: Request) -> str:
    """How members have their methods under auto, in words."""
    if request.step is not None:
        return "tsit5: a fixed step was asked for"
    rule = f"{explicit_of(request)}; {STIFF} for a member whose own steps stability limits, or that takes max_steps, where it gets further"
    obstacle = method_obstacle(replace(request, method=STIFF)) if request.strict or request.backend == "cuda" else ""
    return f"{explicit_of(request)}; {STIFF} has no lanes for {obstacle}" if obstacle else rule


def explicit_of(request: Request) -> str:
    """The explicit method that members begin with under auto."""
    return explicit_name(request.rtol, request.step, between=request.saves or bool(request.kept.events))


def make_engine(request: Request, members: Members) -> AnyEngine:
    """Lanes where they can do it, or a GPU's threads; which one does not depend on how many members there are. Raises SolveError for
    what a GPU's threads cannot do.
    """
    shared, own = with_slack(request.system, members.shared, request.rtol, request.atol, request.dtype), members.source.names
    if request.clock is not None and request.backend != "cuda":
        return ClockEngine(request, shared, request.clock)
    if request.method == "auto":
        return hand_over(request, members)
    if request.backend == "cuda":
        return device_engine(request, shared, own)
    return lane_engine(request, shared, own) or SingleEngine(request, shared)


def hand_over(request: Request, members: Members) -> AnyEngine:
    """The engine of the method auto: of two methods, where the explicit one has lanes; else every member is a single run of auto."""
    shared = with_slack(request.system, members.shared, request.rtol, request.atol, request.dtype)
    explicit = make_engine(replace(request, method=explicit_of(request), look=PILOT), members)
    if isinstance(explicit, SingleEngine):
        return SingleEngine(request, shared)

    def make(asked: Request) -> AnyEngine | None:
        bound = request.strict or request.backend == "cuda"
        if bound and not isinstance(lane_plan(asked, shared, members.source.names), Plan):
            return None  # with other bits on other machines, or not there
        return make_engine(asked, members)

    return HandOver(request, shared, explicit, make, lambda engine: not isinstance(engine, SingleEngine))


def together(engine: Any) -> int:
    """Members that are worth a call of the engine; of a processor's any chunk is."""
    return engine.together if isinstance(engine, DeviceEngine | HandOver) else 1


def engine_key(engine: AnyEngine) -> str:
    """What names the compiled code that integrates and observes members: the same name, the same bits."""
    if isinstance(engine, HandOver):
        return f"{engine_key(engine.explicit)}_{stiff_key()}"
    seen = observed_key(engine.request.system, engine.request.kept.observe)
    if isinstance(engine, SingleEngine | ClockEngine):
        return (engine.request.clock or engine.request.right).key + seen
    if isinstance(engine, DeviceEngine):
        return module_name(source_of(engine.plan), f"{engine.plan.name.replace('.', '_')}_threads") + seen
    return kernel_name(engine.plan) + seen


def axis_names(system: System, name: str, label: str, rank: int) -> tuple[str, ...]:
    """Names of the axes of a parameter's or a start's own values: the System's index of that extent, where there is just one."""
    shapes = {**system.shapes, **{p.name: p.shape for p in system.params}}
    names = []
    for k in range(rank):
        found = [i.name for i, extent in system.axes.items() if extent == shapes[name][k]]
        names.append(found[0] if found and found[0] not in names else f"{label}_{k}")
    return tuple(names)


def label_of(system: System, name: str) -> str:
    """What the values that a member starts from are called, beside the states and what says how a member ended."""
    taken = {*map(str, system.states), *FIXED}
    if name not in taken:
        return name
    taken |= {p.name for p in system.params}
    return next(label for label in (f"{name}_start{'_' * n}" for n in count()) if label not in taken)


def check_threads(threads: Any) -> int:
    """threads as an int of at least 1. Raises ParamError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or not 1 <= threads <= 1024:
        raise ParamError(f"threads must be a whole number, 1 to 1024, not {threads!r}")
    return int(threads)
