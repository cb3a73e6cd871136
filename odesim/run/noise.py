"""Runs with noise: which requests there are, the scheme, the right-hand side that it steps through, and times at its steps."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, SolveError
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.inputs.bind import Numbers
from odesim.inputs.times import Save, save_times, to_save
from odesim.ir.noise import ADDITIVE, GENERAL, MEMBER, STEP, TIMED, noise_kind, noise_shapes, step_system
from odesim.ir.sizes import extents
from odesim.run.problem import compiled_for, guarded_system, make_problem
from odesim.stepper.noise_methods import SCHEMES
from odesim.stepper.problem import Noise, Problem, fixed_steps
from odesim.symbolic.system import System
from odesim.targets.compiled import BoundNumba, CompiledRHS
from odesim.transforms.events import Guard

MOST_CHANNELS, MOST_HALVINGS = 2**20, 30
NEAR = 1e-9
"""Of a step: a time so near to the end of one is that end."""
_KINDS: Memo[str] = Memo()
_SYSTEMS: Memo[System] = Memo()


def options_of_noise(system: System, options: RunOptions) -> RunOptions:
    """The options of a run, with the scheme that `auto` takes for the noise, and the step of the System where none is given.

    Raises SolveError for what noise does not go with.
    """
    method, name = options.method, system.name
    if not system.noise:
        if method in SCHEMES:
            raise SolveError(f"{method} is a scheme for noise, and {name} has none")
        if options.halvings:
            raise SolveError(f"halvings are those of the steps of noise, and {name} has none")
        return options
    kind = _KINDS(IdentityKey(system), lambda: noise_kind(system))
    fitting = [scheme.name for scheme in SCHEMES.values() if kind in scheme.kinds]
    if method == "auto":
        method = best_for(kind, system.calculus)
    if method not in SCHEMES:
        raise SolveError(f"{name} has noise, which {method} does not take: its methods are {', '.join(fitting)}, or auto")
    if method not in fitting:
        raise SolveError(f"{method} is not for {kind} noise as that of {name}; {', '.join(fitting)} are")
    events, step = guarded_system(system, RunOptions()).events, system.step if options.step is None else options.step
    wrong = {
        "needs a fixed step: give step": step is None,
        f"is computed by numba, not by {options.backend}": options.backend != RunOptions.backend,
        f"is computed in float64, not in {options.dtype}": options.dtype != RunOptions.dtype,
        "has the ordinary clock only": options.rescaled,
        "has no sensitivities": bool(system.sensitivities),
        "has no stop_at: its steps are fixed": bool(np.size(options.stop_at)),
        "has no max_step: its steps are fixed": options.max_step is not None,
        "has no first_step: its steps are fixed": options.first_step is not None,
        f"has at most {MOST_HALVINGS} halvings, not {options.halvings}": options.halvings > MOST_HALVINGS,
        **{
            f"has no watch on sets yet: write the symbol of {event.state} without its assumption"
            if isinstance(event, Guard)
            else f"is not searched for events yet: leave out {event.name!r}": True
            for event in events
        },
    }
    for what in (what for what, holds in wrong.items() if holds):
        raise SolveError(f"the noise of {name} {what}")
    return replace(options, method=method, step=step)


def best_for(kind: str, calculus: str) -> str:
    """The scheme that `auto` takes: the one of the highest order, and of those the cheapest.

    For diagonal noise milstein: sriw1 is of a higher order for paths, but not for means, and evaluates 13 times as much.
    """
    if kind == ADDITIVE:
        return "sra1"
    if calculus == "stratonovich":
        return "heun"
    return "em" if kind in (TIMED, GENERAL) else "milstein"


def noise_system(system: System, options: RunOptions) -> System:
    """The System that the scheme of these options steps through, made once a process."""
    scheme = SCHEMES[options.method]
    return _SYSTEMS(
        (IdentityKey(system), scheme.calculus, scheme.second), lambda: step_system(system, scheme.calculus, second=scheme.second)
    )


def channel_sizes(system: System, sizes: Mapping[str, int]) -> dict[str, int]:
    """{channel: number of its elements}. Raises ParamError for too many."""
    counts = {name: prod(extents(shape, sizes)) for name, shape in noise_shapes(system).items()}
    if (total := sum(counts.values())) > MOST_CHANNELS:
        raise ParamError(f"{system.name} has {total} channels of noise, and at most {MOST_CHANNELS} have numbers of their own")
    return counts


def with_rates(stepped: System, numbers: Numbers) -> Numbers:
    """Numbers with those parameters of a noise_system that the System does not have: rates, all at rest."""
    missing = {p.name: p.shape for p in stepped.params if p.name not in numbers.params}
    rates: dict[str, Any] = {name: np.zeros(extents(shape, numbers.sizes)) if shape else 0.0 for name, shape in missing.items()}
    return replace(numbers, params={**numbers.params, **rates})


def noisy_problem(
    system: System, compiled: CompiledRHS, numbers: Numbers, options: RunOptions, *, laws: bool = True
) -> Problem:  # fmt: skip
    """The Problem of a System with noise. compiled: the right-hand side of its noise_system."""
    numbers = with_rates(compiled.system, numbers)
    problem = make_problem(compiled, numbers, laws=laws)
    rhs: BoundNumba = problem.rhs  # type: ignore[assignment]
    arrays = tuple(rhs.numbers_of(name)[:count] for name, count in channel_sizes(system, numbers.sizes).items())
    length = rhs.numbers_of(STEP) if STEP in {p.name for p in compiled.system.params} else None
    member = int(numbers.params.get(MEMBER, 0))
    return replace(problem, noise=Noise(arrays, length, member, options.seed, options.halvings), linear=None, lanes=None, costs=None)


def noisy_run(system: System, numbers: Numbers, options: RunOptions) -> tuple[CompiledRHS, Problem]:
    """The compiled right-hand side that the scheme steps through, and the Problem of a run."""
    compiled = compiled_for(noise_system(system, options), numbers.sizes, options.backend, options.dtype, options.strict)
    return compiled, noisy_problem(system, compiled, numbers, options)


def times_at_steps(save: Any, t0: float, t1: float, options: RunOptions) -> Array:
    """The times to save, each the end of a step: there is no path between them. A number of times is rounded to steps, each once.

    Raises ParamError for a time that is no end of a step, and SolveError where steps that are halved do not fill the span.
    """
    assert options.step is not None
    step, (total, rest) = options.step, fixed_steps(t0, t1, options.step)
    if options.halvings and rest != step:
        raise SolveError(f"halvings need a span of whole steps, and {t0:g}:{t1:g} is none of {step:g}")
    requested = to_save(save)
    times = save_times(requested, t0, t1)
    count = np.rint((times - t0) / step)
    count[times >= t1] = total
    ends = np.where(count >= total, t1, t0 + count * step)
    off = np.abs(ends - times) > NEAR * step * np.maximum(count, 1)
    if (not isinstance(requested, Save) or requested.times) and off.any():
        raise ParamError(f"save: a path with noise is known at its steps, and t = {times[off][0]:.9g} is no end of a step of {step:g}")
    return np.unique(ends)


def times_of(system: System, save: Any, numbers: Numbers, options: RunOptions) -> Array:
    """The times (T,) to save: of a Map whole numbers, with noise ends of steps. Raises ParamError."""
    if system.noise:
        return times_at_steps(save, numbers.t0, numbers.t1, options)
    return save_times(save, numbers.t0, numbers.t1, whole=system.discrete)
