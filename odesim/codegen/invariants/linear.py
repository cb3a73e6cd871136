"""Linear invariants: weighted sums of states that are constant along every solution, and their accurate values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.scalars import Operand, Operation

SPLIT = 2.0**27 + 1

Polynomial = tuple[tuple[float, tuple[tuple[int, int], ...]], ...]
"""A weight with parameters: (coefficient, ((number of a parameter entry, power), ...)) of each term."""
Weight = float | Polynomial


@dataclass(frozen=True)
class LinearInvariant:
    """A sum over k of weights[k] y[places[k]] that is constant along every solution. A weight is a number or has parameters in it."""

    places: tuple[int, ...]
    weights: tuple[Weight, ...]

    @property
    def reads(self) -> list[int]:
        """The numbers of the parameter entries in its weights."""
        return sorted({k for w in self.weights if not isinstance(w, float) for _, factors in w for k, _ in factors})

    def with_numbers(self, params: Mapping[int, float]) -> "LinearInvariant":
        """The invariant with numbers as weights, for parameter entries {number: value}."""
        return replace(self, weights=tuple(float(np.squeeze(weight_at(w, params))) for w in self.weights))


def parameter_values(
    firsts: Mapping[str, int], wanted: Iterable[int], shared: Mapping[str, Any], own: Mapping[str, Array]
) -> dict[int, Any]:
    """{number: value (1,) or (N,)} of the wanted parameter entries.

    firsts: {parameter: number of its first entry}. shared: parameters of all members. own: parameters of N members {name: (N, *shape)}.
    """
    values = {}
    for k in wanted:
        name = max((name for name, first in firsts.items() if first <= k), key=lambda name: firsts[name])
        value = np.asarray(own[name] if name in own else shared[name], np.float64)
        values[k] = value.reshape(len(value) if name in own else 1, -1)[..., k - firsts[name]]
    return values


def weight_at(weight: Weight, params: Mapping[int, Array | float]) -> Array | float:
    """The weight for parameter entries {number: value, or array (N,)}."""
    if isinstance(weight, float):
        return weight
    total: Array | float = 0.0
    for c, factors in weight:
        term: Array | float = c
        for k, n in factors:
            for _ in range(abs(n)):
                term = term * params[k] if n > 0 else term / params[k]
        total = total + term
    return total


def weight_operand(weight: Weight) -> Operand:
    """The weight in generated code, with parameter entries p0, p1, ...; it has the same operations as weight_at."""
    if isinstance(weight, float):
        return repr(weight)
    total: Operand = "0.0"
    for c, factors in weight:
        term: Operand = repr(c)
        for k, n in factors:
            for _ in range(abs(n)):
                term = Operation("*" if n > 0 else "/", (term, f"p{k}"))
        total = Operation("+", (total, term))
    return total


def exact_sums(invariant: LinearInvariant, starts: Array, params: Mapping[int, Array | float] | None = None) -> Array:
    """The values (N,) of an invariant for states starts (N, n), as accurate as if computed with twice the digits.

    T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005): algorithm 5.3.
    """
    total, rest = np.zeros(len(starts)), np.zeros(len(starts))
    with np.errstate(all="ignore"):
        for place, weight in zip(invariant.places, invariant.weights, strict=True):
            product, error = _product(weight_at(weight, params or {}), starts[:, place])
            new = total + product
            part = new - total
            rest = rest + (((total - (new - part)) + (product - part)) + error)
            total = new
        return total + np.where(np.isfinite(rest), rest, 0.0)


def _product(weight: Array | float, x: Array) -> tuple[Array, Array]:
    """The rounded product weight*x (N,) and its rounding error."""
    product = weight * x
    high = SPLIT * x - (SPLIT * x - x)
    w = SPLIT * weight - (SPLIT * weight - weight)
    return product, ((w * high - product) + w * (x - high) + (weight - w) * high) + (weight - w) * (x - high)
