"""Gradients by central differences, for what the hand-written backward passes are held against."""

from collections.abc import Callable

import numpy as np

from odesim.base.arrays import Array

STEP = 1e-5  # four points: rounding about 1e-15 / STEP = 1e-10 of losses near 1, truncation far below; few corners of relu so near
RELATIVE, ABSOLUTE = 1e-6, 1e-9  # both errors with a margin; ABSOLUTE for gradients that are 0


def check_gradients(value: Callable[[dict[str, Array]], Array], at: dict[str, Array], gradients: dict[str, Array], seed: int = 0) -> None:
    """Each gradient (R, ...) has the slopes of value (R,) along a random direction of its own array, seed by seed."""
    rng = np.random.default_rng(seed)
    assert gradients.keys() == at.keys()
    for name, x in at.items():
        w = STEP * rng.standard_normal(x.shape)
        near, far = (value(at | {name: x + i * w}) - value(at | {name: x - i * w}) for i in (1, 2))
        ours = (gradients[name] * w).reshape(len(x), -1).sum(1) / STEP
        np.testing.assert_allclose(ours, (8 * near - far) / (12 * STEP), rtol=RELATIVE, atol=ABSOLUTE, err_msg=name)
