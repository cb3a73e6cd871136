"""`odesim.fit`: parameters and initial values by least squares to data, with exact derivatives, intervals, and what stays undetermined."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult
from scipy.stats import norm
from scipy.stats import t as student

from odesim.api.integrate import integrate
from odesim.api.request import span_of_steps, with_sensitivities
from odesim.base.arrays import Array
from odesim.base.datasets import register
from odesim.base.errors import FitWarning, OdesimError, ParamError, counted, value_text
from odesim.base.options import RunOptions, Values
from odesim.dynamics.adjoint import Adjoint, adjoint_obstacle
from odesim.dynamics.field import check_defaults, check_noiseless
from odesim.dynamics.residuals import Free, Residuals, predictions
from odesim.dynamics.together import make_lanes
from odesim.inputs.arguments import check_arguments, to_names
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.ir.derive import HOLDING
from odesim.run.solution import Solution
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.store.curves import match_columns, read_curves
from odesim.store.export import entries
from odesim.symbolic.assumptions import assumed_intervals
from odesim.symbolic.layered import with_layers
from odesim.symbolic.system import System

if TYPE_CHECKING:
    import xarray

DECADES = 100.0
"""The least ratio of positive bounds between which a number is searched on a logarithmic scale."""
FLAT = 1e-6
"""The singular value, by the largest, below which a direction is undetermined: derivatives of a run at rtol 1e-8 have no more digits."""
SAME = 1e-4
"""The relative distance in the sum of squares within which two starts came to the same fit."""
MANY = 200
"""The most numbers that are fitted by the derivatives of each datum, which are integrated with the states: more have an adjoint."""
TOGETHER = 8
"""Starts from which on they are searched from in lanes: fewer are done before the lanes are compiled, in a second or three."""
FINE = 201
"""Points of the fitted curve, beside the times of the data."""


@check_arguments
def fit(
    model: str | PathLike[str] | System,
    data: Any,
    *,
    free: Iterable[str] | Mapping[str, tuple[float, float] | None],
    columns: Mapping[str, str] | None = None,
    time: str = "",
    sigma: float | Mapping[str, Any] | None = None,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    starts: int = 4,
    level: float = 0.95,
    method: str = "auto",
    rtol: float = 1e-8,
    atol: float | Mapping[str, ArrayLike] = 1e-10,
    seed: int = 0,
) -> xarray.Dataset:
    """The parameters and initial values with which a model is nearest to data, in least squares, with intervals.

    Parameters
    ----------
    model, sizes, span, method, rtol, atol, seed
        As of `integrate`.
    data : path, DataFrame, Dataset, run, {name: array}, or a list of these
        csv, tsv, parquet, nc, npz, zarr, a stored run, or a folder of exports of W&B or TensorBoard; every number of every seed counts.
        Columns are states and observables by name, of an array its entries: v[0]. NaN is no measurement.
    free : list of str, or {name: (low, high)}
        Parameters, and states for their initial values; bounds are else those of the domain.
    columns : {quantity: column}
        {"I": "infected"} says which column I is in. Those that name nothing are left out, and stand in attrs["unused"].
    sigma : float or {quantity: number or column}
        The standard deviation of the data, where "*" is any other quantity. Without it all data weigh the same, and it is estimated from
        the residuals.
    params, initial : {name: number, nested list or array}
        The other numbers, and where the search begins.

    Returns
    -------
    xarray.Dataset
        By number (free,): value, its standard error, low and high, the ends of its interval from the derivatives (t distribution, or normal
        with sigma) inside its bounds, and correlation. data, fitted and residual (time, column); curve (curve_time, column). attrs: status,
        ok, not converged, or at a corner, such as that of Abs(p - q), where errors mean nothing and there may be better numbers;
        undetermined, in words what the data do not determine, with a warning; at_bound; sum_of_squares; degrees of freedom; deviation, the
        estimated sigma (by that given); agreed, how many starts came to this fit.

    Other Parameters
    ----------------
    time : str
        The column of times; default: t, time or step.
    starts : int
        Places from which it is done, the first of them as given; logarithmic between positive bounds two decades apart. From 8 on the runs
        of all searches are members of one ensemble, in lanes where the System has them.
    level : float
        Of the intervals.

    Raises
    ------
    OdesimError
        For fewer data than numbers, and where no start can be integrated.

    Notes
    -----
    More than 200 numbers are fitted by the gradient of the sum of squares, one adjoint run for each, and have no intervals; those of Maps,
    of a stiff run, and of a System with resets, switches, pulses or starts that depend on them are derived one by one.

    Examples
    --------
    >>> truth = odesim.integrate("joma.nonlinear", params={"mu": [1.3]}, span=(0, 3), save=20)
    >>> data = {"t": truth.t, "v[0]": truth.y["v"][:, 0]}
    >>> fit = odesim.fit("joma.nonlinear", data, free=["mu"], sizes={"M": 1})
    >>> fit["value"].values.round(4).tolist()
    [1.3]
    """
    if starts < 1:
        raise ParamError(f"starts is at least 1, not {starts}")
    if not 0 < level < 1:
        raise ParamError(f"level is between 0 and 1, not {level:g}")
    system = load_model(model)
    curves = read_curves(data, time)
    times = np.unique(curves.t)
    t0 = span_of_steps(system, span, None)[0] if span else system.span[0]
    end = span[1] if span else times[-1]
    if times[0] < t0:
        raise ParamError(f"{curves.what} begin at t = {times[0]:g}, before the run, which begins at {t0:g}: give span")
    if times[-1] > end:
        raise ParamError(f"{curves.what} go on to t = {times[-1]:g}, after the run, which ends at {end:g}: give a longer span")
    if times[-1] <= t0:
        raise ParamError(f"{curves.what} have no time after {t0:g}, where the run begins")
    if system.discrete and np.any(times != np.floor(times)):
        raise ParamError(f"{curves.what} have the time {times[times != np.floor(times)][0]:g}, and those of a Map are whole numbers")
    names = free_names(system, free)
    extended, _ = with_sensitivities(system, names, {})  # raises for names that are none, and what has no derivative
    about: dict[str, Any] = {"sizes": sizes, "span": (float(t0), float(end)), "seed": seed}
    values = bind(system, params=params, initial=initial, **about)
    begin = {name: values.initial[name] if name in system.states else values.params[name] for name in names}
    chosen = free_numbers(system, begin, free if isinstance(free, Mapping) else {})
    try:
        aside = {name: v for name, v in chosen.split(chosen.values(chosen.starts(2)[1])).items() if name not in system.states}
        moved = bind(system, params={**(params or {}), **aside}, initial=initial, **about)
    except OdesimError:  # a value that the constraints of the model exclude
        moved = values
    check_defaults(system, values, moved, names)
    about |= {"sizes": values.sizes, "rtol": rtol, "atol": atol} if not system.discrete else {"sizes": values.sizes}

    def run(x: Array, save: Array, **more: Any) -> Solution:
        numbers_of_run = chosen.split(x)
        starts = {**(initial or {}), **{name: v for name, v in numbers_of_run.items() if name in system.states}}
        others = {**(params or {}), **{name: v for name, v in numbers_of_run.items() if name not in system.states}}
        return integrate(system, params=others, initial=starts, save=save, **{**about, **more})

    many = len(chosen.start) > MANY and not adjoint_obstacle(system, names)
    first = run(chosen.start, times, sensitivities=() if many else names, method=method)
    message = first.message
    for u in chosen.starts(starts)[1:]:
        if first.status == "ok":
            break
        with suppress(OdesimError):  # a value that the constraints of the model exclude
            first = run(chosen.values(u), times, sensitivities=() if many else names, method=method)
    if first.status != "ok":
        where = "the start" if starts == 1 else f"each of {counted(starts, 'start')}"
        advice = f"give other values (--set, --init), narrower bounds or more starts; at the first start: {message}"
        raise ParamError(f"{system.name}: the run at {where} of the search ends before the data do: {advice}")
    about["method"] = first.method if not system.discrete else "auto"
    shapes = smooth_shapes(system, extended, first, columns or {})
    measured, unused = match_columns(curves, columns or {}, shapes, "state or observable with derivatives", system.name)
    # backwards the adjoint is as stiff as the run, and its method is explicit
    adjoint = Adjoint(system, names, measured, first) if many and first.method not in ROSENBROCK else None
    lanes = None
    if starts >= TOGETHER and not many:
        rows = {name: np.repeat(np.asarray(value)[None], starts, axis=0) for name, value in chosen.split(chosen.start).items()}
        fixed, still = ({name: v for name, v in (part or {}).items() if name not in rows} for part in (params, initial))
        pairs = first.attrs["sensitivities"].values()
        seen = [name for m in measured for name in (m.quantity, *(of[m.quantity] for of in pairs)) if name in first.observables]
        tolerances = {name: about[name] for name in ("rtol", "atol") if name in about}
        lanes = make_lanes(
            system,
            Values(fixed, still, values.sizes, about["span"], save=times, sensitivities=names, observe=seen, zipped=rows),
            RunOptions(method=about["method"], seed=seed, **tolerances),
            first,
        )
    parts = [*system.equations.values(), *system.initial.values(), *system.observables.values()]
    residuals = Residuals(run, chosen, curves, measured, sigma, adjoint, lanes)
    residuals.cornered = not many and any(e.has(*HOLDING) for e in with_layers([e for e in parts if isinstance(e, sp.Expr)]))
    fits = residuals.minima(starts)
    if not fits:
        raise ParamError(f"{system.name}: at no start of the search the observed quantities are numbers")
    fine = np.unique([*times, *(np.linspace(t0, end, FINE) if not system.discrete else np.arange(t0, end + 1))])
    result = fit_dataset(residuals, fits, fine, level)
    weights = {value for value in (sigma.values() if isinstance(sigma, Mapping) else [sigma]) if isinstance(value, str)}
    unused = [name for name in unused if name not in weights]
    if result.attrs["undetermined"]:
        warnings.warn(f"the data do not determine {result.attrs['undetermined']}", FitWarning, 3)
    return result.assign_attrs(model=system.name, method=first.method, unused=" ".join(unused), starts=starts, time_unit=system.time, fit=1)


def fit_dataset(residuals: Residuals, fits: list[OptimizeResult], fine: Array, level: float) -> xarray.Dataset:
    """The Dataset of the best of fits, as `fit` describes it. fine: times of its curve."""
    free, curves, measured = residuals.free, residuals.curves, residuals.measured
    best = min(fits, key=lambda result: float(result.cost))
    x = free.values(best.x)
    error, correlation, undetermined = np.full(len(x), np.nan), None, ""
    if best.jac is not None:
        error, correlation, undetermined = uncertainty(best.jac / free.scale(x), x, free.labels)
    degrees, squares = residuals.count - len(x), 2 * float(best.cost)
    deviation = np.sqrt(squares / degrees) if degrees else np.nan
    error *= 1.0 if residuals.weighted else deviation
    wide = float(norm.ppf((1 + level) / 2) if residuals.weighted else student.ppf((1 + level) / 2, degrees))
    curve = predictions(residuals.run(x, fine), measured, [])[0]
    fitted = curve[np.searchsorted(fine, curves.t)]

    import xarray as xr

    register()
    over = {"data": residuals.y, "fitted": fitted, "residual": residuals.y - fitted}
    low, high = (np.clip(x + side * wide * error, free.low, free.high) for side in (-1, 1))
    variables: dict[str, Any] = {name: ("free", v) for name, v in (("value", x), ("error", error), ("low", low), ("high", high))}
    variables |= {} if correlation is None else {"correlation": (("free", "other"), correlation)}
    variables |= {name: (("time", "column"), v) for name, v in over.items()} | {"curve": (("curve_time", "column"), curve)}
    coords = {"free": list(free.labels), "column": [m.label for m in measured], "time": curves.t, "curve_time": fine}
    all_squares = np.sum((residuals.y * residuals.weight)[residuals.there] ** 2)
    agreed = sum(bool(s.cost <= best.cost * (1 + SAME) + 1e-14 * all_squares) for s in fits)
    at_bound = " ".join(label for label, k in zip(free.labels, best.active_mask, strict=True) if k)
    status = "ok" if best.status > 0 else "not converged"
    status = "at a corner" if residuals.cornered and residuals.turn(best.x) else status
    words = {"status": status, "undetermined": undetermined, "at_bound": at_bound}
    sums = {"sum_of_squares": squares, "degrees": degrees, "deviation": float(deviation), "level": level, "numbers": residuals.count}
    return xr.Dataset(variables, coords, {**words, **sums, "agreed": agreed, "weighted": int(residuals.weighted)})


def free_names(system: System, free: Any) -> list[str]:
    """The names of what is fitted. Raises ParamError for none, and for a System with noise."""
    names: Any = to_names("free", tuple(free) if isinstance(free, Mapping) else free)
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ParamError("free names what is fitted: at least one parameter or state")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ParamError(f"free names {twice} twice")
    check_noiseless(system, "fits")
    return names


def free_numbers(system: System, begin: Mapping[str, Any], bounds: Mapping[str, Any]) -> Free:
    """The free numbers, by their names, starts and bounds {name: (low, high) or None}. Raises ParamError."""
    shapes, labels, rows = dict[str, tuple[int, ...]](), list[str](), list[tuple[Any, ...]]()
    for name, value in begin.items():
        state = name in system.states
        domain: Any = (assumed_intervals(system)[name] or sp.S.Reals) if state else system.param(name).domain
        low, high = float(domain.inf), float(domain.sup)
        open_ = low == 0 and domain.contains(0) == sp.false
        if bounds.get(name) is not None:
            try:
                a, b = map(float, bounds[name])
            except (TypeError, ValueError):
                raise ParamError(f"the bounds of {name} are two numbers (low, high), not {value_text(bounds[name])}") from None
            if not low <= a < b <= high:
                raise ParamError(f"the bounds of {name} are (low, high) inside [{low:g}, {high:g}], not ({a:g}, {b:g})")
            low, high, open_ = a, b, open_ and a == 0
        array = np.asarray(value, np.float64)
        shapes[name] = array.shape
        for label, x in zip(entries(name, array.shape), np.ravel(array), strict=True):
            if not low <= x <= high:
                raise ParamError(f"the search for {label} begins at {x:g}, outside its bounds {low:g} to {high:g}: give another value")
            labels.append(label)
            rows.append((x, low, high, x > 0 and (open_ or low > 0) and high >= DECADES * low))
    start, below, above, log = (np.array(column) for column in zip(*rows, strict=True))
    return Free(shapes, tuple(labels), start.astype(np.float64), below, above, log.astype(bool))


def smooth_shapes(system: System, extended: System, run: Solution, mapped: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """{quantity that has derivatives: its shape}. Raises ParamError for one of the labels `mapped` that has none."""
    smooth = set(system.states).union(system.observables).intersection(*extended.sensitivities.values())
    for label in mapped:
        if (quantity := label.partition("[")[0].strip()) in system.observables and quantity not in smooth:
            raise ParamError(f"{quantity} is a function of Python, which has no derivatives: fit other observables, or states")
    return {name: values.shape[1:] for name, values in {**run.y, **run.observables}.items() if name in smooth}


def uncertainty(J: Array, x: Array, labels: tuple[str, ...]) -> tuple[Array, Array, str]:
    """Standard errors (p,) for a deviation of 1, correlation (p, p), and in words what is undetermined, of weighted derivatives J (N, p).

    Undetermined numbers have infinite errors, and NaN as correlation.
    """
    size = np.linalg.norm(J, axis=0)
    unit = np.where(size > 0, size, 1.0)
    _, s, V = np.linalg.svd(J / unit, full_matrices=False)
    flat = s <= FLAT * s[0] if s[0] > 0 else np.ones(len(s), bool)
    inverse = (V[~flat].T / s[~flat]) / unit[:, None]
    covariance = inverse @ inverse.T
    lost = np.zeros(len(x), bool)
    words = []
    for v in V[flat]:
        way = v / unit
        relative = way / np.where(x != 0, x, 1.0)
        relative /= relative[np.argmax(np.abs(relative))]
        those = np.flatnonzero(np.abs(v) > 1e-3)
        lost[those] = True
        changes = " with ".join(f"{labels[k]} {relative[k]:+.3g}{' %' if x[k] else ''}" for k in those)
        words.append(labels[those[0]] if len(those) == 1 else f"{' and '.join(labels[k] for k in those)} ({changes} changes nothing)")
    error = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(error, error)
    error[lost] = np.inf
    correlation[lost] = correlation[:, lost] = np.nan
    return error, correlation, "; ".join(words)
