"""What the JoMA paper states of several hidden nodes and of noisy clusters, and what holds."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, oo

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, over, sizes

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-13}
T_STAR = np.sqrt(np.pi / 2)  # of a row of Delta of length 1

l, k, j = index("l k j")
M, K = sizes("M K")
V, z, Delta = IndexedBase("V", shape=(M, K)), IndexedBase("z", shape=(M,)), IndexedBase("Delta", shape=(M, K))


def nodes(name: str, equations: dict[Any, Any]) -> System:
    """A System of V (M, K) from 0, and of z (M,) where the equations have it."""
    return System(
        name=f"joma.{name}",
        source=Source(PAPER, "Theorems 1 and 2"),
        axes={l: M, k: K},
        equations=equations,
        params=(Param(Delta, 1.0, Interval(-oo, oo), "saliency of a token to a node"),),
        initial=dict.fromkeys(equations, 0),
        sizes={M: 6, K: 3},
        span=(0.0, 1.0),
    )


def trained_together() -> System:
    """V and logits z of exp attention, up the mean of a signal that does not change, sum_lk Delta_lk exp(z_l) V_lk."""
    gain = over(Sum, over(Sum, Delta[l, k] * V[l, k], (k, K)) * exp(z[l]), (l, M))
    return nodes("two_states", gradient_flow(-gain, {V[l, k]: 1, z[l]: 1}))


def mean_of_exponentials() -> System:
    """The printed diag(exp(V o V / 2) 1), over K so that attention starts from 1."""
    return nodes("printed", {V[l, k]: Delta[l, k] * over(Sum, exp(V[l, j] ** 2 / 2), (j, K)) / K})


def apart(of: str | System) -> Iterable[Measurement]:
    """How far V of a flow is from V that is trained together with z, at .9 t*."""
    table = np.random.default_rng(0).standard_normal((6, 3))
    request: dict[str, Any] = {"params": {"Delta": table / np.linalg.norm(table, axis=1).max()}, "span": (0, 0.9 * T_STAR), **FINE}
    both = [odesim.integrate(system, **request).final["V"] for system in (of, trained_together())]
    yield deviation("V at .9 t* less V of both trained together", both[0] - both[1], 0.0, 1e-8)


NOISE: dict[str, Any] = {"xbar": np.random.default_rng(1).standard_normal((3, 4)), "a": np.array([1.0, -0.6, 0.3]), "sigma": 0.7}


def slopes(v: np.ndarray, xi: float, params: dict[str, Any]) -> tuple[np.ndarray, float]:
    """dv/dt and dxi/dt of joma.cluster, by one Euler step of 1."""
    run = odesim.integrate(
        "joma.cluster", params=params, initial={"v": v, "xi": xi}, span=(0, 1), method="euler", step=1.0, backend="numpy"
    )
    return run.final["v"] - v, float(run.final["xi"]) - xi


Slope = Callable[[Any], Any]
ACTIVATIONS: dict[str, Slope] = {"relu": lambda s: 1.0 * (s > 0), "quadratic": lambda s: s, "softplus": lambda s: 1 / (1 + np.exp(-s))}
"""phi' of max(0, s), s^2/2 and ln(1 + exp(s))."""
XI, COUNT = 0.1, 400_000
LENGTHS = {scale: scale * np.array([0.5, -0.3, 0.8, 0.2]) for scale in (0.5, 1.0, 2.0)}
"""v, at three lengths."""


