"""A head of attention learns to answer with the label of the nearest point: it sharpens for ever, as the cube root of time.

A prompt has N points on the unit sphere with labels +1 and -1 by chance; the query is one more point, its answer the label of the nearest
one. Attention is p_i ~ exp(xi cos_i), cos_i the cosine of point i and the query. The mean square of what the prediction sum_i p_i y_i
misses is sum_i p_i^2 - 2 p_near + 1, in the mean over points. For large xi only the two nearest count: with g the density at 0 of the gap
of their cosines the loss is 2 (ln 2 - 1/2) g / xi, and xi^3 = 6 (ln 2 - 1/2) g t. In three dimensions g = N/2.

behind[s, i] is how much less the cosine of point i is than that of the nearest, which has i = 0. The gap of two points in three dimensions
has the density 1 - u/2, u < 2: a rule of Gauss. More points are S drawn prompts, always the same.

Assumed: the query does not attend to itself, labels are independent of points, gradient flow of the population's squared error.
"""

from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, Rational, Sum, Symbol

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, at, gradient_flow, index, over, sizes, softmax

s, i = index("s i")
S, N = sizes("S N")
xi = Symbol("xi", real=True)
behind, weight = IndexedBase("behind", shape=(S, N)), IndexedBase("weight", shape=(S,))


def gaps(many: int) -> tuple[np.ndarray, np.ndarray]:
    """The gap of the cosines of two points (many,), with weights (many,) of sum 1: squares of nodes, most of them near 0."""
    node, w = np.polynomial.legendre.leggauss(many)
    u = (node + 1) ** 2 / 2
    w = w * (node + 1) * (1 - u / 2)
    return u, w / w.sum()


def prompts(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """behind (S, N), the nearest point first."""
    if sizes["N"] == 2:
        u = gaps(sizes["S"])[0]
        return np.column_stack([0 * u, u])
    cosines = np.sort(np.random.default_rng(0).uniform(-1, 1, (sizes["S"], sizes["N"])))[:, ::-1]  # uniform on a sphere in 3 dimensions
    return np.asarray(cosines[:, :1] - cosines)


def shares(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """weight (S,): of the nodes, or the same for drawn prompts."""
    return gaps(sizes["S"])[1] if sizes["N"] == 2 else np.full(sizes["S"], 1 / sizes["S"])


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> Any:
    """By how much xi is off the time it takes."""
    b, w = np.asarray(params["behind"]), np.asarray(params["weight"])

    def rate(x: float) -> float:
        p = np.exp(-x * b - (-x * b).max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        move = p * ((p * b).sum(axis=1, keepdims=True) - b)  # dp / dxi
        return float(2 * w @ (move[:, 0] - (p * move).sum(axis=1)))

    end = float(y["xi"])
    passed = quad(lambda x: 1 / rate(x), float(y0["xi"]), end, epsabs=1e-11, epsrel=1e-11, limit=200)[0]
    return np.array([(passed - t) * rate(end)])


p = softmax(-xi * behind[s, i], (i, N))
near = over(Sum, weight[s] * at(p, {i: 0}), (s, S))
loss = over(Sum, weight[s] * (over(Sum, p**2, (i, N)) - 2 * at(p, {i: 0}) + 1), (s, S))

SYSTEM = System(
    name="in_context.nearest",
    source=Source("li2024nearest", "Abstract", "one softmax head; its one number, xi, is a reduction of our own"),
    axes={s: S, i: N},
    equations=gradient_flow(loss, {xi: 1}),
    params=(
        Param(behind, prompts, Interval(0, 2), "behind[s, i]: how much less the cosine of point i is than that of the nearest, i = 0"),
        Param(weight, shares, Interval(0, 1), "weights of the prompts"),
    ),
    initial={xi: 0},
    sizes={S: 64, N: 2},
    span=(0.0, 1000.0),
    time="steps times learning rate",
    observables={"loss": loss, "near": near},
    display={"loss": loss},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    events=(Event("sharp", near - Rational(9, 10), 1, doc="nine tenths of the attention are on the nearest point"),),
    closed_forms=(ClosedForm("passage", "while it sharpens", passage, "implicit"),),
)
