"""`odesim.lyapunov`: how fast neighbouring runs part, in every direction: exponents by QR over the tangent flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.request import options_for, span_of_steps
from odesim.base.arrays import Array, Layout
from odesim.base.datasets import register
from odesim.base.errors import ParamError, SolveError
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.dynamics.field import check_noiseless
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import load_model
from odesim.run.integrate import integrate_problem
from odesim.run.modes import held_of
from odesim.run.problem import compiled_for, guarded_system, held_problem, with_slack
from odesim.stepper.codes import Status
from odesim.stepper.problem import Problem
from odesim.symbolic.system import System
from odesim.transforms.events import Guard
from odesim.transforms.sensitivity import sensitivities

if TYPE_CHECKING:
    import xarray

MOST_STATES = 64
"""The most states: the tangent flow of n states has n^2 more."""
SETTLING = 0.1
"""The part of a span in which the run comes to its attractor and the directions turn to theirs; it does not count."""
PIECES = 400
"""Pieces of a span between two QR decompositions, at first."""
WIDEST, NARROW = 1e8, 1e3
"""The ratio of growths in a piece above which it is done again in half, and below which the next one is twice as long: a direction that
shrinks by 1e16 against another is lost in its rounding."""
ROUNDING = 4 * float(np.finfo(float).eps)
"""What QR leaves of a column that depends on the others, by its length and the number of states (Higham, Accuracy and stability, 2002,
theorem 19.4)."""
BATCHES = 20
"""Parts of a run whose means give the error."""

MOST_PIECES = 100_000

_TANGENTS: Memo[System] = Memo(16)


@check_arguments
def lyapunov(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    seed: int = 0,
) -> xarray.Dataset:
    """The Lyapunov exponents of a run of a model, all of them, the largest first.

    Parameters
    ----------
    model, params, initial, sizes, span, steps, method, rtol, atol, seed
        As of `integrate`. The first tenth of the span (of the steps of a Map) does not count: there the run comes to its attractor. Longer
        spans give smaller errors.

    Returns
    -------
    xarray.Dataset
        value (exponent,), in one over time or update; error, their standard error by 20 parts of the run; running (time, exponent), the
        means up to then; total, the sum of the exponents, and dimension, that of Kaplan and Yorke. attrs: method, pieces. The exponent of a
        direction that one update of a Map loses is -inf, without an error.

    Raises
    ------
    OdesimError
        For more than 64 states, noise, events that set states and conditions that jump, and where the run ends early.

    Notes
    -----
    The tangent flow is integrated with the run, and decomposed by QR so often that no direction is lost.

    Examples
    --------
    >>> exponents = odesim.lyapunov("joma.nonlinear", params={"mu": [1.0, 0.5]}, span=(0, 400))
    >>> exponents["value"].values.round(2).tolist()  # -exp(mu^2 / 2), at rest
    [-1.13, -1.65]
    """
    system = load_model(model)
    check_noiseless(system, "exponents")
    numbers = bind(system, params=params, initial=initial, sizes=sizes, span=span_of_steps(system, span, steps), seed=seed)
    options = options_for(system, RunOptions(method=method, rtol=rtol, atol=atol), numbers)
    guarded = guarded_system(system, options)
    return dataset(system, *exponents_of(Tangent(check_smooth(guarded), with_slack(guarded, numbers, options), options)))


def check_smooth(system: System) -> System:
    """The System without what a tangent flow does not need. Raises ParamError where it would not be that of the run."""
    if any(event.resets for event in system.events):
        raise ParamError(f"{system.name} has events that set states, and exponents of such runs are not computed")
    if not system.discrete and held_of(system).switches:
        raise ParamError(f"the right-hand side of {system.name} has conditions, and exponents of runs through them are not computed")
    # where a run leaves what its states assume, or is over: it has no exponents beyond
    ends = tuple(event for event in system.events if event.terminal or isinstance(event, Guard))
    return replace(system, events=ends, invariants=(), observables={}, views=(), closed_forms=(), growth=None, display={})


@dataclass(frozen=True)
class Tangent:
    """A run and the matrix M (n, n) of its derivatives with respect to the state at the start of a piece."""

    system: System
    numbers: Numbers
    options: RunOptions

    @cached_property
    def extended(self) -> System:
        return _TANGENTS((IdentityKey(self.system),), lambda: sensitivities(self.system, *self.system.states))

    @cached_property
    def problem(self) -> Problem:
        """The Problem of the run and M. Raises ParamError for too many states."""
        n = sum(value.size for value in self.numbers.initial.values())
        if n > MOST_STATES:
            raise ParamError(f"exponents are those of at most {MOST_STATES} states: {self.system.name} has {n}")
        start = bind(self.extended, params=self.numbers.params, initial=self.numbers.initial, sizes=self.numbers.sizes)
        compiled = compiled_for(self.extended, self.numbers.sizes, "numba", "float64", False)
        # a run stops where an input of time has a kink or a pulse, and so do the pieces: they would step over a narrow one
        return held_problem(compiled, held_of(self.system), replace(start, t0=self.numbers.t0, t1=self.numbers.t1), laws=False)

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """Where the state (n,) and M (n, n) stand in the vector of the extended System."""
        layout: Layout = self.problem.rhs.layout
        blocks, names, twins = layout.split(np.arange(layout.size)), self.system.states, self.extended.sensitivities
        counts = {name: blocks[name].size for name in names}
        rows = [np.hstack([blocks[twins[u][v]].reshape(counts[v], counts[u]) for u in names]) for v in names]
        return np.concatenate([np.ravel(blocks[name]) for name in names]), np.vstack(rows)

    def after(self, t: float, end: float, y: Array, Q: Array, method: str) -> tuple[Array, Array, str]:
        """The state (n,) and M Q (n, n) at `end` from those at t, and the method. Raises SolveError where the run ends before."""
        state, matrix = self.places
        both = np.empty(self.problem.rhs.layout.size)
        both[state], both[matrix] = y, Q
        piece = replace(self.problem, y0=both, t0=t, t1=end)
        options = {name: value for name, value in self.options.of_solver().items() if name not in ("max_step", "first_step")}
        raw = integrate_problem(piece, method=method, save=np.array([end]), **options)
        if raw.status is not Status.OK or not np.isfinite(raw.y_last).all():
            raise SolveError(f"the run ends before its exponents are known: {raw.message}")
        return raw.y_last[state], raw.y_last[matrix], raw.method


def exponents_of(tangent: Tangent) -> tuple[Array, Array, str]:
    """Times (P,), from the end of the settling on, logarithms of all growth until then (P, n), and the method of the run."""
    numbers, discrete = tangent.numbers, tangent.system.discrete
    t, end, method = numbers.t0, numbers.t1, tangent.options.method
    settled = t + SETTLING * (end - t)
    settled = float(np.floor(settled)) if discrete else settled
    y = tangent.problem.y0[tangent.places[0]]
    Q, total = np.eye(len(y)), np.zeros(len(y))
    most = (end - t) / PIECES
    length = max(1.0, float(np.floor(most))) if discrete else most
    times, growths = [settled], [total]
    while t < end:
        stop = settled if t < settled else end
        until = stop if t + 1.000001 * length >= stop else t + length
        after, M, method_now = tangent.after(t, until, y, Q, method)
        Q_after, R = orthogonal(M)
        if (not np.all(R > 0) or np.max(R) > WIDEST * np.min(R)) and (
            until - t > 1 if discrete else until - t > 1e-12 * (end - numbers.t0)
        ):
            length = max(1.0, float((until - t) // 2)) if discrete else (until - t) / 2
            continue
        method = method_now if method == "auto" else method
        Q, t, y = Q_after, until, after
        if len(times) > MOST_PIECES:
            raise SolveError(f"{tangent.system.name} contracts too fast for this span: more than {MOST_PIECES} pieces; give a shorter span")
        if until > settled:
            with np.errstate(divide="ignore"):
                total = total + np.log(R)
            times.append(t)
            growths.append(total)
        if np.max(R) < NARROW * np.min(R) and until != stop:
            length = min(2 * length, max(most, 1.0) if discrete else most)
            length = float(np.floor(length)) if discrete else length
    return np.array(times), np.array(growths), method


def orthogonal(M: Array) -> tuple[Array, Array]:
    """The orthonormal directions (n, n) of the columns of M (n, n), and the length (n,) that each adds to those before it; 0 for rounding.

    A column that depends on those before it, as of x -> f(x), y -> x, leaves a rest of rounding, whose logarithm would be a number.
    """
    Q, R = np.linalg.qr(M)
    lengths = np.abs(np.diag(R))
    return Q, np.where(lengths > ROUNDING * len(M) * np.linalg.norm(M, axis=0), lengths, 0.0)


def dataset(system: System, times: Array, growths: Array, method: str) -> xarray.Dataset:
    """Exponents from the logarithms of growth (P, n) at times (P,)."""
    import xarray as xr

    length = times[-1] - times[0]
    order = np.argsort(-growths[-1], kind="stable")
    growths = growths[:, order]
    values = growths[-1] / length
    marks = np.linspace(times[0], times[-1], BATCHES + 1)
    with np.errstate(invalid="ignore"):
        parts = np.diff([[np.interp(mark, times, column) for column in growths.T] for mark in marks], axis=0) * BATCHES / length
        error = parts.std(axis=0, ddof=1) / np.sqrt(BATCHES)
        running = growths[1:] / (times[1:] - times[0])[:, None]
    data: dict[str, Any] = {"value": ("exponent", values), "error": ("exponent", error), "running": (("time", "exponent"), running)}
    data |= {"total": values.sum(), "dimension": kaplan_yorke(values)}
    register()
    about = {"model": system.name, "method": method, "pieces": len(times) - 1, "lyapunov": int(system.discrete) + 1}
    return xr.Dataset(data, coords={"time": times[1:]}, attrs=about | ({"time_unit": system.time} if system.time else {}))


def kaplan_yorke(values: Array) -> float:
    """The dimension of Kaplan and Yorke of exponents (n,), the largest first: where their sums pass 0, in between linearly."""
    sums = np.cumsum(values)
    positive = np.flatnonzero(sums >= 0)
    if not len(positive):
        return 0.0
    last = int(positive[-1])
    return float(len(values)) if last + 1 == len(values) else last + 1 + float(sums[last] / -values[last + 1])
