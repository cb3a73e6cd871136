"""How far runs are from data, as a search for the least sum of squares needs it: the numbers that it moves, residuals, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, least_squares, minimize
from scipy.stats import qmc

from odesim.base.arrays import Array
from odesim.base.errors import OdesimError, ParamError, counted, no_such
from odesim.base.options import REST
from odesim.dynamics.adjoint import Adjoint
from odesim.dynamics.together import Lanes, side_by_side
from odesim.run.solution import Solution
from odesim.store.curves import Curves, Measured, numbers

BESIDE, FARTHER, OTHER = 1e-6, 10, 1e-2
"""How far beside the end of a search derivatives are compared, how many times farther once more, and the part of themselves by which they
are others in a corner."""


@dataclass(frozen=True)
class Free:
    """The numbers (p,) that are fitted: their labels, starts, bounds, and whether they are searched on a logarithmic scale.

    shapes: {parameter or state: shape}, whose entries they are in order.
    """

    shapes: dict[str, tuple[int, ...]]
    labels: tuple[str, ...]
    start: Array
    low: Array
    high: Array
    log: Array

    def split(self, x: Array) -> dict[str, Any]:
        """{name: number or array} of x (p,)."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = np.split(x, np.cumsum(sizes)[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def searched(self, x: Array) -> Array:
        """x (p,), on the scale on which it is searched."""
        with np.errstate(divide="ignore"):
            return np.where(self.log, np.log(np.where(self.log, x, 1.0)), x)

    def values(self, u: Array) -> Array:
        """The numbers (p,) at a place u (p,) of the search: the inverse of searched."""
        return np.where(self.log, np.exp(np.where(self.log, u, 0.0)), u)

    def scale(self, x: Array) -> Array:
        """The derivatives (p,) of the numbers x by their places in the search."""
        return np.where(self.log, x, 1.0)

    def starts(self, count: int) -> list[Array]:
        """`count` places (p,) of the search: the given start, and a Latin hypercube between the bounds.

        Where one is infinite, it reaches a decade, or the size of the start, to either side of it.
        """
        u, low, high = self.searched(self.start), self.searched(self.low), self.searched(self.high)
        wide = np.where(np.isfinite(high - low), np.inf, np.where(self.log, np.log(10.0), np.maximum(np.abs(self.start), 1.0)))
        low, high = np.maximum(low, u - wide), np.minimum(high, u + wide)
        others = qmc.LatinHypercube(len(u), rng=0).random(count - 1) if count > 1 else np.empty((0, len(u)))
        return [u, *(low + others * (high - low))]


