"""What is stated of learning in context, and what holds: regression by linear attention, the nearest neighbour, one token."""

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, expit, lambertw

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.in_context._regression import gammas
from odesim.models.in_context.separate import passage
from odesim.symbolic import Source

# What is stated of attention to one token: single-location regression, and Markov chains.

D, L, SHARPNESS, G2 = 80, 10, 0.1, 0.5
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
    off = erf(SHARPNESS * (k + shift * kappa)) * (v + shift * theta) - y
    z, g = POINTS[0], rho * POINTS[0] + (1 - rho**2) ** 0.5 * POINTS[1]
    other = erf(SHARPNESS * z) * g
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


MODEL, PAPER = "in_context.nearest", "li2024nearest"
TIGHT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
A, B = np.log(2) - 0.5, np.pi**2 / 12 - np.log(2)
"""Integrals over u > 0 of (1 + e^u)^-2 and of u (1 + e^u)^-2: for large xi two points have the loss 2 A/xi - B/xi^2, but for exp(-xi)."""
CIRCLE = {0: 0.5, 1: 0.234177, 5: 0.072208, 20: 0.023461}
"""Loss of two points on a circle by xi: a rule of Gauss, and twenty million drawn prompts beside it."""


def on_a_circle(many: int = 40) -> dict[str, Any]:
    """behind and weight of two points on a circle: cos x - cos y = -2 sin a sin b, a = (x + y)/2 and b = (x - y)/2 uniform."""
    node, w = np.polynomial.legendre.leggauss(many)
    sine = np.sin(np.pi / 4 * (node + 1))
    gap = 2 * np.outer(sine, sine).ravel()
    return {"behind": np.column_stack([0 * gap, gap]), "weight": np.outer(w, w).ravel() / 4}


def attention(xi: float) -> float:
    """The mean attention to the nearer of two points on a sphere."""
    return quad(lambda u: (1 - u / 2) * expit(xi * u), 0, 2)[0]


def slope(xi: float) -> float:
    """The rate of xi there: that at which the loss 2 expit(-xi u)^2 falls."""
    return quad(lambda u: (1 - u / 2) * 4 * u * expit(-xi * u) ** 2 * expit(xi * u), 0, 2, points=[min(1.0, 4 / (1 + xi))])[0]


def learned() -> Iterable[Measurement]:
    """The loss of two points on a circle; nine tenths on the nearer of two on a sphere; five points, 20,000 prompts: who is answered."""
    for xi, want in CIRCLE.items():
        run = odesim.integrate(
            MODEL, params=on_a_circle(), sizes={"S": 1600, "N": 2}, initial={"xi": xi}, span=(0, 1e-6), save=2, backend="numpy"
        )
        yield Measurement(f"two points on a circle, loss at xi = {xi}", run.observables["loss"][0], want, 6e-7)
    run = odesim.integrate(MODEL, span=(0, 400), save=2, **TIGHT)
    end = brentq(lambda xi: attention(xi) - 0.9, 1, 20)
    want = quad(lambda xi: 1 / slope(xi), 0, end)[0]
    yield Measurement(
        "two points on a sphere, time to .9 on the nearer, over a quadrature", float(run.events["sharp"][0]["t"]) / want, 1.0, 1e-6
    )
    run = odesim.integrate(MODEL, sizes={"S": 20_000, "N": 5}, span=(0, 1e5), save=[0, 1e3, 1e5], backend="numpy", rtol=1e-6, atol=1e-9)
    logits = -run.y["xi"][:, None, None] * run.attrs["params"]["behind"]
    first = 1 / np.exp(logits - logits[:, :, :1]).sum(axis=2)  # attention to the nearest: above 1/2 its label wins, whatever the others are
    for t, share, most in zip((1e3, 1e5), (first[1:] < 0.5).mean(axis=1), (0.03, 0.002), strict=True):
        yield Measurement(f"five points, share of prompts where others may win, t = {t:g}", share, most, 0.0, "<=")


