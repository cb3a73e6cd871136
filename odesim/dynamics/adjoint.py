"""Gradients of sums over a run by its adjoint: one backward integration, however many parameters and initial values there are.

Of G = sum over times t_k of g_k(y(t_k), p) the derivative by p and by y(t0) is Lambda(t0), where Lambda' = -J^T Lambda between the times,
Lambda jumps by dg_k/dy, dg_k/dp at each, and J is that of the System with p among its states, which do not change (L. Pontryagin et al.
1962; Y. Cao, S. Li, L. Petzold, R. Serban, SIAM J. Sci. Comput. 24 (2003) 1076, doi:10.1137/S1064827501380630). The states between the
times are those of the run: cubics of Hermite through many of its points, since to integrate them backwards is unstable where they decay.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline
from sympy import Expr, Indexed, S, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import SolveError, SpecError
from odesim.run.modes import held_of
from odesim.run.problem import parts_of
from odesim.run.solution import Solution
from odesim.store.curves import Measured
from odesim.symbolic.indices import array_at, base_name
from odesim.symbolic.layered import with_layers
from odesim.symbolic.system import System
from odesim.targets.compiled import compile_system
from odesim.transforms.sensitivity import fresh_indices, used_names

SEEN = "_seen"
SIGNS = ("positive", "negative", "nonzero", "nonnegative", "nonpositive")
POINTS, HALVINGS = 101, 8
"""Points of a run between which its states are cubics, at first, and how often gaps are halved in which a cubic is not near."""
NEAR = 1e-7
"""How far a cubic may be from the run in the middle of a gap, by the largest component: the gradient has as many digits, which suffice."""


# Not what these numbers have: a search takes the end of a pulse into the span, and one of height 0 has a derivative all the same.
def adjoint_obstacle(system: System, names: Sequence[str]) -> str:
    """Why derivatives by these names have to be taken forwards; empty where the adjoint gives them."""
    if system.discrete:
        return "it is a Map"
    if any(event.resets for event in system.events):
        return "events set states"
    if held_of(system).stops:
        return "its right-hand side has conditions that switch, or pulses"
    params = {name for name in names if name not in system.states}
    starts = with_layers([e for e in system.initial.values() if isinstance(e, Expr)])
    if any(base_name(x) in params for e in starts for x in e.atoms(Indexed, Symbol)):
        return "initial values depend on what is fitted"
    return ""


def with_constants(system: System, names: Sequence[str], observed: Mapping[str, tuple[Symbol, ...]]) -> System:
    """The System with these parameters as states that do not change, and with states NAME_seen whose slopes are the observables.

    observed: the indices of each.
    """
    axes, equations = dict(system.axes), dict(system.equations)
    taken = used_names(system) | {i.name for i in axes}
    for p in (p for p in system.params if p.name in names):
        along = fresh_indices(p.name, len(p.shape), taken)
        axes |= dict(zip(along, p.shape, strict=True))
        equations[p.symbol[along] if along else p.symbol] = S.Zero
    for name, along in observed.items():
        label = f"{name}{SEEN}"
        if label in taken:
            raise SpecError(f"{system.name}: {label} is needed for derivatives of {name}; call it something else")
        equations[array_at(label, along, system.axes)] = system.observables[name]
    return System(
        name=f"{system.name}.adjoint",
        source=system.source,
        axes=axes,
        equations=equations,
        params=tuple(p for p in system.params if p.name not in names),
        initial={key: any_number(key) for key in equations},
        sizes=system.sizes,
        span=system.span,
        boundary=system.boundary,
    )


def any_number(key: Any) -> Expr:
    """A number that the assumptions of a symbol allow: none of these starts is used."""
    return next(e for e in (S.Zero, S.One, S.NegativeOne) if all(getattr(e, f"is_{sign}") for sign in SIGNS if getattr(key, f"is_{sign}")))


class Adjoint:
    """Gradients, by `names`, of sums over what runs of a System have for `measured` (C columns). first: one of the runs."""

    def __init__(self, system: System, names: Sequence[str], measured: Sequence[Measured], first: Solution) -> None:
        self.names, self.measured, self.sizes = list(names), list(measured), first.attrs["sizes"]
        self.constants = [name for name in names if name not in system.states]
        by_name = {i.name: i for i in system.axes}
        seen = dict.fromkeys(m.quantity for m in measured if m.quantity in system.observables)
        extended = with_constants(system, self.constants, {o: tuple(by_name[axis] for axis in first.dims[o]) for o in seen})
        right = compile_system(extended)
        self.transposed, self.layout = right.transposed, right.layout(self.sizes)
        self.right = parts_of(system, "numba", "float64", False).compiled
        self.points = np.empty(0)

    def gradient(self, run: Solution, times: Array, weights: Array) -> dict[str, Array]:
        """{name: derivative of the sum of weights (T, C) times what the run has at times (T,)}. Raises SolveError."""
        params = run.attrs["params"]
        states = self.interpolated(run, times)

        def back(t: float, u: Array) -> Array:
            """J^T u."""
            now = {**params, **states(t), "t": t, **{f"u_{name}": part for name, part in self.layout.split(u).items()}}
            rates = self.transposed(self.sizes, now)
            return self.layout.join({name: rates[f"d_u_{name}"] for name in self.layout.names})

        u = np.zeros(self.layout.size)
        for k in reversed(range(len(times))):
            u += self.jump(float(times[k]), weights[k], back)
            before = times[k - 1] if k else run.attrs["span"][0]
            if times[k] > before:
                limits: Any = {"method": "DOP853", "rtol": NEAR, "atol": 1e-3 * NEAR * float(np.abs(u).max(initial=0.0)) or 1e-300}
                part: Any = solve_ivp(lambda t, u: -back(t, u), (times[k], before), u, **limits)
                if not part.success:
                    raise SolveError(f"the adjoint of {run.model} at t = {part.t[-1]:g}: {part.message}")
                u = part.y[:, -1]
        parts = self.layout.split(u)
        return {name: parts[name] for name in self.names}

    def jump(self, t: float, weights: Array, back: Callable[[float, Array], Array]) -> Array:
        """The derivative (n,) of the sum of weights (C,) times the columns at one time, by what the adjoint has."""
        direct, through = np.zeros((2, self.layout.size))
        states, seen = self.layout.split(direct), self.layout.split(through)
        for weight, m in zip(weights, self.measured, strict=True):
            into = seen[f"{m.quantity}{SEEN}"] if f"{m.quantity}{SEEN}" in seen else states[m.quantity]
            into[m.at] += weight
        return direct + back(t, through) if through.any() else direct

    def interpolated(self, run: Solution, times: Array) -> Callable[[float], dict[str, Array]]:
        """The states of a run at any time: cubics through so many of its points that they are near it. Raises SolveError."""
        t0, end = float(run.attrs["span"][0]), float(times[-1])
        right, layout = self.right.bind(self.sizes, run.attrs["params"]), self.right.layout(self.sizes)
        inside = self.points[(self.points > t0) & (self.points < end)]
        t = np.unique([*np.linspace(t0, end, POINTS), *times, *inside])

        def at(times: Array) -> Array:
            states = run.dense(times)
            return np.concatenate([states[name].reshape(len(times), -1) for name in layout.names], axis=1)

        y = at(t)
        for _ in range(HALVINGS):
            slopes = np.empty_like(y)
            for row, slope, time in zip(y, slopes, t, strict=True):
                right(time, row, slope)
            curve = CubicHermiteSpline(t, y, slopes)
            middle = (t[1:] + t[:-1]) / 2
            truth = at(middle)
            far = np.abs(curve(middle) - truth).max(axis=1) > NEAR * np.abs(y).max(initial=1e-300)
            if not far.any():
                break
            order = np.argsort(np.concatenate([t, middle[far]]))
            t, y = np.concatenate([t, middle[far]])[order], np.concatenate([y, truth[far]])[order]
        self.points = t
        return lambda t: layout.split(curve(t))
