"""`odesim.integrate`: a model by name, numbers in, a Solution out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.request import read_request, sizes_text, warn_below_between, warn_below_tolerance
from odesim.base.arrays import Array, on_host, on_same_device
from odesim.base.device import device_context, device_errors
from odesim.base.memo import ForkLock, IdentityKey, Memo
from odesim.base.options import versions
from odesim.base.signals import time_limit
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import Numbers
from odesim.inputs.times import Save
from odesim.run.after_run import checked_run
from odesim.run.clocked import make_clock
from odesim.run.integrate import integrate_problem
from odesim.run.noise import noisy_run, times_of
from odesim.run.problem import dimensions, guard_names, guarded_system, named_slopes, parts_of, right_side, switched_problem, with_slack
from odesim.run.solution import Solution
from odesim.run.unreachable import looked_at
from odesim.stepper.codes import Status
from odesim.symbolic.system import System
from odesim.targets.observe import Observer
from odesim.transforms.clock import BLOW_UP
from odesim.transforms.events import jumping_names, levels, resets_key, watched_names

_OBSERVERS: Memo[Observer] = Memo(32)
AGAIN = ForkLock()  # a right side writes its sums into memory of its own, which two runs of one Solution would share


def level_values(levels: Iterable[tuple[str, Any]], params: Mapping[str, Any]) -> dict[str, list[float]]:
    """{state or observable: values at which events watch it alone, and to which they set it}, in increasing order."""
    values: dict[str, set[float]] = {}
    for state, e in levels:
        value = e.subs({symbol: params[symbol.name] for symbol in e.free_symbols})
        if value.is_real and value.is_finite:
            values.setdefault(state, set()).add(float(value))
    return {state: sorted(levels_of_state) for state, levels_of_state in values.items()}


def undefined_events(system: System, names: Sequence[str], t: Array, y: Mapping[str, Array], numbers: Numbers) -> Iterator[str]:
    """Names of the events, among `names`, that are NaN in every component at all saved times. t (T,), y {state: (T, *shape)}."""
    chosen = [event for event in system.events if event.name in names]
    if not chosen or not len(t):
        return
    exprs = {f"event_{k}": event.expr for k, event in enumerate(chosen)}
    key = IdentityKey(system), tuple(event.name for event in chosen)
    observer = _OBSERVERS(key, lambda: Observer(replace(system, observables=exprs, display={}, invariants=(), events=(), views=())))
    y = {name: values for name, values in on_host(y).items() if name in system.states}
    undefined = set(exprs)
    for rows in (np.unique([0, len(t) - 1]), np.arange(len(t))):  # most are a number at the start: no need to look at all times
        if undefined:
            values = observer(t[rows], {name: v[rows] for name, v in y.items()}, numbers.sizes, numbers.params, lambda t, now: {})
            undefined -= {name for name, seen in values.items() if not np.isnan(seen).all()}
    yield from (event.name for k, event in enumerate(chosen) if f"event_{k}" in undefined)


OWN = ("method", "backend")  # options that a Solution has beside its attrs: the method that `auto` chose, for one


@check_arguments
def integrate(
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
    clock: str = "ordinary",
    sensitivities: str | Iterable[str] = (),
    arrays: str = "numpy",
    max_seconds: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Solution:
    """The run of a model from its start, as a Solution.

    Parameters
    ----------
    model : str, path or System
        A name of `odesim list`, a System or Map, or a path (my.py, or my.py:OTHER).
    params, initial : {name: number, nested list or array}
        Parameters and initial values beside the model's own; a number fills the shape.
    sizes : {name: int}
        Sizes that no array gives.
    span : (float, float)
        Start and end.
    save : int, "log:N" or array
        How many times, even or geometric, or which; default: start and end.
    method : str
        "auto" takes the cheapest for the whole run by short trials; attrs["auto"] says why.
    rtol, atol : float
        Tolerances of the error of a step; atol may be {state: number or array}, where "*" is any other state.
    events : str or list of str
        "NAME: EXPRESSION; terminal; direction up", beside the model's own: where the expression passes 0.

    Returns
    -------
    Solution
        What was computed, with status and message, also of a run that stopped early.

    Other Parameters
    ----------------
    steps : int
        Updates of a Map, whose span and saved times are whole numbers.
    step : float
        A fixed step; with noise it is needed.
    backend : "numba", "numpy" or "cuda"
        numpy is slow, for checks; cuda has explicit methods, on an NVIDIA GPU.
    dtype : "float64" or "float32"
        Of the states.
    strict : bool
        The same bits on every machine, and those of a strict ensemble; rodas4 and rodas5p then take at most 64 states, float64, adaptive
        steps.
    seed : int
        Of random values such as "uniform(0,1)", and of the path of a noise.
    halvings : int
        With noise: steps follow the path that steps of 2^halvings step have.
    max_steps, max_seconds : int, float
        The run stops there, with what it has; to compile does not count.
    stop_at : array
        Times at which a step ends; conditions on time and states in the model are found without it.
    max_step, first_step : float
        The longest step; the one tried at the start, and where the run begins anew.
    until_rest : bool
        End at an event "at rest", where speed() falls below 100 rtol.
    clock : "ordinary" or "rescaled"
        rescaled integrates up to a blow-up, for a System that declares its growth.
    sensitivities : str or list of str
        Parameters, and states for their initial values, by which states and observables are derived.
    arrays : "numpy" or "cupy"
        cupy leaves y on the GPU of the backend cuda; `to_numpy()` copies it.
    progress : callable
        Called with the time.

    Raises
    ------
    OdesimError
        One sentence, if the request is wrong.

    Notes
    -----
    An event contains states, parameters, sizes, observables, t, pi, indices (v[l], v[0]), numbers, + - * / **, brackets, exp, log, sqrt
    and others, sum(v), max(v), min(v), and speed(). One that is a number at no saved time stands in attrs["undefined_events"].

    speed() is the root of the sum of (dv/dt)^2 by 1 + the sum of v^2, over all states.

    In the rescaled clock the time of the blow-up stands in events["blow_up"], its error in attrs["blow_up_error"]; an int to save means
    times that are even in that clock.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", params={"mu": [2, 1]}, save=41)
    >>> run.status, run.y["v"].shape
    ('ok', (41, 2))
    >>> round(run.events["half way"][0]["t"], 2)
    0.55
    """
    request = read_request(model, locals())
    system, options, numbers, times = request.system, request.options, request.numbers, request.times
    system = guarded_system(system, options)
    parameters, numbers = numbers.params, with_slack(system, numbers, options)
    parts = parts_of(system, backend, dtype, strict)
    of_solver, dims = options.of_solver(), parts.derived[dimensions]
    if system.noise:
        compiled, problem = noisy_run(system, numbers, options)
    else:
        compiled, problem = switched_problem(parts, numbers, options, stays=arrays == "cupy")
    layout = problem.rhs.layout
    kernel, about = compiled, dict[str, Any]()
    there = on_device = limit = cast(Callable[[], AbstractContextManager[Any]], nullcontext)
    if parts.compiled.on.gpu:
        what = f"{system.name}{sizes_text(numbers)}"
        there, on_device = device_context(), partial(device_errors, what, "smaller sizes, fewer saved times or float32")
    if max_seconds is not None:
        limit = partial(time_limit, max_seconds)
    if options.rescaled:
        kernel, clocked = make_clock(system, numbers, options)
        grid = request.grid
        even = grid.count if isinstance(grid, Save) and not grid.log and not grid.times else times
        with on_device(), limit() as late:
            clocked_run = clocked.integrate(even, {**of_solver, "progress": progress}, options.method)
        raw, about, dims = clocked_run.raw, {"even": even} if isinstance(even, int) else {}, {**dims, BLOW_UP: ()}
        if clocked_run.blow_up:
            about["blow_up_error"] = clocked_run.blow_up[1]
    else:
        with on_device(), limit() as late:
            raw = integrate_problem(problem, method=options.method, save=times, progress=progress, **of_solver)
    late_words = f"max_seconds = {max_seconds:g}: " if raw.status is Status.INTERRUPTED and late is not None and late() else ""
    raw = checked_run(parts, numbers, problem.y0, raw, layout, dtype, options)
    with on_device():
        y, y_end = layout.split(raw.y), layout.split(on_same_device(raw.y, {"y": raw.y_last})["y"])
    added = [event.name for event in request.loaded.events[len(request.plain.events) :] if not len(raw.events[event.name])]

    def slopes(t: float, now: Mapping[str, Array]) -> Mapping[str, Array]:
        if problem.switches is not None:
            problem.switches.free()
        return named_slopes(right_side(parts.compiled, numbers) if system.noise else problem.rhs)(t, now)

    # the warning comes after the run: it names states by their slope, for which the right-hand side is compiled anyway
    below = warn_below_tolerance(system, numbers, options) or warn_below_between(parts.derived[looked_at][1], raw.y, layout, options, dtype)

    def again(times_asked: Array) -> dict[str, Array]:
        bare = replace(problem, laws=None)
        # a run that was interrupted is not to go on to the end of its span
        done = {"max_steps": max(int(raw.stats["steps"] + raw.stats["rejected"]), 1)} if raw.status is Status.INTERRUPTED else {}
        times_asked = times_of(system, times_asked, numbers, options) if len(times_asked) else times_asked
        with there(), on_device(), AGAIN:
            if options.rescaled:
                run = clocked.integrate(times_asked, of_solver | done, raw.method).raw
            else:
                run = integrate_problem(bare, method=raw.method, save=times_asked, **(of_solver | done))
        return layout.split(run.y[: len(times_asked)])

    return Solution(
        t=raw.t,
        y=y,
        t_end=raw.t_last,
        y_end=y_end,
        events={name: occurrences for name, occurrences in raw.events.items() if name not in parts.derived[guard_names]},
        status=str(raw.status),
        message=late_words + raw.message,
        stats=raw.stats,
        model=system.name,
        method=raw.method,
        backend=backend,
        dims=dims,
        attrs={
            **request.origin,
            "source": " ".join(filter(None, (system.source.key, system.source.where, system.source.note))),
            "time_unit": system.time,
            "params": parameters,
            "sizes": numbers.sizes,
            "initial": numbers.initial,
            "span": (numbers.t0, numbers.t1),
            **{name: value for name, value in options.attributes().items() if name not in OWN},
            "kernel": (raw.kernel or kernel.key) + parts.derived[resets_key],
            "sensitivities": {name: dict(twins) for name, twins in system.sensitivities.items()},
            "versions": versions(),
            **about,
            **({"auto": raw.auto} if raw.auto else {}),
            **({"undefined_events": undefined} if (undefined := list(undefined_events(request.loaded, added, raw.t, y, numbers))) else {}),
            **({"below_tolerance": below} if below else {}),
            **({"views": {view.name: type(view).__name__ for view in system.views}} if system.views else {}),
            **({"levels": lines} if (lines := level_values(parts.derived[levels], parameters)) else {}),
            **({"jumps": jumps} if (jumps := parts.derived[jumping_names]) else {}),
            **({"watched": watched} if (watched := parts.derived[watched_names]) else {}),
        },
        _observe=lambda t, states: parts.derived[Observer](t, states, numbers.sizes, numbers.params, slopes),
        _violations=lambda: {
            # a run that ends before its first step has broken no law
            law.name: raw.worst.get(law.name, (0.0,))[0]
            if parts.derived[Observer].applies(law, numbers.sizes, numbers.params, numbers.initial)
            else None
            for law in system.invariants
        },
        _again=again,
    )
