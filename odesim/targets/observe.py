"""Observables of a System at saved states, whether its invariants apply to a run, and formulas that overflow unseen."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from sympy import Symbol

from odesim.base.arrays import ROOT, Array, extreme
from odesim.base.errors import ModelError
from odesim.ir.passes import lower_expressions
from odesim.ir.sizes import extents
from odesim.symbolic.definition import all_names
from odesim.symbolic.indices import array_at
from odesim.symbolic.layered import layers_in
from odesim.symbolic.parts import Invariant, free_in_order
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction, evaluate
from odesim.transforms.lanes import COUNT, LANE, LANES, NAMES, TIME, Lanes

# Formulas in which a part overflows unseen: u/sqrt(1 + u^2) is 0 at u = 1e200, where 1 is right, since the square is infinite there.
#
# No code tells that it has overflowed, and infinite parts are often right, as in 1/(1 + exp(800)). So where numbers are extreme a formula
# is evaluated once more, in numbers with a longer exponent.

OFF = 1e-3
"""The part of a value by which it must be off: rounding alone may reach 1e-13 where nothing cancels."""

DRAWS = 3
"""Times that the inputs are moved by rounding: once may move all by the same part, which changes nothing where they cancel."""
MANY = 1000
"""Times that what rounding changes counts, for the same reason; in an overflow it is 1e-12 of what is missing."""


class Wrong(NamedTuple):
    """Where values (...) are wrong, the values, and what they should be."""

    where: Array
    values: Array
    right: Array


def wrong_values(function: ArrayFunction, sizes: Mapping[str, int], values: Mapping[str, Any], dtype: str) -> dict[str, Wrong]:
    """{output: where it is a number in this dtype, and another one than with longer exponents}; only outputs that are wrong somewhere.

    A difference counts if it is more than OFF, and more than rounding of the inputs makes: near a state of rest all digits cancel.
    """
    read = {name: np.asarray(values[name]) for name in function.inputs if name in values}
    if not extreme((value for value in read.values() if value.dtype.kind == "f"), dtype):
        return {}
    longer = np.longdouble if dtype == "float64" else np.float64
    limits, draws = np.finfo(dtype), np.random.default_rng(0)

    def in_type(kind: Any, eps: float = 0.0) -> dict[str, Any]:
        reals = {name: v.astype(kind) for name, v in read.items() if v.dtype.kind == "f"}  # whole numbers may be places in an array
        return {**read, **{name: (v * kind(1 + eps * draws.uniform(-1.0, 1.0, v.shape)) if eps else v)[()] for name, v in reals.items()}}

    kind = np.dtype(dtype).type
    try:
        rights = function(sizes, in_type(longer))
    except TypeError:  # LAPACK has none of them; what has no digits in a linear system ends its run
        return {}
    results, wrong = function(sizes, in_type(kind)), dict[str, Wrong]()
    near = [function(sizes, in_type(longer, 8 * float(limits.eps))) for _ in range(DRAWS)]
    for name, value in results.items():
        right, value, *others = np.broadcast_arrays(
            *(np.asarray(x).astype(longer) for x in (rights[name], value, *(n[name] for n in near)))
        )
        with np.errstate(all="ignore"):
            rounding = np.max([np.nan_to_num(abs(right - other), nan=0.0, posinf=0.0) for other in others], axis=0)
            off = abs(value - right) > OFF * abs(right) + MANY * rounding + float(limits.tiny) ** ROOT
            where = np.isfinite(value) & np.isfinite(right) & off
        if where.any():
            wrong[name] = Wrong(where, value.astype(kind), right)
    return wrong


AT_ONCE = 2**18
"""Numbers of an array of many times, at most: it stays in a core's cache."""
Derivatives = Callable[[float, Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True)
class Observer:
    """The observables of a System, compiled once."""

    system: System

    @cached_property
    def expressions(self) -> dict[str, tuple[Symbol, ...]]:
        """{observable that is an expression: its indices}."""
        return {n: self.system.observable_indices(n) for n, e in self.system.observables.items() if isinstance(e, sp.Basic)}

    def _make(self, change: Callable[[Any], Any], beside: tuple[Symbol, ...]) -> ArrayFunction:
        """The expressions, changed, as a function of whole arrays. beside: an index that all of them have, after their own."""
        axes = {**self.system.axes, LANE: COUNT}
        outputs = {}
        for k, (name, free) in enumerate(self.expressions.items()):
            outputs[array_at(f"_seen{k}", (*free, *beside), axes)] = change(sp.sympify(self.system.observables[name]))
        return ArrayFunction(lower_expressions(outputs, axes))

    @cached_property
    def _function(self) -> ArrayFunction:
        return self._make(lambda e: e, ())

    @cached_property
    def _of_many(self) -> ArrayFunction | None:
        """The same for many times, which are the last axis of all arrays; None where there is no such form."""
        if layers_in(*(self.system.observables[n] for n in self.expressions)) or NAMES & all_names(self.system):
            return None
        return self._make(Lanes({name: tuple(shape) for name, shape in self.system.shapes.items()}), (LANE,))

    def _times_at_once(self, sizes: Mapping[str, int]) -> int:
        """How many times are evaluated together: of large arrays one, where numpy's part of the work is not the calls."""
        program = self._of_many.program if self._of_many else None
        if program is None:
            return 1
        loops = (tuple(program.extents[i] for i in s.loops if i != LANE) for s in program.statements())
        return max(1, AT_ONCE // max((prod(extents(shape, sizes)) for shape in loops), default=1))

    def __call__(
        self, t: Array, y: Mapping[str, Array], sizes: Mapping[str, int], params: Mapping[str, Any], derivatives: Derivatives
    ) -> dict[str, Array]:
        """{observable: array (T, *shape)} for states {name: (T, *shape)} at times t (T,)."""
        parts = list(self._parts(t, y, sizes, params)) if self.expressions else []
        values = {name: np.concatenate(rows) for name, rows in zip(self.expressions, zip(*parts, strict=True), strict=True)}
        functions = {n: f for n, f in self.system.observables.items() if n not in self.expressions}
        rows: dict[str, list[Array]] = {n: [] for n in functions}
        for k, time in enumerate(t if functions else ()):
            now = {name: values[k].astype(np.float64) for name, values in y.items()}
            slopes = derivatives(float(time), now)
            for name, f in functions.items():
                value = self._call(name, f, float(time), now, slopes, params)
                if value.shape != (rows[name] or [value])[0].shape:
                    shapes = f"has shape {value.shape} at t = {float(time):g}, and {rows[name][0].shape} at t = {float(t[0]):g}"
                    raise ModelError(f"observable {name!r} of {self.system.name} {shapes}")
                rows[name].append(value)
        values |= {name: np.stack(each) for name, each in rows.items()}
        return {name: values[name] for name in self.system.observables}

    def _parts(self, t: Array, y: Mapping[str, Array], sizes: Mapping[str, int], params: Mapping[str, Any]) -> Iterator[list[Array]]:
        """The values (k, *shape) of the expressions for k times after another."""
        states = {name: values.astype(np.float64) for name, values in y.items()}
        each = self._times_at_once(sizes)
        for first in range(0, len(t), each):
            rows = slice(first, first + each)
            if each == 1 or self._of_many is None:
                here = {name: values[first] for name, values in states.items()}
                values = self._values(self._function, sizes, {**params, **here, "t": float(t[first])})
                yield [np.asarray(value, np.float64)[None] for value in values]
            else:
                wide = {name: np.ascontiguousarray(np.moveaxis(values[rows], 0, -1)) for name, values in states.items()}
                times = np.asarray(t[rows], np.float64)
                values = self._values(self._of_many, {**sizes, LANES: len(times)}, {**params, **wide, TIME: times})
                yield [np.moveaxis(np.asarray(value, np.float64), -1, 0) for value in values]

    @staticmethod
    def _values(function: ArrayFunction, sizes: Mapping[str, int], values: Mapping[str, Any]) -> list[Any]:
        """The values of the expressions, NaN where one overflows unseen."""
        results = function(sizes, values)
        wrong = wrong_values(function, sizes, values, "float64")
        return [np.where(wrong[name].where, np.nan, value) if name in wrong else value for name, value in results.items()]

    def overflows(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, Array]:
        """{observable that is an expression: where it overflows unseen}, of those that do."""
        wrong = wrong_values(self._function, sizes, values, "float64")
        return {name: wrong[f"_seen{k}"].where for k, name in enumerate(self.expressions) if f"_seen{k}" in wrong}

    def _call(self, name: str, f: Callable[..., Any], t: float, *arguments: Any) -> Array:
        """The value of an observable's Python function as an array. Raises ModelError where the function fails."""
        try:
            value = f(t, *arguments)
            if value is None:
                raise TypeError("it returned None")
            return np.asarray(value, np.float64)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # a model's own code
            message = " ".join(f"{type(error).__name__}: {error}".split())
            raise ModelError(f"observable {name!r} of {self.system.name} raised at t = {t:g}: {message}") from error

    def applies(self, law: Invariant, sizes: Mapping[str, int], params: Mapping[str, Any], start: Mapping[str, Array]) -> bool:
        """Whether a law applies to a run from these states {name: array}: its condition on the start holds."""
        if law.when is sp.true:
            return True
        holds = sp.Piecewise((1, law.when), (0, True), evaluate=False)
        axes = self.system.axes
        return bool(np.all(evaluate(holds, free_in_order(holds, axes), axes, sizes, {**params, **start})))
