"""What the explorer shows in a plane, as arrays: the flow of two numbers of the state, an end value over two parameters, claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np
import sympy as sp
from contourpy import contour_generator

from odesim.api.ensemble import ensemble
from odesim.base.arrays import Array, entry
from odesim.base.errors import counted
from odesim.dynamics.field import make_field
from odesim.dynamics.rest import Rest, distinct, is_same, slow_states
from odesim.explorer.controls import Controls, Explored, Scale
from odesim.lab.claims import Claim, all_claims
from odesim.run.solution import Solution
from odesim.symbolic.system import System
from odesim.targets.numpy_text import evaluate

ARROWS = 20
"""Arrows along each side of a portrait: some 400 values of the right-hand side, which take tens of milliseconds."""
STARTS = 4
"""Of a state of two numbers, starts along each side from which rest states are looked for beside those of the run."""
MOST_STATES = 100
"""Rest states are looked for up to so many states: from a start of more, Newton's method takes longer than one waits for a slider."""
LEVELS = (6, 12, 24, 48)
"""Members along each side of a map, one after another: the first are there at once."""


def component_names(states: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """The numbers of states by name, in the order of a state vector: `u`, `v[0]`, `W[1, 2]`."""
    names: list[str] = []
    for name, shape in zip(states, shapes, strict=True):
        names += [entry(name, index) for index in product(*map(range, shape))]
    return names


def window(values: Array, least: float) -> Array:
    """ARROWS places over the range of these values and somewhat beyond, a range of this length at least."""
    low, high = float(values.min()), float(values.max())
    margin = max(0.3 * (high - low), 0.1 * max(abs(low), abs(high)), 0.5 * (least - (high - low)), 0.05)
    return np.linspace(low - margin, high + margin, ARROWS)


def zero_lines(x: Array, y: Array, values: Array) -> list[Array]:
    """The lines (k, 2) on which values (len(y), len(x)) are 0."""
    lines = contour_generator(x, y, np.ma.masked_invalid(values)).lines(0.0)
    return [np.asarray(line) for line in lines]


@dataclass(frozen=True)
class Portrait:
    """The plane of two numbers of the state.

    x (n,), y (n,): a grid, on which flow (2, n, n) has the derivatives of both, row k at y[k]; other numbers are those of the end of the
    run. nullclines: lines (k, 2) on which the first and the second derivative is 0. way (T, 2): the run. whole: there are no other numbers.
    """

    x: Array
    y: Array
    flow: Array
    nullclines: tuple[list[Array], list[Array]]
    way: Array
    whole: bool


class Plane:
    """The plane of two numbers of a run, `first` and `second`, as component_names() has them.

    Raises an OdesimError where the right-hand side depends on t or has noise.
    """

    def __init__(self, explored: Explored, controls: Controls, solution: Solution, first: str, second: str) -> None:
        self.field = field = make_field(explored.system, explored.numbers(controls), "flow fields")
        names = component_names(field.layout.names, field.layout.shapes)
        self.places = [names.index(name) for name in (first, second)]
        path = np.empty((len(solution.t), field.n))
        for name, view in field.layout.split(path).items():
            view[...] = solution.y[name]
        self.path = path[np.isfinite(path).all(axis=1)]
        ranges = np.ptp(self.path[:, self.places], axis=0)
        self.axes = [window(self.path[:, place], float(ranges.max())) for place in self.places]
        self.whole = field.n == len(set(self.places))

    def states(self, x: Array, y: Array) -> Iterator[Array]:
        """The states of the plane over a grid, row by row of y."""
        for up, across in product(y, x):
            state = self.path[-1].copy()
            state[self.places] = across, up
            yield state

    def portrait(self) -> Portrait:
        """The Portrait of the run."""
        x, y = self.axes
        with np.errstate(all="ignore"):
            rates = [self.field(state)[self.places] for state in self.states(x, y)]
        flow = np.array(rates).T.reshape(2, len(y), len(x))
        first, second = (zero_lines(x, y, part) for part in flow)
        return Portrait(x, y, flow, (first, second), self.path[:, self.places], self.whole)

    def rests(self) -> Iterator[tuple[Array, tuple[str, ...]]]:
        """Rest states (R, 2), and how stable each is, as found so far: from slow states of the run, and of two numbers all over the plane.

        A start takes tens of milliseconds, and all of them longer than one waits for a slider.
        """
        if self.field.n > MOST_STATES:
            return
        starts = list(slow_states(self.field, self.path[:: max(1, len(self.path) // 100)]))
        if self.whole:
            starts += self.states(*(np.linspace(axis[0], axis[-1], STARTS) for axis in self.axes))
        known_rests: list[Rest] = []
        for start in starts:
            with np.errstate(all="ignore"):
                rests, _ = distinct(self.field, start[None], None)
            known_rests += [rest for rest in rests if not any(is_same(known.root, rest.root, None) for known in known_rests)]
            yield np.array([r.root.y[self.places] for r in known_rests]).reshape(-1, 2), tuple(r.spectrum.stability for r in known_rests)


@dataclass(frozen=True)
class Sweep:
    """An end value over two numbers: x (n,), y (n,), values (n, n), row k at y[k]; NaN where a run ended early."""

    x: Array
    y: Array
    values: Array


def sweep_of(explored: Explored, controls: Controls, axes: Mapping[str, Scale], quantity: str, n: int) -> Sweep:
    """The Sweep of a state or observable over two parameters or initial values, by n^2 members. Raises an OdesimError.

    axes {name: its Scale}, x first. quantity: of several components the mean.
    """
    request = explored.request(controls)
    for kind in ("params", "initial"):
        if kind in request:
            request[kind] = {name: value for name, value in request[kind].items() if name not in axes}
    places = {name: axis_points(scale, n) for name, scale in axes.items()}
    observe: dict[str, Any] = {"observe": quantity} if quantity in explored.system.observables else {}
    data = ensemble(explored.system, **request, **observe, grid=places)
    values = np.asarray(data[quantity].values, float)[:, -1].reshape(n * n, -1).mean(axis=1)
    x, y = places.values()
    return Sweep(x, y, values.reshape(n, n).T)


def axis_points(scale: Scale, n: int) -> Array:
    """n numbers over the range of a slider, at the middles of n equal cells of it, in powers of 10 where it moves so."""
    ends = scale.place(scale.low), scale.place(scale.high)
    places = ends[0] + (np.arange(n) + 0.5) / n * (ends[1] - ends[0])
    return np.asarray(10**places if scale.log else places)


def borders(scale: Scale, n: int) -> Array:
    """The borders (n + 1,) of these cells."""
    ends = scale.place(scale.low), scale.place(scale.high)
    places = np.linspace(*ends, n + 1)
    return np.asarray(10**places if scale.log else places)


# Statements of papers on the model that is explored: their list, and the numbers that they name on its curves.


@dataclass(frozen=True)
class Named:
    """A number that a statement names: a level of the state or observable `of`, or with `t` a time. words: whose it is."""

    of: str
    value: float
    words: str


def claims_about(model: str) -> tuple[Claim, ...]:
    """The claims that runs of this model check."""
    return tuple(claim for claim in all_claims() if model in claim.models)


def claims_text(model: str, about: Sequence[Claim]) -> str:
    """A list of these statements with their verdicts."""
    lines = []
    for claim in about:
        for kind, statement in claim.statements.items():
            when = f" {statement.when}" if statement.verdict == "holds only when" else ""
            name = f"{claim.name}, {kind}" + ", marked" * bool(statement.marks)
            lines.append(f"<li><b>{escape(str(statement.verdict))}{escape(when)}</b>: {escape(statement.text)} ({escape(name)})</li>")
    head = f"<summary>{counted(len(lines), 'statement')} of papers, checked by runs of this model (odesim verify {escape(model)})</summary>"
    return f"<details>{head}<ul>{''.join(lines)}</ul></details>" if lines else "<!-- none -->"


def numbers_named(about: Sequence[Claim], system: System, run: Solution) -> list[Named]:
    """The numbers that statements name on the curves of a run with its parameters; those that are no real number there are left out."""
    numbers = {**run.attrs["params"], **run.attrs["sizes"]}
    named = []
    for claim in about:
        for kind, statement in claim.statements.items():
            for mark in statement.marks:
                expr = sp.sympify(mark.value)
                there = {symbol.name for symbol in expr.free_symbols} <= numbers.keys()
                if there and mark.of in ("t", *system.states, *system.observables):
                    value = float(evaluate(expr, (), {}, {}, {name: np.float64(numbers[name]) for name in map(str, expr.free_symbols)}))
                    if np.isfinite(value) and (mark.of != "t" or run.t[0] <= value <= run.t[-1]):
                        named.append(Named(mark.of, value, f"{claim.name}, {kind}: {statement.verdict}"))
    return named
