"""The functions of numpy arrays against mpmath: where those of scipy lose digits."""

import mpmath as mp
import numpy as np
import pytest

from odesim.targets.numpy_text import SPECIAL
from tests.runtime.test_functions import STATED, error, exact, parts_of, points

NAMES = [name for name in STATED if parts_of(name)[0] in SPECIAL]


@pytest.mark.parametrize("name", NAMES)
def test_errors_in_numpy(name):
    """At most 20 ulp, and 12 more for each order, as docs/functions.md states; in float32 the value rounded to it."""
    word, order = parts_of(name)
    x = points(name)[::10]
    with np.errstate(all="ignore"):
        values = np.asarray(SPECIAL[word](*order, x))
    bound = 20 + 12 * sum(order)
    with mp.workdps(50):
        errors = [error(v, exact(name, mp.mpf(a))) for a, v in zip(x, values, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, (x[worst], values[worst], errors[worst])
    short = x[(abs(x) < 80) & (abs(x) > 1e-10)].astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(SPECIAL[word](*order, short), SPECIAL[word](*order, short.astype(float)), rtol=4e-7, atol=1e-37)


FIRST = {
    "spherical_jn": ((0, 1), lambda n, x: mp.sqrt(mp.pi / 2 / x) * mp.besselj(n + mp.mpf("0.5"), x)),
    "besseli": ((-1, 0, 1), mp.besseli),
    "besseli_ratio": ((0, 1), lambda n, x: mp.besseli(n + 1, x) / mp.besseli(n, x)),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_orders(name):
    """The orders that slopes of order 0 and 1 read too, near 0 and away from it."""
    orders, truth = FIRST[name]
    x = np.array([1e-9, 3e-5, 0.05, 0.5, 3.0, 30.0])
    for n in orders:
        want = np.array([float(truth(n, mp.mpf(a))) for a in x])
        np.testing.assert_allclose(SPECIAL[name](n, x), want, rtol=1e-14)  # some 40 ulp, of points that are no zeros
