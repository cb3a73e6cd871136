"""Observables of a System at saved states, and whether its invariants apply to a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from sympy import IndexedBase, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import ModelError
from odesim.ir.passes import lower_expressions
from odesim.symbolic.parts import Invariant, free_in_order
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction, evaluate
from odesim.targets.overflow import wrong_values

Derivatives = Callable[[float, Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True)
class Observer:
    """The observables of a System, compiled once."""

    system: System

    @cached_property
    def expressions(self) -> dict[str, tuple[Symbol, ...]]:
        """{observable that is an expression: its indices}."""
        return {n: self.system.observable_indices(n) for n, e in self.system.observables.items() if isinstance(e, sp.Basic)}

    @cached_property
    def _function(self) -> ArrayFunction:
        axes = self.system.axes
        outputs = {}
        for k, e in enumerate(self.system.observables[n] for n in self.expressions):
            free = free_in_order(e, axes)
            base = IndexedBase(f"_seen{k}", shape=tuple(axes[i] for i in free))
            outputs[base[free] if free else Symbol(f"_seen{k}", real=True)] = e
        return ArrayFunction(lower_expressions(outputs, axes))

    def __call__(
        self,
        t: Array,
        y: Mapping[str, Array],
        sizes: Mapping[str, int],
        params: Mapping[str, Any],
        derivatives: Derivatives,
    ) -> dict[str, Array]:
        """{observable: array (T, *shape)} for states {name: (T, *shape)} at times t (T,)."""
        rows: dict[str, list[Array]] = {n: [] for n in self.system.observables}
        functions = {n: f for n, f in self.system.observables.items() if n not in self.expressions}
        for k, time in enumerate(t):
            now = {name: values[k].astype(np.float64) for name, values in y.items()}
            results = self._values(sizes, {**params, **now, "t": float(time)}) if self.expressions else []
            for name, value in zip(self.expressions, results, strict=True):
                rows[name].append(np.asarray(value, np.float64))
            slopes = derivatives(float(time), now) if functions else {}
            for name, f in functions.items():
                value = self._call(name, f, float(time), now, slopes, params)
                if value.shape != (rows[name] or [value])[0].shape:
                    shapes = f"has shape {value.shape} at t = {float(time):g}, and {rows[name][0].shape} at t = {float(t[0]):g}"
                    raise ModelError(f"observable {name!r} of {self.system.name} {shapes}")
                rows[name].append(value)
        return {name: np.stack(values) for name, values in rows.items()}

    def _values(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> list[Any]:
        """The values of the expressions, NaN where one overflows unseen."""
        results = self._function(sizes, values)
        wrong = wrong_values(self._function, sizes, values, "float64")
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
