"""The functions of numpy arrays against mpmath: where those of scipy lose digits."""

import mpmath as mp
import numpy as np
import pytest

from odesim.codegen.special_arrays import SPECIAL
from tests.codegen.runtime.test_functions import STATED, error, exact, parts_of, points

NAMES = [name for name in STATED if parts_of(name)[0] in SPECIAL]


@pytest.mark.parametrize("name", NAMES)
def test_errors_in_numpy(name):
    """At most 20 ulp, and 12 more for each order, as docs/functions.md states; in float32 the value rounded to it."""
    word, order = parts_of(name)
    x = points(name)[::5]
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
