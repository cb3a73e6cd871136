"""The product of three linear factors on all inputs, one sign vector at a time."""

from itertools import product

import numpy as np

from tests.support.truth.arrays import Arrays


def three_factors(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Minus the gradient of -E (u.x)(v.x)(w.x) x_0 x_1 x_2, the mean over the cube."""
    out = {name: np.zeros_like(a) for name, a in y.items()}
    cube = np.array(list(product((-1.0, 1.0), repeat=len(y["u"]))))
    for x in cube:
        u, v, w = (y[name] @ x for name in "uvw")
        for name, others in (("u", v * w), ("v", u * w), ("w", u * v)):
            out[name] += others * x[:3].prod() * x / len(cube)
    return out
