"""What is stated of attention as particles on a sphere: reductions, clusters and how long they live, crowds, noise; what holds."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from scipy.integrate import simpson
from scipy.optimize import brentq
from scipy.special import gamma, iv, ive

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.particles._limit_claims import LIMITS, OTHERS, STEPS
from odesim.symbolic import Source

# What is stated of tokens on the circle with noise: the strength of attention at which order sets in, and how.

TOKENS, MEMBERS, KAPPA = 64, 64, 0.5
LATE = (20.0, 25.0, 30.0, 35.0, 40.0)
"""Far apart beside the time in which the order forgets, below 4."""


def threshold(beta: float) -> float:
    """K at which the uniform density loses its stability."""
    return float(KAPPA * beta / iv(1, beta))


def order_of_density(beta: float, K: float) -> float:
    """E cos of the density that is exp((K/kappa) times its own potential), over its integral, from one that is nearly a point."""
    angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
    pull = np.exp(beta * np.cos(angle[:, None] - angle)) / beta
    density = np.exp(4 * np.cos(angle))
    for _ in range(500):
        density /= density.sum()
        density = np.exp(K / KAPPA * (pull @ density))
    return float(np.cos(angle) @ density / density.sum())


def order(beta: float, K: float, start: dict[str, Any]) -> Any:
    """Order (MEMBERS, TIMES) of 64 tokens."""
    run = odesim.ensemble(
        "particles.noisy_circle", params={"beta": beta, "kappa": KAPPA, "K": K}, sizes={"n": TOKENS}, members=MEMBERS, step=0.1,
        span=(0, LATE[-1]), save=LATE, observe="r", **start,
    )  # fmt: skip
    return run.r.values


def sets_in() -> Iterable[Measurement]:
    """Below the threshold r is that of 64 free tokens, raised by 1/sqrt(1 - K/K#); above, that of the density."""
    uniform, still = {"vary": {"theta": f"uniform(0,{2 * np.pi})"}}, {"initial": {"theta": 0.0}}
    for share in (0.0, 0.5):
        squares = order(1.0, share * threshold(1.0), uniform) ** 2 * TOKENS
        doubt = 4 * float(squares.std()) / squares.size**0.5
        yield Measurement(f"64 times the mean of r^2, beta = 1, {share:g} K#", squares.mean(), 1 / (1 - share), doubt)
    for beta in (1.0, 2.0):
        K = 1.5 * threshold(beta)
        r = order(beta, K, still)
        doubt = 4 * float(r.std()) / r.size**0.5
        yield Measurement(f"mean of r, beta = {beta:g}, 1.5 K#", r.mean(), order_of_density(beta, K), doubt)


def modes_at(beta: float, share: float, start: Any, end: float) -> Any:
    """Modes (40,) of the density at t = end, with K = share K#. start: modes (40,), or a number whose powers they are."""
    modes = start ** np.arange(40) if np.ndim(start) == 0 else start
    given: dict[str, Any] = {"params": {"beta": beta, "kappa": KAPPA, "K": share * threshold(beta)}, "initial": {"a": modes}}
    return odesim.integrate("particles.density", **given, sizes={"N": 40}, span=(0, end), save=2, rtol=1e-9, atol=1e-17).final["a"]


def growth_of_modes() -> Iterable[Measurement]:
    """The rates of the first modes of a density that is nearly uniform, from t = 0 to 1."""
    for beta, share in ((1.0, 0.9), (1.0, 1.1), (4.0, 1.1)):
        small = np.array([1.0, *[1e-7] * 3, *[0.0] * 36])
        end = modes_at(beta, share, small, 1.0)
        for k in (1, 2, 3):
            rate = float(k**2 * (share * threshold(beta) * iv(k, beta) / beta - KAPPA))
            yield Measurement(f"rate of mode {k}, beta = {beta:g}, {share:g} K#", np.log(end[k] / 1e-7), rate, 1e-5)


def transition() -> Iterable[Measurement]:
    """Stationary modes from an ordered and from a nearly uniform density; near K# those of the equation of two modes."""
    for beta, share in ((1.0, 1.1), (1.0, 1.5), (2.0, 1.1), (4.0, 0.98), (4.0, 1.02)):
        K, first = share * threshold(beta), float(modes_at(beta, share, 0.8, 400.0)[1])
        yield Measurement(f"a_1 from order, beta = {beta:g}, {share:g} K#", first, order_of_density(beta, K), 1e-6)
    ratio = float(iv(2, 1.0) / iv(1, 1.0))
    for share in (1.002, 1.001):
        small = (2 * (1 - ratio) * (share - 1) / (1 - 2 * ratio)) ** 0.5
        first = float(modes_at(1.0, share, small, 4000.0)[1])
        yield Measurement(f"a_1 over its law near K#, beta = 1, {share:g} K#", first / small, 1.0, 2 * (share - 1))
    for share, order in ((0.98, 0.0), (1.02, float(modes_at(4.0, 1.02, 0.8, 400.0)[1]))):
        first = float(modes_at(4.0, share, 0.05, 2000.0)[1])
        yield Measurement(f"a_1 from a_1 = 0.05, beta = 4, {share:g} K#", first, order, 1e-6)


def harmonic(l: int, d: int, beta: float) -> float:
    """E exp(beta u) P_l(u) / beta over the sphere in d dimensions, u a cosine, by Bessel functions."""
    return float(gamma(d / 2) * (2 / beta) ** (d / 2 - 1) * iv(d / 2 - 1 + l, beta) / beta)


def on_sphere(d: int, beta: float, share: float, start: Any, end: float) -> Any:
    """Modes (24,) on the sphere in d dimensions at t = end, with K = share K#. start: as of modes_at."""
    modes = start ** np.arange(24) if np.ndim(start) == 0 else start
    given: dict[str, Any] = {"beta": beta, "kappa": KAPPA, "d": float(d), "K": share * KAPPA / harmonic(1, d, beta)}
    options: dict[str, Any] = {"sizes": {"N": 24}, "span": (0, end), "save": 2, "rtol": 1e-9, "atol": 1e-17}
    return odesim.integrate("particles.sphere_density", params=given, initial={"a": modes}, **options).final["a"]


def sphere_growth() -> Iterable[Measurement]:
    """The rates of the first modes of a density that is nearly uniform, from t = 0 to 1, in 3 and 4 dimensions."""
    for d, beta, share in ((3, 1.0, 0.9), (3, 2.5, 1.1), (4, 1.0, 1.1)):
        end = on_sphere(d, beta, share, np.array([1.0, *[1e-7] * 3, *[0.0] * 20]), 1.0)
        for l in (1, 2, 3):
            rate = l * (l + d - 2) * KAPPA * (share * harmonic(l, d, beta) / harmonic(1, d, beta) - 1)
            yield Measurement(f"rate of mode {l}, d = {d}, beta = {beta:g}, {share:g} K#", np.log(end[l] / 1e-7), rate, 1e-5)


def sphere_transition() -> Iterable[Measurement]:
    """From order, 0.2 % below K#, by temperatures 0.3 below and above that where I_(d/2+1) is I_(d/2)/d."""
    for d, recorded in ((3, 1.8161545), (4, 1.5752571)):
        star = brentq(lambda beta, d=d: iv(d / 2 + 1, beta) / iv(d / 2, beta) - 1 / d, 0.5, 5, xtol=1e-12)
        yield Measurement(f"beta at which order begins to jump, d = {d}", star, recorded, 5.1e-8)
        below, above = (float(on_sphere(d, star + side, 0.998, 0.8, 4000.0)[1]) for side in (-0.3, 0.3))
        yield Measurement(f"a_1 in the end below it, d = {d}", below, 0.0, 1e-3)
        yield Measurement(f"a_1 in the end above it, d = {d}", above, 0.1, 0.0, ">=")


NOISY = (
    Claim(
        "particles.threshold",
        Source("mun2026phase", "abstract", "d = 2"),
        "64 tokens on the circle, 64 runs, at 0, 0.5 and 1.5 of K#",
        "for beta < 2.447 noisy tokens are spread evenly up to K# = kappa beta / I_1(beta), and ordered above",
        sets_in,
        "four standard errors of 64 runs, each seen at five times",
        models=("particles.noisy_circle",),
        slow=True,
        depends=("particles.modes",),
    ),
    Claim(
        "particles.modes",
        Source("mun2026phase", "abstract", "d = 2"),
        "40 modes of the density, from a start that is nearly uniform",
        "around the uniform density mode k grows at the rate k^2 (K I_k(beta) / beta - kappa): order sets in with mode 1, at K#",
        growth_of_modes,
        "products of modes of 1e-7, and rtol",
        models=("particles.density",),
    ),
    Claim(
        "particles.transition",
        Source("mun2026phase", "abstract", "d = 2"),
        "40 modes of the density at .98 to 1.5 of K#, from order and from none",
        "for beta < 2.447 order sets in as a_1^2 = 2 (1 - r) (K/K# - 1) / (1 - 2 r), r = I_2 / I_1; above by a jump, and what is "
        "ordered stays so below K#",
        transition,
        "the law near K#: the next order; else what is left in the end",
        models=("particles.density",),
        slow=True,
        depends=("particles.threshold",),
    ),
    Claim(
        "particles.sphere_modes",
        Source("mun2026phase", "abstract", "d = 3 and 4"),
        "24 modes of the density about an axis, from a start that is nearly uniform",
        "around the uniform density on the sphere mode l grows at the rate l (l + d - 2) (K lam_l - kappa), lam_l the mean of "
        "exp(beta u) P_l(u) / beta: order sets in at K# = kappa / lam_1",
        sphere_growth,
        "products of modes of 1e-7, and rtol",
        models=("particles.sphere_density",),
    ),
    Claim(
        "particles.sphere_transition",
        Source("mun2026phase", "abstract", "d = 3 and 4"),
        "24 modes of the density about an axis, at .998 of K#, from order",
        "on the sphere order sets in continuously where I_(d/2+1)(beta) < I_(d/2)(beta) / d, by a jump above",
        sphere_transition,
        "the recorded digits; what is left in the end, and a jump of a tenth",
        models=("particles.sphere_density",),
        slow=True,
        depends=("particles.sphere_modes",),
    ),
)


PAPER = "geshkovski2023mathematical"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
UPPER = np.triu_indices(32, 1)

PAIRS = np.triu_indices(32, 1)
PLAIN: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9, "backend": "numpy"}


