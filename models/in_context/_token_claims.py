"""What is stated of attention to one token: single-location regression, and Markov chains."""

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import erf, lambertw

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.symbolic import Source

FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-13}
D, L, LAM, G2 = 80, 10, 0.1, 0.5
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
POINTS = np.array(list(product(NODES, repeat=3))).T  # (3, 729)
MASS = np.prod(list(product(WEIGHTS, repeat=3)), axis=1)


def risk(kappa: float, nu: float, rho: float, theta: float, eta: float) -> float:
    """E (sum_l erf(lam X_l . k) X_l . v - X_1 . v*)^2 at any overlaps k.k*, v.v*, k.v, v.k*, k.v*: a mean over three normal variables."""
    # X_1 . (k, v, v*) less its mean has the covariance G2 C
    root = np.linalg.cholesky([[1, rho, eta], [rho, 1, nu], [eta, nu, 1]])
    k, v, y = G2**0.5 * root @ POINTS
    shift = (D / 2) ** 0.5
    off = erf(LAM * (k + shift * kappa)) * (v + shift * theta) - y
    z, g = POINTS[0], rho * POINTS[0] + (1 - rho**2) ** 0.5 * POINTS[1]
    other = erf(LAM * z) * g
    mean, square = MASS @ other, MASS @ other**2
    return float(MASS @ off**2 + 2 * (L - 1) * mean * (MASS @ off) + (L - 1) * square + (L - 1) * (L - 2) * mean**2)


def descended(kappa: float, nu: float, steps: int, rate: float) -> np.ndarray:
    """The five overlaps after projected gradient descent of all weights k and v (D,), from k . v = k . v* = v . k* = 0."""
    one = np.eye(D)
    k = kappa * one[0] + (1 - kappa**2) ** 0.5 * one[2]
    v = nu * one[1] + (1 - nu**2) ** 0.5 * one[3]
    for _ in range(steps):
        at = np.array([k[0], v[1], k @ v, v[0], k[1]])
        moves = 1e-4 * np.eye(5)
        by = [(risk(*(at + move)) - risk(*(at - move))) / 2e-4 for move in moves]
        to_k = by[0] * one[0] + by[2] * v + by[4] * one[1]
        to_v = by[1] * one[1] + by[2] * k + by[3] * one[0]
        k, v = (x - rate * (slope - (slope @ x) * x) for x, slope in ((k, to_k), (v, to_v)))
        k, v = (x / np.linalg.norm(x) for x in (k, v))
    return np.array([k[0], v[1], k @ v, v[0], k[1]])


def manifold() -> Iterable[Measurement]:
    """All 160 weights in 80 dimensions to t = 4 by steps of .02 beside two overlaps; where these go in 400, from four starts."""
    final = descended(0.2, 0.2, 200, 0.02)  # of twice the step theta would oscillate: its curvature is d E erf^2
    run = odesim.integrate("in_context.single_location", params={"d": D}, initial={"kappa": 0.2, "nu": 0.2}, span=(0, 4), save=2, **FINE)
    yield deviation("kappa and nu of all weights at t = 4", final[:2], [run.final["kappa"], run.final["nu"]], 2e-3)
    yield deviation("k . v, v . k*, k . v* there", final[2:], 0.0, 1e-7)
    for start, side in (((0.05, 0.05), 1), ((-0.05, 0.05), 1), ((0.05, -0.05), -1), ((0.02, -0.05), -1)):
        run = odesim.integrate(
            "in_context.single_location", initial=dict(zip(("kappa", "nu"), start, strict=True)), span=(0, 2e4), save=2, **FINE
        )
        found = [run.final["kappa"], run.final["nu"]]
        yield deviation(f"limit from {start}", found, float(side), 1e-3)


def ends(p: float, q: float, model: str) -> Iterable[Measurement]:
    """The loss less that of the bigram at t = 1000 from e = .1 and w = .1, -.1."""
    pi1 = p / (p + q)
    h = [-x * np.log(x) - (1 - x) * np.log(1 - x) for x in (p, q)]
    for w in (0.1, -0.1):
        run = odesim.integrate(model, params={"p": p, "q": q}, initial={"e": 0.1, "w": w}, span=(0, 1000), save=2, **FINE)
        yield Measurement(f"loss over the bigram's, {model}, w = {w:g}", run.observables["loss"][-1] - (1 - pi1) * h[0] - pi1 * h[1],
                          0.0, 1e-7)  # fmt: skip


def bigram(p: float, q: float) -> Iterable[Measurement]:
    """With the best bias and with one that learns."""
    for model in ("in_context.markov", "in_context.markov_bias"):
        yield from ends(p, q, model)


def trapped(starts: tuple[tuple[float, float], ...]) -> Iterable[Measurement]:
    """p = .2, q = .3 from w < -1/sqrt(2): e at t = 1000, and w, which the energy fixes."""
    for e, w in starts:
        run = odesim.integrate("in_context.markov", initial={"e": e, "w": w}, span=(0, 1000), save=2, **FINE)
        energy = e**2 - w**2 + np.log(-w)
        yield Measurement(f"e from {e:g}, {w:g}", run.final["e"], 0.0, 1e-6)
        yield Measurement(f"w from {e:g}, {w:g}", run.final["w"], -float((-lambertw(-2 * np.exp(2 * energy), -1).real / 2) ** 0.5), 1e-6)


