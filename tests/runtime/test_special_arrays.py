"""The functions of numpy arrays against mpmath: where those of scipy lose digits."""

import mpmath as mp
import numpy as np
import pytest

from odesim.targets.numpy_text import SPECIAL
from tests.runtime.test_functions import STATED, error, exact, points

NAMES = [name for name in STATED if name in SPECIAL]


@pytest.mark.parametrize("name", NAMES)
def test_errors_in_numpy(name):
    """At most 20 ulp, as docs/functions.md states; in float32 the value rounded to it."""
    x = points(name)[::10]
    with np.errstate(all="ignore"):
        values = np.asarray(SPECIAL[name](x))
    with mp.workdps(50):
        errors = [error(v, exact(name, mp.mpf(a))) for a, v in zip(x, values, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= 20, (x[worst], values[worst], errors[worst])
    short = x[(abs(x) < 80) & (abs(x) > 1e-10)].astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(SPECIAL[name](short), SPECIAL[name](short.astype(float)), rtol=4e-7, atol=1e-37)


def test_first_orders_of_spherical_bessel_functions():
    """The orders that slopes of sinc read, near 0 and away from it."""
    x = np.array([1e-9, 3e-5, 0.05, 0.5, 3.0, 30.0])
    for n in (0, 1):
        want = [float(mp.sqrt(mp.pi / 2 / a) * mp.besselj(n + 0.5, a)) for a in map(mp.mpf, x)]
        np.testing.assert_allclose(SPECIAL["spherical_jn"](n, x), want, rtol=1e-14)  # some 40 ulp, of points that are no zeros