class Residuals:
    """How far runs are from data, by the deviations of these, with derivatives by the numbers that are searched.

    run(x, times, **more): the run with the free numbers x (p,). y, weight (time, column): the data, and one by their
    deviations; there: where they are, N in all. adjoint: derives half the sum of squares, and then nothing is derived one by one. lanes:
    the same runs, many at a time. cornered: whether the System has functions with corners.
    """

    cornered = False

    def __init__(
        self,
        run: Callable[..., Solution],
        free: Free,
        curves: Curves,
        measured: list[Measured],
        sigma: Any,
        adjoint: Adjoint | None,
        lanes: Lanes | None,
    ) -> None:
        self.adjoint, self.lanes = adjoint, lanes
        self.run, self.free, self.curves, self.measured, self.weighted = run, free, curves, measured, sigma is not None
        self.names = list(free.shapes)
        self.times, self.row = np.unique(curves.t, return_inverse=True)
        self.y = np.stack([numbers(curves.columns[m.name], f"column {m.name} of {curves.what}") for m in measured], axis=1)
        self.there = np.isfinite(self.y)
        with np.errstate(divide="ignore", over="ignore"):  # a sentence below says what has no weight
            self.weight = 1 / np.where(self.there, deviations(sigma, measured, curves, self.y.shape), 1.0)
        self.count, p = int(self.there.sum()), len(free.start)
        if self.count < p + (not self.weighted):
            enough = "" if self.weighted else f" and their error, which need {p + 1}: give more data, or sigma"
            raise ParamError(f"{curves.what} have {counted(self.count, 'number')} for {counted(p, 'free number')}{enough}")
        weight = self.weight[self.there]
        if np.any(~(weight > 0) | ~np.isfinite(weight)):
            raise ParamError("sigma must be a positive number wherever data are")

    def _evaluate(self, u: Array) -> tuple[Array, Array]:
        """The residuals (N,) at a place u (p,) of the search, and their derivatives (N, p), or (p,) of half their squares; NaN: no run."""
        x = self.free.values(u)
        try:
            solution = self.run(x, self.times, sensitivities=() if self.adjoint else self.names)
        except OdesimError:  # a value that the constraints of the model exclude
            solution = None
        return self._compared(solution, u, x)

    def _together(self, places: list[Array]) -> list[tuple[Array, Array]]:
        """The same at many places (p,)."""
        assert self.lanes is not None
        numbers = [self.free.values(u) for u in places]
        parts = [self.free.split(x) for x in numbers]
        runs = self.lanes({name: np.stack([part[name] for part in parts]) for name in self.free.shapes})
        return [self._compared(*of) for of in zip(runs, places, numbers, strict=True)]

    def _compared(self, solution: Solution | None, u: Array, x: Array) -> tuple[Array, Array]:
        """The same of the run with the numbers x (p,), at the place u (p,)."""
        if solution is None or solution.status != "ok":
            return np.full(self.count, np.nan), np.full((self.count, len(u)), np.nan)
        now, slopes = predictions(solution, self.measured, [] if self.adjoint else self.names)
        residuals = (now[self.row] - self.y) * self.weight
        if self.adjoint:
            weights = np.zeros_like(now)
            np.add.at(weights, self.row, np.where(self.there, residuals * self.weight, 0.0))
            gradient = self.adjoint.gradient(solution, self.times, weights)
            return residuals[self.there], np.concatenate([np.ravel(gradient[name]) for name in self.free.shapes]) * self.free.scale(x)
        slopes = (slopes[self.row] * self.weight[..., None])[self.there]
        return residuals[self.there], slopes * self.free.scale(x)

    def turn(self, u: Array) -> bool:
        """Whether the derivatives on one side of a place u (p,) are others than on the other side, as around a corner of |p - q|.

        Differences that grow with the distance are those of a curve; where that has its least value derivatives may be next to 0.
        """
        way = BESIDE * np.maximum(np.abs(u), 1.0) * np.random.default_rng(0).normal(size=len(u))
        bounds = self.free.searched(self.free.low), self.free.searched(self.free.high)
        near, far = ([self._evaluate(np.clip(u + by, *bounds))[1] for by in (-k * way, k * way)] for k in (1, FARTHER))
        sizes, jump, wide = (np.linalg.norm(J, axis=0) for J in (near[0], near[1] - near[0], far[1] - far[0]))
        return bool(np.any((jump > OTHER * sizes) & (jump > wide / 2)))

    def minima(self, starts: int) -> list[OptimizeResult]:
        """Where searches from so many starts end."""
        bounds = self.free.searched(self.free.low), self.free.searched(self.free.high)
        # as far as curves of rtol 1e-8 tell apart: closer in, the search would follow the errors of the runs
        more: dict[str, Any] = {"xtol": 1e-9, "ftol": 1e-10, "gtol": 1e-12, "x_scale": "jac"}

        def search(evaluate: Callable[[Array], tuple[Array, Array]], u: Array) -> OptimizeResult | None:
            # residuals and derivatives are computed together, and asked for one after the other
            at = lru_cache(maxsize=4)(lambda key: evaluate(np.frombuffer(key)))
            values, derivatives = (lambda u, k=k: at(np.ascontiguousarray(u).tobytes())[k] for k in (0, 1))
            if not np.isfinite(values(u)).all():
                return None
            if self.adjoint:
                return descended(values, derivatives, u, bounds)
            return least_squares(values, u, derivatives, bounds=bounds, **more)

        places = self.free.starts(starts)
        ends = side_by_side(search, places, self._together) if self.lanes else [search(self._evaluate, u) for u in places]
        return [end for end in ends if end is not None]


