"""A summed index is a symbol of its own: whatever is put into a sum keeps its meaning."""

import pickle
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Eq, Expr, Integer, KroneckerDelta, Piecewise, Sum, exp
from sympy.utilities.iterables import iterable

from odesim.base.errors import SpecError
from odesim.display.formulas import equations_text, text_of
from odesim.symbolic import IndexedBase, MaxOver, Param, System, at, index, logsumexp, over, sizes, softmax
from odesim.symbolic.indices import patch_sympy_arrays
from odesim.symbolic.reductions import canonical
from odesim.targets.numpy_text import evaluate
from tests.support.brute import value
from tests.support.systems import REAL, SOURCE

i, k, l = index("i k l")
M, Q = sizes("M Q")
A, x, y = IndexedBase("A", shape=(M, M)), IndexedBase("x", shape=(M,)), IndexedBase("y", shape=(Q,))
RNG = np.random.default_rng(0)
ENV: dict[str, Any] = {"M": 2, "Q": 3, "A": RNG.normal(size=(2, 2)), "x": RNG.normal(size=2), "y": RNG.normal(size=3)}
ROW = over(Sum, A[i, k] * x[k], (k, M))
# each a function of the free index i, with sums over k and l inside
BODIES: dict[str, Expr] = {
    "a row": ROW,
    "a row of rows": over(Sum, A[i, k] * over(Sum, A[k, l] * x[l] * x[i], (l, M)), (k, M)),
    "one name at two depths": over(Sum, A[i, k] * over(Sum, A[k, l] * ROW, (l, M)), (k, M)),
    "two indices": over(Sum, A[i, k] * A[l, i], (k, M), (l, M)),
    "softmax": softmax(A[i, k] * x[i], (k, M)).xreplace({k: i}),
    "softmax of a softmax": over(Sum, softmax(A[i, k] * over(Sum, softmax(A[k, l], (l, M)) * x[l], (l, M)), (k, M)) * x[k], (k, M)),
    "logsumexp": logsumexp(A[i, k] - x[i], (k, M), weight=exp(x[k])),
    "maximum": over(MaxOver, A[i, k] * x[i], (k, M)) + x[i],
    "choice": over(Sum, Piecewise((A[i, k], Eq(i, k)), (x[k], True)) + KroneckerDelta(i, k), (k, M)),
    "axes of two lengths": over(Sum, y[k] * over(Sum, A[i, k] * x[i], (k, M)), (k, Q)),
}  # fmt: skip
WAYS = {"at": at, "subs": Expr.subs, "xreplace": Expr.xreplace, "at, of our own": lambda e, swap: at(canonical(e), swap)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("j", [k, Integer(1)], ids=str)
def test_another_index_is_never_captured(case, way, j):
    """e(i) with any index in the place of i has, at every value of that index, the value of e there."""
    e = BODIES[case]
    moved = WAYS[way](e, {i: j})
    for n in range(2):
        assert value(moved, {**ENV, str(j): n}) == value(e, {**ENV, "i": 1 if j.is_Integer else n})


@pytest.mark.parametrize(("one", "other"), list(zip(BODIES, [*list(BODIES)[3:], *list(BODIES)[:3]], strict=True)))
def test_a_sum_put_into_a_sum_keeps_its_index(one, other):
    """sum_k x[k] e(k) g(k) of two expressions with sums over k of their own, compiled and in plain recursion."""
    e, g = at(BODIES[one], {i: k}), at(BODIES[other], {i: k})
    want = sum(ENV["x"][n] * value(BODIES[one], {**ENV, "i": n}) * value(BODIES[other], {**ENV, "i": n}) for n in range(2))
    whole = over(Sum, x[k] * e * g, (k, M))
    assert value(whole, ENV) == pytest.approx(want, rel=1e-14, abs=1e-14)
    got = evaluate(whole, (), {i: M}, {"M": 2, "Q": 3}, {n: ENV[n] for n in "Axy"})
    assert float(got) == pytest.approx(want, rel=1e-13, abs=1e-13)  # other orders of summation


@pytest.mark.parametrize("case", BODIES)
def test_an_expression_put_under_the_sum_that_binds_its_index(case):
    """e at an index that is bound already, as a chain rule puts it there: levels move up, nothing is captured."""
    outer = over(Sum, x[k], (k, M))
    ((bound, low, high),) = outer.limits
    put = outer.func(outer.function * at(BODIES[case], {i: bound}), (bound, low, high))
    want = sum(ENV["x"][n] * value(BODIES[case], {**ENV, "i": n}) for n in range(2))
    assert value(put, ENV) == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("case", BODIES)
def test_the_same_sum_is_the_same_expression(case):
    e = BODIES[case]
    assert canonical(e) == e == pickle.loads(pickle.dumps(e)) and hash(canonical(e)) == hash(e)
    assert at(e, {i: l}) == at(at(e, {i: k}), {k: l})
    assert over(Sum, A[i, k] * x[k], (k, M)) == ROW != over(Sum, A[i, l] * x[l], (l, M))


def test_sums_of_sympys_own_mean_what_they_say():
    """Nested sums over one symbol, as sympy reads them; a System holds them with indices of their own."""
    plain = sympy.IndexedBase("x", shape=(M,))
    e = Sum(plain[k] * Sum(plain[k] ** 2, (k, 0, M - 1)), (k, 0, M - 1))
    v = IndexedBase("v", shape=(M,))
    system = System(
        name="plain", source=SOURCE, axes={i: M}, equations={v[i]: e - v[i]},
        params=(Param(plain, 1.0, REAL, "a number"),), initial={v[i]: 0},
    )  # fmt: skip
    assert system.equations[v[i]].xreplace({v[i]: 0}) == over(Sum, x[k] * over(Sum, x[k] ** 2, (k, M)), (k, M))


def test_a_bound_index_is_shown_under_its_name():
    """No number of ours, and no name for two indices at once."""
    e = over(Sum, ROW * x[k], (k, M))
    assert str(ROW) == "Sum(A[i, k]*x[k], (k, 0, M - 1))" and text_of(ROW) == "sum_k(A[i, k]*x[k])"
    assert text_of(at(e, {i: l})) == "sum_k(x[k]*sum_k'(A[l, k']*x[k']))"
    assert sympy.latex(ROW) == r"\sum_{k=0}^{M - 1} {A}_{i,k} {x}_{k}"
    v = IndexedBase("v", shape=(M,))
    system = System(name="s", source=SOURCE, axes={i: M}, equations={v[i]: softmax(v[i], (i, M))}, params=(), initial={v[i]: 0})
    assert equations_text(system) == "dv[i]/dt = softmax_i(v[i])"


WRONG = {
    "no pair": (lambda: over(Sum, x[k], k), r"write each axis as \(index, extent\), such as \(k, M\), not k"),
    "no index": (lambda: over(Sum, x[k], (0, M)), r"such as \(k, M\), not \(0, M\)"),
    "no axis": (lambda: over(Sum, x[k]), r"name each index with its extent: over\(Sum, x\[k\], \(k, M\)\)"),
    "twice": (lambda: over(Sum, A[k, k], (k, M), (k, M)), "index k is there twice"),
    "no sum": (lambda: over(max, x[k], (k, M)), r"over\('max', ...\): the first argument is Sum or MaxOver"),  # type: ignore[arg-type]
    "sum": (lambda: sum(x), r"x is an array of symbols.*write over\(Sum, x\[i\], \(i, M\)\)"),
    "largest": (lambda: max(A), r"over\(Sum, A\[i, j\], \(i, M\), \(j, M\)\).*over\(MaxOver, ...\)"),
    "list": (lambda: list(IndexedBase("z")), r"z is an array"),
    "axes": (lambda: A[i], r"A\[i\] has 1 index, A has 2 axes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_sums_say_what_to_write(case):
    """Python's sum() over an array of symbols has no end: it is refused, and never hangs."""
    call, words = WRONG[case]
    with pytest.raises(SpecError, match=words):
        call()


def test_our_arrays_are_sympys():
    """Elements, slopes and sums of our arrays are what sympy makes of its own."""
    plain = sympy.IndexedBase("A", shape=(M, M))
    assert A[i, 0].diff(A[k, 0]) == KroneckerDelta(i, k) == plain[i, 0].diff(plain[k, 0])
    assert str(A[0, 1] + A[i, k]) == str(plain[0, 1] + plain[i, k]) and x[k].subs(k, 0) == x[0]
    assert not iterable(x) and sympy.sympify(x) is x and pickle.loads(pickle.dumps(A)) == A


def test_a_model_file_has_our_arrays_whatever_it_imports():
    with patch_sympy_arrays():
        namespace: dict[str, object] = {}
        exec("from sympy import *", namespace)
    assert namespace["IndexedBase"] is IndexedBase and sympy.IndexedBase is not IndexedBase
