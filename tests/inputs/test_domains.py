"""Domains of parameters: numpy tests what sympy's sets say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import FiniteSet, Integers, Interval, Naturals, Range, Reals, S, Symbol, Union, oo, pi

from odesim.base.errors import SpecError
from odesim.inputs.schema import compile_domain

DOMAINS = [
    (Interval(0, 1), "[0, 1]", [0, 0.5, 1], [-1e-9, 1.1]),
    (Interval.open(0, oo), "(0, inf)", [1e-300, 1e300], [0, -1]),
    (Interval(-oo, 2), "(-inf, 2]", [2, -1e300], [2.1]),
    (Interval.Ropen(-pi, pi), "[-pi, pi)", [0, -3.1], [3.2]),
    (Reals, "(-inf, inf)", [0, -1e300], []),
    (Integers, "the whole numbers", [0, -3], [0.5]),
    (Naturals, "the whole numbers from 1", [1, 7], [0, 1.5]),
    (S.Naturals0, "the whole numbers from 0", [0, 7], [-1]),
    (Range(2, 5), "the whole numbers 2 to 4", [2, 4], [1, 5, 2.5]),
    (Range(1, oo), "the whole numbers from 1", [1, 10**6], [0]),
    (Range(1, 10, 3), "Range(1, 10, 3)", [1, 4, 7], [0, 2, 10]),
    (FiniteSet(-1, 1), "{-1, 1}", [-1, 1], [0]),
    (Union(Interval(0, 1), Interval(2, 3)), "[0, 1] or [2, 3]", [0, 1, 2.5], [1.5, -1, 4]),
    (Reals - FiniteSet(0), "(-inf, 0) or (0, inf)", [-1, 1e-9], [0]),
    (S.EmptySet, "EmptySet", [], [0, 1]),
    (Integers - FiniteSet(0), None, [1, -2], [0, 0.5]),
]


@pytest.mark.parametrize(("domain", "words", "inside", "out"), DOMAINS, ids=lambda x: ascii(x)[:30])
def test_domains_as_numpy_tests_agree_with_the_sets(domain, words, inside, out):
    """Every kind of set, as words and as a test on arrays and on single numbers."""
    got = compile_domain(domain)
    assert words is None or got.text == words
    if got.outside is None:
        assert not out
        return
    x = np.array(inside + out, dtype=float)
    wanted = [False] * len(inside) + [True] * len(out)
    np.testing.assert_array_equal(got.outside(x), wanted)
    np.testing.assert_array_equal(got.outside(x.reshape(-1, 1)), np.reshape(wanted, (-1, 1)))
    assert [bool(got.outside(float(y))) for y in x] == wanted


@settings(max_examples=200, deadline=None)
@given(st.floats(-3, 3), st.sampled_from([d for d, *_ in DOMAINS]))
def test_a_domain_says_what_sympy_says(x, domain):
    outside = compile_domain(domain).outside
    assert (outside is not None and bool(outside(x))) == (domain.contains(S(x) if x % 1 else S(int(x))) is not S.true)


def test_a_domain_of_symbols_is_refused():
    with pytest.raises(SpecError, match="depends on K"):
        compile_domain(Interval(0, Symbol("K")))
