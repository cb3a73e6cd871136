"""The loss against its formula row by row, and its gradient against central differences."""

import numpy as np
import pytest
from scipy.special import logsumexp

from odesim.lab.networks.layers import SLAB, cross_entropy, shares
from tests.support.slopes import check_gradients

R, B, P, C = 2, 4, 3, 5
RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, C, (R, B, P))
COUNTED = RNG.random((R, B, P)) < 0.7
WEIGHT = RNG.random((R, B))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_loss_loop(weight):
    """The loss is the weighted mean over counted rows of -ln softmax[target]."""
    y = 3 * RNG.standard_normal((R, B, P, C))
    loss, _ = cross_entropy(y.copy(), CLASSES, shares(COUNTED, weight, "float64"))
    for r in range(R):
        top = bottom = 0.0
        for b, p in np.ndindex(B, P):
            w = COUNTED[r, b, p] * (1.0 if weight is None else weight[r, b])
            row = logsumexp(y[r, b, p]) - y[r, b, p, CLASSES[r, b, p]]
            top, bottom = top + w * row, bottom + w
        assert loss[r] == pytest.approx(top / bottom, rel=1e-12)  # rounding


def test_loss_gradient():
    """The gradient by the outputs; a row that is not counted has none."""
    at, share = {"y": RNG.standard_normal((R, B, P, C))}, shares(COUNTED, WEIGHT, "float64")
    _, g = cross_entropy(at["y"].copy(), CLASSES, share)
    check_gradients(lambda p: cross_entropy(p["y"].copy(), CLASSES, share)[0], at, {"y": g})
    assert (g[~COUNTED] == 0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cross_entropy_large(dtype):
    """Logits up to 1e4 neither overflow nor warn, and the dtype stays: the loss of a row is the gap to its largest logit."""
    logits = np.array([[[[1e4, 0.0, -1e4], [0.0, -1e4, 1e4]]]], dtype)
    loss, g = cross_entropy(logits, np.array([[[1, 2]]]), shares(np.ones((1, 1, 2), bool), None, dtype))
    assert loss == pytest.approx([5e3], rel=1e-6) and loss.dtype == g.dtype == dtype  # float32's rounding


def test_cross_entropy_slabs():
    """More rows than one slab holds: the same loss as scipy's logsumexp, and each row's gradient sums to 0."""
    rows, classes = 3 * SLAB // (8 * 50) + 7, 50
    z, target = RNG.standard_normal((1, rows, 1, classes)), RNG.integers(0, classes, (1, rows, 1))
    exact = (logsumexp(z, axis=-1) - np.take_along_axis(z, target[..., None], -1)[..., 0]).mean()
    loss, g = cross_entropy(z, target, shares(np.ones(target.shape, bool), None, "float64"))
    assert loss[0] == pytest.approx(exact, rel=1e-12)  # rounding
    assert np.abs(g.sum(-1)).max() < 1e-15  # rounding of terms below 1 / rows


def test_nothing_counted():
    """Without a counted row the loss and its gradient are 0, and a seed beside it is not touched."""
    counted = COUNTED.copy()
    counted[0] = False
    y = RNG.standard_normal((R, B, P, C))
    loss, g = cross_entropy(y.copy(), CLASSES, shares(counted, None, "float64"))
    full = cross_entropy(y.copy(), CLASSES, shares(COUNTED, None, "float64"))
    assert loss[0] == 0 and (g[0] == 0).all() and loss[1] == full[0][1] and (g[1] == full[1][1]).all()
