"""Formulas for many members at once: the numbers that each member gives alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Naturals0, Piecewise, Sum, Symbol, exp, oo, sqrt, symbols

from odesim.base.errors import ModelError, ParamError
from odesim.ensembles import members as whole
from odesim.ensembles.members import make_members, member_values, own_names_read
from odesim.inputs.bind import bind
from odesim.inputs.registry import list_models, load_model
from odesim.inputs.schema import Formula, make_schema
from odesim.symbolic import Constraint, IndexedBase, Param, Source, System, index, over, sizes, softmax

(m, k), (M, K) = index("m k"), sizes("M K")
x, a, P, psi = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,)), IndexedBase("P", shape=(M, K)), IndexedBase("psi", shape=(M,))
b, n = symbols("b n")


def system(start: Any = a[m], *rules: Constraint, **changed: Any) -> System:
    """x' = -x from a start in a, b, P and the whole number n; psi names rows of x."""
    params = {
        "a": Param(a, 1.0, Interval(-oo, oo), "a"),
        "b": Param(b, 1.0, Interval(-oo, oo), "b"),
        "P": Param(P, 0.5, Interval(-oo, oo), "P"),
        "n": Param(n, 1, Naturals0, "n"),
        "psi": Param(psi, lambda sizes: np.arange(sizes["M"]), Naturals0, "psi", indexes=M),
    }
    params |= {name: replace(params[name], **how) for name, how in changed.items()}
    return System(
        name="test.starts",
        source=Source("none", "test"),
        axes={m: M, k: K},
        equations={x[m]: -x[m]},
        params=tuple(params.values()),
        initial={x[m]: start},
        sizes={M: 5, K: 3},
        span=(0.0, 1.0),
        constraints=rules,
    )


STARTS = {
    "own shape": 2 * a[m],
    "number": b + 0.1 * M,
    "both": b * exp(a[m]) / sqrt(1 + a[m] ** 2),
    "sum": over(Sum, P[m, k] * a[m], (k, K)),
    "softmax": softmax(a[m], (m, M)),
    "product": over(Sum, P[m, k] * over(Sum, P[m, k] * a[m], (m, M)), (k, K)),
    "gather": a[psi[m]] + P[psi[m], 1],
    "pieces": Piecewise((a[m], a[m] > b), (b, True)),
    "whole": a[m] * b**n + m * n,
}


def formulas(s: System) -> list[Formula]:
    """Every start that is an expression and every constraint."""
    plan = make_schema(s)
    return [*(slot.start for slot in plan.states if isinstance(slot.start, Formula)), *(rule.formula for rule in plan.rules)]


def names_of(e: Any) -> set[str]:
    """Names of all symbols and arrays in an expression, or of none in a number."""
    return {str(getattr(a, "label", a)) for a in getattr(e, "atoms", lambda *_: ())(Symbol, IndexedBase)}


@pytest.mark.parametrize("entries", [whole.ENTRIES, 20], ids=["at once", "in parts"])
@pytest.mark.parametrize("name", [*STARTS, *list_models()])
def test_members_are_what_they_are_alone(name, entries, monkeypatch):
    """Bit for bit, whichever of the parameters are a member's own, all that a formula reads or one of them."""
    monkeypatch.setattr(whole, "ENTRIES", entries)
    s = system(STARTS[name]) if name in STARTS else load_model(name)
    numbers, rng = bind(s), np.random.default_rng(0)
    own = {}
    for slot in make_schema(s).params:
        shape = (7, *np.shape(numbers.params[slot.name]))
        if not slot.indexes:
            own[slot.name] = rng.integers(1, 5, shape) if slot.integer else rng.uniform(0.1, 1.0, shape)
    read = [(formula, sorted(own_names_read(formula, frozenset(own)))) for formula in formulas(s)]
    cases = [(formula, given) for formula, names in read if names for given in (names, *([name] for name in names))]
    params = {p.name for p in s.params if p.indexes is None}
    assert bool(cases) == any(names_of(e) & params for e in (*s.initial.values(), *(c.expr for c in s.constraints)))
    for formula, given in cases:
        found = member_values(formula, s.axes, numbers.sizes, numbers.params, {name: own[name] for name in given})
        for i in range(7):
            alone = formula(numbers.sizes, {**numbers.params, **{name: own[name][i] for name in given}})
            np.testing.assert_array_equal(found[i], alone)


BROKEN = {
    "sum": (Constraint("a is small", 10 - over(Sum, a[m], (m, M)), ">=0"), {"a": [3, 2]}, "in member 3"),
    "entry": (Constraint("a is below b", b - a[m], ">=0"), {"a": [3, 2], "b": [1]}, "at m = 2 in member 3"),
    "rows": (Constraint("rows", over(Sum, P[m, k], (k, K)) - 1.5, "==0", tol=1e-9), {"P": [3, 4, 0]}, "rows of P must sum to 1.5: row 4"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_names_its_member(case):
    """The first member that breaks a constraint is named, also in the second chunk; one that is not finite breaks none."""
    rule, own, words = BROKEN[case]
    s = system(a[m], rule)
    typical = bind(s).params
    rows = {name: np.tile(typical[name], (6, *(1,) * np.ndim(typical[name]))) for name in own}
    nan = {name: v.astype(float) for name, v in rows.items()}
    for name in own:
        nan[name].reshape(6, -1)[4:] = np.nan
    made = make_members(s, nan, {}, sizes=None, span=None, seed=0)
    made.chunk(0, 6)
    first = next(iter(own))
    nan[first][tuple(own[first])] = 99.0
    with pytest.raises(ParamError, match=words):
        make_members(s, nan, {}, sizes=None, span=None, seed=0).chunk(2, 6)


def test_a_default_that_fails_names_its_member():
    """A function of the model that raises, or gives another shape, is a sentence with the member."""

    def fails(sizes, known):
        if known["a"][0] > 2:
            raise ValueError("no root")
        return known["a"][0]

    s = system(a[m] + b, b={"default": fails})
    given = np.ones((4, 5))
    made = make_members(s, {"a": given}, {}, sizes=None, span=None, seed=0)
    np.testing.assert_array_equal(made.chunk(0, 4)[1]["x"], 2 * given)
    given[2] = 3.0
    with pytest.raises(ModelError, match=r"the default of b fails for member 2: no root$"):
        made.chunk(1, 4)
