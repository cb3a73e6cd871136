"""`odesim.spectrum`: eigenvalues along a run: how fast it would settle or leave, in which time, and how sharp its loss is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, eigsh

from odesim.api.integrate import integrate
from odesim.api.request import span_of_steps
from odesim.base.arrays import Array
from odesim.base.datasets import with_accessor
from odesim.base.errors import ParamError, SolveError, counted, no_such
from odesim.dynamics.field import LOSS, MOST_STATES, Field, check_noiseless
from odesim.dynamics.newton import fastest_first
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.ir.linear_systems import Jacobian
from odesim.run.solution import Solution
from odesim.symbolic.definition import GradientFlow
from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import with_layers
from odesim.symbolic.system import System
from odesim.transforms.gradients import gradient_flow

if TYPE_CHECKING:
    import xarray

DENSE = 200
"""The states up to which all eigenvalues of a Hessian are computed: LAPACK misses none, also where many are equal, and is cheap so far."""
FINISHED = ("ok", "event")


@check_arguments
def spectrum(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    steps: int | None = None,
    save: int | str | ArrayLike | None = 50,
    of: str = "",
    most: int = 3,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    seed: int = 0,
) -> xarray.Dataset:
    """Eigenvalues along a run of a model: of its exact Jacobian, and of the Hessian of its loss.

    Parameters
    ----------
    model, params, initial, sizes, span, steps, method, rtol, atol, seed
        As of `integrate`.
    save : int, "log:N" or array
        At which times.
    of : str
        The loss, an observable that is one expression; default: that of a gradient flow, or the observable `loss`, or none.
    most : int
        How many eigenvalues of the Hessian are kept.

    Returns
    -------
    xarray.Dataset
        eigenvalue_real and eigenvalue_imag (time, mode), those of df/dy, the fastest growing first; time_scale, -1/real part: the time in
        which a mode decays by e, negative where it grows, infinite where it rests. Of a Map the multipliers of an update, and
        -1/log|multiplier|, in updates. sharpness (time, top): the largest eigenvalues of the Hessian by the states, in no metric, and
        lowest (time,): its least one, below 0 where the loss curves down. attrs: loss, states, method.

    Raises
    ------
    OdesimError
        For noise, and where the run ends early.

    Notes
    -----
    A gradient descent with the rate eta on that loss is stable where eta * sharpness < 2. Eigenvalues of the Jacobian are left out for more
    than 2000 states. Those of the Hessian are LAPACK's up to 200 states, for more by Lanczos' method over products with the exact Hessian.

    Examples
    --------
    >>> spectrum = odesim.spectrum("joma.nonlinear", params={"mu": [2.0, 1.0]}, save=3)
    >>> spectrum["eigenvalue_real"].isel(time=-1).values.round(2).tolist()  # -exp(mu^2 / 2), at rest
    [-1.65, -7.39]
    """
    system = load_model(model)
    check_noiseless(system, "eigenvalues")
    if most < 1:
        raise ParamError(f"most is at least 1, the largest eigenvalue of a Hessian, not {most}")
    name, loss = loss_of(system, of)
    times = span_of_steps(system, span, steps)
    run = integrate(
        system, params=params, initial=initial, sizes=sizes, span=times, save=save, method=method, rtol=rtol, atol=atol, seed=seed
    )
    if run.status not in FINISHED:
        raise SolveError(f"the run ends before its eigenvalues are known: {run.message}")
    numbers = bind(system, params=params, initial=initial, sizes=sizes, span=times, seed=seed)
    data: dict[str, Any] = {}
    field = Field(system, numbers)
    if field.n <= MOST_STATES:
        values = np.array([fastest_first(np.linalg.eigvals(J.dense()), system.discrete)[0] for J in jacobians(field, run)])
        rates = np.log(np.abs(np.where(values == 0, np.finfo(float).tiny, values))) if system.discrete else values.real
        with np.errstate(divide="ignore"):
            data |= {"eigenvalue_real": (("time", "mode"), values.real), "eigenvalue_imag": (("time", "mode"), values.imag)}
            data["time_scale"] = (("time", "mode"), -1 / rates + 0.0)
    if loss is not None:
        hessian = Field(descent(system, loss), numbers)
        ends = [ends_of(J, hessian.n, most) for J in jacobians(hessian, run)]
        data |= {"sharpness": (("time", "top"), np.array([top for top, _ in ends])), "lowest": ("time", np.array([low for _, low in ends]))}
    if not data:
        raise ParamError(
            f"{system.name} has {counted(field.n, 'state')} and no loss, and all eigenvalues are computed of at most {MOST_STATES}"
        )
    import xarray as xr

    about = {"model": system.name, "method": run.method, "loss": name, "discrete": int(system.discrete), "spectrum": field.n}
    return with_accessor(xr.Dataset(data, coords={"time": run.t}, attrs=about | ({"time_unit": system.time} if system.time else {})))


def loss_of(system: System, of: str) -> tuple[str, Any]:
    """The name and the expression of a loss; ("", None) where there is none and none is named. Raises ParamError."""
    flow = system.equations
    if not of and isinstance(flow, GradientFlow):
        return LOSS, flow.loss
    known = {name: e for name, e in system.observables.items() if isinstance(e, sp.Basic) and not e.free_symbols & set(system.axes)}
    if not of:
        return (LOSS, known[LOSS]) if LOSS in known and states_in(system, known[LOSS]) else ("", None)
    if of not in known:
        raise ParamError(no_such("observable of one expression", of, known, system.name))
    if not states_in(system, known[of]):
        raise ParamError(f"{of} of {system.name} depends on no state: it has no Hessian")
    return of, known[of]


def states_in(system: System, e: Any) -> list[Any]:
    """The elements of states, as equations have them, on which an expression depends."""
    names = {base_name(x) for part in with_layers([e]) for x in part.atoms(sp.Indexed, sp.Symbol)}
    return [key for key in system.equations if base_name(key) in names]


def descent(system: System, loss: Any) -> System:
    """The gradient flow of a loss in the states that it depends on: minus its Jacobian is the Hessian, symmetric."""
    keys = states_in(system, loss)
    flow = gradient_flow(loss, dict.fromkeys(keys, 1), boundary=system.boundary)
    names = {base_name(key) for key in keys}
    starts = {key: e for key, e in system.initial.items() if base_name(key) in names}
    bare: dict[str, Any] = {
        "events": (),
        "invariants": (),
        "observables": {},
        "closed_forms": (),
        "growth": None,
        "display": {},
        "views": (),
    }
    return replace(system, equations=flow, initial=starts, discrete=False, **bare)


def jacobians(field: Field, run: Solution) -> Iterator[Jacobian]:
    """The exact Jacobian at each saved time of a run."""
    for k, t in enumerate(run.t):
        yield field.linear.jacobian(t, field.layout.join({name: run.y[name][k] for name in field.layout.names}))


def ends_of(J: Jacobian, n: int, most: int) -> tuple[Array, float]:
    """The `most` largest eigenvalues (most,) of minus J (n, n), which is symmetric, NaN beyond n, and the least."""
    top = np.full(most, np.nan)
    if n <= DENSE or most >= n - 1:
        values = np.linalg.eigvalsh(-np.asarray(J.dense(), np.float64))
        top[: min(most, n)] = values[::-1][:most]
        return top, float(values[0])
    hessian = LinearOperator((n, n), matvec=lambda v: -(J @ np.ravel(v)), dtype=np.float64)
    first = np.random.default_rng(0).standard_normal(n)  # the same bits in every run
    top[:] = np.sort(eigsh(hessian, most, which="LA", v0=first, return_eigenvectors=False))[::-1]
    return top, float(eigsh(hessian, 1, which="SA", v0=first, return_eigenvectors=False)[0])
