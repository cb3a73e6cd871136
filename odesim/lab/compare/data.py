"""A theory beside curves from outside: a System at given or fitted parameters, and columns of data as the seeds of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from odesim.api.integrate import integrate
from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted, no_such
from odesim.dynamics.fit import fit
from odesim.inputs.bind import bind
from odesim.lab.compare.comparison import Comparison, compare_sides
from odesim.lab.compare.sides import LOGARITHM, Loader, Side, TrainingClock, common_times, interpolate, side_of_solution
from odesim.run.solution import Solution
from odesim.store.curves import Curves, Measured, joined, match_columns, numbers, read_seeds
from odesim.symbolic.system import System

RTOL, ATOL = 1e-9, 1e-12  # of the theory: nothing of the difference is its own error
NAMED = 3  # runs and fitted numbers that a phrase names


@dataclass(frozen=True)
class DataRequest:
    """How a System is compared with data: the arguments of `odesim.compare` that are about them.

    lr, momentum, kind: of the clock on which the column of times counts steps of descent; lr None: it is the System's time itself.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    free: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    initial: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    span: tuple[float, float] | None = None
    lr: float | None = None
    momentum: float = 0.0
    kind: str = "effective"

    @property
    def clock(self) -> TrainingClock:
        """The System's time at a value of the column of times. Raises ParamError."""
        if self.lr is not None and not (self.lr > 0 and np.isfinite(self.lr)):
            raise ParamError(f"lr, the time of one step, must be above 0, not {self.lr:g}")
        if self.momentum and self.lr is None:
            raise ParamError("momentum is that of a descent whose learning rate is lr: give lr too")
        return TrainingClock(1.0 if self.lr is None else self.lr, self.momentum, self.kind)


def compare_data(system: System, data: Any, request: DataRequest, **names: tuple[str, ...]) -> Comparison:
    """Compares a System with curves: see `odesim.compare`. names: observables, align. Raises ParamError and StoreError."""
    if system.noise:
        raise ParamError(f"{system.name} has noise, and data are compared with equations without; replace(system, noise={{}}) has none")
    clock = replace(request.clock, logarithmic=request.lr is not None and system.time.startswith(LOGARITHM))
    seeds = [replace(one, t=clock.times(one.t)) for one in read_seeds(data, request.time)]
    every = joined(seeds)
    if every.t.min() == every.t.max():
        raise ParamError(f"column {every.time} of {every.what} has values at 1 time: a curve needs two")
    t0 = float(request.span[0] if request.span else system.span[0])
    if every.t.min() < t0:
        raise ParamError(f"{every.what} begin at t = {every.t.min():g}, before the run, which begins at {t0:g}: give span")
    end = float(max(every.t.max(), request.span[1] if request.span else t0))
    about: dict[str, Any] = {"sizes": request.sizes, "span": (t0, end)}
    arguments: dict[str, Any] = {"params": dict(request.params), "initial": dict(request.initial)}
    fitted = None
    if request.free is not None:
        fitted = fit(system, every, free=request.free, columns=request.columns, **arguments, **about)
        for name, value in free_values(system, fitted, arguments, about).items():
            arguments["initial" if name in system.states else "params"][name] = value
    tolerances: dict[str, Any] = {} if system.discrete else {"rtol": RTOL, "atol": ATOL}
    run = integrate(system, **arguments, **about, **tolerances, save=np.unique([t0, *every.t]))
    shapes = {name: values.shape[1:] for name, values in {**run.y, **run.observables}.items()}
    measured = match_columns(every, request.columns, shapes, "state or observable", system.name)[0]
    measured = chosen(measured, names["observables"], f"both {system.name} and {every.what}")
    theory, side = sides_of(run, seeds, measured, shapes)
    phrases = {"theory": system.name, "training": side.label, "unit": system.time, "map": "", "clock": ""}
    if fitted is not None:
        values = [f"{label} = {value:.4g}" for label, value in zip(fitted["free"].values, fitted["value"].values, strict=True)]
        phrases["map"] = f"fitted {', '.join(values[:NAMED])}{', ...' * (len(values) > NAMED)}"
    if request.lr is not None:
        phrases["clock"] = f"{clock}, i the column {every.time}"
    comparison = compare_sides(theory, side, phrases=phrases, align=names["align"])
    status = "ok" if fitted is None else fitted.attrs["status"]
    notes = (*comparison.notes, *[f"the fit is {status}: give bounds, or another start"] * (status != "ok"))
    return replace(comparison, sides=("theory", "data"), fit=fitted, notes=notes)