def cube_root() -> Iterable[Measurement]:
    """To t = 1e6: the time between two values of xi, and xi^3 over 6 (ln 2 - 1/2) g t, of two points and of three."""
    run = odesim.integrate(MODEL, sizes={"S": 200, "N": 2}, span=(0, 1e6), save=[0, 1e4, 1e6], **TIGHT)
    first, last = run.y["xi"][1:]
    passed = quad(lambda x: x**3 / (2 * A * x - 2 * B), first, last)[0]
    yield Measurement("time from 1e4 to 1e6 by the loss at large xi, over it", passed / (1e6 - 1e4), 1.0, 1e-6)
    yield Measurement("two points: xi^3 over 6 (ln 2 - 1/2) t at t = 1e6", float(last**3) / (6 * A * 1e6), 1.0, 2 * B / A / last)
    yield Measurement("two points: loss times xi over 2 ln 2 - 1", float(run.observables["loss"][2] * last) / (2 * A), 1.0, B / A / last)
    run = odesim.integrate(MODEL, sizes={"S": 20_000, "N": 3}, span=(0, 1e5), save=[0, 1e5], backend="numpy", rtol=1e-6, atol=1e-9)
    xi = float(run.final["xi"])
    # 20,000 * g / xi prompts have a gap of that order: four deviations, and the next order
    yield Measurement("three points: xi^3 over 9 (ln 2 - 1/2) t at t = 1e5", xi**3 / (9 * A * 1e5), 1.0, 4 * (xi / 3e4) ** 0.5 + 2 / xi)


NEAREST = (
    Claim(
        "in_context.one_nearest",
        Source(PAPER, "Abstract", "a single softmax layer behaves like a one-nearest neighbour classifier"),
        "in_context.nearest: two points on a circle and on a sphere, five points in 20,000 prompts",
        "one softmax head learns to answer with the label of the nearest point",
        learned,
        "half a unit of the last digit; 10,000 rtol; bounds",
    ),
    Claim(
        "in_context.nearest_rate",
        Source(PAPER, "Abstract", "how fast, by the density of near ties"),
        "in_context.nearest to t = 1e6, two points, and three in 20,000 prompts",
        "attention sharpens as xi^3 = 6 (ln 2 - 1/2) g t, g = N/2 on a sphere, and the loss falls as t^(-1/3)",
        cube_root,
        "the next order, 1/xi; four standard errors of drawn prompts",
    ),
)


FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-13}
LAM, N = np.array([0.4, 0.3, 0.2, 0.1]), 31
GAMMA = gammas({"lam": LAM, "N": N})
LEVELS = LAM.sum() - np.append(0, np.cumsum(LAM**2 / GAMMA))
"""The loss with 0 to 4 components learned, the largest variance first."""
NEAR = 2e-3  # of a plateau: a fiftieth of the smallest drop and less


def normal_start(model: str, seed: int, scale: float, heads: int = 5) -> dict[str, Any]:
    """Independent normal weights of this deviation."""
    rng = np.random.default_rng(seed)
    shapes = {"v": (heads,), "U": (heads, 4, 4)} if model == "merged" else {"v": (heads,), "k": (heads, 4), "q": (heads, 4)}
    return {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}


def converges() -> Iterable[Measurement]:
    """W and v at t = 1000 from sigma = .1, U = sigma I / 2; and from five random heads."""
    run = odesim.integrate("in_context.merged", span=(0, 1000), save=2, **FINE)
    v, W = run.final["v"][0], run.observables["W"][-1]
    yield deviation("W, one head", W, np.diag(1 / GAMMA), 1e-7)
    yield Measurement("v, one head", v, (GAMMA**-2.0).sum() ** 0.25, 1e-7)
    start = normal_start("merged", 1, 0.1)
    many = odesim.integrate("in_context.merged", sizes={"H": 5}, initial=start, span=(0, 2000), save=2, **FINE)
    yield deviation("W, five random heads", many.observables["W"][-1], np.diag(1 / GAMMA), 1e-7)


