"""A symbol that assumes more than its values keep to is refused: sympy has rewritten the expressions by it."""

import pytest
import sympy as sp
from sympy import FiniteSet, IndexedBase, Interval, Range, Rational, S, Sum, Symbol, Union, oo

import odesim
from odesim.base.errors import ParamError, SpecError
from odesim.symbolic import Event, Invariant, Param, System, index, over, sizes
from odesim.symbolic.assumptions import assumed_intervals, facts, holds
from tests.support.matrix import slow_but
from tests.support.systems import REAL, SOURCE

(m,), (M,) = index("m"), sizes("M")
OPEN, CLOSED = Interval.open(0, oo), Interval(0, oo)
EVENS = Range(0, oo, 2)

# facts that are asked of a domain; a set that has them, and one that has not
FACTS = {
    "positive": (OPEN, CLOSED),
    "negative": (Interval.open(-oo, 0), REAL),
    "nonnegative": (Union(CLOSED, FiniteSet(7)), Interval(-1, oo)),
    "nonpositive": (Interval(-2, -1), Interval(-1, 1)),
    "nonzero": (Union(Interval.open(-oo, 0), OPEN), REAL),
    "zero": (FiniteSet(0), Interval(0, 1)),
    "integer": (S.Naturals0, REAL),
    "noninteger": (Interval.open(sp.Rational(1, 4), sp.Rational(3, 4)), REAL),
    "even": (EVENS, S.Integers),
    "odd": (Range(1, oo, 2), EVENS),
    "prime": (FiniteSet(2, 3), FiniteSet(3, 4)),
    "composite": (FiniteSet(4, 6), S.Naturals),
    "rational": (S.Integers, REAL),
    "irrational": (FiniteSet(sp.sqrt(2)), REAL),
    "real": (REAL, None),
    "finite": (REAL, None),
}
NUMBERS = [sp.sympify(x) for x in (-3, -2, -1, 0, 1, 2, 3, 4, 9, sp.Rational(1, 2), sp.Rational(-3, 2), sp.sqrt(2))]
KEPT = {
    "real": None, "positive": OPEN, "negative": Interval.open(-oo, 0), "nonnegative": CLOSED, "nonpositive": Interval(-oo, 0),
    "extended_positive": OPEN, "finite": None, "complex": None,
}  # fmt: skip
NOT_KEPT = ("nonzero", "zero", "integer", "noninteger", "even", "odd", "prime", "rational", "irrational", "imaginary", "infinite", "polar")


def system(g, domain=REAL, x=None, **more):
    x = Symbol("x", real=True) if x is None else x
    return System("a.b", SOURCE, **({"axes": {}, "equations": {x: -sp.sqrt(g**2) * x}, "params": (Param(g, lambda _: 1.0, domain, "rate"),),
                                    "initial": {x: 1.0}} | more))  # fmt: skip


@pytest.mark.parametrize("fact", FACTS)
def test_parameter_assumes_no_more_than_its_domain(fact):
    """A System is built where the domain has the fact that the symbol assumes, and refused, by its name, where it has not."""
    inside, outside = FACTS[fact]
    system(Symbol("g", **{fact: True}), inside)
    array = IndexedBase("g", shape=(M,), **{fact: True})
    v = IndexedBase("v", shape=(M,))
    whole = {"axes": {m: M}, "equations": {v[m]: -array[m]}, "initial": {v[m]: 1.0}}
    system(array, inside, **whole)
    if outside is not None:
        for made in (lambda: system(Symbol("g", **{fact: True}), outside), lambda: system(array, outside, **whole)):
            with pytest.raises(SpecError, match=r"the symbol of parameter g assumes .*=True, but its domain .* holds other values"):
                made()


def test_facts_of_one_number_are_those_of_sympy():
    """What holds() says of the domain {number} is what sympy says of the number, for the fact and its opposite."""
    for x in NUMBERS:
        for fact in FACTS:
            assert holds(FiniteSet(x), fact) is bool(getattr(x, f"is_{fact}")), (x, fact)
            assert holds(FiniteSet(x), fact, False) is not bool(getattr(x, f"is_{fact}")), (x, fact)