def free_values(system: System, fitted: Any, fixed: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """{parameter or state: what was fitted, in its shape}, from the labels mu[0], mu[1], ... of a fit."""
    bound = bind(system, **fixed, **about)
    values: dict[str, list[float]] = {}
    for label, value in zip(fitted["free"].values, fitted["value"].values, strict=True):
        values.setdefault(str(label).partition("[")[0], []).append(float(value))
    shapes = {name: np.shape(bound.initial[name] if name in system.states else bound.params[name]) for name in values}
    return {name: np.reshape(rows, shapes[name]) if shapes[name] else rows[0] for name, rows in values.items()}


def chosen(measured: list[Measured], observables: Sequence[str], where: str) -> list[Measured]:
    """The columns of these quantities, or labels, in their order; all without any. Raises ParamError for another name."""
    known = {name for m in measured for name in (m.label, m.quantity)}
    for name in observables:
        if name not in known:
            raise ParamError(no_such("observable", name, known, where))
    return list(dict.fromkeys(m for name in observables for m in measured if name in (m.label, m.quantity))) or measured


def sides_of(run: Solution, seeds: Sequence[Curves], measured: list[Measured], shapes: Mapping[str, tuple[int, ...]]) -> tuple[Side, Side]:
    """The theory and the data as sides: an array of which all entries are measured as one quantity, of other arrays each entry alone."""
    whole = {name for name, shape in shapes.items() if sum(m.quantity == name for m in measured) == np.prod(shape, dtype=int)}
    lines = [[line_of(one, m) for m in measured] for one in seeds]
    times = reduce(common_times, (t for row in lines for t, _ in row))
    columns = {
        m.label: np.stack([interpolate(t, x[None], times)[0] for t, x in column])
        for m, column in zip(measured, zip(*lines, strict=True), strict=True)
    }
    theory = side_of_solution(run)
    here, there, dims = dict[str, Loader](), dict[str, Loader](), dict[str, tuple[str, ...]]()
    for m in measured:
        if m.quantity in whole:
            labels = [other.label for other in sorted(measured, key=lambda m: m.at) if other.quantity == m.quantity]
            values = np.stack([columns[label] for label in labels], axis=-1).reshape(len(seeds), len(times), *shapes[m.quantity])
            here[m.quantity], there[m.quantity] = theory.loaders[m.quantity], partial(np.asarray, values)
            dims[m.quantity] = tuple(theory.dims.get(m.quantity, ()))
        else:
            here[m.label], there[m.label] = partial(entry_of, theory, m), partial(np.asarray, columns[m.label])
            dims[m.label] = ()
    side = Side(label_of(seeds), times, theory.unit, there, dims, tuple(range(len(seeds))))
    return replace(theory, loaders=here, dims=dims), side


def entry_of(side: Side, m: Measured) -> Array:
    """The series (R, T) of one component of a side's quantity."""
    return np.moveaxis(side.values(m.quantity), (0, 1), (-2, -1))[m.at]


def line_of(curves: Curves, m: Measured) -> tuple[Array, Array]:
    """Times (K,), increasing, and values (K,) of a column where it is measured; of several values at one time the mean.

    Raises ParamError for less than two times.
    """
    if m.name not in curves.columns:
        raise ParamError(no_such("column", m.name, curves.columns, f"{curves.what}{f', run {curves.run}' * bool(curves.run)}"))
    values = numbers(curves.columns[m.name], f"column {m.name} of {curves.what}")
    there = np.isfinite(values)
    t, place, count = np.unique(curves.t[there], return_inverse=True, return_counts=True)
    if len(t) < 2:
        raise ParamError(f"column {m.name} of {curves.what} has values at {counted(len(t), 'time')}: a curve needs two")
    return t, np.bincount(place, values[there]) / count


def label_of(seeds: Sequence[Curves]) -> str:
    """A phrase with the place of the data, and of several seeds their number and names."""
    runs = [one.run or one.what for one in seeds]
    if len(seeds) == 1:
        return f"{seeds[0].what}{f', {runs[0]}' * bool(seeds[0].run)}"
    names = f"{', '.join(runs[:NAMED])}{', ...' * (len(seeds) > NAMED)}"
    places = {one.what for one in seeds}
    where = seeds[0].what if len(places) == 1 else f"data of {counted(len(seeds), 'seed')}"
    count = f", {counted(len(seeds), 'seed')}" * (len(places) == 1)
    return f"{where}{count}{f': {names}' * (len(set(runs)) > 1)}"
