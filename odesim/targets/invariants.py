"""Declared invariants that are linear in the states: a sum of w_k y_k is constant, where the weights may contain parameters.

Each is verified: w.f has to be 0 at random points modulo a prime (odesim.ir.exact).
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import sympy as sp

from odesim.base.errors import CodegenError
from odesim.ir.exact import PRIMES, Terms, random_values, right_side_terms
from odesim.ir.invariants import LinearInvariant, Polynomial, Weight, weight_operand
from odesim.ir.passes import lower_expressions
from odesim.ir.scalars import Formulas
from odesim.ir.sizes import extents
from odesim.symbolic.indices import array_at, time
from odesim.symbolic.parts import Invariant, free_in_order
from odesim.symbolic.system import System
from odesim.targets.unroll import write_values

MOST_COMPONENTS = 64
"""The most components of a law; verifying more takes longer than a step."""

POINTS = 6

LEAST_POINTS = 3
"""The least number of points at which w.f has to be 0."""


def declared_invariants(system: System, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> list[LinearInvariant]:
    """The linear invariants that a System declares, not yet verified. whole: {integer parameter: value}."""
    return [invariant for law in system.invariants if _may_be_linear(law) for invariant in _linear(system, law, sizes, whole)]


def verified_invariants(declared: Sequence[LinearInvariant], formulas: Formulas) -> tuple[LinearInvariant, ...]:
    """The declared invariants that hold for a right-hand side written out as formulas."""
    if not declared:
        return ()
    values = random_values(formulas, POINTS, PRIMES[0], [weight_operand(w) for invariant in declared for w in invariant.weights])
    f, weights = values[: formulas.states], values[formulas.states :]
    if f.shape[1] < LEAST_POINTS:
        return ()
    verified, first = [], 0
    for invariant in declared:
        total = np.zeros(f.shape[1], np.int64)
        for place in invariant.places:
            total = (total + weights[first] * f[place]) % PRIMES[0]
            first += 1
        verified += [invariant] if not total.any() else []
    return tuple(verified)


def _may_be_linear(law: Invariant) -> bool:
    return law.sense == "constant" and law.when == sp.true and isinstance(law.expr, sp.Expr) and not law.expr.has(time)


def _linear(system: System, law: Invariant, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> list[LinearInvariant]:
    """The linear invariants among the components of a law."""
    free = free_in_order(law.expr, system.axes)
    if prod(extents(tuple(system.axes[i] for i in free), sizes)) > MOST_COMPONENTS:
        return []
    program = lower_expressions({array_at("law0", free, system.axes): law.expr}, system.axes)
    try:
        outputs = right_side_terms(write_values(system, program, sizes, whole))
    except CodegenError:  # too large to be written out
        return []
    return [invariant for terms in outputs if (invariant := _weights(terms)) is not None]


def _weights(terms: Terms) -> LinearInvariant | None:
    """The linear invariant with these terms; None where they are not linear in the states."""
    parts: dict[int, list[Any]] = {}
    for monomial, c in terms.items():
        states = [(int(name[1:]), n) for name, n in monomial if name[0] == "y"]
        factors = tuple((int(name[1:]), n) for name, n in monomial if name[0] == "p")
        if len(states) + len(factors) < len(monomial) or [n for _, n in states] not in ([], [1]):
            return None
        if states:
            parts.setdefault(states[0][0], []).append((float(c), factors))
    places = tuple(sorted(parts))
    weights = tuple(_weight(tuple(parts[k])) for k in places)
    return LinearInvariant(places, weights) if len(places) > 1 else None


def _weight(polynomial: Polynomial) -> Weight:
    (c, factors), *others = polynomial
    return polynomial if factors or others else c
