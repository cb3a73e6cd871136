"""Observables of a System at saved states, and whether its invariants apply to a run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from sympy import Symbol

from odesim.base.arrays import Array
from odesim.base.errors import ModelError
from odesim.ir.passes import lower_expressions
from odesim.ir.sizes import extents
from odesim.symbolic.indices import array_at
from odesim.symbolic.layered import layers_in
from odesim.symbolic.parts import Invariant, all_names, free_in_order
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction, evaluate
from odesim.targets.overflow import wrong_values
from odesim.transforms.lanes import COUNT, LANE, LANES, NAMES, TIME, Lanes

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
