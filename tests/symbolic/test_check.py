"""A System that is not well formed is refused with one sentence that names the expression."""

from typing import Any

import pytest
import sympy as sp
from sympy import Sum, symbols

from odesim.base.errors import SpecError
from odesim.symbolic import Event, IndexedBase, Invariant, Param, System, index, over, sizes
from tests.support.systems import REAL, SOURCE

(m, k, l), (M, K) = index("m k l"), sizes("M K")
v, a, X = IndexedBase("v", shape=(M,)), IndexedBase("a", shape=(M,)), IndexedBase("X", shape=(M, K))
b, lost = symbols("b lost")
GOOD: dict[str, Any] = {
    "name": "test", "source": SOURCE, "axes": {m: M}, "equations": {v[m]: a[m] - v[m]},
    "params": (Param(a, 1.0, REAL, "a"), Param(X, 1.0, REAL, "X"), Param(b, 1.0, REAL, "b")), "initial": {v[m]: 0.0},
}  # fmt: skip
f = sp.Function("relu")
parts_of_row = over(Sum, sp.Piecewise((a[l], X[m, k] > 0), (1, True)), (k, K))
parts = over(Sum, sp.Piecewise((a[m], a[m] > 0), (1, True)), (m, M))

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no equation": ({"equations": {}}, "no equation"),
    "unknown symbol": ({"equations": {v[m]: lost * v[m]}}, "no symbol 'lost'"),
    "near symbol": ({"equations": {v[m]: symbols("bb") * v[m]}}, "did you mean 'b'"),
    "unknown array": ({"equations": {v[m]: IndexedBase("aa", shape=(M,))[m]}}, r"no array 'aa'.*did you mean 'a'.*aa\[m\]"),
    "unknown function": ({"equations": {v[m]: f(v[m])}}, r"relu\(v\[m\]\) is not a function"),
    "sum taken apart": ({"equations": {v[m]: sp.Piecewise((1, parts > v[m]), (2, True))}}, "a condition on a sum over m of a Piecewise"),
    "raw sum taken apart": (
        {"equations": {v[m]: sp.Piecewise((1, Sum(sp.Piecewise((a[k], a[k] > 0), (1, True)), (k, 0, M - 1)) > v[m]), (2, True))}},
        r"a condition on a sum over k of a Piecewise, .* z = named\('z', over\(Sum, ",
    ),
    "sum within a sum taken apart": ({"equations": {v[m]: Sum(m * parts_of_row, (l, 0, m))}}, "out of the sum over k inside"),
    "condition on an index taken apart": (
        {"equations": {v[m]: Sum(m * over(Sum, sp.Piecewise((a[l], k < l), (1, True)), (k, M)), (l, m + 1, M - 1))}},
        "out of the sum over k inside",
    ),
    "index not summed": ({"equations": {v[m]: X[m, k]}}, r"index k of X\[m, k\] is neither free nor summed"),
    "too few indices": ({"equations": {v[m]: IndexedBase("X")[m]}}, r"X\[m\] has 1 index, X has 2 axes"),
    "wrong axis": ({"equations": {v[m]: over(Sum, X[k, m], (k, K))}}, r"index k runs over K, but that axis of X has extent M"),
    "bound of no size": ({"equations": {v[m]: over(Sum, a[k], (k, symbols("N")))}}, "k runs to N - 1, and no size 'N'"),
    "lower bound": ({"equations": {v[m]: Sum(a[k], (k, 1, M - 1))}}, "from 1 to M - 1"),
    "from the end": ({"equations": {v[m]: a[M - 1]}}, r"an index is a plain index, one shifted by a number .*, not M - 1"),
    "index arithmetic": ({"equations": {v[m]: a[2 * m]}}, r"an index is a plain index, one shifted by a number .*, not 2\*m"),
    "neighbour": ({"equations": {v[m]: a[m + 1]}}, r"a\[m \+ 1\]: what stands beyond the ends of m\? .*'periodic', 'zero' .* or 'edge'"),
    "neighbour in a sum": (
        {"equations": {v[m]: over(Sum, X[l, k - 1] * a[l], (k, K), (l, M))}, "boundary": {m: "edge"}}, "beyond the ends of k",
    ),
    "symbolic shift": ({"equations": {v[m]: a[m + M]}, "boundary": {m: "edge"}}, r"an index is a plain index, .*, not M \+ m"),
    "boundary in words": ({"boundary": {m: "reflecting"}}, "the boundary of m is 'periodic', .*, not 'reflecting'"),
    "boundary of a text": ({"boundary": {"m": "edge"}}, "boundary has the key 'm', which is no index"),
    "boundary alone": ({"boundary": "periodic"}, "boundary must be a dict, such as {i: 'periodic'}"),
    "neighbour of another axis": ({"equations": {v[m]: over(Sum, a[k + 1], (k, K))}, "boundary": {k: "edge"}}, "index k runs over K"),
    "neighbour without a sum": ({"equations": {v[m]: X[m, k + 1]}, "boundary": {k: "edge"}}, "index k of .* is neither free nor summed"),
    "neighbour that is set": (
        {"events": (Event("x", a[m], resets={v[m + 1]: 0}),), "boundary": {m: "edge"}}, "neighbours stand on right-hand sides only",
    ),
    "rows beyond the ends": (
        {
            "params": (*GOOD["params"], Param(IndexedBase("psi", shape=(M,)), 0, sp.S.Naturals0, "", indexes=M)),
            "equations": {v[m]: a[IndexedBase("psi", shape=(M,))[m + 1]]}, "boundary": {m: "zero"},
        },
        "names rows, and is no row beyond the ends",
    ),
    "no initial value": ({"initial": {}}, r"no initial value for v\[m\]"),
    "initial of nothing": ({"initial": {v[m]: 0.0, a[m]: 0.0}}, "no state 'a' in initial"),
    "state in initial": ({"initial": {v[m]: v[m]}}, "is a state; only parameters and sizes"),
    "size as text": ({"sizes": {"M": 3}}, "sizes has the text 'M' as a key: write it without quotes, M"),
    "two parameters": ({"params": (*GOOD["params"], Param(b, 2.0, REAL, "b"))}, "two parameters have the name 'b'"),
    "two events": ({"events": (Event("x", b), Event("x", a[0]))}, "two events have the name 'x'"),
    "event as a condition": ({"events": (Event("x", v[0] > 1),)}, r"must be an expression, not v\[0\] > 1; .* write v\[0\] - 1"),
    "name twice": ({"params": (*GOOD["params"], Param(v, 1.0, REAL, "v"))}, "'v' is a state and also a parameter"),
    "keyword": ({"params": (*GOOD["params"], Param(symbols("lambda"), 1.0, REAL, "x"))}, "'lambda' is a keyword of Python; write lambda_"),
    "word of generated code": ({"params": (*GOOD["params"], Param(symbols("load"), 1.0, REAL, "x"))}, "'load' is a name that"),
    "letter of generated code": ({"params": (*GOOD["params"], Param(symbols("k0_"), 1.0, REAL, "x"))}, "such as k0_1"),
    "word of a GPU's code": ({"params": (*GOOD["params"], Param(symbols("row_"), 1.0, REAL, "x"))}, "such as row_1"),
    "time as a name": ({"params": (*GOOD["params"], Param(symbols("t"), 1.0, REAL, "x"))}, "'t' is the time"),
    "size as a name": ({"params": (*GOOD["params"], Param(symbols("M"), 1.0, REAL, "x"))}, "'M' is a size"),
    "index without axis": ({"axes": {k: M}}, r"index m of v\[m\] has no axis"),
    "axis of another length": ({"axes": {m: K}}, "index m runs over K, but that axis of v has extent M"),
    "no shape": ({"equations": {IndexedBase("u")[m]: 0}, "initial": {IndexedBase("u")[m]: 0}}, "u needs a shape"),
    "condition": ({"invariants": (Invariant("x", a[m], "constant", a[m]),)}, "when must be a condition"),
    "direction": ({"events": (Event("x", a[m], 2),)}, r"direction \(1 up, -1 down, 0 both\) must be one of -1, 0, 1"),
    "sense": ({"invariants": (Invariant("x", a[m], "rising"),)}, "must be one of constant, nonincreasing"),
    "span": ({"span": (1.0, 1.0)}, "does not go forward"),
    "span backwards": ({"span": (1, 0)}, "does not go forward"),
    "span without end": ({"span": (0, sp.oo)}, r"span must be two numbers \(t0, t1\), not \(0, oo\)"),
    "span to inf": ({"span": (0, float("inf"))}, "does not go forward between finite times"),
    "span of three": ({"span": (0, 1, 2)}, r"two numbers \(t0, t1\), not \(0, 1, 2\)"),
    "span of text": ({"span": "01"}, "two numbers"),
    "span of one": ({"span": 3}, "two numbers"),
    "half a size": ({"sizes": {M: 2.7}}, "size M must be a whole number of at least 1, not 2.7"),
    "size in words": ({"sizes": {M: "x"}}, "size M must be a whole number of at least 1, not 'x'"),
    "size of nothing": ({"sizes": {M: 0}}, "at least 1, not 0"),
    "size of a truth": ({"sizes": {M: True}}, "at least 1, not True"),
    "unknown size": ({"sizes": {sizes("N")[0]: 3}}, "no size 'N' in sizes; choose from K, M"),
    "axis of half a size": ({"axes": {m: M, k: M / 2}}, "axis k runs over M/2, which is no whole number"),
    "empty axis": ({"axes": {m: M, k: 0}}, "axis k runs over 0"),
    "axis of an index": ({"axes": {m: M, k: m + 1}}, r"axis k runs over m \+ 1"),
    "imaginary start": ({"initial": {v[m]: sp.I}}, r"in the initial value of v\[m\]: I is not a finite real number"),
    "infinite start": ({"initial": {v[m]: sp.zoo}}, "zoo is not a finite real number"),
    "root of a negative number": ({"initial": {v[m]: b * (-8) ** sp.Rational(1, 3)}}, "is not a finite real number"),
    "infinite rate": ({"equations": {v[m]: sp.oo * v[m]}}, "oo is not a finite real number"),
    "start of text": ({"initial": {v[m]: "1 + m"}}, r"the initial value of v\[m\] must be an expression, not '1 \+ m'"),
    "start of a list": ({"initial": {v[m]: [1, 2]}}, r"must be an expression, not \[1, 2\]"),
    "rate of a condition": ({"equations": {v[m]: v[m] > 1}}, "must be an expression, not"),
    "rate of a function": ({"equations": {v[m]: v[m] + sp.Lambda(b, b**2)}}, r"v\[m\] holds a function, .*: write its value"),
    "observable of a matrix": ({"observables": {"x": sp.Matrix([1, 2])}}, "observable x must be an expression"),
    "event of text": ({"events": (Event("x", "v"),)}, "event 'x' must be an expression, not 'v'"),
    "name of generated code": ({"params": (*GOOD["params"], Param(symbols("_m"), 1.0, REAL, "x"))}, "'_m' is not a plain name"),
    "delta of numbers": ({"equations": {v[m]: sp.KroneckerDelta(m, a[m])}}, r"a\[m\] must be a parameter declared with indexes=M"),
    "observable": ({"observables": {"x": lost}}, "in observable 'x': no symbol 'lost'"),
    "name of a result": ({"axes": {m: M, symbols("member", integer=True): K}}, "'member' cannot be the name of a state"),
    "name of the ledger": ({"observables": {"status": a[0]}}, "'status' cannot be the name of a state"),
    "observable's index": ({"observables": {"m": a[0]}}, "'m' is an index and also an observable"),
    "displayed symbol": ({"display": {"x": lost}}, "in display 'x': no symbol 'lost'"),
    "displayed text": ({"display": {"x": "a"}}, "display x must be an expression, not 'a'"),
    "displayed list": ({"display": [a[m]]}, "display must be a dict"),
    "displayed name": ({"display": {"v": a[m]}}, "display 'v' is a state already"),
    "displayed index": ({"display": {"m": a[m]}}, "display 'm' is an index already"),
    "displayed words": ({"display": {"half way": a[m]}}, "a name in formulas is one word"),
    "displayed observable": ({"observables": {"x": a[m]}, "display": {"x": 2 * a[m]}}, "is an observable with another expression"),
    "observable's name": ({"observables": {"v": a[m]}}, "'v' is a state and also an observable"),
}  # fmt: skip