def time_near(model: str, seed: int, scale: float, end: float) -> tuple[np.ndarray, float]:
    """How far ln t goes on (3,) while the loss is near that of 1, 2 and 3 learned components; and the loss in the end."""
    times = np.geomspace(0.1, end, 801)
    start = normal_start(model, seed, scale)
    run = odesim.integrate(f"in_context.{model}", sizes={"H": 5}, initial=start, span=(0, end), save=np.append(0, times), **FINE)
    near = np.abs(run.observables["loss"][1:, None] - LEVELS[1:4]) < NEAR
    return near.sum(axis=0) * np.log(times[1] / times[0]), float(run.observables["loss"][-1])


def one_drop() -> Iterable[Measurement]:
    """Five merged heads from normal weights of .005, two seeds."""
    for seed in (1, 2):
        stays, last = time_near("merged", seed, 5e-3, 1e3)
        yield Measurement(f"largest stay near a plateau, in ln t, seed {seed}", stays.max(), 0.05, 0.0, "<=")
        yield Measurement(f"loss at the end, seed {seed}", last, LEVELS[4], 1e-6)


def drops(scale: float) -> Iterable[Measurement]:
    """Five heads with separate keys and queries from normal weights, two seeds."""
    for seed in (1, 2):
        stays, _ = time_near("separate", seed, scale, 4e4 if scale < 0.05 else 1e4)
        for count, stay in enumerate(stays, 1):
            yield Measurement(f"stay near the loss of {count} components, in ln t, seed {seed}", stay, 0.2, 0.0, ">=")


def waiting() -> Iterable[Measurement]:
    """When half is learned: merged with lam = 1/4 from s0, separate with the lam above from a0, each smaller by ten and a hundred."""
    D, lam = 4, 0.25
    rest = D**0.5 / gammas({"lam": np.full(D, lam), "N": N})[0]
    for s0 in (1e-2, 1e-4, 1e-6):
        events = [f"half: v[0]**2 - {rest / 2}"]
        run = odesim.integrate("in_context.merged", params={"lam": lam, "s0": s0}, span=(0, 80), save=2, events=events, **FINE)
        want = float(np.log(rest / s0 - 1) / (4 * D**0.5 * lam**2))
        yield Measurement(f"merged, s0 = {s0:g}", run.events["half"][0]["t"], want, 1e-5)
    times = []
    for a0 in (5e-2, 5e-3, 5e-4):
        run = odesim.integrate("in_context.separate", params={"a0": a0}, span=(0, 110 / a0), save=2, **FINE)
        times.append({event["index"]: event["t"] for event in run.events["learned"]})
        for n in range(4):
            want = half_time(float(LAM[n]), float(GAMMA[n]), a0)
            yield Measurement(f"separate, a0 = {a0:g}, component {n}", times[-1][n,], want, 1e-6 * want)
    for n in range(4):
        yield Measurement(
            f"a0 t 2 lam^2 at 5e-4, component {n}",
            5e-4 * 2 * float(LAM[n]) ** 2 * times[-1][n,],
            1.0,
            2 * 5e-4 * float(GAMMA[n]) ** (1 / 3),
        )


def half_time(lam: float, gamma: float, a0: float) -> float:
    """t at which Gamma a^3 = 1/2 for a' = 2 lam^2 (1 - Gamma a^3) a^2."""
    c = gamma ** (1 / 3)
    return c * (passage(1 - 0.5 ** (1 / 3)) - passage(1 - c * a0)) / (2 * lam**2)


def few_heads() -> Iterable[Measurement]:
    """One head and two from small weights at t = 20,000: the loss of so many components, each key along its own."""
    one: dict[str, Any] = {"v": [0.02], "k": 0.02 * np.array([[0.3, 0.5, -0.4, 0.7]]), "q": 0.02 * np.array([[0.1, 0.6, 0.2, -0.5]])}
    for heads, start in ((1, one), (2, normal_start("separate", 4, 0.02, 2))):
        run = odesim.integrate("in_context.separate", sizes={"H": heads}, initial=start, span=(0, 2e4), save=2, **FINE)
        yield Measurement(f"loss, {heads} of 4", run.observables["loss"][-1], LEVELS[heads], 1e-8)
        yield deviation(f"learned, {heads} of 4", run.observables["share"][-1], np.arange(4) < heads, 1e-6)