def descended(
    values: Callable[[Array], Array], derivatives: Callable[[Array], Array], u: Array, bounds: tuple[Array, Array]
) -> OptimizeResult:
    """Where the descent from u ends, as least_squares says it but without derivatives (jac is None)."""

    def half_squares(u: Array) -> tuple[float, Array]:
        residuals = values(u)
        return (0.5 * float(residuals @ residuals), derivatives(u)) if np.isfinite(residuals).all() else (np.inf, np.zeros_like(u))

    options: Any = {"method": "L-BFGS-B", "options": {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-10, "gtol": 0.0}}
    end: Any = minimize(half_squares, u, jac=True, bounds=list(zip(*bounds, strict=True)), **options)
    at_bound = (end.x >= bounds[1]).astype(int) - (end.x <= bounds[0])
    result: Any = {"x": end.x, "cost": float(end.fun), "jac": None, "status": int(end.success), "active_mask": at_bound}
    return OptimizeResult(**result)


def deviations(sigma: Any, measured: list[Measured], curves: Curves, shape: tuple[int, ...]) -> Array:
    """The standard deviations (time, column) of the data, 1 where none are given. Raises ParamError."""
    out = np.ones(shape)
    by_name = sigma if isinstance(sigma, Mapping) else {} if sigma is None else {REST: sigma}
    for name, value in sorted(by_name.items(), key=lambda pair: pair[0] != REST):  # what is named comes after what is said of the rest
        places = [k for k, m in enumerate(measured) if name in (m.label, m.quantity, REST)]
        if not places:
            raise ParamError(no_such("measured quantity", name, (m.label for m in measured), "sigma"))
        if isinstance(value, str) and value not in curves.columns:
            raise ParamError(no_such("column", value, curves.columns, curves.what))
        column = numbers(curves.columns[value] if isinstance(value, str) else value, f"sigma of {name}")
        out[:, places] = np.broadcast_to(column, len(out))[:, None]
    return out


def predictions(run: Solution, measured: list[Measured], names: list[str]) -> tuple[Array, Array]:
    """What a run has for each column (T, C), and its derivatives (T, C, p) by the entries of these names."""
    arrays: dict[str, Any] = {**run.y, **run.observables}
    now = np.stack([arrays[m.quantity][(slice(None), *m.at)] for m in measured], axis=1)
    slopes = []
    for name in names:
        pairs = run.attrs["sensitivities"][name]
        state = next(s for s in run.y if s in pairs)
        along = run.dims[pairs[state]][len(run.dims[state]) :]
        sizes = dict(zip(along, run.y[pairs[state]].shape[1 + len(run.dims[state]) :], strict=True))
        for m in measured:
            twin = pairs[m.quantity]
            index = dict(zip(run.dims[m.quantity], m.at, strict=True))
            block = arrays[twin][(slice(None), *(index.get(axis, slice(None)) for axis in run.dims[twin]))]
            # an observable has the axes that its derivative depends on: the others are written out
            left = [axis for axis in run.dims[twin] if axis not in index]
            full = block.reshape(len(block), *(sizes[axis] if axis in left else 1 for axis in along))
            slopes.append(np.broadcast_to(full, (len(block), *sizes.values())).reshape(len(block), -1))
    parts = [np.stack(slopes[k : k + len(measured)], axis=1) for k in range(0, len(slopes), len(measured))]
    return now, np.concatenate(parts, axis=2) if parts else np.empty((*now.shape, 0))