def by_samples(rng: np.random.Generator, slope: Slope, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(E[g phi'(v . x + xi) x], E[g phi'(v . x + xi)] in one vector (5,), its standard errors) by COUNT noisy inputs of each cluster."""
    total, variance = np.zeros(5), np.zeros(5)
    for a, centre in zip(NOISE["a"], NOISE["xbar"], strict=True):
        x = np.column_stack([centre + NOISE["sigma"] * rng.standard_normal((COUNT, 4)), np.ones(COUNT)])
        x *= slope(x @ np.append(v, XI))[:, None]
        total, variance = total + a * x.mean(axis=0), variance + a**2 * x.var(axis=0) / COUNT
    return total, np.sqrt(variance)


def theorem(slope: Slope, v: np.ndarray, above: float = -np.inf) -> np.ndarray:
    """The same by the theorem: sums (5,) of theta_1 and theta_2, integrals over the normal density. above: where phi' is not 0."""
    from scipy.integrate import quad
    from scipy.stats import norm

    length, total = np.linalg.norm(v), np.zeros(5)
    for a, centre in zip(NOISE["a"], NOISE["xbar"], strict=True):
        r = v @ centre + XI
        density = norm(r, NOISE["sigma"] * length).pdf
        lowest, highest = (max(above, r + 9 * sign * length) for sign in (-1, 1))  # 13 deviations of the noise
        theta = [
            quad(lambda s, n=n, r=r, density=density: slope(s) * (s - r) ** n * density(s), lowest, highest, epsabs=1e-12)[0]
            for n in (0, 1)
        ]
        total += a * (theta[0] * np.append(centre, 1) + theta[1] / length**2 * np.append(v, 0))
    return total


def noisy() -> Iterable[Measurement]:
    """dv/dt and dxi/dt of joma.cluster beside the theorem and beside samples; the theorem beside samples for other activations."""
    rng, (relu, *_) = np.random.default_rng(0), ACTIVATIONS.values()
    for v in LENGTHS.values():
        where, found = f"|v| = {np.linalg.norm(v):.3g}", np.append(*slopes(v, XI, NOISE))
        yield deviation(f"slopes - sums of theta_1 and theta_2, {where}", found, theorem(relu, v, above=0.0), 1e-9)
        total, error = by_samples(rng, relu, v)
        yield deviation(f"(slopes - sampled) / standard error, {where}", (found - total) / error, 0.0, 4.0)
    for name, slope in list(ACTIVATIONS.items())[1:]:
        total, error = by_samples(rng, slope, LENGTHS[1.0])
        off = (theorem(slope, LENGTHS[1.0]) - total) / error
        yield deviation(f"(sums of theta_1 and theta_2 - sampled) / standard error, {name}", off, 0.0, 4.0)


def same_argument() -> Iterable[Measurement]:
    """theta_1 = |v| dxi/dt of one cluster at r = -.5, sigma = 1, for |v| = 1 and 2: the shares of the noise above 0 give it."""
    from scipy.special import ndtr

    one: dict[str, Any] = {"xbar": [[1.0, 0.0]], "a": [1.0], "sigma": 1.0}
    theta = [length * slopes(np.array([0.0, length]), -0.5, one)[1] for length in (1.0, 2.0)]
    yield Measurement("theta_1 at |v| = 1, by the normal distribution", theta[0], ndtr(-0.5), 1e-12)
    yield Measurement("theta_1 at |v| = 2 / theta_1 at |v| = 1", theta[1] / theta[0], 1.0, 0.1)


def recorded() -> Iterable[Measurement]:
    """theta_1 at r = -.7805 for |v| = 1.5762 and twice that, which give the recorded values: r and |v| of those are unknown."""
    one: dict[str, Any] = {"xbar": [[1.0, 0.0]], "a": [1.0], "sigma": 1.0}
    for length, want in ((1.5762, 0.489), (2 * 1.5762, 1.268)):
        theta = length * slopes(np.array([0.0, length]), -0.7805, one)[1]
        yield Measurement(f"theta_1 at r = -.7805, |v| = {length:g}", theta, want, 5.1e-4)


NODES = (
    Claim(
        "joma.row_sums",
        Source(PAPER, "Theorem 2", "several nodes, as on the slides of a talk"),
        "joma.linear_multinode, M = 6, K = 3, to .9 t*, beside V and logits that are trained together",
        "V' = diag(exp(V o V / 2) 1) Delta: attention to a token is a sum of exponentials over the nodes",
        lambda: apart(mean_of_exponentials()),
        "100 times the relative tolerance 1e-10 of the runs",
        fails=True,
        corrected=Statement(
            "V' = diag(exp((V o V) 1 / 2)) Delta: the exponential of half the sum over the nodes",
            lambda: apart("joma.linear_multinode"),
            "100 times the relative tolerance 1e-10 of the runs",
        ),
    ),
    Claim(
        "joma.noise",
        Source(PAPER, "Theorem 3", "relu, and two activations more; Gaussian noise"),
        "one Euler step of joma.cluster, three clusters in four dimensions, beside sampled inputs",
        "theta_1 is a function of r and of the activation alone",
        same_argument,
        "a tenth; rounding of a normal distribution",
        fails=True,
        corrected=Statement(
            "theta_1 = int phi'(s) p((s - r)/|v|) ds and theta_2 likewise, of |v| and of the noise too, give v' and xi'",
            lambda: (*noisy(), *recorded()),
            "of the integrals 1000 times their own error; four standard errors of 4e5 samples, in each of five components; half a digit",
        ),
    ),
)
