"""Lowering keeps the value of every right-hand side, and does what it promises about its cost."""

import pickle

import numpy as np
import pytest
import sympy as sp
from sympy import Eq, KroneckerDelta, Piecewise, Sum, exp

from odesim.ir.passes import lower, lower_expressions
from odesim.ir.program import Program
from odesim.symbolic import IndexedBase, System, index, over, sizes, softmax
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import ArrayFunction, evaluate
from tests.support.brute import right_side, value
from tests.support.systems import SYSTEMS, numbers

EACH = pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda s: s.name)
ROUNDING = 1e-13


def rates(system: System, n: int = 7) -> dict[str, np.ndarray]:
    x = numbers(system, big=n)
    return compile_system(system).arrays(x.sizes, x.env)


@EACH
def test_arrays_are_what_the_equations_say(system):
    """Whole arrays against plain recursion over every index; only rounding differs."""
    x = numbers(system)
    got = rates(system)
    for name, want in right_side(system, x.env).items():
        np.testing.assert_allclose(got[f"d_{name}"], want, rtol=ROUNDING, atol=ROUNDING)


@EACH
def test_names_of_indices_do_not_matter(system):
    """Every index renamed, in reverse alphabetical order: the same numbers up to the order of a product's factors."""
    swap = {i: index(f"zz{9 - n}")[0] for n, i in enumerate(system.axes)}
    renamed = System(
        name=system.name, source=system.source, axes={swap[i]: n for i, n in system.axes.items()},
        equations={k.xreplace(swap): e.xreplace(swap) for k, e in system.equations.items()},
        params=system.params, initial={k.xreplace(swap): e.xreplace(swap) for k, e in system.initial.items()},
    )  # fmt: skip
    for (name, a), b in zip(rates(system).items(), rates(renamed).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING, err_msg=name)


@EACH
def test_systems_pickle(system):
    again = pickle.loads(pickle.dumps(system))
    assert again.equations == system.equations and again.params == system.params


def names_of(program: Program, op: str) -> list[str]:
    return [s.name for s in program.statements() if s.op == op]


def test_a_shared_exponential_is_computed_once():
    """exp(z), its square and its products stand for one array."""
    (m, k), (M,) = index("m k"), sizes("M")
    z, P, out = (IndexedBase(n, shape=(M,)) for n in ("z", "P", "out"))
    c = P[m] * exp(z[m])
    program = lower_expressions({out[m]: c / over(Sum, (P[k] * exp(z[k])) ** 2, (k, M)) + over(Sum, exp(z[k]), (k, M))}, {m: M})
    assert sum(len(s.body.atoms(sp.exp)) for s in program.statements()) == 1


def test_products_of_matrices_are_named_so():
    program = lower(SYSTEMS["products"])
    assert len(names_of(program, "dot")) == 2
    assert all(len(s.loops) <= 2 for s in program.statements() if s.op != "dot")


def test_a_scattered_sum_costs_one_pass_over_its_terms():
    """sum_n delta(q, psi[n]) f[n, m] runs over (n, m), never over (q, n, m)."""
    program = lower(SYSTEMS["gathered"])
    (s,) = [s for s in program.statements() if s.op == "scatter"]
    assert {i.name for i in s.loops} == {"k", "m"} and str(s.via) == "psi[k]"
    assert max(len(s.loops) for s in program.statements()) == 2


def test_a_delta_between_plain_indices_removes_its_sum():
    (m, k), (M,) = index("m k"), sizes("M")
    x, out = IndexedBase("x", shape=(M,)), IndexedBase("out", shape=(M,))
    program = lower_expressions({out[m]: over(Sum, KroneckerDelta(m, k) * x[k] * (1 + x[k]), (k, M))}, {m: M})
    assert [s.op for s in program.statements()] == ["map"]


def test_a_piecewise_stays_inside_its_sum():
    """sympy's own Sum moves the condition out, past the index that it depends on."""
    (m, k), (M,) = index("m k"), sizes("M")
    x = IndexedBase("x", shape=(M,))
    e = over(Sum, Piecewise((x[k], Eq(k, m)), (2 * x[k], True)), (k, M))
    a = np.array([1.0, 10.0, 100.0])
    want = [value(e, {"x": a, "M": 3, "m": n}) for n in range(3)]
    assert want == [2 * 111 - x for x in a]
    np.testing.assert_allclose(evaluate(e, (m,), {m: M}, {"M": 3}, {"x": a}), want, rtol=ROUNDING)


def test_a_renamed_index_meets_no_other():
    """k runs over another axis elsewhere, and k_1, its next name, is taken inside the sum."""
    (m, k, k_1), (M, K) = index("m k k_1"), sizes("M K")
    v = IndexedBase("v", shape=(M,))
    e = over(Sum, over(Sum, (v[k] - v[k_1]) ** 2, (k_1, M)), (k, M))
    assert float(evaluate(e, (), {m: M, k: K}, {"M": 3, "K": 2}, {"v": np.array([0.0, 1.0, 2.0])})) == 12.0


@pytest.mark.parametrize("inner", ["m", "k", "l"])
@pytest.mark.parametrize("outer", ["m", "k", "l"])
def test_no_index_is_captured(inner, outer):
    """Nested sums whose indices have each other's names, or the name of the free index, over axes of other lengths."""
    (m,), (M, K) = index("m"), sizes("M K")
    i, o = index(inner)[0], index(outer)[0]
    x, y, out = IndexedBase("x", shape=(M,)), IndexedBase("y", shape=(K,)), IndexedBase("out", shape=(M,))
    e = x[m] * over(Sum, y[o] ** 2 * over(Sum, exp(x[i]) + 1, (i, M)) * softmax(y[o], (o, K)), (o, K))
    a, b = np.array([0.3, -0.2, 0.9, 0.1]), np.array([1.0, 0.5, -1.5])
    share = np.exp(b) / np.exp(b).sum()
    want = a * (b**2 * (np.exp(a) + 1).sum() * share).sum()
    f = ArrayFunction(lower_expressions({out[m]: e}, {m: M}))
    np.testing.assert_allclose(f({"M": 4, "K": 3}, {"x": a, "y": b})["out"], want, rtol=ROUNDING)
