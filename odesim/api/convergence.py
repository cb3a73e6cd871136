"""`odesim.convergence`: how the error of a System with noise falls with the step, measured on paths that coarse and fine steps share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.ensemble import ensemble
from odesim.base.errors import ParamError
from odesim.inputs.arguments import check_arguments
from odesim.inputs.registry import load_model
from odesim.stepper.problem import fixed_steps
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray

FEWEST = 2
"""Levels of which an order can be told: two differences."""
SEEN = 3.0
"""Standard errors above which a mean is no chance."""


@check_arguments
def convergence(
    model: str | PathLike[str] | System,
    *,
    step: float | None = None,
    levels: int = 4,
    members: int = 1000,
    method: str = "auto",
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    observe: str | Iterable[str] = (),
    seed: int = 0,
    backend: str = "numba",
) -> xarray.Dataset:
    """The errors of steps of a System with noise, at the end of the span, by halving the steps along the same paths.

    Parameters
    ----------
    model, params, initial, sizes, span, backend
        As of `ensemble`; the span is a whole number of steps.
    step : float
        The coarsest step; a System may have its own.
    levels : int
        Steps are step, step/2, ..., step/2^levels.
    members : int
        Paths.
    method : str
        One for noise.
    observe : str or list of str
        Observables whose errors are told too.
    seed : int
        Of the paths.

    Returns
    -------
    xarray.Dataset
        For each state and observable, with the largest component of an array: NAME_strong (step,), the root of the mean square of the
        difference over members; NAME_weak (step,), the size of its mean, and NAME_noise (step,), the standard error of that mean. attrs:
        strong_order and weak_order, {name: slope} by least squares, method, and members, those that came to the end with every step.
        weak_order is that of the coarsest steps whose weak error is seen; a name with fewer than two of them, or without errors, has none.

    Raises
    ------
    ParamError
        For a System without noise, too few levels, or a span of no whole number of steps, and what `ensemble` raises.

    Notes
    -----
    The error of a step is told by the difference to half of it: that falls with the same order, and needs no solution. A weak error of
    less than three of NAME_noise is not seen: it may be chance, and from there on a slope says how chance falls.

    References
    ----------
    P. E. Kloeden, E. Platen, Numerical Solution of Stochastic Differential Equations (1992), 9.6 and 9.7 (strong and weak order).

    Examples
    --------
    >>> errors = odesim.convergence("particles.noisy_circle", method="sra1", step=0.1, levels=3, members=200, span=(0, 1))
    >>> bool(errors.attrs["strong_order"]["theta"] > 1.2)
    True
    """
    import xarray as xr

    system = load_model(model)
    if not system.noise:
        raise ParamError(f"{system.name} has no noise: the order of a fixed step is that of its method, and rtol holds the error of others")
    if levels < FEWEST:
        raise ParamError(f"levels = {levels}: an order needs at least {FEWEST}")
    step = system.step if step is None else step
    if step is None:
        raise ParamError("step is needed: the coarsest one, such as step=0.1")
    t0, t1 = system.span if span is None else span
    if step > 0 and fixed_steps(t0, t1, step)[1] != step:  # a shorter last step is none of those that finer steps halve
        raise ParamError(f"step: the span {t0:g}:{t1:g} is no whole number of steps of {step:g}")
    words = {"params": params, "initial": initial, "sizes": sizes, "observe": observe, "seed": seed, "backend": backend, "method": method}
    ends: dict[str, list[np.ndarray]] = {}
    for level in range(levels + 1):
        data = ensemble(system, members=members, step=step / 2**level, halvings=level, span=(t0, t1), save=[t1], **words)  # type: ignore[arg-type]
        for name, values in data.data_vars.items():
            if "time" in values.dims:
                ends.setdefault(str(name), []).append(values.isel(time=-1).values.reshape(members, -1))
    whole = np.all([np.isfinite(v).all(axis=1) for per_level in ends.values() for v in per_level], axis=0)
    count, steps = int(whole.sum()), step / 2.0 ** np.arange(levels)
    variables: dict[str, tuple[str, np.ndarray]] = {}
    orders: dict[str, dict[str, float]] = {"strong": {}, "weak": {}}
    for name, per_level in ends.items():
        apart = np.array([fine[whole] - coarse[whole] for coarse, fine in pairwise(per_level)])
        strong, mean = np.sqrt((apart**2).mean(axis=1)), np.abs(apart.mean(axis=1))
        noise = apart.std(axis=1, ddof=1) / np.sqrt(count)
        errors = {kind: values.max(axis=1) for kind, values in (("strong", strong), ("weak", mean), ("noise", noise))}
        variables |= {f"{name}_{kind}": ("step", largest) for kind, largest in errors.items()}
        for kind, least in (("strong", np.zeros(levels)), ("weak", SEEN * errors["noise"])):
            seen = np.logical_and.accumulate(errors[kind] > least)
            if seen.sum() >= FEWEST:
                orders[kind][name] = float(np.polyfit(np.log(steps[seen]), np.log(errors[kind][seen]), 1)[0])
    about = {"model": system.name, "method": data.attrs["method"], "members": count, "seed": seed}
    return xr.Dataset(variables, {"step": steps}, {**about, "strong_order": orders["strong"], "weak_order": orders["weak"]})