def on_prompts(M: float) -> float:
    """The loss of the trained layer on prompts of M pairs."""
    run = odesim.integrate("in_context.merged", span=(0, 1000), save=2, **FINE)
    W = run.observables["W"][-1]
    tested = gammas({"lam": LAM, "N": M})
    return float(LAM.sum() - 2 * LAM**2 @ np.diag(W) + (tested * LAM) @ W**2 @ LAM)


def shrunk() -> Iterable[Measurement]:
    """The loss on prompts of several lengths beside the formula; for long ones as N grows."""
    for M, want in ((31, 0.1359950716), (10, 0.3780143673), (100, 0.0564744459), (1e12, 0.0207477879)):
        yield Measurement(f"M = {M:g}, N = 31", on_prompts(M), want, 1e-9)
    for n in (31, 310, 3100):
        run = odesim.integrate("in_context.merged", params={"N": n}, span=(0, 1000), save=2, **FINE)
        rest = float(LAM @ (1 - LAM * np.diag(run.observables["W"][-1])) ** 2)
        yield Measurement(f"N^2 times the loss on long prompts, N = {n}", n**2 * rest, LAM @ (1 + 1 / LAM) ** 2, 900.0 / n)


def two_rules(t: float) -> Iterable[Measurement]:
    """40,000 prompts of 31 inputs and a query, each with the labels of two tasks: errors of the two answers of a layer trained to t.

    By its own rule an answer errs by the least loss L = tr - S, S = sum lam^2 / Gamma. By the other rule, which it knows nothing of, its
    mean square S adds to that of the label: tr + S = 2 tr - L. Labels of the opposite rule turn the answer's sign.
    """
    W = odesim.integrate("in_context.merged", span=(0, t), save=2, **FINE).observables["W"][-1]
    rng, count = np.random.default_rng(0), 40_000
    x, w = LAM**0.5 * rng.standard_normal((count, N + 1, 4)), rng.standard_normal((3, count, 4))
    w[2] = -w[0]
    labels = np.einsum("pnd,rpd->rpn", x, w)  # of rule r, the last one of the query
    answers = np.einsum("rpn,pna,ab,pb->rp", labels[..., :-1], x[:, :-1], W / N, x[:, -1], optimize=True)
    for name, answer, rule, want in (
        ("first rule, by itself", 0, 0, LEVELS[4]),
        ("second rule, by itself", 1, 1, LEVELS[4]),
        ("first rule, by the second", 0, 1, 2 * LAM.sum() - LEVELS[4]),
        ("second rule, by the first", 1, 0, 2 * LAM.sum() - LEVELS[4]),
    ):
        off = (answers[answer] - labels[rule, :, -1]) ** 2
        yield Measurement(f"error of the answer to labels of the {name}", off.mean(), want, 4 * float(off.std()) / count**0.5)
    yield deviation("answers to the first rule and to its opposite, sum", answers[0] + answers[2], 0.0, 1e-12)


def two_steps(start: tuple[float, float]) -> Iterable[Measurement]:
    """Two layers from two step sizes, D = 5, N = 20: the least loss over all pairs of them, from a linear system."""
    run = odesim.integrate("in_context.two_layers", initial=dict(zip(("eta1", "eta2"), start, strict=True)), span=(0, 60), save=2, **FINE)
    # in a = eta1 + eta2, b = eta1 eta2 the loss is a quadratic form
    m = (1.0, 1.3, 2.01, 3.49)
    a, b = np.linalg.solve([[m[1], -m[2]], [-m[2], m[3]]], [m[0], -m[1]])
    steps = np.sort(np.roots([1, -a, b]))
    yield Measurement("loss over D", run.observables["loss"][-1], 0.0722479372, 1e-8)
    yield Measurement("smaller step", min(run.final[name] for name in ("eta1", "eta2")), steps[0], 1e-6)
    yield Measurement("larger step", max(run.final[name] for name in ("eta1", "eta2")), steps[1], 1e-6)


