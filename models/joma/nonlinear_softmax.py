"""One hidden node with a saturating activation and softmax attention: the entropy falls, then rises again (JoMA, Fig. 4).

v holds the weights of the node over M contextual tokens, v^2/T their attention logits, mu where each comes to rest. The normaliser
is common to all components, so each follows joma.nonlinear in a rescaled time.

Assumed: what joma.nonlinear assumes; the mean attention that softmax subtracts is a common factor. The default mu are those of
Fig. 4, which has T = 3, v = 0.05 at the start and Euler steps of 0.02; the entropy at rest is not reached in its 5000 steps.
"""

from typing import Any

import numpy as np
from sympy import Interval, Symbol, oo

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, entropy, index, sizes, softmax

(l,) = index("l")
(M,) = sizes("M")
v, mu, T = IndexedBase("v", shape=(M,)), IndexedBase("mu", shape=(M,)), Symbol("T", positive=True)


def random_targets(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """mu (M,): sorted 1 + 3 U[0, 1), the numbers of torch.rand after torch.manual_seed(0); for M = 10 those of Fig. 4."""
    words = np.random.RandomState(0).randint(0, 2**32, sizes["M"], dtype=np.uint32)
    return np.sort(1 + 3 * (words & 0xFFFFFF) / 2**24)


def clock(L: np.ndarray, v0: np.ndarray, mu: np.ndarray, T: float, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The clock int_v0^v exp(-u^2/T) / (mu - u) du (M,), where the gap mu - v (M,) is exp(-L) times its start.

    x, weight: nodes and weights of Gauss's rule.
    """
    u = mu[:, None] - (mu - v0)[:, None] * np.exp(-L[:, None] * (x + 1) / 2)
    return (L[:, None] / 2 * weight * np.exp(-(u**2) / T)).sum(axis=1)


def separated(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (M,) of v, to first order, from its value at time t by separation of variables.

    All components share one clock; the attention sums to 1, so the L of all components sum to t.
    """
    from scipy.special import roots_legendre

    v, v0, mu, T = y["v"], y0["v"], params["mu"], params["T"]
    rate, start = np.exp(v**2 / T), np.where(mu == v0, 1, mu - v0)
    L = -np.log(np.maximum(np.abs((mu - v) / start), 1e-17))
    rule = roots_legendre(200)
    reading = clock(L, v0, mu, T, *rule)
    common = reading[np.argmax(np.abs(mu - v) * rate)]
    for _ in range(5):  # a component at rest has no gap left to read, but the clock still gives its L
        L = L + (common - clock(L, v0, mu, T, *rule)) * np.exp((mu - (mu - v0) * np.exp(-L)) ** 2 / T)
    late = common + (t - L.sum()) / rate.sum() - reading
    return (v - mu) * np.expm1(-late * rate)


z = v[l] ** 2 / T
spread = entropy(softmax(z, (l, M)), (l, M))

SYSTEM = System(
    name="joma.nonlinear_softmax",
    source=Source("tian2023joma", "Theorem 4 and Fig. 4", "softmax attention with a temperature"),
    axes={l: M},
    equations={v[l]: (mu[l] - v[l]) * softmax(z, (l, M))},
    params=(
        Param(mu, random_targets, Interval(-oo, oo), "where a component comes to rest"),
        Param(T, 2.0, Interval.open(0, oo), "temperature: attention logits are v^2/T"),
    ),
    initial={v[l]: 0.05},
    sizes={M: 10},
    span=(0.0, 100.0),
    time="time of gradient flow",
    observables={"entropy": spread, "gap": mu[l] - v[l]},
    invariants=(Invariant("approach", (mu[l] - v[l]) ** 2, "nonincreasing"),),
    events=(Event("half way", v[l] - mu[l] / 2, doc="a component is half of its resting value"),),
    closed_forms=(ClosedForm("separation of variables", "for every start", separated, "implicit"),),
)
