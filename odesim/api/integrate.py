"""The calls that people make: a model by name, numbers in, a Solution out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from os import PathLike
from typing import Any

import numpy as np

from odesim import __version__
from odesim.api.sensitivity import check_sensitivities, with_sensitivities
from odesim.base.arrays import Array, beside, check_dtype
from odesim.base.gpu import device_errors, device_here
from odesim.base.memo import Memo, Same
from odesim.base.memory import check_fits, check_room
from odesim.codegen.compiled import CompiledRHS, compile_system
from odesim.codegen.observe import Observer
from odesim.ensembles.costs import make_costs
from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.arguments import checked
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.guards import event_specs, guard_names, guarded_system, with_slack
from odesim.inputs.registry import load_original
from odesim.inputs.times import Save, as_save, save_times, stop_times
from odesim.solve import ROSENBROCK, Linear, Problem, callback_system, integrate_problem
from odesim.solve.laws import Laws, LawSpec
from odesim.solve.methods import METHODS
from odesim.solve.problem import StiffRun
from odesim.solve.rescaled import LONGEST, Clock
from odesim.solve.solution import Solution
from odesim.symbolic.clock import BLOW_UP, CLOCK, END, NOTHING, START, STOP, rescaled
from odesim.symbolic.system import System, free_in_order, key_indices

Parts = tuple[CompiledRHS, Observer, dict[str, tuple[str, ...]]]
_PARTS: Memo[Parts] = Memo()
_CLOCKS: Memo[System] = Memo()
RESCALED = "rescaled"
CLOCKS = ("ordinary", RESCALED)
ARRAYS = ("numpy", "cupy")


@checked
def integrate(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    save: Any = None,
    method: str = "auto",
    step: float | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    backend: str = "numba",
    dtype: str = "float64",
    strict: bool = False,
    seed: int = 0,
    max_steps: int = 1_000_000,
    stop_at: Any = (),
    max_step: float | None = None,
    clock: str = "ordinary",
    sensitivities: str | Iterable[str] = (),
    arrays: str = "numpy",
    progress: Callable[[float], None] | None = None,
) -> Solution:
    """One run of a model: a name, a System, or a path such as my.py or my.py:OTHER.

    params, initial: {name: number, nested list, array of numpy or cupy}; a number fills the shape. sizes: {name: int}, where arrays do
    not say.
    save: None keeps start and end, an int that many times with both ends, an array those times. step: a fixed step.
    method: "auto" takes the cheapest one, chosen by the first steps of the run and by counting, never by a clock; the Solution has its
    name in method, and the reason in attrs["auto"].
    strict: the same bits on every machine, and those of a strict ensemble's member; rodas4 and rodas5p then run in its lanes, which is for
    at most 64 states, float64 and adaptive steps.
    clock: "rescaled" integrates in ds = growth dt, of a System that declares its growth rate, up to a blow-up: its time stands in
    events["blow_up"], the error estimate of that in attrs["blow_up_error"]; an int to save is then that many times, even in s.
    sensitivities: parameters, and states for their initial values: the derivatives of all states and observables with respect to them
    are integrated along, in the error control as every state is, and stand in `sensitivities` of the Solution.
    backend: "numba"; "numpy"; or "cuda", an NVIDIA GPU (the current device of cupy), with explicit methods and, in strict mode, the bits
    of numba.
    arrays: "cupy", with the backend cuda, leaves y and y_end on the GPU, as cupy's arrays: nothing of (T, n) is copied. All else is
    numpy's: t, events, and observables, which the processor computes from a copy when they are asked for. `to_numpy()` copies all.
    stop_at: a time or times at which a step ends and the next one begins anew, for what the model does not say: conditions of the right
    side on time and states are found by themselves. With a fixed step each part between two such times has its own whole steps.
    max_step: no step is longer, for what the right side does between the stages of a step that nobody would see.
    The run stops early at a terminal event, a blow-up or where it cannot go on: see status and message of the Solution.
    Raises an OdesimError with one sentence where the request is wrong.
    """
    check_strict(method, strict, backend)
    check_clock(clock, stop_at, max_step)
    check_arrays(arrays, backend, clock)
    loaded, original = load_original(model)
    system, still = with_sensitivities(loaded, sensitivities, initial or {})
    numbers = bind(system, params=params, initial={**still, **(initial or {})}, sizes=sizes, span=span, seed=seed)
    check_range(numbers, check_dtype(dtype))
    check_sensitivities(system, numbers)
    grid = as_save(save)
    if arrays == "numpy":
        check_room(len(grid), sum(value.size for value in numbers.initial.values()), np.dtype(dtype).itemsize)
    times = save_times(grid, numbers.t0, numbers.t1)
    stops = stop_times(stop_at, numbers.t0, numbers.t1)
    system = guarded_system(system)
    given, numbers = numbers.params, with_slack(system, numbers, rtol, atol, dtype)
    _, observer, dims = compiled_parts(system, backend, dtype, strict)
    options: dict[str, Any] = {"step": step, "rtol": rtol, "atol": atol, "max_steps": max_steps, "strict": strict}
    options |= {"max_step": max_step} if max_step is not None else {}
    compiled, problem = switched_problem(system, numbers, backend, dtype, strict, stop_at=stops, stays=arrays == "cupy")
    layout = problem.rhs.layout
    kernel, about = compiled, dict[str, Any]()
    there = device_here() if backend == "cuda" else nullcontext
    on_device = partial(device_errors, f"{system.name}{said_sizes(numbers)}", "smaller sizes, fewer saved times or float32")
    if clock == RESCALED:
        kernel, clocked = make_clock(system, numbers, backend, dtype, strict)
        even = grid.count if isinstance(grid, Save) and not grid.log and not grid.times else times
        before = kernel.seconds
        with on_device():
            told = clocked.integrate(even, {**options, "progress": progress}, method)
        raw, about, dims = told.raw, {"clock": clock, **({"even": even} if isinstance(even, int) else {})}, {**dims, BLOW_UP: ()}
        if told.blow_up:
            about["blow_up_error"] = told.blow_up[1]
    else:
        before = kernel.seconds
        with on_device():
            raw = integrate_problem(problem, method=method, save=times, progress=progress, **options)
    with on_device():
        y, y_end = layout.split(raw.y), layout.split(beside(raw.y, {"y": raw.y_last})["y"])
    stats = {**raw.stats, "compile_seconds": raw.stats["compile_seconds"] + kernel.seconds - before}

    def slopes(t: float, now: Mapping[str, Array]) -> Mapping[str, Array]:
        out = np.empty(layout.size, dtype)
        if problem.switches is not None:
            problem.switches.free()
        problem.rhs(t, layout.join(now, dtype), out)
        return layout.split(out.astype(np.float64))

    def again(asked: Array) -> dict[str, Array]:
        bare = replace(problem, laws=None)
        with there(), on_device():
            if clock == RESCALED:
                run = clocked.integrate(asked, options, raw.method).raw
            else:
                run = integrate_problem(bare, method=raw.method, save=asked, **options)
        return layout.split(run.y[: len(asked)])

    return Solution(
        t=raw.t,
        y=y,
        t_end=raw.t_last,
        y_end=y_end,
        events={name: found for name, found in raw.events.items() if name not in guard_names(system)},
        status=str(raw.status),
        message=raw.message,
        stats=stats,
        model=system.name,
        method=raw.method,
        backend=backend,
        dims=dims,
        attrs={
            **original,
            "source": " ".join(filter(None, (system.source.key, system.source.where, system.source.note))),
            "time_unit": system.time,
            "params": given,
            "sizes": numbers.sizes,
            "initial": numbers.initial,
            "span": (numbers.t0, numbers.t1),
            "step": step,
            "rtol": rtol,
            "atol": atol,
            "max_steps": max_steps,
            **({"stop_at": list(stops)} if stops else {}),
            **({"max_step": max_step} if max_step is not None else {}),
            "seed": seed,
            "dtype": dtype,
            "strict": strict,
            "kernel": raw.kernel or kernel.key,
            "sensitivities": {name: dict(made) for name, made in system.sensitivities.items()},
            "versions": versions(),
            **about,
            **({"auto": raw.auto} if raw.auto else {}),
        },
        _observe=lambda t, states: observer(t, states, numbers.sizes, numbers.params, slopes),
        _violations=lambda: {
            law.name: raw.worst[law.name][0] if observer.applies(law, numbers.sizes, numbers.params, numbers.initial) else None
            for law in system.invariants
        },
        _again=again,
    )


def check_strict(method: str, strict: bool, backend: str = "numba") -> None:
    """Raises SolveError for a method that the backend does not have, or not with the same bits on every machine."""
    if backend == "cuda" and method in ROSENBROCK:
        raise SolveError(
            f"{method} solves its linear systems on the processor: one large system on cuda takes {', '.join(METHODS)} or auto"
        )
    if strict and method in ROSENBROCK and backend != "numba":
        raise SolveError(f"{method} solves its linear systems with LAPACK on the backend {backend}: strict mode takes numba")


def check_clock(clock: Any, stop_at: Any = (), max_step: Any = None) -> None:
    """Raises SolveError for a clock that is none, or that is asked for what it cannot do."""
    if clock not in CLOCKS:
        raise SolveError(no_such("clock", str(clock), CLOCKS))
    if clock == RESCALED and np.size(stop_at):
        raise SolveError("stop_at names times of the ordinary clock; the rescaled one looks for the conditions of the model by itself")
    if clock == RESCALED and max_step is not None:
        raise SolveError("max_step is a time of the ordinary clock: the rescaled one has steps of its own kind")


def check_arrays(arrays: Any, backend: str, clock: str = "ordinary") -> None:
    """Raises ParamError for arrays that results cannot be in."""
    if arrays not in ARRAYS:
        raise ParamError(no_such("kind of arrays", str(arrays), ARRAYS))
    if arrays == "cupy" and backend != "cuda":
        raise ParamError(f"arrays='cupy' leaves results on the GPU of the backend cuda; those of the backend {backend} are numpy's")
    if arrays == "cupy" and clock == RESCALED:
        raise ParamError("arrays='cupy' is for the ordinary clock: the processor tells a run in the rescaled one in the time t")


def said_sizes(numbers: Numbers) -> str:
    """` (M = 1000, K = 3)`; nothing without sizes."""
    return f" ({', '.join(f'{name} = {n}' for name, n in numbers.sizes.items())})" if numbers.sizes else ""


def check_range(numbers: Numbers, dtype: str) -> None:
    """Raises ParamError where a number overflows this dtype."""
    if dtype == "float64":
        return
    most = float(np.finfo(dtype).max)
    for name, value in {**numbers.params, **numbers.initial}.items():
        if np.size(value) and float(np.max(np.abs(value))) > most:
            raise ParamError(f"{name} = {float(np.max(np.abs(value))):g} overflows {dtype}: numbers go up to {most:.2g}")


def make_problem(compiled: CompiledRHS, numbers: Numbers, *, stays: bool = False) -> Problem:
    """The numbers that an integrator needs. stays: what is saved is to stay on the GPU that computes it."""
    system = compiled.system
    shapes = compiled.event_shapes(numbers.sizes)
    events = event_specs(system, shapes)
    rhs = right_side(compiled, numbers, stays=stays)
    y0 = rhs.layout.join(numbers.initial, compiled.dtype)

    def linear() -> Linear:
        return compiled.linear.bind(numbers.sizes, numbers.params, rhs.layout)

    laws = make_laws(compiled, numbers, rhs)
    if compiled.backend == "cuda":  # where no Jacobian is computed
        return Problem(rhs, y0, numbers.t0, numbers.t1, events, system.name, laws=laws, clocked=system.growth is not None)

    def strict(*asked: Any, **options: Any) -> StiffRun:
        from odesim.engines.lanes.strict_run import LaneRun

        return LaneRun(compiled, numbers.sizes, numbers.params, *asked, **options)

    alone = strict if compiled.strict and compiled.backend == "numba" else None
    costs = make_costs(compiled, numbers.sizes, linear, lanes=alone is not None)
    return Problem(rhs, y0, numbers.t0, numbers.t1, events, system.name, linear, costs, alone, laws, system.growth is not None)


def make_laws(compiled: CompiledRHS, numbers: Numbers, rhs: Any) -> Laws | None:
    """What an integrator watches of the System's invariants; None where it has none. Raises ParamError where they are too large."""
    if not compiled.system.invariants:
        return None
    laws, sizes, layout = compiled.laws, numbers.sizes, rhs.layout
    specs = tuple(LawSpec(v.name, v.sense, s, v.tol) for v, s in zip(compiled.system.invariants, laws.shapes(sizes), strict=True))
    check_fits(f"{compiled.system.name}: watching the invariants", {f"{s.name!r} of shape {s.shape}": 5 * s.size for s in specs}, 8)
    if compiled.backend == "numba":
        return Laws(specs, laws.bind(sizes, numbers.params, layout))
    if compiled.backend == "cuda":
        return Laws(specs, rhs.laws)
    values = _as_dtype(numbers.params, compiled.dtype)

    def look(t: float, y: Array, g: Array) -> None:
        made = laws.arrays(sizes, {**values, **layout.split(y), "t": t})
        g[...] = np.concatenate([np.ravel(made[f"law{k}"]) for k in range(len(specs))])

    return Laws(specs, callback_system(rhs, layout, compiled.dtype, look, sum(s.size for s in specs)))


