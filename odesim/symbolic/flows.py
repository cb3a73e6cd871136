"""Equations that are the gradient of a loss, and how formulas show them."""

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol

from odesim.symbolic.parts import Key


class GradientFlow(dict[Any, Any]):
    """Equations {W[i, j]: right-hand side} that follow from a loss. rates: of those without a metric."""

    def __init__(self, equations: Mapping[Key, Expr], loss: Expr, rates: Mapping[Key, Expr]):
        super().__init__(equations)
        self.loss, self._rates, self._made = loss, dict(rates), dict(equations)

    @property
    def rates(self) -> dict[Key, Expr]:
        """{W[i, j]: rate} of the equations that are -rate * dloss/dW still: nobody has put others in their place."""
        return {key: rate for key, rate in self._rates.items() if self.get(key) == self._made[key]}

    def __reduce__(self) -> tuple[Any, ...]:
        return GradientFlow, (dict(self), self.loss, self.rates)


class Slope(Expr):  # type: ignore[misc]
    """The derivative of a named number by an element of an array, in formulas alone: Slope(loss, W[i, j])."""

    is_commutative = True

    def __new__(cls, name: Symbol, key: Key) -> "Slope":
        return Expr.__new__(cls, name, key)
