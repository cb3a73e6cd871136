"""Measures of order: what they are of arrays whose answer is known, what leaves them unchanged, and no mixing of leading axes."""

import numpy as np
import pytest
from scipy import stats

from odesim.lab.networks.measures import entropy, normalised_correlation, stable_rank

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 4, 7))
P = RNG.dirichlet(np.ones(7), 4)
STACK = RNG.standard_normal((4, 6, 3))
ORTHOGONAL = np.linalg.qr(RNG.standard_normal((6, 3)))[0]

KNOWN = {
    "NC: Pearson's r": (lambda: normalised_correlation(A[0], B[0]), stats.pearsonr(A[0], B[0]).statistic),
    "NC of a and 2 - 3 a": (lambda: normalised_correlation(A[0], 2 - 3 * A[0]), -1),
    "NC with a constant": (lambda: normalised_correlation(A[0], np.full(7, 0.25)), 0),
    "NC of two constants": (lambda: normalised_correlation(np.zeros(7), np.zeros(7)), 0),
    "stable rank of one outer product": (lambda: stable_rank(np.outer(A[0], B[0])), 1),
    "stable rank of orthogonal columns": (lambda: stable_rank(1e-3 * ORTHOGONAL), 3),
    "stable rank of diag(1, 1/2, 1/4)": (lambda: stable_rank(np.diag([1, 0.5, 0.25])), 1 + 1 / 4 + 1 / 16),
    "stable rank of zeros": (lambda: stable_rank(np.zeros((3, 2))), 0),
    "stable rank of huge numbers": (lambda: stable_rank(1e200 * np.eye(3)), 3),
    "entropy of seven equal": (lambda: entropy(np.full(7, 1 / 7)), np.log(7)),
    "entropy of one": (lambda: entropy(np.array([0.0, 1.0, 0.0])), 0),
    "entropy: scipy's": (lambda: entropy(P), stats.entropy(P, axis=1)),
}


@pytest.mark.parametrize("case", KNOWN)
def test_known(case):
    """The value is the known one, to rounding."""
    function, value = KNOWN[case]
    np.testing.assert_allclose(function(), value, rtol=1e-13, atol=1e-15)


def test_only_the_matrix_that_is_not_finite():
    """A nan or inf in one matrix makes its stable rank nan, and leaves the others'."""
    broken = STACK.copy()
    broken[1, 0, 0], broken[3, 2, 1] = np.nan, np.inf
    found = stable_rank(broken)
    assert np.isnan(found[[1, 3]]).all()
    np.testing.assert_array_equal(found[[0, 2]], stable_rank(STACK)[[0, 2]])


@pytest.mark.parametrize(
    "function, arrays", [(normalised_correlation, (A, B)), (stable_rank, (STACK,)), (entropy, (P,))], ids=["NC", "stable rank", "entropy"]
)
def test_leading_axes(function, arrays):
    """A stack has, bit for bit, what its members have alone, with any leading axes; float32 stays float32."""
    whole = function(*arrays)
    for i in range(4):
        assert function(*(a[i] for a in arrays)) == whole[i]
    folded = function(*(a.reshape(2, 2, *a.shape[1:]) for a in arrays))
    np.testing.assert_array_equal(folded, whole.reshape(2, 2))
    single = function(*(a.astype(np.float32) for a in arrays))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, whole, rtol=1e-5, atol=1e-6)  # rounding of float32