def test_the_good_one_is_good():
    assert System(**GOOD).states == ("v",)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parts_are_named(case):
    changed, sentence = WRONG[case]
    with pytest.raises(SpecError, match=sentence) as error:
        System(**{**GOOD, **changed})
    assert str(error.value).startswith("test: ") and "\n" not in str(error.value)


def test_numbers_are_expressions_too():
    """A plain number may stand wherever an expression may."""
    system = System(**{**GOOD, "observables": {"x": 3}, "invariants": (Invariant("y", 2, "constant"),), "events": (Event("z", 1),)})
    assert (system.observables["x"], system.invariants[0].expr, system.events[0].expr) == (3, 2, 1)
    assert all(isinstance(e, sp.Expr) for e in (system.observables["x"], system.invariants[0].expr, system.events[0].expr))


def test_a_gather_needs_an_index_parameter():
    psi = IndexedBase("psi", shape=(M,))
    params = (*GOOD["params"], Param(psi, 0, sp.S.Naturals0, "no row of anything"))
    with pytest.raises(SpecError, match=r"psi\[m\] must be a parameter declared with indexes=M"):
        System(**{**GOOD, "params": params, "equations": {v[m]: a[psi[m]]}})


PLACES: dict[str, Any] = {
    "equation": lambda e: {"equations": {v[m]: e}},
    "observable": lambda e: {"observables": {"seen": e}},
    "invariant": lambda e: {"invariants": (Invariant("law", e, "constant"),)},
    "condition": lambda e: {"invariants": (Invariant("law", v[m], "constant", when=e > 0),)},
    "event": lambda e: {"events": (Event("passes", e),)},
    "display": lambda e: {"display": {"seen": e}},
    "growth": lambda e: {"growth": over(Sum, e, (m, M))},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_function_without_code_is_found_wherever_it_stands(place):
    """When the System is built, not when its observables are asked for."""
    with pytest.raises(SpecError, match=r"no function 'gamma'.*choose from .*exp.*\(in gamma\(v\[m\]\)\)"):
        System(**{**GOOD, **PLACES[place](sp.gamma(v[m]))})
    System(**{**GOOD, **PLACES[place](sp.exp(v[m]))})
