"""Linear invariants that are found: those that one knows by hand, and no others than the right-hand side has at random points."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import sympy as sp
from sympy import IndexedBase, Piecewise, Sum, exp

from odesim.base.errors import CodegenError
from odesim.inputs.bind import bind
from odesim.ir.invariants import LinearInvariant, linear_invariants
from odesim.symbolic import Param, Source, System, index, inverse, over, sizes, time
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.support.stiff_set import SET, states, system
from tests.support.systems import SYSTEMS as COMMON
from tests.support.systems import numbers

(N,) = sizes("N")
i, k = index("i k")
x, a = IndexedBase("x", shape=(N,)), IndexedBase("a", shape=(N,))
y1, y2, y3, y4 = states(4)
p, q = sp.symbols("p q", real=True)
met = p * y1 * y2
bound, freed = y1 * y2, 2.5 * y3
split = 3 * y2 * y3
BOX = sp.Interval(-sp.oo, sp.oo)
PULL = p * exp(x[k] - x[i])


def of(name: str, *right: Any) -> System:
    """A System of scalars with parameters p and q."""
    made = zip((y1, y2, y3, y4), right, strict=False)
    return system(name, dict(made), [1.0] * len(right), 1.0, {p: 0.7, q: 1.3})


def rows(name: str, right: Any) -> System:
    """A System of three states x with parameters a of each and p."""
    params = tuple(Param(symbol, 1.0, BOX, "a rate") for symbol in (a, p))
    return System(name, Source("none", "test"), {i: N}, {x[i]: right}, params, {x[i]: 1 + i}, sizes={N: 3})


# the System, and its invariants {place: weight}, all of them
FOUND: dict[str, tuple[System, list[dict[int, float]]]] = {
    **{name: (SET[name].system, []) for name in ("orego", "van_der_pol_1e03", "ring_modulator")},
    "e5": (SET["e5"].system, [{1: 1, 2: -1, 3: -1}]),
    "hires": (SET["hires"].system, [{6: 1, 7: 1}]),
    "robertson": (SET["robertson"].system, [{0: 1, 1: 1, 2: 1}]),
    # what has carbon, what has nitrogen, the two that have sulfur; the first two have one species in common, which their difference lacks
    "pollution": (
        SET["pollution"].system,
        [
            {6: 1, 7: 1, 8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1},
            {0: 1, 1: 1, 12: 1, 14: 1, 18: 1, 19: 2},
            {0: 2, 1: 2, 6: -1, 7: -1, 8: -2, 9: -1, 10: -2, 11: -1, 13: -1, 14: 2, 18: 2, 19: 4},
            {16: 1, 17: 1},
        ],
    ),
    # an enzyme: with its complex, the substrate in all forms, and what is free of both
    "enzyme": (
        of("enzyme", freed + q * y3 - bound, freed - bound, bound - freed - q * y3, q * y3),
        [{0: 1, 2: 1}, {1: 1, 2: 1, 3: 1}, {0: 1, 1: -1, 3: -1}],
    ),
    # a weak acid y1 = y2 + y3 in water 0 = y2 + y4: charges, and the acid in both forms
    "acid": (
        of("acid", split - p * y1, p * y1 - split + 1 - 7 * y2 * y4, p * y1 - split, 1 - 7 * y2 * y4),
        [{0: 1, 2: 1}, {1: 1, 2: -1, 3: -1}, {0: 1, 1: 1, 3: -1}],
    ),
    # rates as decimals, whose sum is rounded: each product by itself, and what goes there; thirds are no decimals
    "thirds": (of("thirds", -met, met / 3, met * sp.Rational(2, 3)), [{0: 1, 1: 3}, {0: 2, 2: 3}, {1: 2, 2: -1}]),
    "branches": (
        of("branches", -(2.1 + 5.78) * y1, 2.1 * y1, 5.78 * y1),
        [{0: 1, 1: 7.88 / 2.1}, {0: 1, 2: 7.88 / 5.78}, {1: 1, 2: -2.1 / 5.78}],
    ),
    "choice": (of("choice", Piecewise((met, time < 1), (-met, True)), -Piecewise((met, time < 1), (-met, True))), [{0: 1, 1: 1}]),
    # the last part of a schedule, and one of many conditions: both rates are one number at every other time or state
    "schedule": (rows("schedule", Piecewise(*((sp.Rational(n, 10), time < n) for n in range(1, 9)), (p * x[i], True))), []),
    "conditions": (rows("conditions", Piecewise((p * x[i], sp.And(*(x[0] > -n for n in range(1, 9)))), (1, True))), []),
    # a root that every number has where the condition does not hold
    "rooted": (replace(rows("rooted", sp.sqrt(1 + x[i] ** 2 * sp.Heaviside(p))), sizes={N: 9}), []),
    # its diagonal is 0 where elimination takes a matrix for singular
    "inverse": (rows("inverse", sp.sqrt(1 + inverse(sp.KroneckerDelta(i, k) * 8 + x[i], (i, N), (k, N))[i, i] ** 2)), []),
    "factors": (of("factors", p * (y1 - y2) * (y1 + q), (y2 * q + y2 * y1 - y1 * q - y1**2) * p), [{0: 1, 1: 1}]),
    "quotient": (of("quotient", met / (q + y3), -met / (q + y3), sp.S.Zero), [{0: 1, 1: 1}]),
    # weights that are no small fractions are not looked for
    "not_quite": (of("not_quite", met, -met * (1 + 1e-12)), []),
    "none": (of("none", met, -met - 1e-12 * y1), []),
    "pairs": (
        System(
            name="pairs",
            source=Source("none", "test"),
            axes={i: N},
            equations={x[i]: over(Sum, x[k] - x[i], (k, N))},
            params=(),
            initial={x[i]: 1 + i},
            sizes={N: 5},
        ),
        [{0: 1, 1: 1, 2: 1, 3: 1, 4: 1}],
    ),
    # above the diagonal another rate: of two states the rates seem to be equal to who takes a condition on indices for one that may hold
    "above": (rows("above", over(Sum, Piecewise((a[k], k > i), (p, True)), (k, N))), []),
    "above_by_one": (rows("above_by_one", over(Sum, Piecewise((a[k], (k > i + 1) & (x[k] > i)), (p, True)), (k, N))), []),
    # forces that are opposite: exp(x_k - x_i) - exp(x_i - x_k)
    "opposite": (
        System(
            name="opposite",
            source=Source("none", "test"),
            axes={i: N},
            equations={x[i]: over(Sum, PULL - p * exp(x[i] - x[k]), (k, N))},
            params=(Param(p, 1.0, BOX, "strength"),),
            initial={x[i]: 1 + i},
            sizes={N: 3},
        ),
        [{0: 1, 1: 1, 2: 1}],
    ),
}


def found(made: System, given: dict[str, int] | None = None) -> tuple[LinearInvariant, ...]:
    """The invariants of a System, with its default sizes or those given."""
    known = bind(made, sizes=given or {})
    whole = {a.name: known.params[a.name] for a in made.params if a.integer}
    return linear_invariants(write_out(made, compile_system(made).program, known.sizes, whole))


def direction(weights: dict[int, float], n: int) -> tuple[float, ...]:
    """The weights as a unit vector whose first entry is positive."""
    w = np.zeros(n)
    w[list(weights)] = list(weights.values())
    w /= np.linalg.norm(w) * np.sign(w[np.flatnonzero(w)[0]])
    return tuple(np.round(w, 12))


SAMPLED = ["schedule", "rooted"]


@pytest.mark.first(10)
@pytest.mark.parametrize("name", [*SAMPLED, *(name for name in FOUND if name not in SAMPLED)])
def test_known_invariants_are_found(name):
    """All of them, with those of their combinations that have the fewest states, and nothing else."""
    made, known = FOUND[name]
    n = 64
    seen = [direction(dict(zip(w.places, cast(tuple[float, ...], w.weights), strict=True)), n) for w in found(made)]
    assert sorted(seen) == sorted(direction(weights, n) for weights in known)
    assert [len(w.places) for w in found(made)] == sorted((len(w.places) for w in found(made)), reverse=True)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", [*COMMON, *SET])
def test_found_invariants_hold(name):
    """w.f is 0 to rounding at random points, and there are no more independent w than the rank of f there leaves."""
    made = COMMON[name] if name in COMMON else SET[name].system
    given, params = {}, {a.name: a.default for a in made.params}
    if name in COMMON:
        given, params = numbers(made).sizes, numbers(made).params
    compiled = compile_system(made, backend="numpy")
    whole = {a.name: np.asarray(params[a.name]) for a in made.params if a.integer}
    try:
        invariants = linear_invariants(write_out(made, compiled.program, given, whole))
    except CodegenError:
        pytest.skip("not written out")
    rhs = compiled.bind(given, params)
    n = rhs.layout.size
    rng, f = np.random.default_rng(1), np.empty((2 * n + 5, n))
    for row in f:
        rhs(float(rng.uniform(0.1, 2)), rng.uniform(0.1, 0.5, n), row)
    W = np.zeros((len(invariants), n))
    for w, invariant in zip(W, invariants, strict=True):
        w[list(invariant.places)] = invariant.weights
    size = np.abs(f) @ np.abs(W.T)
    # terms that cancel in f may be larger than f: 1e-10 leaves six digits for that
    assert np.all(np.abs(f @ W.T) <= 1e-10 * np.maximum(size, np.abs(f).max(initial=0)))
    live = f.any(axis=0)
    scaled = f[:, live] / np.abs(f[:, live]).max(axis=0, initial=0)
    assert np.linalg.matrix_rank(W) <= live.sum() - np.linalg.matrix_rank(scaled, 1e-11)