@pytest.mark.parametrize("domain", [OPEN, CLOSED, REAL, S.Integers, S.Naturals, S.Naturals0, EVENS, Interval(-2, -1)], ids=str)
def test_what_holds_of_a_domain_holds_of_its_numbers(domain):
    """No fact is granted to a domain that a number inside it has not."""
    for x in NUMBERS:
        for fact in FACTS:
            for value in (True, False) if domain.contains(x) is S.true else ():
                assert not holds(domain, fact, value) or getattr(x, f"is_{fact}") is value, (x, fact, value)


def test_assumption_anywhere_counts():
    """The name decides: one positive symbol in any part of a System counts, where the declared symbol is a plain one."""
    g, plain, x = Symbol("g", positive=True), Symbol("g"), Symbol("x", real=True)
    fine = {"equations": {x: -plain * x}}
    system(plain, **fine)
    for part in (
        {"equations": {x: -g * x}},
        {**fine, "initial": {x: g}},
        {**fine, "observables": {"rate": 2 * g}},
        {**fine, "events": (Event("stop", x - g),)},
        {**fine, "invariants": (Invariant("sum", x + g, "constant"),)},
        {**fine, "growth": 1 + g},
    ):
        with pytest.raises(SpecError, match="g assumes positive=True"):
            system(plain, **part)


@pytest.mark.parametrize("kind", ["size", "index", "summed index", "index parameter"])
def test_sizes_and_indices(kind):
    """A size is 1, 2, ...; an index and the values of an index parameter are 0, 1, ...: no more may be assumed."""
    v = IndexedBase("v", shape=(M,))

    def made(**facts):
        n = Symbol("M", **facts) if kind == "size" else M
        i = Symbol("m", **facts) if kind == "index" else m
        k = Symbol("k", **facts) if kind == "summed index" else index("k")[0]
        p = IndexedBase("p", shape=(n,), **(facts if kind == "index parameter" else {}))
        v, a = IndexedBase("v", shape=(n,)), IndexedBase("a", shape=(n,))
        params = (Param(p, 0, S.Naturals0, "row", indexes=n), Param(a, 1.0, REAL, "rate"))
        System("a.b", SOURCE, {i: n}, {v[i]: a[p[i]] - over(Sum, v[k], (k, n))}, params, {v[i]: 0.0})

    least = {"positive": True} if kind == "size" else {"nonnegative": True}
    for fine in ({}, {"integer": True}, {"integer": True, **least}, {"real": True}):
        made(**fine)
    for more in ({"even": True}, {"prime": True}, {"negative": True}, {"integer": True, "nonzero" if kind != "size" else "zero": True}):
        with pytest.raises(SpecError, match=f"the symbol of {kind.removeprefix('summed ')} . assumes"):
            made(**more)
    assert v is not None


@pytest.mark.parametrize("fact", slow_but(KEPT, [*KEPT][:1]))
def test_states_may_assume_a_half_line(fact):
    """assumed() names the interval of each state; its starting value must lie inside, by default and as given."""
    g, x = Symbol("g"), Symbol("x", **{fact: True})
    start = -1.0 if "neg" in fact.replace("nonneg", "") or "nonpos" in fact else 1.0
    built = system(g, x=x, initial={x: start})
    assert assumed_intervals(built) == {"x": KEPT[fact]}
    assert odesim.integrate(built, backend="numpy", save=2, span=(0, 0.01)).status == "ok"
    if KEPT[fact] is not None:
        with pytest.raises(SpecError, match=r"x starts at .*, outside .*which its symbol assumes"):
            system(g, x=x, initial={x: -start})
        with pytest.raises(ParamError, match=r"lies outside .*, which its symbol assumes"):
            odesim.integrate(built, initial={"x": -start}, backend="numpy")
        with pytest.raises(ParamError, match=r"lies outside .*, which its symbol assumes"):
            odesim.ensemble(built, initial={"x": [start, -start]})
        formula = system(g, x=x, initial={x: start * g})
        with pytest.raises(ParamError, match=r"lies outside .*, which its symbol assumes"):
            odesim.integrate(formula, params={"g": -1.0}, backend="numpy")


