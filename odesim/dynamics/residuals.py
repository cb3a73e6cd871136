"""How far runs are from data, as a search for the least sum of squares needs it: the numbers that it moves, residuals, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import OptimizeResult, least_squares, minimize
from scipy.stats import qmc

from odesim.api.ensemble import members_and_request
from odesim.base.arrays import Array
from odesim.base.errors import OdesimError, ParamError, counted, no_such
from odesim.base.options import REST, RunOptions, Values
from odesim.dynamics.adjoint import Adjoint
from odesim.ensembles.members import ArrayRows, Members
from odesim.run.choose import AnyEngine, make_engine
from odesim.run.chunks import integrated
from odesim.run.engines import SingleEngine
from odesim.run.solution import Seen, Solution
from odesim.stepper.codes import Status
from odesim.store.curves import Curves, Measured, numbers
from odesim.symbolic.system import System

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


# Several searches side by side: the runs that they need at one time are members of one ensemble, in lanes.

AT_ONCE = 64
"""The most searches that go on at one time: each waits in a thread."""

Place = TypeVar("Place")
Value = TypeVar("Value")
End = TypeVar("End")


class StoppedError(RuntimeError):
    """A search is given up, because another one failed."""


def side_by_side(
    search: Callable[[Callable[[Place], Value], Place], End], places: Sequence[Place], evaluate: Callable[[list[Place]], Iterable[Value]]
) -> list[End]:
    """Where search(f, place) ends from each place. f(p) waits until every search needs a value, and evaluate computes these together.

    A search may be a function that calls f where it likes, as scipy's do, and so each has a thread. Which values are computed together does
    not depend on what the threads do first.
    """
    ends: list[End] = []
    for first in range(0, len(places), AT_ONCE):
        ends += _one_round(search, places[first : first + AT_ONCE], evaluate)
    return ends


def _one_round(
    search: Callable[[Callable[[Place], Value], Place], End], places: Sequence[Place], evaluate: Callable[[list[Place]], Iterable[Value]]
) -> list[End]:
    wanted: SimpleQueue[tuple[int, list[Place]]] = SimpleQueue()  # the search, and its place; none at its end
    answers: list[SimpleQueue[list[Value]]] = [SimpleQueue() for _ in places]

    def searched(k: int) -> End:
        def f(place: Place) -> Value:
            wanted.put((k, [place]))
            answer = answers[k].get()
            if not answer:
                raise StoppedError
            return answer[0]

        try:
            return search(f, places[k])
        finally:
            wanted.put((k, []))

    with ThreadPoolExecutor(len(places)) as pool:
        try:
            futures = [pool.submit(searched, k) for k in range(len(places))]
            running, waiting = len(places), dict[int, Place]()
            while running:
                k, place = wanted.get()
                if place:
                    waiting[k] = place[0]
                else:
                    running -= 1
                if waiting and len(waiting) == running:
                    order = sorted(waiting)
                    for k, value in zip(order, evaluate([waiting.pop(k) for k in order]), strict=True):
                        answers[k].put([value])
        finally:
            for answer in answers:
                answer.put([])
    return [future.result() for future in futures]


@dataclass(frozen=True)
class Lanes:
    """Runs of one System with different numbers. like: a run with the same names."""

    engine: AnyEngine
    members: Members
    like: Solution

    def __call__(self, numbers: Mapping[str, Array]) -> list[Solution | None]:
        """The runs with numbers {name: (k, *shape)} of parameters and initial values; None for one that does not come to its end.

        The bits of a run do not depend on the others.
        """
        count = len(next(iter(numbers.values())))
        try:
            params, initial = replace(self.members, source=ArrayRows(numbers)).chunk(0, count)
            chunk = integrated(self.engine, params, initial, count, np.zeros(1, np.int64), None)
        except OdesimError:  # a value that the constraints of the model exclude
            if count == 1:
                return [None]
            return [run for k in range(count) for run in self({name: rows[k : k + 1] for name, rows in numbers.items()})]
        request = self.engine.request
        y, others = request.layout.split(chunk.y), request.outputs.arrays(chunk)
        runs: list[Solution | None] = []
        for k, status in enumerate(chunk.status):
            here = [{name: rows[k] for name, rows in part.items()} for part in (y, others)]
            runs.append(replace(self.like, y=here[0], _observe=Seen(np.nan, here[1], {})) if status == Status.OK.number else None)
        return runs


def make_lanes(system: System, values: Values, options: RunOptions, like: Solution) -> Lanes | None:
    """The lanes for runs whose numbers differ as the members of these values do; None where there are none for the System."""
    members, request = members_and_request(system, values, options)
    engine = make_engine(request, members)
    if isinstance(engine, SingleEngine):
        return None
    engine.prepare()
    return Lanes(engine, members, like)