def tokens(gram: np.ndarray, d: int) -> np.ndarray:
    """Tokens (n, d) with these inner products, by their eigenvectors."""
    values, vectors = np.linalg.eigh(gram)
    x = vectors * np.sqrt(np.maximum(values, 0))
    return np.hstack([x, np.zeros((len(x), d - x.shape[1]))]) if d > x.shape[1] else x[:, -d:]


def products(beta: float, x: np.ndarray, times: Any) -> np.ndarray:
    """Inner products (t, pair) of 32 tokens from x, at these times."""
    run = odesim.integrate("particles.sphere", params={"beta": beta, "x0": x}, span=(0, times[-1]), save=times, **PLAIN)
    return np.asarray(run.observables["product"][:, PAIRS[0], PAIRS[1]])


def three_dimensions(beta: float, times: list[float]) -> np.ndarray:
    """The least product (start, t) of 32 tokens in three dimensions, three random starts."""
    starts = (np.random.default_rng(seed).standard_normal((32, 3)) for seed in range(3))
    return np.array([products(beta, x, times).min(axis=1) for x in starts])


def crowd_as_one() -> Iterable[Measurement]:
    """32 tokens in three dimensions, without temperature and at three temperatures: the least product at the end."""
    for beta, end in ((0.0, 30.0), (0.5, 30.0), (1.0, 30.0), (2.0, 60.0)):
        yield Measurement(f"beta = {beta:g}, least product at t = {end:g}", three_dimensions(beta, [0, end])[:, 1].min(), 0.999, 0.0, ">=")