def switched_problem(
    system: System, numbers: Numbers, backend: str, dtype: str, strict: bool, *, stop_at: Sequence[float] = (), stays: bool = False
) -> tuple[CompiledRHS, Problem]:
    """The compiled right side of a System, with its jumping conditions held, and the Problem of a run with these numbers."""
    from odesim.engines.switching import held_of, make_switching

    held = held_of(system)
    compiled = compiled_parts(held.system, backend, dtype, strict)[0]
    span = numbers.t0, numbers.t1
    switching = make_switching(held, numbers.sizes, numbers.params, span, stop_at, compiled.layout(numbers.sizes), dtype)
    if switching is None:
        return compiled, make_problem(compiled, numbers, stays=stays)
    problem = make_problem(compiled, replace(numbers, params={**numbers.params, **switching.modes}), stays=stays)
    switching.attach(problem.rhs)
    return compiled, replace(problem, switches=switching)


def make_clock(system: System, numbers: Numbers, backend: str, dtype: str, strict: bool) -> tuple[CompiledRHS, Clock]:
    """The System in its rescaled clock, compiled, and with numbers. Raises SpecError where it declares no growth rate."""
    other = rescaled_system(system)
    span = {START: numbers.t0, STOP: numbers.t1}
    start = {**numbers.initial, CLOCK: np.array(numbers.t0)}
    inner = Numbers(numbers.sizes, {**numbers.params, **span}, start, 0.0, LONGEST)
    compiled, problem = switched_problem(other, inner, backend, dtype, strict)
    return compiled, Clock(problem, numbers.t0, numbers.t1, BLOW_UP, END, NOTHING)