@pytest.mark.parametrize("fact", NOT_KEPT)
def test_states_cannot_assume_what_no_solution_keeps(fact):
    """A state passes through all numbers between two: integer, nonzero and their like are refused."""
    x = Symbol("x", **{fact: True})
    with pytest.raises(
        SpecError, match=r"x assumes \w+=\w+, which a solution of a differential equation does not keep|leave it no interval"
    ):
        system(Symbol("g"), x=x)


def test_array_states():
    """The same for the elements of an array, whose starting values are checked one by one."""
    w = IndexedBase("w", shape=(M,), positive=True)
    built = System("a.b", SOURCE, {m: M}, {w[m]: -sp.Abs(w[m])}, (), {w[m]: 1.0}, sizes={M: 3})
    assert assumed_intervals(built) == {"w": OPEN}
    with pytest.raises(ParamError, match=r"w\[1\] = 0 lies outside \(0, inf\), which its symbol assumes"):
        odesim.integrate(built, initial={"w": [1.0, 0.0, 2.0]}, backend="numpy")


def test_two_symbols_of_one_state():
    """Two half-lines of one state meet, or are refused."""
    x, up, down = Symbol("x"), Symbol("x", nonnegative=True), Symbol("x", negative=True)
    g = Symbol("g")
    both = system(g, x=x, equations={x: -g * up}, initial={x: 1.0})
    assert assumed_intervals(both) == {"x": CLOSED}
    with pytest.raises(SpecError, match="leave it no interval"):
        system(g, x=x, equations={x: -g * up * down}, initial={x: 1.0})


@pytest.mark.first(28)
@pytest.mark.parametrize("name", odesim.list_models())
def test_shipped_models_are_built_and_assume_nothing_of_states(name):
    assert set(assumed_intervals(odesim.load_model(name)).values()) == {None}


def test_facts_of_a_plain_symbol():
    """Plain symbols, real ones and those of index() and sizes() assume nothing beyond what their values are."""
    assert facts(Symbol("x")) == facts(Symbol("x", real=True)) == facts(IndexedBase("x")) == ()


DOMAINS = {
    "nothing": ({}, Interval(-oo, oo)),
    "positive": ({"positive": True}, Interval.open(0, oo)),
    "nonnegative": ({"nonnegative": True}, Interval(0, oo)),
    "negative": ({"negative": True}, Interval.open(-oo, 0)),
    "nonpositive": ({"nonpositive": True}, Interval(-oo, 0)),
    "integer": ({"integer": True}, S.Integers),
    "positive integer": ({"integer": True, "positive": True}, S.Naturals),
}


@pytest.mark.parametrize(("assumed", "domain"), DOMAINS.values(), ids=DOMAINS)
def test_domain_without_one(assumed, domain):
    """A Param without a domain has that of its symbol, so that the checks of assumptions hold; a given one stays."""
    default = -1.0 if domain.sup == 0 else 1.0
    for symbol in (Symbol("a", **assumed), IndexedBase("a", shape=(3,), **assumed)):
        p = Param(symbol, default)
        assert all(p.domain.contains(x) == domain.contains(x) for x in (-2, -1, 0, 1, 7, Rational(1, 2), Rational(-1, 2)))
        assert Param(symbol, default, Interval(-1, 1)).domain == Interval(-1, 1)
        x = Symbol("x")
        read = symbol if isinstance(symbol, Symbol) else symbol[0]
        System(name="my.bare", equations={x: -read * x}, params=(p,), initial={x: 1})