def long_lives() -> Iterable[Measurement]:
    """32 tokens in three dimensions: at beta = 4 apart at t = 100 and together at t = 1000, at beta = 9 still apart."""
    warm, cold = three_dimensions(4.0, [0, 100, 1000]), three_dimensions(9.0, [0, 1000])
    yield Measurement("beta = 4, t = 100: least product, median of starts", np.median(warm[:, 1]), 0.0, 0.0, "<=")
    yield Measurement("beta = 4, t = 1000: least product", warm[:, 2].min(), 0.999, 0.0, ">=")
    yield Measurement("beta = 9, t = 1000: least product, largest of starts", cold[:, 1].max(), 0.0, 0.0, "<=")


def farthest(beta: float, d: int) -> float:
    """The largest distance of a product of 32 random tokens in d dimensions from particles.gamma, to t = 10, the mean of five starts.

    Tokens stay in the span of the first ones: 32 coordinates, with the same inner products, are enough.
    """
    times, apart = np.linspace(0, 10, 41), []
    run = odesim.integrate("particles.gamma", params={"beta": beta, "n": 32}, span=(0, 10), save=times, **PLAIN)
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal((32, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        apart.append(np.abs(products(beta, tokens(x @ x.T, 32), times) - run.y["gamma"][:, None]).max())
    return float(np.mean(apart))


def many_dimensions() -> Iterable[Measurement]:
    """The largest distance of a product from particles.gamma in 256 and 1024 dimensions, the mean of five starts, beta = 1."""
    means = {d: farthest(1.0, d) for d in (256, 1024)}
    for d, mean in means.items():
        # 496 pairs of normal products have a largest one of about 3.3 deviations; on the way it doubles at most
        yield Measurement(f"d = {d}: largest distance, times sqrt(d)", mean * d**0.5, 3.3, 1.0)
    yield Measurement("four times as many dimensions: shorter by", means[256] / means[1024], 2.0, 0.4)


def cold_in_many_dimensions() -> Iterable[Measurement]:
    """The same at beta = 4, d = 64 to 1024, beside an independent script from the same starts; times sqrt(d), of order 1."""
    for d, want in ((64, 0.58606), (256, 0.25207), (1024, 0.14428)):
        found = farthest(4.0, d)
        yield Measurement(f"d = {d}: largest distance", found, want, 2e-5)
        yield Measurement(f"d = {d}: largest distance, times sqrt(d)", found * d**0.5, 6.6, 0.0, "<=")


CROWDS = (
    Claim(
        "particles.consensus",
        Source("criscitiello2024synchronization", "spheres", "d >= 3, exponential interactions; attention is this flow in another metric"),
        "particles.sphere, 32 tokens in three dimensions, beta = 0, .5, 1 and 2, three random starts; of beta = 4 see particles.metastable",
        "for every beta random tokens in three dimensions become one cluster",
        crowd_as_one,
        "none: 1 - 1e-3",
        models=("particles.sphere",),
    ),
    Claim(
        "particles.metastable",
        Source(PAPER, "eq. SA", "metastability"),
        "particles.sphere, 32 tokens in three dimensions, beta = 4 and 9, to t = 1000, three random starts",
        "clusters of random tokens are metastable: they live long, and longer at a lower temperature",
        long_lives,
        "none: tokens apart have a negative product",
        slow=True,
        depends=("particles.lifetimes",),
    ),
    Claim(
        "particles.many_dimensions",
        Source(PAPER, "eq. SA", "random tokens in many dimensions"),
        "particles.sphere beside particles.gamma, 32 random tokens, d = 256 and 1024, five starts, beta = 1, to t = 10",
        "products of random tokens follow the equation for equal ones, up to order sqrt(log d / d)",
        many_dimensions,
        "a third of the largest deviation; of the ratio 2, whose logarithm makes it 1.8, two standard errors of five starts",
        depends=("particles.equal_products",),
    ),
    Claim(
        "particles.cold_in_many_dimensions",
        Source(PAPER, "eq. SA", "random tokens in many dimensions"),
        "particles.sphere beside particles.gamma, 32 random tokens, d = 64, 256 and 1024, five starts, beta = 4, to t = 10",
        "at beta = 4 too: the largest distance stays below 6.6 / sqrt(d), twice the largest deviation of a product at the start",
        cold_in_many_dimensions,
        "10 times the relative tolerance of the runs, and half a unit of the last digit",
        slow=True,
        depends=("particles.many_dimensions",),
    ),
)


def equal_products() -> Iterable[Measurement]:
    """All inner products of six tokens in nine dimensions beside particles.gamma."""
    for c, beta in ((0.0, 0.0), (0.3, 1.0), (-0.15, 4.0)):
        x = tokens((1 - c) * np.eye(6) + c, 9)
        times = np.linspace(0, 3, 7)
        run = odesim.integrate("particles.sphere", params={"beta": beta, "x0": x}, span=(0, 3), save=times, **FINE)
        one = odesim.integrate("particles.gamma", params={"beta": beta, "n": 6}, initial={"gamma": c}, span=(0, 3), save=times, **FINE)
        i, j = np.triu_indices(6, 1)
        want = one.y["gamma"][:, None]
        yield deviation(f"products from {c:g}, beta = {beta:g}", run.observables["product"][:, i, j], want, 1e-7)


TIMES = {
    32: ((0.1, 1.76, 5.20), (1, 1.82, 5.28), (2, 2.00, 5.46), (4, 3.44, 6.96), (6, 12.37, 16.00), (8, 69.58, 73.45), (9, 174.66, 178.74)),
    128: ((0.1, 2.44, 5.89), (1, 2.46, 5.91), (2, 2.53, 5.98), (4, 3.10, 6.57), (6, 6.86, 10.36), (8, 31.91, 35.47), (9, 78.99, 82.60)),
}
AT_30: dict[tuple[int, float], tuple[float, float]] = {
    (32, 8): (0.0313, 5e-5),
    (32, 9): (0.00860, 5e-6),
    (128, 8): (0.205, 5e-4),
    (128, 9): (0.0128, 5e-5),
}


def times_to_merge() -> Iterable[Measurement]:
    """When the common product of 32 and of 128 tokens passes 1/2 and 1 - 1e-3, and where it is at t = 30."""
    for n, rows in TIMES.items():
        for beta, half, end in rows:
            given: dict[str, Any] = {"params": {"beta": beta, "n": n}, "events": ["half: gamma - 0.5", "end: gamma - 0.999"]}
            run = odesim.integrate("particles.gamma", span=(0, end + 5), save=[0, min(30, end), end + 5], **given, **FINE)
            for name, t in (("half", half), ("end", end)):
                yield Measurement(f"{name} at n = {n}, beta = {beta:g}", run.events[name][0]["t"], t, 0.01)
            if (n, beta) in AT_30:
                yield Measurement(f"product at t = 30, n = {n}, beta = {beta:g}", run.y["gamma"][1], *AT_30[n, beta])


def two_clusters() -> Iterable[Measurement]:
    """Clusters of seven and three tokens beside particles.two_clusters, and lifetimes of equal ones."""
    x = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [7, 3], axis=0)
    times = np.linspace(0, 6, 7)
    run = odesim.integrate("particles.sphere", params={"beta": 3, "x0": x}, span=(0, 6), save=times, **FINE)
    one = odesim.integrate("particles.two_clusters", params={"beta": 3, "m1": 7, "m2": 3}, span=(0, 6), save=times, **FINE)
    yield deviation("product of the clusters", run.observables["product"][:, 0, 9], one.y["r"], 1e-7)
    for beta, life in ((2, 2.78178), (4, 8.39030), (6, 36.65542)):
        given: dict[str, Any] = {"params": {"beta": beta, "m1": 1, "m2": 1}, "span": (0, life + 1), "events": ["merged: r - 0.9"]}
        found = odesim.integrate("particles.two_clusters", save=2, **given, **FINE)
        yield Measurement(f"lifetime at beta = {beta}", found.events["merged"][0]["t"], life, 5e-6)


def growth() -> Iterable[Measurement]:
    """How fast a wave of k crests grows among 256 evenly spread tokens."""
    even = 2 * np.pi * np.arange(256) / 256
    for beta, k, digits in (
        (9, 1, 0.10474),
        (9, 2, 0.35134),
        (9, 3, 0.59135),
        (9, 4, 0.70450),
        (9, 5, 0.66417),
        (9, 6, 0.52244),
        (4, 3, 0.66439),
        (1, 1, 0.44639),
    ):
        wave = np.sin(k * even)
        start = {"theta": even + 1e-6 * wave}
        run = odesim.integrate("particles.circle", params={"beta": beta}, initial=start, span=(0, 0.5), save=2, **FINE)
        rate = float(np.log((run.final["theta"] - even) @ wave / (1e-6 * wave @ wave)) / 0.5)
        yield Measurement(f"rate at beta = {beta}, k = {k}", rate, k**2 * ive(k, beta) / (beta * ive(0, beta)), 1e-6)
        yield Measurement(f"its digits at beta = {beta}, k = {k}", rate, digits, 6e-6)


def on_circle() -> Iterable[Measurement]:
    """16 tokens in two dimensions beside particles.circle from the same angles, at two temperatures, to t = 5."""
    theta = np.random.default_rng(1).uniform(-np.pi, np.pi, 16)
    for beta in (0.5, 4.0):
        given: dict[str, Any] = {"span": (0, 5), "save": 6, **FINE}
        x = odesim.integrate("particles.sphere", params={"beta": beta, "x0": np.array([np.cos(theta), np.sin(theta)]).T}, **given)
        one = odesim.integrate("particles.circle", params={"beta": beta}, sizes={"n": 16}, initial={"theta": theta}, **given)
        yield deviation(f"tokens at beta = {beta:g}", x.y["x"], one.observables["x"], 1e-7)


def one_cluster() -> Iterable[Measurement]:
    """The least product of 32 random tokens in 32 dimensions at t = 10, and the rate at which the last differences fall."""
    x = np.random.default_rng(1).standard_normal((32, 32))
    run = odesim.integrate("particles.sphere", params={"beta": 1, "x0": x}, span=(0, 10), save=[0, 8, 9, 10], **FINE)
    products = run.observables["product"][:, UPPER[0], UPPER[1]]
    yield Measurement("least product at t = 10", products[3].min(), 0.999, 0.0, ">=")
    least = 1 - products.min(axis=1)
    wide = np.random.default_rng(1).standard_normal((32, 128))
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    wide = tokens(wide @ wide.T, 32)  # they stay in their span: 32 coordinates are enough
    end = odesim.integrate("particles.sphere", params={"beta": 1, "x0": wide}, span=(0, 10), save=[0, 10], **FINE)
    yield Measurement("128 dimensions: least product at t = 10", end.observables["product"][-1].min(), 0.999, 0.0, ">=")
    yield Measurement("rate at which 1 - product falls, t = 8 to 9", np.log(least[1] / least[2]), 2.0, least[1])


def energy(V: np.ndarray, K: np.ndarray, name: str) -> Iterable[Measurement]:
    """The largest fall of the mean of exp(beta (x_i K x_j - 1)) between saved times, and its rise by its own rate; Q is the identity."""
    run = odesim.integrate(
        "particles.sphere", params={"beta": 2, "V": V[None], "K": K[None]}, sizes={"n": 12}, span=(0, 6), save=61, **FINE
    )
    x = run.y["x"]
    means = np.exp(2 * (x @ K @ x.swapaxes(1, 2) - 1)).mean(axis=(1, 2))
    yield Measurement(f"{name}: largest fall", -np.diff(means).min(), 0.0, 1e-9, "<=")
    rates = []
    for now in x:
        weights = np.exp(2 * (now @ K @ now.T - 1))
        pull = weights @ now @ V.T / weights.sum(axis=1, keepdims=True)
        moves = pull - (pull * now).sum(axis=1, keepdims=True) * now
        rates.append(2 * 2 * (weights * (moves @ K @ now.T)).mean())
    yield Measurement(f"{name}: change, over the integral of its rate", (means[-1] - means[0]) / simpson(rates, x=run.t), 1.0, 0.01)


SYMMETRIC = np.array([[1.0, 0.4, -0.3], [0.4, -0.8, 0.5], [-0.3, 0.5, 0.6]])
TURN = np.array([[0.0, -3.0, 1.0], [3.0, 0.0, -2.0], [0.5, 1.0, -1.0]])
CLAIMS = (
    Claim(
        "particles.equal_products",
        Source(PAPER, "eq. SA", "equal inner products"),
        "particles.sphere and particles.gamma, n = 6, d = 9",
        "equal inner products stay equal: gamma' = 2 (1-gamma)((n-1) gamma + 1) / (exp(beta (1-gamma)) + n - 1)",
        equal_products,
        "1000 times the relative tolerance 1e-10 of both runs",
    ),
    Claim(
        "particles.times_to_merge",
        Source(PAPER, "eq. SA", "equal inner products"),
        "particles.gamma from orthogonal tokens, n = 32 and 128, to gamma = .5 and 1 - 1e-3",
        "tokens merge at once for small beta, after exp(beta) / n for large",
        times_to_merge,
        "the recorded grid",
        depends=("particles.equal_products",),
    ),
    Claim(
        "particles.lifetimes",
        Source(PAPER, "eq. SA", "two clusters"),
        "particles.sphere and particles.two_clusters, from r = 0",
        "two clusters obey one equation and live for a time of order exp(beta (1 - r))",
        two_clusters,
        "1000 times the relative tolerance; half a unit of the last recorded digit",
    ),
    Claim(
        "particles.growth",
        Source(PAPER, "eq. SA", "on the circle"),
        "particles.circle, 256 even tokens and a wave of 1e-6",
        "the mode k of an even density grows at the rate k^2 I_k(beta) / (beta I_0(beta))",
        growth,
        "the amplitude of the wave; half a unit of the last recorded digit and as much",
    ),
    Claim(
        "particles.on_circle",
        Source(PAPER, "eq. SA", "two dimensions"),
        "particles.sphere, d = 2, beside particles.circle, 16 tokens, beta = .5 and 4, to t = 5",
        "in two dimensions theta_i' = -sum_j exp(beta cos(theta_i - theta_j)) sin(theta_i - theta_j) / sum_j exp(beta cos(...))",
        on_circle,
        "1000 times the relative tolerance of the runs",
    ),
    Claim(
        "particles.one_cluster",
        Source(PAPER, "eq. SA", "clustering for n <= d"),
        "particles.sphere, n = d = 32, beta = 1, to t = 10",
        "tokens of one hemisphere, as n <= d random ones are, become one cluster, exponentially fast",
        one_cluster,
        "the next order, 1 - product itself, 2e-5 at t = 8",
    ),
    Claim(
        "particles.energy",
        Source(PAPER, "eq. SA", "the interaction energy"),
        "particles.sphere, n = 12, beta = 2, V = I, V = K symmetric, and a V that turns",
        "the interaction energy sum_ij exp(beta <Q x_i, K x_j>) rises",
        lambda: chain(energy(np.eye(3), np.eye(3), "V = I"), energy(SYMMETRIC, SYMMETRIC, "V symmetric")),
        "10 times the relative tolerance of the run; 1 % of the change, which is the integral of its rate",
        when="V is the identity, or symmetric and equal to Q^T K",
        otherwise=lambda: energy(TURN, np.eye(3), "V that turns"),
    ),
    *CROWDS,
    *LIMITS,
    *NOISY,
    *OTHERS,
    *STEPS,
)