def rescaled_system(system: System) -> System:
    """The rescaled form of a System, made once a process."""
    return _CLOCKS(Same(system), lambda: rescaled(system))


def right_side(compiled: CompiledRHS, numbers: Numbers, *, stays: bool = False) -> Any:
    """The right side with numbers, where its backend computes it."""
    if compiled.backend == "numpy":
        return _numpy_system(compiled, numbers)
    if compiled.backend == "cuda":
        from odesim.solve.explicit.device import driver_text

        return compiled.cuda(driver_text()).bind(numbers.sizes, numbers.params, stays=stays)
    return compiled.bind(numbers.sizes, numbers.params)


def _as_dtype(params: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """The parameters in the type of the states: numpy computes in the widest that it is given."""
    return {n: v.astype(dtype, copy=False) if isinstance(v, np.ndarray) and v.dtype == np.float64 else v for n, v in params.items()}


def _numpy_system(compiled: CompiledRHS, numbers: Numbers) -> Any:
    """The right side in numpy behind the integrator's C functions."""
    layout = compiled.layout(numbers.sizes)
    sizes = numbers.sizes
    values = _as_dtype(numbers.params, compiled.dtype)

    def right(t: float, y: Array, out: Array) -> None:
        made = compiled.arrays(sizes, {**values, **layout.split(y), "t": t})
        for name, view in layout.split(out).items():
            view[...] = made[f"d_{name}"]

    def events(t: float, y: Array, g: Array) -> None:
        assert compiled.events_arrays is not None
        made = compiled.events_arrays(sizes, {**values, **layout.split(y), "t": t})
        g[...] = np.concatenate([np.ravel(made[f"event{k}"]) for k in range(len(made))])

    count = compiled.n_events(sizes)
    return callback_system(right, layout, compiled.dtype, events if count else None, count)


def dimensions(system: System) -> dict[str, tuple[str, ...]]:
    """{state, observable or event: names of its axes after time}."""
    out = {str(name): tuple(i.name for i in key_indices(key)) for name, key in zip(system.states, system.equations, strict=True)}
    for name, e in system.observables.items():
        out[name] = () if callable(e) and not hasattr(e, "free_symbols") else tuple(i.name for i in free_in_order(e, system.axes))
    for event in system.events:
        out.setdefault(event.name, tuple(i.name for i in free_in_order(event.expr, system.axes)))
    return out


def compiled_parts(system: System, backend: str, dtype: str, strict: bool) -> Parts:
    """The compiled right side of a System, made once a process."""

    def make() -> Parts:
        compiled = compile_system(system, backend=backend, dtype=dtype, strict=strict)
        return compiled, Observer(system), dimensions(system)

    return _PARTS((Same(system), backend, dtype, strict), make)


@cache
def versions() -> dict[str, str]:
    """Versions of what computes, without importing it: a warm start needs no numba."""
    import platform
    from importlib.metadata import version

    return {"odesim": __version__, "python": platform.python_version()} | {name: version(name) for name in ("numpy", "numba", "sympy")}