TOLERANCE = "100 to 1000 times the tolerance 1e-9 of a run"
MERGED, SEPARATE = ("in_context.merged",), ("in_context.separate",)

CLAIMS = (
    Claim(
        "in_context.two_steps",
        Source("ahn2023transformers", "Abstract", "two layers, inputs N(0, I)"),
        "in_context.two_layers, D = 5, N = 20, to t = 60",
        "two layers learn two steps of gradient descent in context, of different sizes",
        partial(two_steps, (0.1, 0.2)),
        TOLERANCE,
        when="the layers start with different steps; from equal ones they stop at a saddle, .0998 and not .0722",
        otherwise=partial(two_steps, (0.2, 0.2)),
    ),
    *TOKENS,
    *NEAREST,
    Claim(
        "in_context.converges",
        Source("zhang2024trained", "Theorem 4.1", "also of five heads"),
        "in_context.merged, lam = .4, .3, .2, .1, N = 31",
        "gradient flow finds the global minimum, W = diag(1 / Gamma)",
        converges,
        TOLERANCE,
    ),
    Claim(
        "in_context.two_rules",
        Source("zhang2024trained", "Abstract", "a task for each prompt; one prompt with the labels of two is ours"),
        "in_context.merged, lam = .4, .3, .2, .1, N = 31; 40,000 prompts",
        "one prompt under two label rules gets two answers, each by the rule of its labels",
        partial(two_rules, 1000.0),
        "four standard errors; rounding",
        when="the layer is trained; at the start both are near 0",
        otherwise=partial(two_rules, 1e-9),
        depends=("in_context.converges",),
    ),
    Claim(
        "in_context.long_prompts",
        Source("zhang2024trained", "Abstract", "what it says of earlier work"),
        "in_context.merged, trained on prompts of 31 pairs and more",
        "what is learned is least squares: no error on long prompts without noise",
        lambda: [Measurement("loss on long prompts, trained with N = 31", on_prompts(1e12), 0.0, 1e-6)],
        "1e-6",
        fails=True,
        corrected=Statement(
            "on long prompts sum_d lam_d (1 - lam_d / Gamma_d)^2 stays, which falls as 1 / N^2",
            shrunk,
            "100 times the tolerance of a run; two terms of the next order in 1 / N",
        ),
    ),
    Claim(
        "in_context.one_drop",
        Source("zhang2025training", "Abstract", "merged key and query"),
        "in_context.merged, five heads from normal weights of .005",
        "the loss exhibits a single, abrupt drop",
        one_drop,
        "a stay of less than .05 in ln t is passing; 1e-6",
    ),
    Claim(
        "in_context.drops",
        Source("zhang2025training", "Abstract", "separate key and query of rank one"),
        "in_context.separate, five heads from normal weights of .005",
        "saddle to saddle: the loss waits at tr - sum_(d in S) lam_d^2 / Gamma_d, one component more after each drop",
        partial(drops, 5e-3),
        "a stay of more than .2 in ln t is a plateau",
        when="starts are small; from weights of .1 the first plateau is passed",
        otherwise=partial(drops, 0.1),
        depends=("in_context.one_drop",),
    ),
    Claim(
        "in_context.few_heads",
        Source("zhang2025training", "Abstract", "fewer heads than dimensions"),
        "in_context.separate, one and two heads in four dimensions, to t = 20,000",
        "H heads do regression on the first H principal components",
        few_heads,
        TOLERANCE,
    ),
    Claim(
        "in_context.waiting",
        Source("zhang2025training", "Abstract", "time courses from aligned starts"),
        "in_context.merged and in_context.separate from starts down to 1e-6 and 5e-4",
        "merged weights wait for ln(1 / s0) / (4 sqrt(D) lam^2), separate ones for 1 / (2 lam^2 a0)",
        waiting,
        "integration; of the last law the next order, a0 Gamma^(1/3)",
    ),
)