def energy(model: str) -> Iterable[Measurement]:
    """e^2 - w^2 - sign(w) ln |w| at t = 100 less that at the start, (.1, .1)."""
    run = odesim.integrate(model, span=(0, 100), save=2, **FINE)
    first, last = (e**2 - w**2 - np.sign(w) * np.log(abs(w)) for e, w in zip(run.y["e"], run.y["w"], strict=True))
    yield Measurement(f"change of the energy, {model}", last - first, 0.0, 1e-6)
    yield Measurement("e", run.final["e"], 1.27892458, 1e-6)


def trained_location() -> Iterable[Measurement]:
    """Four trainings in 80 dimensions to t = 4, in the mean: the two overlaps beside the flow, the others beside 0."""
    found = odesim.compare("in_context.single_location", task="single_location", seeds=range(4), steps=2000, save=5)
    for name, ends in (("kappa", (0.27269, 0.39899, 0.55315, 0.69537)), ("nu", (0.35025, 0.53568, 0.72853, 0.87366))):
        yield deviation(f"{name} at t = 1 to 4, flow", found.theory[name][0, 1:], ends, 6e-6)
        yield deviation(f"mean {name} there, trained", found.training[name][:, 1:].mean(axis=0), ends, 0.015)
    run = odesim.train("single_location", steps=2000, save=3)
    yield Measurement("largest of k.v, v.k*, k.v* in the end, trained", np.abs(run.final["across"]).max(), 0.03, 0.0, "<=")


def trained_chain(p: float, q: float) -> Iterable[Measurement]:
    """Sixteen trainings to t = 100, in the mean, beside in_context.markov_bias and the loss of the bigram."""
    found = odesim.compare("in_context.markov_bias", task="binary_chain", settings={"p": p, "q": q}, seeds=range(16), steps=2000, save=3)
    s, loss = (float(found.training[name][:, -1].mean()) for name in ("s", "loss"))
    pi1 = p / (p + q)
    h = [-x * np.log(x) - (1 - x) * np.log(1 - x) for x in (p, q)]
    yield Measurement("s, trained", s, np.log((1 - p) * (1 - q) / (p * q)), 0.06)
    yield Measurement("loss over the bigram's, trained", loss - (1 - pi1) * h[0] - pi1 * h[1], 0.0, 2e-4)
    yield Measurement("s of the flow less trained", float(found.theory["s"][0, -1]) - s, 0.0, 0.06)


MARKOV = "makkuva2024local"

TOKENS = (
    Claim(
        "in_context.bigram",
        Source(MARKOV, "Abstract", "small starts"),
        "in_context.markov and in_context.markov_bias from e = .1, w = .1 and -.1, p = .2, q = .3",
        "small weights of one layer learn the bigram",
        partial(bigram, 0.2, 0.3),
        "1000 times the tolerance of a run",
        when="p + q < 1; for p + q > 1, as p = .5, q = .8, they stay at the unigram",
        otherwise=partial(bigram, 0.5, 0.8),
    ),
    Claim(
        "in_context.bad_minima",
        Source(MARKOV, "Abstract", "local minima"),
        "in_context.markov, p = .2, q = .3, from w = -1",
        "starts with w < -1/sqrt(2) end at the unigram, e = 0, a local minimum",
        partial(trapped, ((0.3, -1.0), (0.1, -1.2))),
        "1000 times the tolerance of a run",
        when="e^2 - w^2 + ln |w| < -(1 + ln 2) / 2 as well; from (.5, -1), where it is -.75, the bigram is learned",
        otherwise=partial(trapped, ((0.5, -1.0),)),
    ),
    Claim(
        "in_context.energy",
        Source(MARKOV, "Abstract", "gradient flow of embedding and attention"),
        "in_context.markov and in_context.markov_bias from (.1, .1)",
        "gradient flow keeps e^2 - w^2 - sign(w) ln |w|",
        partial(energy, "in_context.markov"),
        "1000 times the tolerance of a run",
        when="the bias is at its optimum; while it learns the energy changes by .479",
        otherwise=partial(energy, "in_context.markov_bias"),
    ),
    Claim(
        "in_context.trained_chain",
        Source(MARKOV, "Abstract", "small starts, by SGD on drawn pairs"),
        "the task binary_chain, rate .05, batches of 256, 16 seeds, p = .2, q = .3, beside in_context.markov_bias",
        "from small weights SGD learns the bigram",
        partial(trained_chain, 0.2, 0.3),
        "four standard errors of 16 seeds; noise of batches keeps the loss 1e-4 above",
        when="p + q < 1; for p = .5, q = .8 it stays at the unigram",
        otherwise=partial(trained_chain, 0.5, 0.8),
        depends=("in_context.bigram",),
    ),
    Claim(
        "in_context.trained_location",
        Source("marion2025attention", "Abstract", "projected gradient descent, by SGD on drawn inputs"),
        "the task single_location, 80 dimensions, rate .002, batches of 32, four seeds, beside in_context.single_location",
        "trained attention goes the way of the two overlaps, in the mean",
        trained_location,
        "four standard errors of four seeds; of the flow half a digit",
        depends=("in_context.manifold",),
    ),
    Claim(
        "in_context.manifold",
        Source("marion2025attention", "Abstract", "projected gradient descent"),
        "in_context.single_location, d = 400; all weights for d = 80 by steps of .02 to t = 4",
        "descent keeps k.v = k.v* = v.k* = 0, and finds k*, v*, or both with the other sign",
        manifold,
        "steps of .02, to first order; the limit is reached slowly, as erf is flat there",
    ),
)
